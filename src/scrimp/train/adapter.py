"""The result of a run: what the tuning method stores, with the tokenizer and the template that it was trained with."""

import json
import shutil
from pathlib import Path

from scrimp import methods
from scrimp.core.recipe import Recipe
from scrimp.train.durable import Published, publish
from scrimp.train.load import LoadedModel

# An answer is only right under the template of training, so it travels with the weights.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
)


def save_result(folder: Path, loaded: LoadedModel, recipe: Recipe, *, model_folder: Path) -> Published:
    """Publish `folder`: a PEFT adapter, or for `full` a whole model.

    Raises:
        ResourceError: the disk is full; the last checkpoint still holds everything.
    """

    def fill(aside: Path) -> None:
        methods.get(recipe.method.name).save(loaded.module, str(aside))
        _sort_sets(aside / "adapter_config.json")
        for name in _TOKENIZER_FILES:
            if (model_folder / name).is_file() and not (aside / name).exists():
                shutil.copyfile(model_folder / name, aside / name)

    return publish(folder, fill=fill)


def _sort_sets(config: Path) -> None:
    """PEFT writes its set of target layers in the order of Python's hashes, which is another in each process."""
    if not config.is_file():
        return
    values = json.loads(config.read_text(encoding="utf-8"))
    if isinstance(values.get("target_modules"), list):
        values["target_modules"].sort()
    config.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")

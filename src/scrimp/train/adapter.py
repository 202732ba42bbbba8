"""The result of a run: what the tuning method stores, with tokenizer, template and a card that says what it is."""

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


def save_result(
    folder: Path, loaded: LoadedModel, recipe: Recipe, *, model_folder: Path, base_model: str, card: str
) -> Published:
    """Publish `folder`: a PEFT adapter, or for `full` a whole model.

    Args:
        folder: where it goes.
        loaded: the trained model.
        recipe: says by which method.
        model_folder: the base model's files; the tokenizer's are copied.
        base_model: what an adapter says that it belongs to.
        card: the README.md.

    Raises:
        ResourceError: the disk is full; the last checkpoint still holds everything.
    """

    def fill(aside: Path) -> None:
        methods.get(recipe.method.name).save(loaded.module, str(aside), base_model=base_model)
        for name in _TOKENIZER_FILES:
            if (model_folder / name).is_file() and not (aside / name).exists():
                shutil.copyfile(model_folder / name, aside / name)
        # PEFT puts an empty template here.
        (aside / "README.md").write_text(card, encoding="utf-8")

    return publish(folder, fill=fill)

"""The result of a run: what the tuning method stores, with the tokenizer and the template that it was trained with."""

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
        for name in _TOKENIZER_FILES:
            if (model_folder / name).is_file() and not (aside / name).exists():
                shutil.copyfile(model_folder / name, aside / name)

    return publish(folder, fill=fill)

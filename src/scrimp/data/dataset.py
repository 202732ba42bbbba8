"""A data set ready to train on: encoded rows, and the profile that counts them."""

from dataclasses import dataclass
from pathlib import Path

from scrimp.core.data import DataProfile
from scrimp.core.job import DataSpec
from scrimp.data.answers import prompt_stands_in_front
from scrimp.data.batches import RowSizes
from scrimp.data.content import read_content
from scrimp.data.encode import EncodeOptions, encode_rows, mask_method
from scrimp.data.row import Conversation, DataRow, EncodedRow
from scrimp.data.summary import Basis, summarise
from scrimp.data.tokenizer import PLAIN_ORIGIN, ChatTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Rows that train, rows that evaluate, and what became of all the others."""

    train: tuple[EncodedRow, ...]
    evaluation: tuple[EncodedRow, ...]
    profile: DataProfile

    @property
    def sizes(self) -> RowSizes:
        """Sizes of the training rows, which steps are counted from."""
        return RowSizes.of(self.train)


def load_dataset(spec: DataSpec, tokenizer: ChatTokenizer, *, base: Path) -> Dataset:
    """Read, encode and count what `spec` names; relative paths are taken from `base`.

    Raises:
        DataError: nothing to read, a broken row, an unknown shape, or nothing to train on.
        NetworkError: a hub data set that cannot be fetched.
    """
    content = read_content(spec, base=base)
    options = EncodeOptions.of(spec)
    train = encode_rows(content.train, tokenizer, options)
    evaluation = encode_rows(content.evaluation, tokenizer, options)
    basis = Basis(
        mask_method=mask_method(tokenizer, is_text=content.is_text, train_on=spec.train_on),
        tokenizer=tokenizer.name,
        token_basis="counted with the model's tokenizer",
        notes=() if content.is_text else tuple(_template_notes(content.train[0], tokenizer)),
    )
    return Dataset(
        train=tuple(row for row in train if isinstance(row, EncodedRow)),
        evaluation=tuple(row for row in evaluation if isinstance(row, EncodedRow)),
        profile=summarise(content, spec, train=train, evaluation=evaluation, basis=basis),
    )


def _template_notes(first: DataRow, tokenizer: ChatTokenizer) -> list[str]:
    if tokenizer.template.origin == PLAIN_ORIGIN:
        return ["the model has no chat template: turns are written as ### User: ... ### Assistant: ..."]
    conversation = first.content if isinstance(first.content, Conversation) else Conversation(messages=())
    marks = tokenizer.template.marks_answers and conversation.messages
    if marks and not prompt_stands_in_front(conversation, tokenizer):
        return [
            "the chat template asks the model with another beginning (an opened <think>, most likely) than the one in "
            "front of the answers that it marks"
        ]
    return []

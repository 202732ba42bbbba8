"""What is known of a data set before training, with the model's tokenizer or without."""

from dataclasses import dataclass
from pathlib import Path

from scrimp.core.data import DataProfile
from scrimp.core.job import DataSpec
from scrimp.data.approximate import APPROXIMATE_BASIS, ApproximateRow, approximate_rows
from scrimp.data.batches import RowSizes
from scrimp.data.content import read_content
from scrimp.data.dataset import load_dataset
from scrimp.data.encode import EncodeOptions
from scrimp.data.summary import Basis, summarise
from scrimp.data.tokenizer import ChatTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredData:
    """A profile with the size of every training row, which steps are counted from."""

    profile: DataProfile
    sizes: RowSizes


def profile_dataset(spec: DataSpec, tokenizer: ChatTokenizer | None, *, base: Path) -> DataProfile:
    """Counts of the data set; without a tokenizer they are estimated, and `token_basis` says so.

    Raises:
        DataError, NetworkError: as `load_dataset`.
    """
    return measure_dataset(spec, tokenizer, base=base).profile


def measure_dataset(spec: DataSpec, tokenizer: ChatTokenizer | None, *, base: Path) -> MeasuredData:
    """As `profile_dataset`, with the sizes of the rows.

    Raises:
        DataError, NetworkError: as `load_dataset`.
    """
    if tokenizer is not None:
        dataset = load_dataset(spec, tokenizer, base=base)
        return MeasuredData(profile=dataset.profile, sizes=dataset.sizes)
    content = read_content(spec, base=base)
    options = EncodeOptions.of(spec)
    train = approximate_rows(content.train, options)
    all_tokens = content.is_text or spec.train_on == "all"
    basis = Basis(
        mask_method="all_tokens" if all_tokens else "prefix_rendering",
        tokenizer="none",
        token_basis=APPROXIMATE_BASIS,
    )
    evaluation = approximate_rows(content.evaluation, options)
    return MeasuredData(
        profile=summarise(content, spec, train=train, evaluation=evaluation, basis=basis),
        sizes=RowSizes.of([row for row in train if isinstance(row, ApproximateRow)]),
    )

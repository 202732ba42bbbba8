"""Look at a data set: the tokens and the mask of single rows, or the counts of all of them."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from scrimp.core.data import DataProfile, DataShape, DropReason, MaskMethod
from scrimp.core.errors import DataError, NetworkError, SpecError
from scrimp.core.job import DataSpec, JobSpec
from scrimp.core.model import ModelSource
from scrimp.data.content import DataContent, read_content
from scrimp.data.encode import EncodeOptions, encode_rows, mask_method
from scrimp.data.profile import profile_dataset
from scrimp.data.row import DataRow, DroppedRow, EncodedRow
from scrimp.data.tokenizer import ChatTokenizer
from scrimp.models.hub import hub_fetch
from scrimp.models.prepare import prepare, tokenizer_folder
from scrimp.models.resolve import resolve
from scrimp.spec.read import parse_spec, read_spec
from scrimp.workflows.world import World

_SPEC_ENDINGS = (".yaml", ".yml")
# Stands where a spec needs a model and none was named.
_NO_MODEL = "none"
# Rows are shown as they are even where the length policy leaves them out.
_ANY_LENGTH_TOKENS = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest:
    """A data set (file, folder, hub id) or a spec that names one; `overrides` are key=value pairs of a spec."""

    data: str
    model: str | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownToken:
    """One token as text; empty where it is only the beginning of a character."""

    token_id: int
    text: str
    trained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """One row as the model reads it. `dropped` says why it will not train; its tokens are shown all the same."""

    number: int
    place: str
    held_out: bool
    roles: tuple[str, ...]
    dropped: DropReason | None
    truncated: bool
    total_tokens: int
    trained_tokens: int
    tokens: tuple[ShownToken, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownData:
    """Some rows of a data set, and how they were understood."""

    path: str
    shape: DataShape
    tokenizer: str
    template: str
    mask_method: MaskMethod
    roles: tuple[str, ...]
    rows_in_all: int
    rows: tuple[ShownRow, ...]


def show_data(request: DataRequest, *, first_row: int, rows: int, world: World) -> ShownData:
    """Rows `first_row` (from 1, over the whole source) and following as tokens with their mask.

    Raises:
        DataError: the data cannot be read, or has no such row.
        SpecError: no model was named; its tokenizer decides.
        NetworkError, UnknownNameError: the model's tokenizer cannot be had.
    """
    job = _job(request)
    if job.model == _NO_MODEL:
        raise SpecError(
            what="no model was named, and tokens depend on its tokenizer",
            expected="the model that will be trained",
            next_step=f"scrimp data show {request.data} --model smollm2-135m-instruct",
        )
    # The rows first: they are here, and the tokenizer may have to be fetched.
    content = read_content(job.data, base=world.cwd)
    chosen = _chosen(content, first_row=first_row, rows=rows, path=job.data.path)
    tokenizer = tokenizer_of(job.model, world=world)
    return ShownData(
        path=job.data.path,
        shape=content.shape.name,
        tokenizer=tokenizer.name,
        template=tokenizer.template.origin,
        mask_method=mask_method(tokenizer, is_text=content.is_text, train_on=job.data.train_on),
        roles=content.roles,
        rows_in_all=len(content.train) + len(content.evaluation),
        rows=tuple(_shown(row, tokenizer, job.data, held_out=held_out) for row, held_out in chosen),
    )


def profile_data(request: DataRequest, *, world: World) -> DataProfile:
    """The counts of a data set; estimated where no model is named or its tokenizer cannot be had offline.

    Raises:
        DataError: the data cannot be read, or nothing in it trains.
        UnknownNameError: no such model.
    """
    job = _job(request)
    tokenizer = None
    if job.model != _NO_MODEL:
        try:
            tokenizer = tokenizer_of(job.model, world=world)
        except NetworkError as error:
            world.note(f"the tokenizer of {job.model} cannot be had, so tokens are estimated: {error.what}")
    return profile_dataset(job.data, tokenizer, base=world.cwd)


def tokenizer_of(model: str, *, world: World) -> ChatTokenizer:
    """The tokenizer of a model; of a model on the hub only the small files are fetched.

    Raises:
        NetworkError, SpecError, UnknownNameError: no such model, or no tokenizer to be had.
    """
    source = resolve(model, env=world.env)
    folder = tokenizer_folder(source, env=world.env)
    return ChatTokenizer.from_folder(_fetched(source, world=world) if folder is None else folder)


def _fetched(source: ModelSource, *, world: World) -> Path:
    if source.kind in ("hub", "table"):
        return hub_fetch(world.env)(source.name).folder
    return Path(prepare(source, env=world.env, report=world.note).folder or "")


def _job(request: DataRequest) -> JobSpec:
    if request.data.lower().endswith(_SPEC_ENDINGS):
        job = read_spec(request.data, overrides=request.overrides)
        return job if request.model is None else replace(job, model=request.model)
    text = json.dumps({"model": request.model or _NO_MODEL, "data": {"path": request.data}})
    return parse_spec(text, where="the command line", overrides=request.overrides)


def _chosen(content: DataContent, *, first_row: int, rows: int, path: str) -> list[tuple[DataRow, bool]]:
    """(row, whether it is held out), in the order of the source."""
    everything = [*((row, False) for row in content.train), *((row, True) for row in content.evaluation)]
    everything.sort(key=lambda item: item[0].number)
    found = [item for item in everything if item[0].number >= first_row][:rows]
    if not found:
        raise DataError(
            what=f"{path} has no row {first_row}; its last one is row {everything[-1][0].number}",
            expected=f"a row from 1 to {everything[-1][0].number}",
            next_step=f"scrimp data show {path} --row {everything[-1][0].number}",
        )
    return found


def _shown(row: DataRow, tokenizer: ChatTokenizer, data: DataSpec, *, held_out: bool) -> ShownRow:
    options = EncodeOptions.of(replace(data, overlong="drop" if data.overlong == "error" else data.overlong))
    result = encode_rows([row], tokenizer, options)[0]
    tokens = _tokens(result if isinstance(result, EncodedRow) else _whole(row, tokenizer, options), tokenizer)
    messages = () if isinstance(row.content, str) else row.content.messages
    return ShownRow(
        number=row.number,
        place=str(row.place),
        held_out=held_out,
        roles=tuple(message.role for message in messages),
        dropped=result.reason if isinstance(result, DroppedRow) else None,
        truncated=isinstance(result, EncodedRow) and result.truncated,
        total_tokens=len(tokens),
        trained_tokens=sum(token.trained for token in tokens),
        tokens=tokens,
    )


def _whole(row: DataRow, tokenizer: ChatTokenizer, options: EncodeOptions) -> EncodedRow | None:
    """A dropped row at its full length, with the mask it would have; None when it says nothing."""
    options = replace(options, max_length_tokens=_ANY_LENGTH_TOKENS)
    whole = encode_rows([row], tokenizer, options)[0]
    if isinstance(whole, EncodedRow):
        return whole
    # Without a single label a row is no EncodedRow; with all of them it is, and the mask is taken off again.
    labelled = encode_rows([row], tokenizer, replace(options, train_on="all"))[0]
    return replace(labelled, labels_mask=bytes(len(labelled.tokens))) if isinstance(labelled, EncodedRow) else None


def _tokens(row: EncodedRow | None, tokenizer: ChatTokenizer) -> tuple[ShownToken, ...]:
    if row is None:
        return ()
    texts = tokenizer.token_texts(row.tokens)
    return tuple(
        ShownToken(token_id=token, text=text, trained=bool(label))
        for token, text, label in zip(row.tokens, texts, row.labels_mask, strict=True)
    )

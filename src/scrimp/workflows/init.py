"""Init: a few answers to a commented spec, and to the schema file that lets editors complete and check it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from scrimp.core.errors import ResourceError, SpecError, nearest
from scrimp.core.job import JobSpec, MarketSpec, Where
from scrimp.models.bundled import BUNDLED, is_bundled
from scrimp.models.hub import is_hub_id
from scrimp.models.table import find_known, known_shapes
from scrimp.spec.paths import is_local, to_folder
from scrimp.spec.read import spec_from_flags
from scrimp.spec.schema import schema_text
from scrimp.spec.write import commented_spec
from scrimp.workflows.world import World

DEFAULT_FILE = "job.yaml"
# A folder of its own: the schema is scrimp's, may be deleted, and is made again by the next init.
SCHEMA_FILE = Path(".scrimp") / "job.schema.json"
_USUAL_DATA = "data/rows.jsonl"
# What each flag of `scrimp init` sets.
FLAG_KEYS: Mapping[str, str] = {
    "model": "model",
    "data": "data.path",
    "where": "market.where",
    "method": "method.name",
    "budget": "limits.budget",
    "deadline": "limits.deadline",
}
_DATA_ENDINGS = (".jsonl", ".json", ".csv", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing that no flag has said: the answer's name, the question, what is taken without one, what is possible."""

    name: str
    text: str
    default: str
    choices: tuple[str, ...] = ()


Ask = Callable[[Question], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitRequest:
    """Where the spec goes, and the answers by the name of their flag (see `FLAG_KEYS`), as text."""

    path: Path = Path(DEFAULT_FILE)
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What was written, what to know about it, and the command to type next.

    `doubts` names answers that mean nothing yet.
    """

    path: Path
    schema_path: Path
    spec: JobSpec
    notes: tuple[str, ...]
    next_step: str
    doubts: tuple[str, ...] = ()


def init(request: InitRequest, *, world: World, ask: Ask | None = None) -> Initialised:
    """Write a commented spec; `ask` is asked for what the request leaves open, without it the defaults are taken.

    Raises:
        SpecError: the file is there already, its name is no YAML file's, or an answer is impossible.
        ResourceError: the file cannot be written.
    """
    path = _spec_path(request.path, cwd=world.cwd)
    if (world.cwd / path).exists() and not request.force:
        raise SpecError(
            what=f"{path} exists already",
            expected="another name, or --force to replace it",
            next_step=f"scrimp plan {shlex.quote(str(path))}    # to use it as it is",
        )
    answers = dict(request.answers)
    for question in questions(world.cwd):
        if question.name not in answers:
            answers[question.name] = ask(question) if ask else question.default
    spec = spec_from_flags({FLAG_KEYS[name]: (f"--{name}", text) for name, text in answers.items()})
    # The answers are seen from where they were typed, the file's paths from where the file lies.
    placed = to_folder(spec, path.parent, base=world.cwd)
    schema_path = path.parent / SCHEMA_FILE
    _write(world.cwd / schema_path, schema_text())
    _write(world.cwd / path, commented_spec(placed, schema=SCHEMA_FILE.as_posix()))
    return Initialised(
        path=path,
        schema_path=schema_path,
        spec=placed,
        notes=(_data_note(spec.data.path, cwd=world.cwd),),
        doubts=_model_doubts(spec.model, cwd=world.cwd),
        next_step=f"scrimp {'run' if spec.market.where == 'local' else 'plan'} {shlex.quote(str(path))}",
    )


def questions(cwd: Path) -> tuple[Question, ...]:
    """What init asks, with the answers that it takes when there is nobody to ask."""
    return (
        Question(name="model", text="Which model (hub id, folder or known name)?", default=BUNDLED),
        Question(name="data", text="Which rows (file, folder or hub id)?", default=_suggested_data(cwd)),
        Question(name="where", text="Where may it train?", default=MarketSpec().where, choices=get_args(Where)),
    )


def _suggested_data(cwd: Path) -> str:
    """A data file that lies here or in data/, the first by name; else the usual name."""
    for folder in (cwd, cwd / "data"):
        found = sorted(item for item in folder.glob("*") if item.suffix in _DATA_ENDINGS and item.is_file())
        if found:
            return found[0].relative_to(cwd).as_posix()
    return _USUAL_DATA


def _spec_path(path: Path, *, cwd: Path) -> Path:
    """The file meant: a folder gets the usual name in it, a bare name the usual ending."""
    if (cwd / path).is_dir():
        return path / DEFAULT_FILE
    if not path.suffix:
        return path.with_suffix(".yaml")
    if path.suffix.lower() not in {".yaml", ".yml"}:
        raise SpecError(
            what=f"{path} is no YAML file by its name",
            expected="a name that ends in .yaml",
            next_step=f"scrimp init {shlex.quote(str(path.with_suffix('.yaml')))}",
        )
    return path


def _data_note(data: str, *, cwd: Path) -> str:
    """Whether the rows are where the answer says."""
    place = cwd / Path(data).expanduser()
    if place.exists():
        return f"{data} is there"
    if not is_local(data, folder=cwd):
        return f"{data} is no file here: it is taken for a data set on the hub"
    around = [item.name for item in place.parent.iterdir()] if place.parent.is_dir() else []
    close = [(Path(data).parent / name).as_posix() for name in nearest(place.name, around)]
    return f"{data} is not there yet" + (f"; did you mean {' or '.join(close)}?" if close else "")


def _model_doubts(model: str, *, cwd: Path) -> tuple[str, ...]:
    """A word on a model's name that means nothing yet; a hub id is taken as it is."""
    if (cwd / Path(model).expanduser()).exists() or is_hub_id(model) or is_bundled(model) or find_known(model):
        return ()
    close = nearest(model, (BUNDLED, *known_shapes(), *(name.partition("/")[2] for name in known_shapes())), count=2)
    return (f"the model {model} is not known" + (f"; did you mean {' or '.join(close)}?" if close else ""),)


def _write(path: Path, text: str) -> None:
    """The whole file or none of it: a spec that --force replaces is not lost to a full disk."""
    aside = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise ResourceError(
            what=f"{path} cannot be written: {error.strerror or error}",
            expected="a folder that you may write to, with some space",
            next_step="scrimp init /some/other/folder/job.yaml",
        ) from error

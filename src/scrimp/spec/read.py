"""YAML to JobSpec: read, bring into exact form, override, check; every mistake is reported with its place.

Paths. In a file, data paths (and a model that is a local folder) are relative to the folder of that file. In a JobSpec
in memory they are relative to the working directory, so that every part of the program can open them as they are;
`read_spec` joins, `write.dump_yaml` takes apart again (see `paths`). A path in an override is relative to where the
command is typed, like every path on a command line. `output_dir` always is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from scrimp.core.errors import SpecError, nearest
from scrimp.core.job import JobSpec
from scrimp.core.plan import Plan
from scrimp.spec.build import Builder
from scrimp.spec.canonical import Canon
from scrimp.spec.document import Document, Node, Table, parse_document
from scrimp.spec.faults import parts_of, rule_mistakes, value_mistakes
from scrimp.spec.override import Setting, apply_setting, from_flag, override_keys, parse_override
from scrimp.spec.paths import from_folder
from scrimp.spec.places import Mistake, Place, spec_error

T = TypeVar("T")


def read_spec(path: Path | str, *, overrides: Sequence[str] = ()) -> JobSpec:
    """The job in a YAML file, with `key=value` overrides applied and paths as seen from the working directory.

    Raises:
        SpecError: no such file, not UTF-8, not YAML, or mistakes in the spec: all of them, each with its line.
    """
    file = Path(path)
    spec = parse_spec(read_text(file), where=str(path), overrides=overrides)
    return from_folder(spec, file.parent, keep=override_keys(overrides))


def parse_spec(text: str, *, where: str, overrides: Sequence[str] = ()) -> JobSpec:
    """The job in a YAML text; paths stay as written. `where` names the text in messages.

    Raises:
        SpecError: all mistakes, each with its line and column and a correct line.
    """
    document = parse_document(text, source=where)
    if document.root is None:
        raise _empty(where)
    _refuse_the_other(document.root, JobSpec, where=where)
    parsed = [parse_override(item) for item in overrides]
    mistakes = [item for item in parsed if isinstance(item, Mistake)]
    return _job(document, settings=[item for item in parsed if isinstance(item, Setting)], mistakes=mistakes)


def spec_from_flags(values: Mapping[str, tuple[str, str]]) -> JobSpec:
    """The job that command-line flags describe: dotted key to (name of the flag, its text).

    Raises:
        SpecError: all mistakes, each with its flag.
    """
    settings = [from_flag(flag, key=key, value=value) for key, (flag, value) in values.items()]
    nothing = Table(entries={}, keys={}, place=Place(source="command line"))
    return _job(Document(root=nothing, mistakes=()), settings=settings, mistakes=[])


def load_yaml(kind: type[T], path: Path | str) -> T:
    """A noun that `write.dump_yaml` wrote (a Plan, a JobSpec), edited by hand or not; paths as in `read_spec`.

    Raises:
        SpecError: no such file, not YAML, or not this noun: all mistakes, each with its line.
    """
    file = Path(path)
    document = parse_document(read_text(file), source=str(path))
    if document.root is None:
        raise _empty(str(path))
    _refuse_the_other(document.root, kind, where=str(path))
    canon = Canon(mistakes=list(document.mistakes))
    tree = canon.node(document.root, kind, path="")
    builder = Builder(mistakes=canon.mistakes)
    noun = builder.build(tree, kind) if isinstance(tree, Table) else None
    faults = [fault for part in parts_of(kind) for fault in value_mistakes(builder, part)]
    if noun is None or builder.mistakes or faults:
        raise spec_error([*builder.mistakes, *faults])
    return from_folder(noun, file.parent)


def read_text(path: Path) -> str:
    """The text of a spec file.

    Raises:
        SpecError: it is missing (the nearest names of its folder are given), a folder, unreadable or not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise _missing(path) from None
    except PermissionError as error:
        raise SpecError(
            what=f"{path} cannot be read: {error.strerror or error}",
            expected="a file that this user may read",
            next_step=f"ls -l {path}",
        ) from error
    except OSError as error:
        raise SpecError(
            what=f"{path} cannot be read: {error.strerror or error}",
            expected="a YAML file",
            next_step=f"scrimp init {path.with_suffix('.yaml').name}",
        ) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise SpecError(
            what=f"{path}:{line}:{column}: byte 0x{raw[error.start]:02x} is not UTF-8",
            expected="a text file in UTF-8",
            next_step=f"iconv -f latin1 -t utf-8 {path} > {path.stem}.utf8{path.suffix}",
        ) from error


def _job(document: Document, *, settings: Sequence[Setting], mistakes: Sequence[Mistake]) -> JobSpec:
    canon = Canon(mistakes=[*document.mistakes, *mistakes])
    root: Node | None = document.root and canon.node(document.root, JobSpec, path="")
    if not isinstance(root, Table):
        raise spec_error(canon.mistakes)
    for setting in settings:
        root = apply_setting(root, setting, canon=canon)
    builder = Builder(mistakes=canon.mistakes)
    spec = builder.build(root, JobSpec)
    faults = [fault for part in parts_of(JobSpec) for fault in value_mistakes(builder, part)]
    if spec is not None and not builder.mistakes and not faults:
        faults = rule_mistakes(builder, spec)
    if spec is None or builder.mistakes or faults:
        raise spec_error([*builder.mistakes, *faults])
    return spec


def _refuse_the_other(root: Node, kind: object, *, where: str) -> None:
    """A plan where a spec is wanted, or a spec where a plan is: one line instead of a mistake for every key."""
    keys = root.entries.keys() if isinstance(root, Table) else ()
    if kind is JobSpec and {"plan_id", "chosen"} <= set(keys):
        raise SpecError(what=f"{where} is a plan, not a spec", expected="a spec", next_step=f"scrimp run {where}")
    if kind is Plan and "model" in keys and not {"plan_id", "chosen"} & set(keys):
        next_step = f"scrimp plan {where} -o plan.yaml"
        raise SpecError(what=f"{where} is a spec, not a plan", expected="a plan file", next_step=next_step)


def _empty(where: str) -> SpecError:
    return SpecError(
        what=f"{where} holds no job: it is empty",
        expected="at least a model and data, such as  {model: Qwen/Qwen3-8B, data: rows.jsonl}",
        next_step=f"scrimp init {where} --force",
    )


def _missing(path: Path) -> SpecError:
    folder = path.parent
    if not folder.is_dir():
        return SpecError(
            what=f"{path} does not exist, nor does its folder {folder}",
            expected="a YAML file with a job",
            next_step="scrimp init job.yaml",
        )
    files = [item.name for item in sorted(folder.iterdir()) if item.suffix in {".yaml", ".yml"}]
    close = nearest(path.name, files)
    shown = ", ".join(str(folder / name) for name in close or files[:3])
    return SpecError(
        what=f"{path} does not exist",
        expected=f"did you mean {shown}?" if shown else f"a YAML file; {folder} holds none",
        next_step=f"scrimp init {path}",
    )

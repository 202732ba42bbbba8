"""Scaffold a member of a room: the file, its test data where needed, and the next command to type.

python tools/new_member.py method dora
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

METHOD = '''"""{Name}: WHAT IT IS (AUTHORS YEAR, arXiv NUMBER)."""

from dataclasses import dataclass
from typing import Any

from scrimp.core.model import ModelShape
from scrimp.methods.method import Linear, MethodOptions, TuningMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class {Name}Options(MethodOptions):
    """Defaults and why."""


class {Name}(TuningMethod[{Name}Options]):
    """One line."""

    name = "{name}"
    summary = ""
    options_type = {Name}Options
    weight_dtypes = ("bf16", "fp32", "fp16")
    frozen_base = True
    learning_rate = 2e-4

    def check(self, options: {Name}Options) -> None:
        """Which options are impossible."""
        raise NotImplementedError

    def trainable_params(self, shape: ModelShape, options: {Name}Options) -> int:
        """The formula."""
        raise NotImplementedError

    def adapted_linears(self, shape: ModelShape, options: {Name}Options) -> tuple[Linear, ...]:
        """Which layers carry an adapter."""
        raise NotImplementedError

    def variants(self, options: {Name}Options) -> tuple[tuple[str, {Name}Options], ...]:
        """Cheaper settings for the planner's remedies."""
        return ()

    def apply(self, model: Any, options: {Name}Options) -> Any:
        """The PEFT configuration."""
        raise NotImplementedError

    def save(self, model: Any, folder: str) -> None:
        """A plain PEFT adapter folder."""
        model.save_pretrained(folder, safe_serialization=True)


METHOD = {Name}()
'''

VERB = '''"""WHAT THE VERB DOES, one line."""

import click

from scrimp.cli.options import json_option


@click.command("{name}")
@json_option
def command(as_json: bool) -> None:
    """What it does, in a sentence or two, with an example."""
    raise NotImplementedError

'''

SHAPE = '''"""{name}: WHICH ROWS ARE LAID OUT LIKE THIS."""

from scrimp.data.row import Content, SourceRow
from scrimp.data.shapes.shape import RowShape


class {Name}(RowShape):
    """One line."""

    name = "{name}"
    columns = ""
    example = {{}}  # noqa: RUF012

    def recognises(self, row: SourceRow) -> bool:
        """Which columns tell this shape."""
        raise NotImplementedError

    def content(self, row: SourceRow) -> Content:
        """The row as a conversation or as text."""
        raise NotImplementedError


SHAPE = {Name}()
'''

KINDS = {
    "method": ("src/scrimp/methods", METHOD, "make test-fast    # the contract suite names what is still missing"),
    "verb": ("src/scrimp/cli", VERB, "make docs"),
    "shape": ("src/scrimp/data/shapes", SHAPE, "add the name to DataShape in core/data.py, then make test-fast"),
}


def main(arguments: list[str]) -> int:
    """Write one file, never over another."""
    if len(arguments) != 2 or arguments[0] not in KINDS or not re.fullmatch(r"[a-z][a-z0-9_]*", arguments[1]):
        sys.stderr.write(f"usage: make new KIND={'|'.join(KINDS)} NAME=lower_case_name\n")
        return 2
    kind, name = arguments
    folder, template, next_command = KINDS[kind]
    path = ROOT / folder / f"{name}.py"
    if path.exists():
        sys.stderr.write(f"{path.relative_to(ROOT)} exists already\n")
        return 1
    path.write_text(template.format(name=name, Name=name.title().replace("_", "")), encoding="utf-8")
    sys.stdout.write(f"wrote {path.relative_to(ROOT)}\nnext: {next_command}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

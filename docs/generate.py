"""Write docs/reference/ from the code, or check that it is current.

python docs/generate.py           rewrite the pages
python docs/generate.py --check   exit 1 and name the pages that are out of date
"""

import dataclasses
import importlib
import sys
from pathlib import Path

import click

from scrimp import methods
from scrimp.cli.main import short_help, verb_files
from scrimp.core import errors
from scrimp.spec.kinds import REQUIRED
from scrimp.spec.options import spec_options
from scrimp.spec.yaml_text import one_line

REFERENCE = Path(__file__).parent / "reference"
HEAD = "<!-- Written by `make docs`; edits are overwritten. -->\n\n"


def command_page() -> str:
    """Every verb with its options, from click itself."""
    parts = ["# Commands\n"]
    for name, path in verb_files().items():
        command = importlib.import_module(f"scrimp.cli.{path.stem}").command
        parts.append(f"## scrimp {name}\n\n{short_help(path)}.\n")
        parts += [_command_help(command, f"scrimp {name}")]
        if isinstance(command, click.Group):
            for sub_name, sub in sorted(command.commands.items()):
                parts.append(f"### scrimp {name} {sub_name}\n")
                parts.append(_command_help(sub, f"scrimp {name} {sub_name}"))
    return "\n".join(parts)


def _command_help(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
    return f"```text\n{command.get_help(context)}\n```\n"


def spec_page() -> str:
    """Every option of the spec with what may be written, its default and its meaning."""
    lines = ["# The spec\n", "Every key of a job's YAML file. `scrimp init` writes a commented one.\n"]
    lines += ["| key | what | default | meaning |", "|---|---|---|---|"]
    for option in spec_options().values():
        default = "required" if option.default is REQUIRED else f"`{one_line(option.default)}`"
        cells = (f"`{option.short}`", option.in_words, default, option.help)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def methods_page() -> str:
    """Every tuning method with its options."""
    lines = ["# Tuning methods\n"]
    for name in methods.names():
        method = methods.get(name)
        doc = (importlib.import_module(f"scrimp.methods.{name}").__doc__ or "").strip()
        lines += [f"## {name}\n", doc + "\n", f"Default learning rate {method.learning_rate:g}; base weights stored as"]
        lines[-1] += f" {' or '.join(method.weight_dtypes)}.\n"
        options = dataclasses.fields(method.options_type)
        if options:
            lines += ["| option | default |", "|---|---|"]
            lines += [f"| `{item.name}` | `{one_line(item.default)}` |" for item in options]
            lines.append("")
    return "\n".join(lines)


def exit_codes_page() -> str:
    """The error tree with exit codes."""
    tree = (errors.__doc__ or "").strip()
    return f"# Errors and exit codes\n\n0 means done; click's own usage errors are 2.\n\n```text\n{tree}\n```\n"


PAGES = {
    "commands.md": command_page,
    "spec.md": spec_page,
    "methods.md": methods_page,
    "exit-codes.md": exit_codes_page,
}


def main(check: bool) -> int:
    """Write or compare all pages."""
    stale: list[str] = []
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = REFERENCE / name, HEAD + page()
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(f"docs/reference/{name}")
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write("out of date: " + ", ".join(stale) + "\nnext: make docs\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))

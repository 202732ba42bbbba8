"""The docs against the program: commands parse, links resolve, pages are current, examples plan, snippets run."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from scrimp.catalog.devices import devices
from scrimp.catalog.offers import offers
from scrimp.cli.main import cli, verb_files
from scrimp.core.errors import SpecError
from scrimp.models.table import known_shapes
from scrimp.spec.read import parse_spec, read_spec
from scrimp.workflows.plan import plan
from scrimp.workflows.world import World

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
# What a shell puts between two commands.
SEPARATORS = {"&&", "||", "|", ";", "&", "(", ")", ">", ">>", "<", "2>"}
SHELLS = {"bash", "sh", "console"}
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# Groups of calibration/grades.json as the README calls them.
GRADED = {
    "memory_unseen": "memory, one GPU",
    "memory_sharded_unseen": "memory, sharded over 2 to 8 GPUs",
    "time_unseen": "speed on GPUs",
    "time_sources_unseen": "speed, the whole source not seen",
    "power_unseen": "power of a node, the system not seen",
}
RUN_MARK = "<!-- run this -->\n"
# Split, so that this file does not hold them.
FORBIDDEN = re.compile(
    "|".join(
        ("(?<![\\w.])/" + "work/", "/" + "root/", "arti" + "factory", "\\." + "internal\\b", "/opt/" + "(pypi|wheels)")
    )
)


def repository_files() -> list[Path]:
    """All files that belong to the repository, new ones included; empty outside of git."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    names = done.stdout.decode().split("\0") if done.returncode == 0 else []
    return sorted(path for name in set(names) if name and (path := ROOT / name).is_file())


FILES = repository_files()
PAGES = [path for path in FILES if path.suffix == ".md"]
HANDWRITTEN = [path for path in PAGES if "reference" not in path.parts and path.name != "CHANGELOG.md"]


def name_of(path: Path) -> str:
    """A path as people know it."""
    return path.relative_to(ROOT).as_posix()


def fences(text: str, *languages: str) -> Iterator[tuple[bool, str]]:
    """(marked to be run, code) of every fenced block in one of the languages."""
    for match in FENCE.finditer(text):
        if match[1] in languages:
            yield text[: match.start()].endswith(RUN_MARK), match[2]


def shell_lines(text: str) -> Iterator[str]:
    """Every command line: of fenced shell blocks, of blocks that are only indented, and behind a prompt in output."""
    for _, code in fences(text, *SHELLS):
        yield from code.replace("\\\n", " ").splitlines()
    outside = FENCE.sub("", text)
    yield from (line[4:] for line in outside.splitlines() if line.startswith("    "))
    for _, code in fences(text, "text"):
        yield from (line[2:] for line in code.splitlines() if line.startswith("$ "))


def scrimp_calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of scrimp in a command line, comments left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        tokens = [*lexer, ";"]
    except ValueError:  # prose or YAML in an indented block: no closing quotation mark
        return
    for token in tokens:
        if token not in SEPARATORS:
            words.append(token)
            continue
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            del words[0]
        if words and words[0] in {"scrimp", ".venv/bin/scrimp"}:
            yield words[1:]
        words = []


def inline_calls(text: str) -> Iterator[list[str]]:
    """The arguments of `scrimp ...` inside sentences."""
    for code in re.findall(r"(?<!`)`(scrimp [^`]+)`(?!`)", FENCE.sub("", text)):
        yield " ".join(code.split()).split()[1:]


def check_call(arguments: list[str]) -> None:
    """Parse a call as click would, and its overrides as the spec would; run nothing."""
    command: click.Command = cli
    words, path = list(arguments), "scrimp"
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command, info_name=path)
        found = command.get_command(context, words[0])
        assert found is not None, f"{path} has no command {words[0]}"
        command, path = found, f"{path} {words.pop(0)}"
    if {"--help", "-h", "--version"} & set(words):
        return
    context = command.make_context(path, words)
    overrides = context.params.get("overrides", ())
    try:
        parse_spec("{model: a/b, data: rows.jsonl}", where="the docs", overrides=overrides)
    except SpecError as error:
        pytest.fail(f"{' '.join(arguments)}: {error}")


@pytest.mark.parametrize("path", HANDWRITTEN, ids=name_of)
def test_every_command_line_in_the_docs_parses(path):
    for line in shell_lines(path.read_text(encoding="utf-8")):
        for arguments in scrimp_calls(line):
            check_call(arguments)


@pytest.mark.parametrize("path", HANDWRITTEN, ids=name_of)
def test_commands_in_sentences_name_real_verbs(path):
    for arguments in inline_calls(path.read_text(encoding="utf-8")):
        if arguments[0].isupper() or arguments[0].startswith("-"):  # scrimp VERB --json
            continue
        assert arguments[0] in verb_files(), arguments


def test_the_command_checks_find_mistakes():
    found = list(scrimp_calls("cd x && HF_HUB_OFFLINE=1 scrimp plan job.yaml 'limits.budget=5 USD' | head  # scrimp x"))
    assert found == [["plan", "job.yaml", "limits.budget=5 USD"]]
    with pytest.raises(AssertionError, match="no command pln"):
        check_call(["pln", "job.yaml"])
    with pytest.raises(click.UsageError, match="No such option"):
        check_call(["plan", "job.yaml", "--outptu", "x"])
    with pytest.raises(pytest.fail.Exception, match=r"did you mean training"):
        check_call(["plan", "job.yaml", "trainng.epochs=2"])


def test_every_make_target_and_script_in_the_docs_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for path in HANDWRITTEN:
        text = path.read_text(encoding="utf-8")
        commands = [line for line in shell_lines(text) if line.startswith("make ")]
        commands += re.findall(r"`(make [^`]+)`", text)
        for command in commands:
            named = [word for word in command.split("#")[0].split()[1:] if re.fullmatch(r"[a-z-]+", word)]
            assert set(named) <= targets, (name_of(path), command)
        for script in re.findall(r"\b(?:benchmarks|tools|docs)/\w+\.py\b", text):
            assert (ROOT / script).is_file(), (name_of(path), script)


def test_every_verb_is_in_the_readme_and_has_a_section():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    for verb in verb_files():
        assert re.search(rf"`scrimp {verb}\b", readme), verb
        assert f"\n## scrimp {verb}\n" in reference


def test_the_reference_is_current():
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_figures_of_the_readme_are_those_of_the_data():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = offers()
    providers = len({offer.provider for offer in found})
    for words in (
        f"{len(found):,} offers",
        f"{len(devices())} GPUs",
        f"{providers} providers",
        f"{len(known_shapes())} hub ids",
    ):
        assert words in readme
    grades = json.loads((ROOT / "calibration" / "grades.json").read_text(encoding="utf-8"))
    for name, label in GRADED.items():
        grade = grades[name]
        figures = f"{grade['mape']:.1%} | {grade['mape_of_groups']:.1%} | {grade['interval_holds']:.0%}"
        assert f"| {label} | {grade['rows']} | {figures} |" in readme


def test_the_extras_of_the_readme_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(
        r"^\| (none|`\w+`) \| .* \| (.*) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    told = {name.strip("`"): {word for word in brings.split(", ") if word} for name, brings in rows}
    extras = {"none": project["dependencies"], **project["optional-dependencies"]}
    for name in ("none", "train", "models", "quant", "data", "energy"):
        assert told[name] == {re.split(r"[<>=~ ]", item)[0] for item in extras[name]}


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ +(.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_relative_link_resolves(path):
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place) if place else path
        assert target.exists(), f"{name_of(path)}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name_of(path)}: {link}"


def test_every_page_can_be_reached_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                waiting.append(target)
    missing = [name_of(page) for page in PAGES if page not in seen and (ROOT / "docs") in page.parents]
    assert missing == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_is_planned(path, tmp_path):
    notes: list[str] = []
    world = World(
        env={"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        cwd=ROOT,
        note=notes.append,
    )
    plans = plan(read_spec(path), world=world)
    assert plans.candidates
    assert notes == []


def python_snippets() -> list[tuple[str, bool, str]]:
    """(page and number, marked to be run, code) of every Python block."""
    found: list[tuple[str, bool, str]] = []
    for path in HANDWRITTEN:
        blocks = fences(path.read_text(encoding="utf-8"), "python")
        found += [(f"{name_of(path)}:{number}", *block) for number, block in enumerate(blocks, start=1)]
    return found


@pytest.mark.parametrize(("name", "is_run", "code"), python_snippets(), ids=lambda value: str(value)[:60])
def test_python_snippets_compile_and_marked_ones_run(name, is_run, code, tmp_path):
    compile(code, name, "exec")
    if is_run:
        env = {**os.environ, "HOME": str(tmp_path), "SCRIMP_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_no_page_waits_for_something_to_be_filled_in():
    for path in HANDWRITTEN:
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        assert not re.search(r"^[A-Z]+(_[A-Z]+)+$|\bTODO\b|\bTBD\b|\bFIXME\b", text, re.MULTILINE), name_of(path)


def test_no_file_speaks_of_the_machine_that_it_was_written_on():
    if not FILES:
        pytest.skip("not a git checkout")
    found: list[str] = []
    for path in FILES:
        if path.suffix in {".png", ".parquet", ".gz"} or "benchmarks/data" in name_of(path):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if FORBIDDEN.search(line):
                found.append(f"{name_of(path)}:{number}: {line[:100]}")
    assert found == []

"""`scrimp --help` starts fast: few modules, none of the heavy ones, and no verb imported for it."""

import subprocess
import sys

HEAVY = {
    "torch", "transformers", "peft", "numpy", "pandas", "pydantic", "rich", "httpx", "sqlalchemy", "yaml", "jinja2",
    "tokenizers", "plotly", "datasets", "pyarrow", "safetensors",
}  # fmt: skip
MAX_MODULES = 160

PROBE = """
import sys
sys.argv = ["scrimp", *{args!r}]
from scrimp.cli.main import main
try:
    main()
except SystemExit:
    pass
sys.stdout.write("\\n#modules\\n" + "\\n".join(sorted(sys.modules)))
"""


def _modules(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(args=list(args))], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("#modules\n")[1].splitlines())


def test_help_loads_few_modules_and_none_of_the_heavy_ones():
    loaded = _modules("--help")
    assert {name.split(".")[0] for name in loaded} & HEAVY == set()
    assert len(loaded) <= MAX_MODULES
    assert not [name for name in loaded if name.startswith("scrimp.workflows")]


def test_an_unknown_verb_is_answered_with_the_nearest():
    done = subprocess.run([sys.executable, "-m", "scrimp", "pln"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "plan" in done.stderr

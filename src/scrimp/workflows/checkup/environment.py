"""The environment variables that scrimp reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scrimp.core.errors import nearest
from scrimp.core.redact import hide_secrets
from scrimp.models.hub import is_offline
from scrimp.workflows.checkup.finding import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable that scrimp reads. The value of a secret is never shown."""

    is_secret: bool = False
    is_folder: bool = False


# Left out: what the trainer itself sets for the libraries underneath (OMP_WAIT_POLICY, GOMP_SPINCOUNT,
# CUBLAS_WORKSPACE_CONFIG, TOKENIZERS_PARALLELISM), and what terminals set (COLUMNS, NO_COLOR).
VARIABLES: Mapping[str, Variable] = {
    "SCRIMP_HOME": Variable(is_folder=True),
    "SCRIMP_CACHE": Variable(is_folder=True),
    "SCRIMP_LEDGER": Variable(),
    "SCRIMP_ALLOW_PICKLE": Variable(),
    "SCRIMP_ENERGY": Variable(),
    "HF_TOKEN": Variable(is_secret=True),
    "HF_HUB_OFFLINE": Variable(),
    "HF_ENDPOINT": Variable(),
    "HF_HOME": Variable(),
    "HF_HUB_CACHE": Variable(),
    "HUGGINGFACE_HUB_CACHE": Variable(),
    "XDG_CACHE_HOME": Variable(is_folder=True),
    "XDG_DATA_HOME": Variable(is_folder=True),
    "OMP_NUM_THREADS": Variable(),
}
# Set by scrimp itself for the training process that it starts.
INTERNAL_VARIABLES = frozenset({"SCRIMP_LOCK_FILE_NUMBER"})


def check_environment(env: Mapping[str, str], *, cores: int) -> Iterator[Check]:
    """One finding for every variable that is set, secrets in any case, and one for all the others."""
    for name, variable in VARIABLES.items():
        if env.get(name) or variable.is_secret:
            yield _variable(name, env.get(name, ""), cores=cores)
    unset = [name for name in VARIABLES if not env.get(name) and not VARIABLES[name].is_secret]
    if unset:
        yield Check(group="environment", name="not set", status="ok", found=", ".join(unset))
    for name in sorted(env):
        if name.startswith("SCRIMP_") and name not in VARIABLES and name not in INTERNAL_VARIABLES:
            close = nearest(name, VARIABLES, count=1)
            yield Check(
                group="environment",
                name=name,
                status="note",
                found="is set, but scrimp reads no such variable" + (f"; did you mean {close[0]}?" if close else ""),
                next_step=f"unset {name}",
                values={"set": True},
            )


def _variable(name: str, value: str, *, cores: int) -> Check:
    variable = VARIABLES[name]
    if variable.is_secret:
        return Check(
            group="environment",
            name=name,
            status="ok",
            found="set" if value else "not set",
            values={"set": bool(value)},
        )
    doubt, next_step = _doubt(name, value, cores=cores)
    shown = hide_secrets(value)
    return Check(
        group="environment",
        name=name,
        status="note" if doubt else "ok",
        found=f"{shown}: {doubt}" if doubt else shown,
        next_step=next_step,
        values={"set": True, "value": shown},
    )


def _doubt(name: str, value: str, *, cores: int) -> tuple[str, str]:
    """What is odd about a value, and the command that puts it right; empty for nothing."""
    if VARIABLES[name].is_folder and (value == "~" or value.startswith("~/")):
        return "~ is not expanded here", f'export {name}="$HOME{value[1:]}"'
    if name == "SCRIMP_ALLOW_PICKLE":
        if value == "1":
            return "weights may be pickles, which can run any code while they load", f"unset {name}"
        return "only 1 allows pickled weights", f"unset {name}"
    if name == "HF_HUB_OFFLINE" and is_offline({name: value}):
        return "nothing is fetched from the hub", f"unset {name}"
    if name == "OMP_NUM_THREADS" and value.isdigit() and int(value) > cores:
        return f"more threads than the {cores} cores of this process", f"export {name}={cores}"
    return "", ""

"""Where scrimp keeps things: pure functions of an environment mapping."""

from collections.abc import Mapping
from pathlib import Path


def cache_home(env: Mapping[str, str]) -> Path:
    """Converted models and downloads: $SCRIMP_CACHE, else $XDG_CACHE_HOME/scrimp, else ~/.cache/scrimp."""
    if env.get("SCRIMP_CACHE"):
        return Path(env["SCRIMP_CACHE"])
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else home(env) / ".cache") / "scrimp"


def data_home(env: Mapping[str, str]) -> Path:
    """The ledger: $SCRIMP_HOME, else $XDG_DATA_HOME/scrimp, else ~/.local/share/scrimp."""
    if env.get("SCRIMP_HOME"):
        return Path(env["SCRIMP_HOME"])
    base = env.get("XDG_DATA_HOME")
    return (Path(base) if base else home(env) / ".local" / "share") / "scrimp"


def calibration_path(env: Mapping[str, str]) -> Path:
    """What this user's own runs taught about their hardware, beside the ledger's usual place."""
    return data_home(env) / "calibration.json"


def ledger_url(env: Mapping[str, str]) -> str:
    """$SCRIMP_LEDGER (any SQLAlchemy URL), else a SQLite file in the data home."""
    return env.get("SCRIMP_LEDGER") or f"sqlite:///{data_home(env) / 'ledger.db'}"


def home(env: Mapping[str, str]) -> Path:
    """The user's home directory."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()

"""Where things are kept follows the environment that is handed in."""

from pathlib import Path

from scrimp.core import paths


def test_own_variables_win_over_xdg_and_home():
    env = {"HOME": "/h", "XDG_CACHE_HOME": "/x"}
    assert paths.cache_home(env) == Path("/x/scrimp")
    assert paths.cache_home({**env, "SCRIMP_CACHE": "/c"}) == Path("/c")
    assert paths.data_home({"HOME": "/h"}) == Path("/h/.local/share/scrimp")
    assert paths.ledger_url({"HOME": "/h", "SCRIMP_HOME": "/s"}) == "sqlite:////s/ledger.db"
    assert paths.ledger_url({"SCRIMP_LEDGER": "postgresql://x/y"}) == "postgresql://x/y"

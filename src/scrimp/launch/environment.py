"""The environment that training runs in."""

from collections.abc import Mapping


def training_environment(env: Mapping[str, str], *, threads: int | None, offline: bool) -> dict[str, str]:
    """`env` with what training needs. Nothing is added that `env` does not hold, so no secrets either.

    Threads: the job's own number, else what the user set, else the trainer decides by the cores it finds. Idle OpenMP
    threads sleep (after a moment, see train/process.py) instead of spinning, which on a small or shared machine costs a
    multiple of what it gains.
    """
    settings = {
        "OMP_WAIT_POLICY": env.get("OMP_WAIT_POLICY") or "PASSIVE",
        # Tokenizing is done before the training processes fork; its threads would only warn about that.
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
    if threads is not None:
        settings["OMP_NUM_THREADS"] = str(threads)
    if offline:
        settings["HF_HUB_OFFLINE"] = "1"
    return {**env, **settings}

"""A run by any of its names."""

from pathlib import Path

from scrimp.core.run import RunRecord
from scrimp.ledger.store import Ledger
from scrimp.workflows.world import World


def find_record(name: str, *, ledger: Ledger, world: World) -> RunRecord:
    """The newest record of a run, named by its id, a beginning of it, `last`, or its folder.

    Raises:
        UnknownNameError: no such run.
    """
    folder = world.cwd / name
    if name and folder.is_dir():
        resolved = folder.resolve()
        for record in ledger.runs():
            if Path(record.folder).resolve() == resolved:
                return record
    return ledger.run(name)

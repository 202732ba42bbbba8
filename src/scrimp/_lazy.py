"""The one way to import an optional or heavy package: inside a function, with a reason."""

import importlib
from types import ModuleType

from scrimp.core.errors import MissingPackageError


def need(module: str, *, extra: str, why: str) -> ModuleType:
    """Import `module`, or say which extra brings it.

    Raises:
        MissingPackageError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise MissingPackageError(
            what=f'The package "{missing}" is needed {why}, and is not installed',
            expected=f'the "{extra}" extra of scrimp',
            next_step=f'pip install "scrimp[{extra}]"',
        ) from error

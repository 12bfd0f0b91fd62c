"""``needed_by`` names the extra to install where the imports of a command fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fairshield.base.errors import MissingExtraError


@contextlib.contextmanager
def needed_by(command: str, *, extra: str) -> Iterator[None]:
    """Turn an import error of a command into a sentence that says what to install."""
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield {command} needs {error.name}, which is not installed: "
            f"pip install 'fairshield[{extra}]'"
        ) from None

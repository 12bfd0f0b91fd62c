"""What to say where a command needs an extra that is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fairshield.errors import MissingExtraError


@contextlib.contextmanager
def needed_by(command: str, *, extra: str) -> Iterator[None]:
    """For the imports of a command: a missing module is a sentence that says what to install."""
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield {command} needs {error.name}, which is not installed: "
            f"pip install 'fairshield[{extra}]'"
        ) from None

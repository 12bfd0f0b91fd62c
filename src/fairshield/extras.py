"""Whether the compiler is installed, and what to say where it is not.

Loading a policy, deciding, streaming and auditing need numpy alone.  Making policies, simulating
and verifying need numba, which the extra ``synthesis`` installs; deciding many at once is faster
with it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from fairshield.errors import MissingExtraError


@cache
def can_compile() -> bool:
    """Whether numba is installed; it is not loaded to find out."""
    return find_spec("numba") is not None


def check_can_compile() -> None:
    """Raise, with the command that installs it, where the compiler is missing."""
    if not can_compile():
        raise MissingExtraError(
            "making policies, simulating and verifying are compiled by numba, which is not "
            "installed: pip install 'fairshield[synthesis]'; so are long and planning periodic "
            "policies, while all others load and decide without it"
        )

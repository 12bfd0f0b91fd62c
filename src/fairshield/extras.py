"""Whether the compiler is installed, and what to say where it is not.

Loading a policy, deciding, streaming, auditing and monitoring need numpy alone.  Making policies,
simulating and verifying need numba, which the extra ``synthesis`` installs, and so do policies that
work out their decisions as they come: long ones, and periodic ones that plan every period.
Deciding many at once is faster with it.
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
            "this needs numba, which is not installed: pip install 'fairshield[synthesis]'; "
            "without it you can load policies, decide, stream and audit, but not make, simulate or "
            "verify policies, nor use long ones or those that plan periods"
        )

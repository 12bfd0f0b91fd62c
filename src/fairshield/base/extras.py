"""Which optional packages are installed, and the errors that are raised where one is missing.

Loading a policy, deciding, streaming, auditing and monitoring need numpy alone.  Making policies,
simulating and verifying need numba, which the extra ``synthesis`` installs.  Long policies, and
periodic ones that plan every period, compute decisions while they are used, and need it as well.
Deciding many at once is faster with it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from fairshield.base.errors import MissingExtraError


def check_installed(what: str, *packages: str, extra: str) -> None:
    """Raise, with the command that installs it, where a package that ``what`` needs is missing.

    No package is loaded to find out.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs {' and '.join(missing)}: pip install 'fairshield[{extra}]'"
        )


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

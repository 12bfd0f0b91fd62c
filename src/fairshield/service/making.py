"""Makes and verifies one policy, in a process of its own.

It takes memory and processors that decisions should have, and looks closely at files from
anywhere: what goes wrong here ends this process, not the service.

``python -m fairshield.service.making FILE`` reads a specification from standard input, if there is
one, and writes the policy to FILE; without one FILE is there.  It verifies FILE and says on
standard output how it goes, one :class:`~fairshield.service.news.News` in
JSON a line.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import msgspec
import numpy as np

from fairshield.errors import ArtifactError, FairshieldError, VacuousWarning
from fairshield.periodic import PeriodicPolicy, load_policy
from fairshield.periodic.verify import verify_periodic
from fairshield.policy import Policy
from fairshield.service.live import AnyPolicy
from fairshield.service.news import News
from fairshield.specfile import parse_periodic, parse_spec
from fairshield.synthesis import make_policy
from fairshield.verify import Verification, verify

Progress = Callable[[float], None]
_NICE = 10
"""How far decisions come first."""


def main() -> None:
    """Do the job that the arguments and standard input describe."""
    path, text, out = sys.argv[1], sys.stdin.read(), sys.stdout
    warnings.simplefilter("ignore", VacuousWarning)  # the policy's words say so
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    progress = _telling(out)
    try:
        if text:
            policy = _synthesised(json.loads(text), progress)
            _tell(out, News(digest=policy.save(path), words=str(policy)))
        found = verified(load_policy(path), progress)
    except FairshieldError as error:
        _tell(out, News(error=str(error).replace(path, "the policy file")))
    else:
        _tell(out, News(verification=found))


def _synthesised(spec: dict[str, Any], progress: Progress) -> AnyPolicy:
    if "periodic" not in spec:
        return parse_spec(spec).synthesize(progress=progress)
    periodic = parse_periodic(spec)
    periodic.outlook()
    return periodic


def _telling(out: TextIO) -> Progress:
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if not told <= share < told + 0.01:
            told = share
            _tell(out, News(progress=share))

    return tell


def _tell(out: TextIO, news: News) -> None:
    out.write(msgspec.json.encode(news).decode() + "\n")
    out.flush()


def verified(policy: AnyPolicy, progress: Progress | None = None) -> str:
    """What a verification found, in words.

    Raises
    ------
    ArtifactError
        If the policy does not keep what it promises.
    """
    if isinstance(policy, PeriodicPolicy) and policy.unconditional:
        return _kept(verify_periodic(policy, progress=progress))
    if isinstance(policy, PeriodicPolicy):
        policy.check_stored()
        condition = f"promises fairness under a condition only ({policy.theorem or 'no theorem'})"
        tables = policy.tables
        return condition if tables is None else f"{verified(tables, progress)}; {condition}"
    if policy.risk:
        _check_made_anew(policy)
        return f"best effort: violated with probability {policy.risk:.3g}, if the input model holds"
    return _kept(verify(policy, progress=progress))


def _kept(found: Verification) -> str:
    if not found.holds:
        raise ArtifactError(f"the policy does not keep its promise: {found}")
    return str(found)


def _check_made_anew(policy: Policy) -> None:
    """Whether a policy that promises nothing is at least the one of its specification.

    There is no promise to verify, but synthesis makes the same tables every time.
    """
    again = make_policy(
        policy.prop, policy.inputs, horizon=policy.horizon, start=policy.start,
        checkpoints=policy.checkpoints, further=policy.further, terminal=policy.terminal,
        spread=policy.spread, best_effort=True, method=policy.method,
        endgame=getattr(policy, "endgame", None),
    )  # fmt: skip
    _, ours = again.to_artifact()
    _, theirs = policy.to_artifact()
    same = ours.keys() == theirs.keys() and all(
        np.array_equal(array, theirs[name]) for name, array in ours.items()
    )
    if not same or not math.isclose(again.risk, policy.risk, rel_tol=1e-6):
        raise ArtifactError(
            "the tables are not what this version of fairshield makes of the policy's "
            "specification: synthesise it again"
        )


if __name__ == "__main__":
    main()

"""``main`` makes and verifies one policy, in a process of its own.

The work takes memory and processor time that the service needs for decisions, and it opens files
from untrusted sources.  A failure here ends this process, not the service.

``python -m fairshield.service.policies.making FILE`` reads a specification from standard input and
writes its policy to FILE.  If standard input is empty, FILE must exist.  The program verifies FILE
and prints its progress, one :class:`~fairshield.service.policies.status.JobStatus` in JSON a line.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from typing import TextIO

import msgspec
import numpy as np

from fairshield.adapters.specfile import policy_of
from fairshield.analysis.verify import Verification
from fairshield.base.errors import ArtifactError, FairshieldError, VacuousWarning
from fairshield.base.types import Progress
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.periodic.verify import verify
from fairshield.policy import Policy
from fairshield.service.policies.status import JobStatus
from fairshield.synthesis import make_again

_NICE = 10
"""Niceness of this process, so that decisions have priority."""


def main() -> None:
    """Do the job that the arguments and standard input describe."""
    path, text, out = sys.argv[1], sys.stdin.read(), sys.stdout
    warnings.simplefilter("ignore", VacuousWarning)  # the description of the policy says the same
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    progress = _telling(out)
    try:
        if text:
            policy = policy_of(json.loads(text), progress)
            _tell(out, JobStatus(digest=policy.save(path), words=str(policy)))
        found = verified(load_policy(path), progress)
    except FairshieldError as error:
        _tell(out, JobStatus(error=str(error).replace(path, "the policy file")))
    else:
        _tell(out, JobStatus(verification=found))


def _telling(out: TextIO) -> Progress:
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if not told <= share < told + 0.01:
            told = share
            _tell(out, JobStatus(progress=share))

    return tell


def _tell(out: TextIO, status: JobStatus) -> None:
    out.write(msgspec.json.encode(status).decode() + "\n")
    out.flush()


def verified(policy: Policy | PeriodicPolicy, progress: Progress | None = None) -> str:
    """Return the words of a verification.

    Raises
    ------
    ArtifactError
        If the policy does not keep what it promises.
    """
    kind = kind_of(policy)
    if kind.unconditional:
        return _kept(verify(policy, progress=progress))
    tables = kind.tables
    if not kind.goes_on:
        assert tables is not None
        _check_made_anew(tables)
        if tables.fair_in_support:
            return _kept(verify(policy, progress=progress))
        return f"best effort: violated with probability {tables.risk:.3g}, if the input model holds"
    kind.check_stored()
    condition = f"promises fairness under a condition only ({kind.theorem or 'no theorem'})"
    return condition if tables is None else f"{verified(tables, progress)}; {condition}"


def _kept(found: Verification) -> str:
    if not found.holds:
        raise ArtifactError(f"the policy does not keep its promise: {found}")
    return str(found)


def _check_made_anew(policy: Policy) -> None:
    """Raise unless a policy that promises nothing is the one its specification leads to.

    There is no promise to verify, but synthesis is deterministic: the tables must be the same.
    """
    again = make_again(policy)
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

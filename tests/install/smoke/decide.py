"""Load a policy, decide and audit without extras; check the errors of what needs one."""

import sys
from collections.abc import Callable
from importlib.util import find_spec

import fairshield as fs

assert find_spec("numba") is None
policy = fs.Policy.load("loans.shield")
shield = fs.Shield(policy)
assert shield.decide("a", proposed=True).guaranteed
stream = fs.Run(policy)
answers = stream.decide_many(["a", "b"] * policy.horizon, [True, False] * policy.horizon)
assert stream.completed == 2
log = [{"group": "ab"[i % 2], "accepted": y} for i, y in enumerate(answers.accepted.tolist())]
assert fs.audit(policy.prop, log, horizon=policy.horizon).holds


def refused(needs_a_compiler: Callable[[], object]) -> str:
    try:
        needs_a_compiler()
    except fs.FairshieldError as error:
        return str(error)
    raise AssertionError("nothing can be compiled")


assert "pip install 'fairshield[synthesis]'" in refused(lambda: fs.verify(policy))
again = refused(lambda: fs.synthesize(policy.prop, policy.inputs, horizon=20))
assert "pip install 'fairshield[synthesis]'" in again
sys.stdout.write(f"fairshield {fs.__version__} decides with numpy alone")

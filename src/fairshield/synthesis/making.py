"""make_policy chooses how a policy is made: a table of rows, of numbered states, or prices."""

from __future__ import annotations

from dataclasses import replace

from fairshield.base.errors import InvalidValueError, MemoryLimitError, argument
from fairshield.inputs import Inputs
from fairshield.policy import Policy, Specification
from fairshield.policy.layout import layout_of
from fairshield.synthesis.exact import making as exact
from fairshield.synthesis.method import MOST_ON_DEVICE, MOST_STATES, chosen_method, obstacle_of
from fairshield.synthesis.options import Options
from fairshield.synthesis.solving import chosen_backend

_MOST_REFERENCE = 200


def make_policy(spec: Specification, options: Options = Options()) -> Policy:  # noqa: B008 frozen
    """:func:`fairshield.synthesize` without the warning that the property can never bind."""
    if options.backend == "reference" and spec.plan_length > _MOST_REFERENCE:
        raise InvalidValueError(
            f"the reference backend goes up to horizon {_MOST_REFERENCE}, got {spec.plan_length}: "
            "use 'cpu'"
        )
    if spec.trusting:
        _check_trust(spec, options)
    if not spec.prop.counting.of_people:
        from fairshield.synthesis.exact import counted

        return counted.make_counted_policy(spec, options)
    if len(spec.groups) > 2:
        from fairshield.synthesis.exact import many

        return many.make_many_policy(spec, options)
    if options.best_effort and spec.further:
        raise InvalidValueError(
            f"best_effort is for one window, and further={spec.further} plans beyond it: leave one "
            "out"
        )
    layout = layout_of(spec.plan_length, spec.labelled)
    # A table that trusts the support is made by what makes best efforts, on processors alone.
    asked = "cpu" if spec.trusting and options.backend == "auto" else options.backend
    backend = chosen_backend(asked, spec, record=spec.horizon)
    options, obstacle = replace(options, backend=backend), obstacle_of(spec)
    most = MOST_ON_DEVICE if backend == "cuda" else MOST_STATES
    made_by, reason = chosen_method(options.method, layout, obstacle, most)
    if made_by == "exact":
        try:
            exact.check_fits(spec, backend)
        except MemoryLimitError as error:
            if obstacle is not None:
                without = "the long method, which needs no table, does not apply"
                raise MemoryLimitError(f"{error}; {without}: {obstacle}") from None
            if options.method == "exact":
                raise MemoryLimitError(f"{error}, or use {argument('method', 'long')}") from None
            made_by, reason = "long", str(error).split(":")[0]
    if made_by == "long":
        from fairshield.synthesis.long.plan import make_long_policy

        return make_long_policy(spec, options, reason)
    return exact.make_row_policy(spec, options, reason)


def _check_trust(spec: Specification, options: Options) -> None:
    """Refuse what cannot be done for a policy that trusts the support of its input model."""
    trust = argument("trust_support", True)
    if len(spec.groups) > 2:
        raise InvalidValueError(
            f"{trust} is for two groups, and {len(spec.groups)} are declared: join groups, or "
            "leave it out"
        )
    if options.backend == "cuda":
        raise InvalidValueError(f"{trust} does not run on backend='cuda': use 'cpu'")
    if spec.further:
        raise InvalidValueError(
            f"{trust} is for one window, and further={spec.further} plans beyond it: leave one out"
        )


def make_again(policy: Policy, inputs: Inputs | None = None) -> Policy:
    """Make a policy again, from the same specification or from it with other inputs."""
    spec = policy.spec if inputs is None else replace(policy.spec, inputs=inputs)
    return make_policy(spec, Options.that_made(policy))

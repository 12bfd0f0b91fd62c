"""Monitor: watches decisions as they are made, and changes none of them.

The class is long because it is one interface: what it watches is worked out by the modules beside
it (windows in ``tally``, biases in ``biases``, the input model in ``evidence``, a policy that
decides beside others in ``shadow``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.analysis.terms import agreed, check_agreed
from fairshield.base.counts import Counts, Group, group_name, unknown_group
from fairshield.base.errors import InvalidValueError, argument
from fairshield.base.groups import Coded, group_column, places_among
from fairshield.inputs import Inputs
from fairshield.inputs.columns import costs_of, flags, outcomes_of
from fairshield.monitor.biases import Biases
from fairshield.monitor.evidence import CHECK_EVERY, Watch
from fairshield.monitor.report import (
    Alarm,
    MonitoredGroup,
    MonitoredPair,
    MonitoredWindow,
    MonitorReport,
    Observation,
)
from fairshield.monitor.saving import Saving, saving
from fairshield.monitor.sequences import rate_interval
from fairshield.monitor.settings import check_numbers, check_order, names_of
from fairshield.monitor.shadow import Shadow
from fairshield.monitor.tally import MonitorTally
from fairshield.monitor.words import KINDS, evidence_words
from fairshield.periodic import PeriodicPolicy, kind_of
from fairshield.policy import Policy, Specification
from fairshield.records import Flag, as_cost, as_flag
from fairshield.runtime.window_rule import WindowRule
from fairshield.spec import Property, Verdict, reach_of, verdict_of
from fairshield.spec.outcomes import PAGE, Coverage, OutcomeTally
from fairshield.synthesis import make_policy

_VERSION = 2
_AT_ONCE = 1 << 17
_AT_FIRST = 1 << 10
_NEVER = 1 << 62


class Monitor:
    """Monitor watches whether decisions are fair, and whether requests follow the input model.

    Parameters
    ----------
    prop
        What should hold between every two groups.
    horizon
        Decisions in a window, at whose end it should hold; counters then begin again.
    period
        Instead of ``horizon``: decisions in a period; counters go on.  With neither, there is one
        endless window, which :meth:`end` judges.
    groups
        All groups there are.  Default: those of ``start``, ``inputs`` or ``shadow``; without any of
        these, groups are met as they come, unless the property tells the first from the second.
    start
        Counters before the first decision of every window, or of the first period.
    inputs
        An input model or schedule to watch; default: that of ``shadow``.
    confidence
        Each of these statements is wrong, at any time, with a probability of at most
        ``1 - confidence``: that all rates of groups lie in their intervals (so do biases that are
        made of rates, and alarms of ``"bias"`` are right); that the share of unfair windows lies
        in its own; that the shares of :class:`~fairshield.ShareParity`, with their biases and
        alarms, lie in theirs; that no right input model is contradicted.  Of several statements
        together, the probabilities of error add up at most.
    min_group_size
        Below so many relevant people (or the ``min_support`` of ``prop``, if that is more) a group
        has no interval, and nothing is concluded about it.
    shadow
        A policy or periodic policy to run beside the decisions.
    keep
        How many windows, and alarms about them, are kept one by one.
    state
        Where to go on: what :attr:`state` returned.

    Examples
    --------
    >>> import fairshield as fs
    >>> monitor = Monitor(fs.DemographicParity("0.1"), horizon=4)
    >>> for group, accepted in [("a", True), ("b", False), ("a", True), ("b", True)]:
    ...     seen = monitor.observe(group, accepted=accepted)
    >>> [alarm.kind for alarm in seen.alarms]
    ['violation']
    """

    def __init__(
        self,
        prop: Property,
        *,
        horizon: int | None = None,
        period: int | None = None,
        groups: Iterable[Any] | None = None,
        start: Counts | None = None,
        inputs: Inputs | None = None,
        confidence: float = 0.95,
        min_group_size: int = 30,
        shadow: Policy | PeriodicPolicy | None = None,
        keep: int = 1000,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(prop, Property):
            raise InvalidValueError(
                f"prop must be a property such as DemographicParity('0.1'), got {prop!r}"
            )
        self._shadow = None if shadow is None else Shadow(shadow)
        beside = None if self._shadow is None else self._shadow.policy
        if beside is not None:
            if beside.prop != prop:
                raise InvalidValueError(
                    f"the shadow policy keeps {beside.prop}, the monitor watches {prop}: watch "
                    "shadow.prop, or make a policy for the property"
                )
            whose, instead = "the shadow policy's", "monitor without a shadow"
            check_agreed(
                beside.window_rule, horizon=horizon, period=period, whose=whose, instead=instead
            )
            start = agreed("start", start, beside.start, whose=whose, instead=instead)
            inputs = beside.inputs if inputs is None else inputs
        check_numbers(confidence, min_group_size, keep)
        self.prop = prop
        self._rule = (
            WindowRule.of(horizon=horizon, period=period) if beside is None else beside.window_rule
        )
        self.confidence, self.keep = float(confidence), int(keep)
        self.least = max(int(min_group_size), prop.min_support)
        names = names_of(groups, start, inputs, beside)
        check_order(prop, names)
        self._closed = names is not None
        zero = Counts.zero(names or ()) if start is None else start
        self._tally = MonitorTally(
            prop, zero, self._rule, keep=self.keep,
            compared=None if beside is None else beside.last,
        )  # fmt: skip
        self._ledger = self._tally.ledger
        self._index = {group: i for i, group in enumerate(self._ledger.groups)}
        self._biases = Biases(
            prop, self._ledger, alpha=1.0 - self.confidence, least=self.least,
            all_known=self._closed,
        )  # fmt: skip
        self._watch = (
            None if inputs is None else Watch(inputs, self._rule.length, 1.0 - self.confidence)
        )
        self._needs_outcome = prop.relevant_outcome is not None
        self._told = OutcomeTally()
        self._violations: deque[Alarm] = deque(maxlen=self.keep)
        self._lasting: list[Alarm] = []
        shadows: tuple[str | None, ...] = (None,) if self._shadow is None else self._shadow.digests
        self._config, *earlier = (self._digest(start, shadow) for shadow in shadows)
        if state is not None:
            self._resume(state, earlier)
        self._next = self._next_event()

    # Watching -------------------------------------------------------------------------------

    def observe(
        self,
        group: Group,
        *,
        accepted: Flag,
        proposed: Flag | None = None,
        cost: float = 1.0,
        outcome: Flag | None = None,
    ) -> Observation:
        """Count one decision.

        ``proposed`` is what the classifier said, by default what was decided; ``cost`` the price
        of overruling it.  Where people count by their outcome, observe them once it is known.
        """
        if accepted is not True and accepted is not False:
            accepted = as_flag(accepted)
        if proposed is None:
            proposed = accepted
        elif proposed is not True and proposed is not False:
            proposed = as_flag(proposed)
        if outcome is not None and outcome is not True and outcome is not False:
            outcome = as_flag(outcome)
        if type(cost) is not float or not 0.0 <= cost < math.inf:
            cost = as_cost(cost)
        if self._needs_outcome and outcome is None:
            raise self._no_outcome()
        try:
            g = self._index.get(group)
        except TypeError:  # it cannot be a name, which is said below
            g = None
        if g is None:
            g = self._meet(group_name(group), self._ledger.decided)
        decision, ledger = None, self._ledger
        if self._shadow is not None:
            decision = self._shadow.decide(
                group, accepted=accepted, proposed=proposed, cost=cost, outcome=outcome
            )
        if self._needs_outcome:
            self._told.know(ledger.groups[g], accepted, bool(outcome))
            ledger.add(g, proposed, accepted, cost, outcome is self.prop.relevant_outcome)
        else:
            ledger.add(g, proposed, accepted, cost)
        at, window = ledger.decided, ledger.shielded.windows
        alarms: tuple[Alarm, ...] = ()
        possible = self._watch is None or self._watch.count(g, proposed, cost, outcome)
        if at == self._next or not possible:
            alarms = self._events(possible)
        return Observation(at, window, alarms, decision)

    def observe_many(
        self,
        groups: ArrayLike,
        accepted: ArrayLike,
        proposed: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        outcomes: ArrayLike | None = None,
    ) -> tuple[Alarm, ...]:
        """Count many decisions in order, as arrays or columns; returns the alarms they raise.

        The same as :meth:`observe` one after the other, but all of them or, on an error, none.
        """
        who = group_column(groups)
        n = len(who)
        y = flags(accepted, "accepted", n)
        r = y if proposed is None else flags(proposed, "proposed", n)
        price = costs_of(costs, n)
        z = None if outcomes is None else outcomes_of(outcomes, n)
        if self._needs_outcome and z is None and n:
            raise self._no_outcome()
        g = self._encoded(who)
        alarms: list[Alarm] = []
        for first in range(0, n, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            told = None if z is None else z[some]
            alarms += self._observed(g[some], y[some], r[some], price[some], told)
        return tuple(alarms)

    def expect(self, group: Group, *, accepted: Flag) -> None:
        """Say that somebody was decided whose outcome is not known yet, or never will be.

        Where people count by their outcome, tell everybody as they are decided; :meth:`observe`
        them once their outcome is known.  From whom is left the report concludes whether the
        outcomes at hand can tell anything, see :attr:`MonitorReport.doubt`.
        """
        if self._closed and group not in self._index:
            raise unknown_group(group, tuple(self._index))
        self._told.expect(group_name(group), as_flag(accepted))

    def expect_many(self, groups: ArrayLike, accepted: ArrayLike) -> None:
        """:meth:`expect` for arrays and columns."""
        who = group_column(groups).tolist()
        for group, y in zip(who, flags(accepted, "accepted", len(who)).tolist(), strict=True):
            self.expect(group, accepted=y)

    def end(self) -> tuple[Alarm, ...]:
        """Judge the endless window, because no decision follows; returns the alarm, if any.

        The window is over then, and is judged once.  With a horizon or a period nothing is left to
        judge: what is unfinished does not have to be fair.
        """
        if self._rule.length is not None or self._ledger.windows or not self.decided:
            return ()
        alarms = tuple(map(self._violation, self._tally.close(early=True)))
        self._add(alarms)
        return alarms

    def _encoded(self, who: NDArray[Any] | Coded) -> NDArray[np.int64]:
        """Groups as numbers; new ones are met, or refused before anything is counted."""
        known = names = tuple(self._index)
        code = places_among(names, who)
        while len(left := np.flatnonzero(code < 0)):
            # Nearly always the first rows tell all names there are.
            found = [group_name(name) for name in Coded.of(who[left[:_AT_FIRST]].tolist()).names]
            if self._closed:
                raise unknown_group(found[0], known)
            names += tuple(found)
            code = places_among(names, who)
        for place, group in enumerate(names[len(known) :], start=len(known)):
            self._meet(group, self.decided + int(np.argmax(code == place)))
        return code.astype(np.int64)

    def _observed(
        self,
        g: NDArray[np.int64],
        y: NDArray[np.bool_],
        r: NDArray[np.bool_],
        price: NDArray[np.float64],
        z: NDArray[np.bool_] | None,
    ) -> list[Alarm]:
        if self._shadow is not None:
            self._shadow.decide_many(g, y, r, price, z)
        counts = np.ones(len(g), np.bool_)
        if self._needs_outcome and z is not None:
            counts = np.asarray(z == self.prop.relevant_outcome)
            self._told.know_many(self._ledger.groups, g, y, z)
        alarms = self._biases.look_among(g, y, counts)
        alarms += map(self._violation, self._tally.add_many(g, r, y, price, counts))
        if self._watch is not None:
            found = self._watch.count_many(g, r, price, z)
            alarms += [] if found is None else [self._contradiction(self._watch, *found)]
        self._next = self._next_event()
        alarms.sort(key=_order)
        self._add(alarms)
        return alarms

    # Events ---------------------------------------------------------------------------------

    def _next_event(self) -> int:
        """After which decision there is something to look at."""
        n = self.decided
        checks = _NEVER if self._watch is None else (n // CHECK_EVERY + 1) * CHECK_EVERY
        return min(self._ledger.next_due, checks, self._biases.look_at)

    def _events(self, possible: bool) -> tuple[Alarm, ...]:
        at = self.decided
        alarms = [*map(self._violation, self._tally.close())]
        if at == self._biases.look_at:
            alarms += self._biases.look()
        watch = self._watch
        if watch is not None:
            capital = watch.check(possible)
            if capital is not None:
                alarms.append(self._contradiction(watch, at, capital))
        self._next = self._next_event()
        self._add(alarms)
        return tuple(alarms)

    def _add(self, alarms: Iterable[Alarm]) -> None:
        for alarm in alarms:
            (self._violations if alarm.kind == "violation" else self._lasting).append(alarm)

    def _violation(self, window: MonitoredWindow) -> Alarm:
        people = ", ".join(f"{c.accepted} of {c.seen} in {g}" for g, c in window.counts.items())
        message = (
            f"{self._rule.noun} {window.number} ended unfair: "
            f"{self.prop.finding(window.counts)}, with {people} accepted; a shield would have kept "
            "it fair (synthesize)"
        )
        return Alarm("violation", window.at, message, window.number)

    def _contradiction(self, watch: Watch, at: int, capital: float) -> Alarm:
        message = (
            f"the input model is wrong: the evidence against it is {evidence_words(capital)}, "
            f"{1 / (1 - self.confidence):.4g} contradicts it; {watch.diagnosis}; re-synthesise "
            "with monitor.revised_inputs(), monitor.saving() says what that saves"
        )
        return Alarm("model", at, message, self._window_of(at))

    def _window_of(self, at: int) -> int:
        length = self._rule.length
        return 0 if length is None else (at - 1) // length

    # What was seen --------------------------------------------------------------------------

    @property
    def horizon(self) -> int | None:
        """Decisions in a window, in which counters begin again."""
        return self._rule.horizon

    @property
    def period(self) -> int | None:
        """Decisions in a period, from which counters go on."""
        return self._rule.period

    @property
    def decided(self) -> int:
        """Decisions observed."""
        return self._ledger.decided

    @property
    def counts(self) -> Counts:
        """Counters of the window or period in progress."""
        return self._ledger.counts

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return tuple(self._ledger.groups)

    @property
    def shadow(self) -> Policy | PeriodicPolicy | None:
        """The policy that runs beside the decisions."""
        return None if self._shadow is None else self._shadow.policy.artefact

    @property
    def coverage(self) -> Coverage | None:
        """Known outcomes by group and decision; ``None`` if the property counts everybody."""
        relevant = self.prop.relevant_outcome
        return None if relevant is None else self._told.coverage(relevant=relevant)

    @property
    def diagnosis(self) -> str | None:
        """What contradicts the input model most, in words; ``None`` while nothing does."""
        return None if self._watch is None else self._watch.diagnosis or None

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms in order; of those about windows the last ``keep``."""
        return tuple(sorted((*self._violations, *self._lasting), key=_order))

    def report(self) -> MonitorReport:
        """Where the stream stands."""
        tally, ledger, watch = self._tally, self._ledger, self._watch
        now, bias, measured = tally.verdict()
        windows, unfair = ledger.windows, ledger.shielded.unfair
        alpha, n = 1.0 - self.confidence, len(ledger.groups)
        return MonitorReport(
            prop=str(self.prop),
            limit=self.prop.limit,
            confidence=self.confidence,
            noun=self._rule.noun,
            decisions=ledger.decided,
            overruled=ledger.overruled,
            paid=ledger.paid,
            groups=tuple(map(self._group_report, range(n))),
            pairs=tuple(self._pair_report(i, j) for i, j in combinations(range(n), 2)),
            counts=ledger.counts,
            bias=bias,
            measured=measured,
            now=now,
            windows=windows,
            unfair=unfair,
            exempt=ledger.shielded.exempt,
            untold=ledger.shielded.untold,
            largest_bias=ledger.shielded.largest_bias,
            largest_measured=tally.largest_measured,
            verdict=self._verdict(now),
            unfair_share=rate_interval(windows, unfair, alpha) if windows else None,
            recent=tuple(tally.recent),
            log_evidence=None if watch is None else watch.look(),
            contradicted_at=None if watch is None else watch.contradicted_at,
            shadow=None if self._shadow is None else self._shadow.report(tally.unfair_compared),
            alarms=self.alarms,
            coverage=self.coverage,
            reach=reach_of(self.prop, [window.counts for window in tally.recent]),
        )

    def _verdict(self, now: Verdict) -> Verdict:
        verdicts = self._ledger.shielded
        if self.decided and not verdicts.windows and self._rule.length is None:
            return now
        return verdict_of(unfair=verdicts.unfair, fair=verdicts.fair)

    def _group_report(self, i: int) -> MonitoredGroup:
        people = self._ledger.people(i)
        counters = people.seen, people.accepted, people.overruled
        return MonitoredGroup(self._ledger.groups[i], *counters, self._biases.rate(i))

    def _pair_report(self, i: int, j: int) -> MonitoredPair:
        pair = self._ledger.groups[i], self._ledger.groups[j]
        people = {self._ledger.groups[g]: self._ledger.people(g)[:2] for g in (i, j)}
        bias = self._biases.between(i, j)
        return MonitoredPair(pair, bias, self.prop.finding(Counts(people)))

    def revised_inputs(self) -> Inputs:
        """The input model that the requests suggest.

        Once the model is contradicted, it is estimated from the requests since the strongest of
        the bets against it began, or since they changed once more; before that from all.
        """
        if self._watch is None:
            raise InvalidValueError(
                "no input model to revise: this monitor watches none; give it one "
                f"({argument('inputs')})"
            )
        return self._watch.revised()

    def saving(self) -> Saving:
        """Return what re-synthesis with :meth:`revised_inputs` is expected to save.

        Compared with the shadow policy, or else with the cheapest policy for the model watched.
        """
        revised = self.revised_inputs()
        if self._shadow is not None:
            return saving(self._shadow.policy, revised)
        if self.horizon is None or self._watch is None:
            raise InvalidValueError(
                "a saving is that of a policy: give the monitor the policy in use "
                f"({argument('shadow')}), or "
                "a horizon for which to make one"
            )
        spec = Specification.of(
            self.prop, self._watch.inputs, horizon=self.horizon, start=self._tally.start
        )
        return saving(kind_of(make_policy(spec)), revised)

    # Where it stands ------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        """JSON-able data to go on from later: ``Monitor(..., state=...)``."""
        return {
            "version": _VERSION,
            "monitor": self._config,
            "decided": self._ledger.decided,
            "cost_paid": self._ledger.paid,
            "tally": self._tally.state(),
            "outcomes": self._told.state(),
            **self._biases.state(),
            "violations": [alarm.to_dict() for alarm in self._violations],
            "lasting": [alarm.to_dict() for alarm in self._lasting],
            "watch": None if self._watch is None else self._watch.state(),
            "shadow": None if self._shadow is None else self._shadow.state(),
        }

    def _digest(self, start: Counts | None, shadow: str | None) -> str:
        """A digest of everything a state depends on, ``shadow`` by its fingerprint."""
        data = {
            "property": self.prop.to_dict(),
            "horizon": self.horizon,
            "period": self.period,
            "groups": list(self._index) if self._closed else None,
            "start": None if start is None else [list(start[g]) for g in start],
            "inputs": None if self._watch is None else self._watch.inputs.to_dict(),
            "confidence": self.confidence,
            "least": self.least,
            "shadow": shadow,
        }
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]

    def _resume(self, state: Mapping[str, Any], earlier: Sequence[str]) -> None:
        """Go on from a state; ``earlier`` are the digests that other versions gave this monitor."""
        try:
            if state["version"] != _VERSION:
                raise InvalidValueError(
                    f"a state of version {state['version']!r}, this library reads {_VERSION}: "
                    "resume it with the version of fairshield that wrote it"
                )
            if state["monitor"] not in (self._config, *earlier):
                raise InvalidValueError(
                    f"the state belongs to another monitor (digest {state['monitor']!r}, this one "
                    f"has {self._config!r}): resume with the property, windows, groups, inputs, "
                    "confidence and shadow that it began with"
                )
            decided, cost = int(state["decided"]), float(state["cost_paid"])
            self._tally.resume(state["tally"], decided, cost)
            self._told.resume(state.get("outcomes", ()))  # earlier versions counted none
            self._index = {group: i for i, group in enumerate(self._ledger.groups)}
            self._biases.resume(state)
            self._violations.extend(map(Alarm.from_dict, state["violations"]))
            self._lasting.extend(map(Alarm.from_dict, state["lasting"]))
            if self._watch is not None:
                self._watch.resume(state["watch"])
            if self._shadow is not None:
                self._shadow.resume(state["shadow"])
        except InvalidValueError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidValueError(
                f"not the state of a monitor ({error!r}): use what monitor.state returned"
            ) from None

    # Groups and outcomes --------------------------------------------------------------------

    def _meet(self, group: Group, at: int) -> int:
        if self._closed:
            raise unknown_group(group, tuple(self._index))
        self._index[group] = self._ledger.meet(group, at=at)
        return self._index[group]

    def _no_outcome(self) -> InvalidValueError:
        return InvalidValueError(
            f"no outcome, and {self.prop} counts people by it: observe a decision once its outcome "
            "is known (outcome=...), and tell those who wait for it, or never get one, with "
            f"expect ({PAGE})"
        )


# Helpers ------------------------------------------------------------------------------------


def _order(alarm: Alarm) -> tuple[int, int]:
    return alarm.at, KINDS.index(alarm.kind)

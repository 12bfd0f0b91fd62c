"""Recounted counts the entries of a log again, for an audit of its stream.

It counts with :class:`fairshield.analysis.recount.Recount`, as audits of files do, and not with the
ledger of the stream, so that a fault of one of them shows as a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairshield.analysis.recount import Recount
from fairshield.base.counts import Counts, Group
from fairshield.periodic import PeriodicPolicy
from fairshield.service.log.entries import AnyEntry, Decided, Observed, Overridden
from fairshield.spec import Verdict
from fairshield.spec.outcomes import OutcomeTally


@dataclass(slots=True)
class _Person:
    """_Person is a decision as it stands; ``seq`` is the last entry about it.

    ``revised`` says that a person changed it, or one before it, after later decisions were made.
    """

    seq: int
    group: Group
    accepted: bool
    guaranteed: bool
    outcome: bool | None = None
    revised: bool = False


class Recounted:
    """Recounted counts windows of a stream from the lines of its log alone.

    A window is counted by its decisions as they stand at its end, or at the end of the log: until
    then a person may change them.
    """

    def __init__(self, policy: PeriodicPolicy, *, human: bool) -> None:
        self.fair = self.exempt = 0
        self._prop, self._labelled, self._human = policy.prop, policy.labelled, human
        start = Counts({group: policy.start[group] for group in policy.groups})
        self._recount = Recount(policy.prop, start, policy.window_rule)
        self._final = not human and not self._labelled  # no later entry is about a decision
        self._people: dict[int, _Person] = {}  # by number of decision, those not yet counted
        self._outcomes = OutcomeTally()

    @property
    def windows(self) -> int:
        """Windows that are over."""
        return self._recount.windows

    @property
    def unfinished(self) -> Verdict | None:
        """Of the checkpoints that the window in progress has reached."""
        return self._recount.verdict

    @property
    def doubt(self) -> str | None:
        """Why the outcomes cannot show how people were treated; ``None`` if they can."""
        relevant = self._prop.relevant_outcome
        return None if relevant is None else self._outcomes.coverage(relevant=relevant).doubt

    def add(self, entry: AnyEntry) -> list[str]:
        """Count an entry; a sentence for every moment at which the property did not hold."""
        people = self._people
        if isinstance(entry, Decided):
            person = _Person(entry.seq, entry.group, entry.accepted, entry.guaranteed)
            if self._final:
                return self._count(person)
            people[entry.n] = person
        elif isinstance(entry, Observed):
            people[entry.n].seq, people[entry.n].outcome = entry.seq, entry.outcome
        elif isinstance(entry, Overridden):
            people[entry.n].seq, people[entry.n].accepted = entry.seq, entry.accepted
            *earlier, last = people
            # What the entry guarantees is about moments still ahead, not about those that passed.
            people[last].guaranteed = entry.guaranteed
            for n in earlier:
                people[n].revised |= n >= entry.n
        return [] if self._human and not self._full else self.settle()

    @property
    def _full(self) -> bool:
        return self._recount.decided + len(self._people) == self._recount.rule.length

    def settle(self) -> list[str]:
        """Count all decisions so far, because none of them will change."""
        found = []
        for n, person in list(self._people.items()):
            if self._labelled and person.outcome is None:
                break
            del self._people[n]
            found += self._count(person)
        return found

    def _count(self, person: _Person) -> list[str]:
        recount, outcome = self._recount, person.outcome
        recount.add(person.group, person.accepted, outcome)
        if outcome is not None:
            self._outcomes.know(person.group, person.accepted, outcome)
        if not recount.due:
            return []
        unfair = recount.judge().verdict == "unfair"
        said = [self._violation(person)] if unfair else []
        if recount.full:
            self.fair += recount.verdict == "fair"
            self.exempt += recount.verdict == "exempt"
            recount.end()
        return said

    def _violation(self, person: _Person) -> str:
        recount = self._recount
        promise = "it was guaranteed" if person.guaranteed else "it was not guaranteed any more"
        if person.guaranteed and person.revised:
            promise += " until a person overrode a decision"
        return (
            f"{self._prop} does not hold after {recount.decided} decisions of window "
            f"{recount.windows}, at entry {person.seq}: bias "
            f"{self._prop.bias_of(recount.counts):.4g}; {promise}"
        )

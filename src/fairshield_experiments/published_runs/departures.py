"""Names of the departures of the published runs from the paper's text, and what each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import fairshield as fs

Departure = Literal[
    "prices", "person-twice", "population", "missing-entries", "static-bounds", "judging"
]
DEPARTURES: tuple[Departure, ...] = get_args(Departure)
"""All departures, in the order in which they are told."""
AS_PUBLISHED = "as-published"
"""The name of all departures together."""

WORDS: dict[Departure, str] = {
    "prices": "values come from a table made at cost ¼, and a proposal is overruled at the price "
    "|score \N{MINUS SIGN} ½|",
    "person-twice": "an equal-opportunity shield counts the person to be decided and leaves them "
    "open as well, and weighs rejection with the chances exchanged",
    "population": "each run draws a fresh label-stratified 60 % of all people, training people "
    "included, and each window shuffles it anew",
    "missing-entries": "an entry that the table does not have is read as 0 where the counters are "
    "fair, and as infeasible elsewhere",
    "static-bounds": "Static-BW takes its base rate from the whole data set and N from float32, "
    "and for equal opportunity its end test leaves the last person out",
    "judging": "bias is compared with κ in floating point, in the shield's own end test as well, "
    "and at a finite horizon bias / κ is rounded to two decimals first",
}
"""What each departure is, as a clause."""


def checked(departures: Iterable[str]) -> tuple[Departure, ...]:
    """The departures in their order.

    >>> checked(["population", "prices"])
    ('prices', 'population')
    >>> checked(["as-published"]) == DEPARTURES
    True
    """
    asked = list(departures)
    wanted = {*asked} | ({*DEPARTURES} if AS_PUBLISHED in asked else set())
    for name in asked:
        if name not in DEPARTURES and name != AS_PUBLISHED:
            raise fs.InvalidValueError(
                f"unknown departure {name!r}: choose from {AS_PUBLISHED}, {', '.join(DEPARTURES)}"
            )
    return tuple(name for name in DEPARTURES if name in wanted)


def named(departures: Iterable[str]) -> str:
    """The departures as one name; empty for none, which is the paper's text.

    >>> named(DEPARTURES), named(("prices", "population")), named(())
    ('as-published', 'prices+population', '')
    """
    found = tuple(departures)
    return AS_PUBLISHED if found == DEPARTURES else "+".join(found)


def matters(departures: Iterable[Departure], shield: str, *, labelled: bool) -> bool:
    """Whether these departures can change the runs of a shield.

    ``labelled`` says that only people of outcome 1 count.  ``"missing-entries"`` alone changes
    Static-BW only: other shields read nothing that the table does not have, unless they count a
    person twice.
    """
    found = {*departures}
    if shield == "static-bounded":
        return bool(found - ({"person-twice"} if not labelled else set()))
    if "person-twice" in found and labelled:
        return True
    return bool(found & {"prices", "population", "judging"})

"""WindowRule: how long windows are, when in them a property is due, and whether counters go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError, called

Noun = Literal["window", "period"]


@dataclass(frozen=True, slots=True)
class WindowRule:
    """WindowRule says how long windows are, when a property is due, and whether counters go on.

    Attributes
    ----------
    length
        Decisions in a window; ``None``: one window without an end.
    checkpoints
        Earlier numbers of decisions after which the property must hold as well, in order.
    goes_on
        Whether counters go on from one window to the next, which is then called a period, or each
        begins anew.
    """

    length: int | None = None
    checkpoints: tuple[int, ...] = ()
    goes_on: bool = False

    @classmethod
    def of(
        cls,
        *,
        horizon: int | None = None,
        period: int | None = None,
        checkpoints: Iterable[int] = (),
    ) -> WindowRule:
        """What these arguments say; refuses those that are not numbers of decisions, or clash."""
        points = tuple(checkpoints)
        if period is not None and (horizon is not None or points):
            raise InvalidValueError(
                f"a period of {period!r} goes with neither a horizon nor checkpoints: in periods "
                "counters go on, in windows they begin again; leave out one of the two"
            )
        for name, number in (("horizon", horizon), ("period", period)):
            if number is not None and not (is_whole(number) and number >= 1):
                raise InvalidValueError(
                    f"{called(name)} must be a whole number of at least 1, got {number!r}"
                )
        for point in points:
            if not is_whole(point) or point < 1 or point > (horizon or point):
                most = "" if horizon is None else f" to the horizon {horizon}"
                raise InvalidValueError(
                    f"checkpoints must be whole numbers from 1{most}, got {point!r}"
                )
        length = horizon if period is None else period
        return cls(
            None if length is None else int(length),
            tuple(sorted({int(point) for point in points})),
            goes_on=period is not None,
        )

    @property
    def horizon(self) -> int | None:
        """The length, if windows begin anew."""
        return None if self.goes_on else self.length

    @property
    def period(self) -> int | None:
        """The length, if counters go on."""
        return self.length if self.goes_on else None

    @property
    def due(self) -> tuple[int, ...]:
        """Numbers of decisions of a window after which the property must hold, its end last."""
        return self.checkpoints if self.length is None else (*self.checkpoints, self.length)

    @property
    def noun(self) -> Noun:
        """The word for one of them."""
        return "period" if self.goes_on else "window"

    @property
    def first(self) -> int:
        """The number of the first one in words: windows count from 0, periods from 1."""
        return int(self.goes_on)

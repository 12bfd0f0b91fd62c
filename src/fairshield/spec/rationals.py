"""Numbers as people write them, read and written without rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real

from fairshield.base.errors import InvalidValueError

Number = str | int | float | Fraction | Decimal
_MOST_DIGITS = 1000


def exact(value: Number, name: str, *, most: int | None = None) -> Fraction:
    """``value`` as the rational a person meant: a float counts as its shortest decimal.

    >>> exact(0.1, "bound"), exact("1/3", "bound")
    (Fraction(1, 10), Fraction(1, 3))
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, Rational):
            result = Fraction(value.numerator, value.denominator)
        elif isinstance(value, (str, Real, Decimal)):
            result = _fraction(str(value))
        else:
            raise ValueError
    except (ValueError, ArithmeticError):
        raise InvalidValueError(
            f"{name} must be a number such as '0.1', '1/10' or 0.1, got {value!r}: write 10 "
            "percent as 0.1 or '1/10'"
        ) from None
    if result < 0 or (most is not None and result > most):
        interval = "at least 0" if most is None else f"between 0 and {most}"
        raise InvalidValueError(
            f"{name} must be {interval}, got {value!r}: write 10 percent as 0.1 or '1/10'"
        )
    return result


def _fraction(text: str) -> Fraction:
    if "/" in text:
        return Fraction(text)
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError  # an exponent so large that the integer would not fit into memory
    return Fraction(number)


@lru_cache(maxsize=128)  # every finding formats the same few bounds
def decimal(value: Fraction) -> str:
    """A rational as a decimal where it is a short one, else as a fraction.

    >>> decimal(Fraction(4, 5)), decimal(Fraction(1, 3)), decimal(Fraction(2))
    ('0.8', '1/3', '2')
    """
    text = f"{float(value):.6g}"
    return text if Fraction(text) == value else str(value)

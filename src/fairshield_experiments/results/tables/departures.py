"""Tables of the readings: the paper's text, the published runs, each departure alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from fairshield_experiments.published_runs.departures import AS_PUBLISHED, DEPARTURES, WORDS
from fairshield_experiments.results import cells
from fairshield_experiments.results.departed import HELD_OUT, measured
from fairshield_experiments.results.parts import DEPARTED, Check, Product, ReportTable, Results
from fairshield_experiments.results.published import published
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.tables import models, paper

_MAKERS: dict[str, Callable[[Results], Product]] = {
    "table-datasets": models.datasets,
    "table-performance": models.performance,
    "table-fairness": paper.fairness,
    "table-utility": paper.utility,
    "table-periodic": paper.periodic,
    "table-resources": models.resources,
}
_VARIANTS: dict[str, str] = {
    **{name: name for name in DEPARTURES},
    HELD_OUT: "all, held-out people",
    AS_PUBLISHED: "all",
}
_VERDICTS = ("agrees", "close", "better", "differs")
_SAME = "as text"
_WORDS = "; ".join(f"{name}: {words}" for name, words in WORDS.items()) + "."
Key = tuple[str, str]


def as_published(results: Results) -> Product:
    """Every published number beside ours by the paper's text, and with all departures."""
    checks = [check for make in _MAKERS.values() for check in _like_for_like(make(results))]
    counts = ReportTable(
        name="table-as-published-verdicts",
        title="Published numbers by verdict",
        columns=("reading", *_VERDICTS),
        rows=(
            _counts("the paper's text", Counter(check.verdict for check in checks)),
            _counts("the published runs", Counter(_as_published(check) for check in checks)),
        ),
        note="Both with the published convention, by which an empty group has rate 0. What the "
        "departures do not change counts in both.",
    )
    table = ReportTable(
        name="table-as-published",
        title="Published numbers, the paper's text and the published runs",
        columns=(
            *("number", "source", "published", "text", "verdict"),
            *("as published", "verdict as published", "explained by", "what is left"),
        ),
        rows=tuple(map(_row, checks)),
        n_keys=2,
        note=f"The departures are {_WORDS} What explains a difference is known if each departure "
        "was run alone (table-departures).",
    )
    return Product(tables=(counts, table))


def _like_for_like(product: Product) -> Iterator[Check]:
    return (check for check in product.checks if check.like_for_like)


def _as_published(check: Check) -> str:
    """The verdict as published; of simulated numbers only if they were run so."""
    if check.item in DEPARTED and check.departed_verdict is None:
        return "not run"
    return check.as_published


def _counts(reading: str, found: Mapping[str, int]) -> tuple[str, ...]:
    if not any(found.get(verdict) for verdict in _VERDICTS):
        return (reading, *[cells.MISSING] * len(_VERDICTS))
    return (reading, *(str(found.get(verdict, 0)) for verdict in _VERDICTS))


def _row(check: Check) -> tuple[str, ...]:
    decimals = _decimals(check)
    if check.ours is None:
        return (check.what, check.source, *[cells.MISSING] * 7)
    simulated = check.item in DEPARTED
    return (
        check.what,
        check.source,
        f"{check.published:g}",
        _value(check.ours, check.error, decimals),
        check.verdict,
        _value(check.departed, check.departed_error, decimals) if simulated else _SAME,
        (check.departed_verdict or cells.MISSING) if simulated else check.verdict,
        check.switch or cells.MISSING,
        (check.left if simulated else check.account * (check.verdict == "differs")) or "",
    )


def _decimals(check: Check) -> int:
    digits = {(n.source, n.what): n.digit for n in published(check.item)}
    return max(0, 1 - round(math.log10(digits[check.source, check.what])))


def _value(value: float | None, error: float | None, decimals: int) -> str:
    if value is None:
        return cells.MISSING
    if error is None:
        return cells.number(value, decimals)
    return cells.estimate(Estimate(value, error, 0), decimals)


# ----------------------------------------------------------------------------------- ablation


def departures(results: Results) -> Product:
    """What each departure alone makes of every simulated number, and all of them together."""
    text = {
        (check.source, check.what): check
        for item in DEPARTED
        for check in _like_for_like(_MAKERS[item](results))
    }
    found: dict[str, dict[Key, Check]] = {
        name: {
            (check.source, check.what): check
            for item in DEPARTED
            for check in measured(results, _MAKERS[item], name)
        }
        for name in _VARIANTS
    }
    table = ReportTable(
        name="table-departures",
        title="What each departure of the published runs changes",
        columns=("number", "published", "text", *_VARIANTS.values()),
        rows=tuple(_ablation(check, key, found) for key, check in text.items()),
        note=f"{_SAME}: the departure cannot change it, or was not run. {_WORDS}",
    )
    verdicts = ReportTable(
        name="table-departures-verdicts",
        title="Simulated numbers by verdict and departure",
        columns=("reading", *_VERDICTS),
        rows=(
            _counts("the paper's text", Counter(check.verdict for check in text.values())),
            *(
                _counts(title, Counter(own.get(k, check).verdict for k, check in text.items()))
                for name, title in _VARIANTS.items()
                if (own := found[name])
            ),
        ),
        note="What a departure alone cannot change, and pooled numbers of Dynamic, count as they "
        "are by the text.",
    )
    return Product(tables=(verdicts, table))


def _ablation(check: Check, key: Key, found: Mapping[str, Mapping[Key, Check]]) -> tuple[str, ...]:
    if check.ours is None:
        return (check.what, *[cells.MISSING] * (2 + len(_VARIANTS)))
    decimals = _decimals(check)

    def value(name: str) -> str:
        own = found[name].get(key)
        return _SAME if own is None else cells.number(own.ours, decimals)

    numbers = f"{check.published:g}", cells.number(check.ours, decimals)
    return (check.what, *numbers, *map(value, _VARIANTS))

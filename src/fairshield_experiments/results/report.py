"""``render_report`` makes the report: one HTML file without any other files.

This module computes the products and the headline numbers; words and layout are in the template.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from fairshield_experiments.published_runs.departures import WORDS
from fairshield_experiments.results import statistics
from fairshield_experiments.results.figures import look, render
from fairshield_experiments.results.figures.rows import conventions, finite, interval, periodic
from fairshield_experiments.results.names import PROPERTIES
from fairshield_experiments.results.parts import (
    VERDICTS,
    Check,
    Figure,
    Item,
    Product,
    ReportTable,
    Results,
    Verdict,
)
from fairshield_experiments.results.rows import select, totals

LARGE = 400_000
"""Bytes from which on a picture is embedded as PNG instead of SVG."""
_SIGNS = {"agrees": "✓", "close": "≈", "better": "▼", "differs": "✗", "not run": "○"}
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_NUMBER = re.compile(r"\d[\d.,]*")
_LONG, _OFTEN = 120, 3
"""Length and number of occurrences from which on a repeated sentence is printed once."""


@dataclass(frozen=True)
class Account:
    """Account lists the published numbers of one item that differ, and the reasons.

    Attributes
    ----------
    reasons
        Letter, sentence, and the number of published numbers to which it applies.
    checks
        Each with the letters of its reasons and the sentences that are its own.
    """

    item: Item
    reasons: tuple[tuple[str, str, int], ...]
    checks: tuple[tuple[Check, str, str], ...]


@dataclass(frozen=True)
class Headline:
    """Headline is a share of runs in percent with its 95 % interval; ``None``: not run."""

    what: str
    convention: str
    runs: int
    without: tuple[float, float, float] | None
    with_shield: tuple[float, float, float] | None


def write_report(products: Mapping[Item, Product], results: Results, path: Path) -> None:
    """Write the report to ``path``, whose folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_report(products, results), encoding="utf-8")


def render_report(products: Mapping[Item, Product], results: Results) -> str:
    """The report as HTML text."""
    checks = [check for product in products.values() for check in product.checks]
    counts = sum((product.verdicts for product in products.values()), Counter[Verdict]())
    text = Counter(check.verdict for check in checks if not check.like_for_like)
    departed = sum((product.as_published for product in products.values()), Counter[Verdict]())
    if not any(check.departed_verdict for check in checks):
        departed.clear()
    return _environment().get_template("report.html.j2").render(
        products=products,
        published={item: made for item, made in products.items() if item.published},
        beyond={item: made for item, made in products.items() if not item.published},
        checks=checks,
        counts={verdict: counts[verdict] for verdict in VERDICTS},
        as_published={verdict: departed[verdict] for verdict in VERDICTS},
        departures="; ".join(f"{name} ({words})" for name, words in WORDS.items()),
        text_counts={verdict: text[verdict] for verdict in VERDICTS},
        problems=_problems(results.datasets),
        accounts=accounts(products),
        not_run=[check for check in checks if check.verdict == "not run"],
        finite=_finite_headlines(results),
        periodic=_periodic_headlines(results),
        part=results.facts.get("part", ""),
        facts=[(_words(str(name)), fact_text(value)) for name, value in results.facts.items()],
        failures=_failures(results.failures),
    )  # fmt: skip


def accounts(products: Mapping[Item, Product]) -> list[Account]:
    """What differs, by item: all numbers that differ, and close ones with a known reason."""
    found = []
    for item, product in products.items():
        off = [
            check
            for check in product.checks
            if check.verdict == "differs" or (check.verdict == "close" and check.account)
        ]
        if off:
            found.append(_account(item, off))
    return found


def _account(item: Item, checks: list[Check]) -> Account:
    """Print repeated sentences once, under a letter; long ones even if their numbers differ."""
    sentences = [_SENTENCE.split(check.account) if check.account else [] for check in checks]
    texts: dict[str, set[str]] = {}
    for sentence in chain.from_iterable(sentences):
        texts.setdefault(_pattern(sentence), set()).add(sentence)
    counts = Counter(map(_pattern, chain.from_iterable(sentences)))
    shared = [
        pattern
        for pattern, n in counts.most_common()
        if n >= _OFTEN and (len(texts[pattern]) == 1 or len(pattern) >= _LONG)
    ]
    letters = {pattern: _letter(i) for i, pattern in enumerate(shared)}
    told = {p: next(iter(texts[p])) if len(texts[p]) == 1 else p for p in shared}
    return Account(
        item,
        tuple((letters[p], told[p], counts[p]) for p in shared),
        tuple(
            (
                check,
                " ".join(letters[p] for p in map(_pattern, own) if p in letters),
                " ".join(sentence for sentence in own if _pattern(sentence) not in letters),
            )
            for check, own in zip(checks, sentences, strict=True)
        ),
    )


def _pattern(sentence: str) -> str:
    return _NUMBER.sub("…", sentence)


def _letter(i: int) -> str:
    return f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i % 26]}{i // 26 or ''}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fairshield_experiments.results", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number_text,
        error=error_text,
        difference=difference_text,
        share=_share_text,
        picture=picture_uri,
        numeric=numeric_columns,
        finite_sentence=_finite_sentence,
        convention=lambda name: look.CONVENTIONS.get(name, name) or "–",
    )
    environment.globals["signs"] = _SIGNS
    return environment


def _finite_headlines(results: Results) -> list[Headline]:
    runs = totals(finite(results))
    return [
        Headline(
            short,
            look.CONVENTIONS.get(undefined, undefined),
            len(part),
            interval(statistics.share(part, "unfair_unshielded")),
            interval(statistics.share(part, "unfair")),
        )
        for undefined in conventions(runs)
        for prop, short in PROPERTIES.items()
        for part in [select(runs, property=prop, undefined=undefined)]
    ]


def _periodic_headlines(results: Results) -> list[Headline]:
    runs = totals(periodic(results, [*look.SHIELDS]))
    runs = runs[(runs["shield"] != "finite-horizon").to_numpy(bool)]
    found = set(runs["shield"])
    return [
        Headline(
            f"{short}, {kind.name}",
            look.CONVENTIONS.get(undefined, undefined),
            len(part),
            interval(statistics.share(part, "fair_unshielded")),
            interval(statistics.share(part, "fair")),
        )
        for undefined in conventions(runs)
        for prop, short in PROPERTIES.items()
        for shield, kind in look.SHIELDS.items()
        if shield in found
        for part in [select(runs, property=prop, undefined=undefined, shield=shield)]
        if len(part)
    ]


def _by_convention(headlines: Iterable[Headline]) -> dict[str, list[Headline]]:
    groups: dict[str, list[Headline]] = {}
    for headline in headlines:
        if headline.without is not None:
            groups.setdefault(headline.convention, []).append(headline)
    return groups


def _finite_sentence(headlines: Iterable[Headline]) -> str:
    """What FinHzn does to unfair windows, under the first convention."""
    for rows in _by_convention(headlines).values():
        without = " and ".join(f"{r.without[0]:.1f} % ({r.what})" for r in rows if r.without)
        after = " and ".join(f"{r.with_shield[0]:.1f} %" for r in rows if r.with_shield)
        return f"Without a shield, {without} of the windows ended unfair; with FinHzn, {after}."
    return "The FinHzn experiment was not run."


def _failures(failures: pd.DataFrame) -> list[tuple[str, str]]:
    if failures.empty:
        return []
    whole = failures.reindex(columns=["title", "error"]).fillna("").astype(str)
    return list(whole.itertuples(index=False, name=None))


def _problems(datasets: pd.DataFrame) -> list[tuple[str, str]]:
    """Names of the data sets, without the sensitive attribute, and their known problems."""
    if "problems" not in datasets:
        return []
    titles = datasets["title"].str.partition(" (")[0]
    return list(dict(zip(titles, datasets["problems"], strict=True)).items())


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


def fact_text(value: Any) -> str:
    """A fact as one line of text.

    >>> fact_text({"numpy": "2.1", "cores": 16}), fact_text([0.5, 12345.678]), fact_text(None)
    ('numpy 2.1, cores 16', '0.5, 12,345.7', 'unknown')
    """
    if value is None:
        return "unknown"
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(name))} {fact_text(v)}" for name, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(fact_text, value))
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def number_text(value: float | None) -> str:
    """A number in at most four digits and its size; a dash where there is none.

    >>> number_text(45222.0), number_text(0.12634), number_text(-1.5), number_text(None)
    ('45,222', '0.1263', '\N{MINUS SIGN}1.5', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text


def error_text(value: float | None) -> str:
    """A standard error in two digits."""
    return "–" if value is None or math.isnan(value) else f"{value:.2g}"


def difference_text(check: Check) -> str:
    """Ours minus published, with its sign."""
    if check.ours is None:
        return "–"
    difference = check.ours - check.published
    return f"{'+' if difference > 0 else ''}{number_text(difference)}"


def _share_text(share: tuple[float, float, float] | None) -> str:
    if share is None:
        return "not run"
    return f"{share[0]:.1f} % ({share[1]:.1f}–{share[2]:.1f})"


def picture_uri(figure: Figure) -> str:
    """The figure as a data URI: an image of its own, whose ids and styles stay inside it."""
    svg = render(figure, "svg")
    kind, content = ("svg+xml", svg) if len(svg) <= LARGE else ("png", render(figure, "png"))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def numeric_columns(table: ReportTable) -> list[bool]:
    """Per column, whether its cells begin like numbers, and so are aligned to the right."""
    starts = "0123456789.+-\N{MINUS SIGN}–"
    return [
        i >= table.n_keys and all(not row[i] or row[i][0] in starts for row in table.rows)
        for i in range(len(table.columns))
    ]

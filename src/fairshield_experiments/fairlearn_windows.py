"""Fairlearn's methods and a shield on the same windows of the same people.

``python -m fairshield_experiments.fairlearn_windows picture.png`` draws the comparison on made-up
loans, and on Adult where the raw data sets are at hand.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import ExponentiatedGradient
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield.fairlearn import constraint_of, unfair_windows
from fairshield.reports.plots import BLUE, GREY, INK, ORANGE, save_small
from fairshield.sklearn import ShieldedClassifier
from fairshield_experiments.data import encode, load, make_split

Array = NDArray[Any]
Predict = Callable[["Applicants", int], Array]
COLOURS = {
    "LogisticRegression": GREY,
    "ThresholdOptimizer": "#E69F00",
    "ExponentiatedGradient": ORANGE,
    "ShieldedClassifier": BLUE,
}


@dataclass(frozen=True, eq=False)
class Applicants:
    """Applicants holds features, the true label, and the group, one entry per person."""

    features: Array
    label: Array
    group: Array

    def __len__(self) -> int:
        return len(self.label)

    def take(self, who: Array) -> Applicants:
        """Some of them, in this order."""
        return Applicants(self.features[who], self.label[who], self.group[who])


def loans(n: int, *, seed: int = 0) -> Applicants:
    """Made-up applicants: women have less income, and repay as often for the same income."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["men", "women"], n, p=[0.6, 0.4])
    income = rng.normal(size=n) - 0.6 * (group == "women")
    features = np.column_stack((income, rng.normal(size=(n, 2))))
    label = features @ [1.0, 0.7, -0.5] + rng.logistic(size=n) > 0.2
    return Applicants(features, label.astype(np.int64), group)


def adult() -> tuple[Applicants, Applicants]:
    """Adult by gender: those to train on and those held out."""
    dataset = load("adult-gender")
    split = make_split(dataset)
    everybody = Applicants(
        encode(dataset, split).astype(np.float64),  # ThresholdOptimizer does not take float32
        dataset.target.astype(np.int64),
        np.array(dataset.groups)[dataset.group],
    )  # fmt: skip
    return everybody.take(split.train), everybody.take(split.held_out)


def fit_methods(train: Applicants, prop: fs.Property, horizon: int) -> dict[str, Predict]:
    """Four classifiers of the same family, each with its library's defaults."""
    X, y, group = train.features, train.label, train.group
    plain = _logistic().fit(X, y)
    post = ThresholdOptimizer(estimator=_logistic(), predict_method="predict_proba")
    mixture = ExponentiatedGradient(_logistic(), constraint_of(prop))
    shielded = ShieldedClassifier(_logistic(), prop, horizon=horizon)
    for method in (post, mixture, shielded):
        method.fit(X, y, sensitive_features=group)
    return {
        "LogisticRegression": lambda people, seed: plain.predict(people.features),
        "ThresholdOptimizer": lambda people, seed: post.predict(
            people.features, sensitive_features=people.group, random_state=seed
        ),
        "ExponentiatedGradient": lambda people, seed: mixture.predict(
            people.features, random_state=seed
        ),
        "ShieldedClassifier": lambda people, seed: shielded.predict(
            people.features, sensitive_features=people.group
        ),
    }


def compare(
    train: Applicants, held_out: Applicants, *, prop: fs.Property, horizon: int, windows: int,
    streams: int, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """One row per method and stream: share of unfair windows, accuracy.

    A stream is as many held-out people as ``windows`` have, in random order.
    """
    rows = []
    with warnings.catch_warnings():
        # Fairlearn uses features of pandas that are deprecated; that is no fault of this code.
        warnings.simplefilter("ignore", DeprecationWarning)
        methods = fit_methods(train, prop, horizon)
        for stream in range(streams):
            rng = np.random.default_rng((seed, stream))
            people = held_out.take(rng.permutation(len(held_out))[: windows * horizon])
            for name, predict in methods.items():
                predicted = predict(people, stream)
                unfair = unfair_windows(
                    people.label, predicted, sensitive_features=people.group, prop=prop,
                    horizon=horizon,
                )  # fmt: skip
                accuracy = float((predicted == people.label).mean())
                rows.append((name, stream, unfair, accuracy))
    return pd.DataFrame(rows, columns=["method", "stream", "unfair", "accuracy"])


def plot(found: Mapping[str, pd.DataFrame], path: Path, *, title: str) -> None:
    """Unfair windows as bars and accuracy as points, with standard errors over streams."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # loads with the first picture

    figure = Figure(figsize=(10.0, 0.9 + 2.1 * len(found)), layout="constrained")
    panels = figure.subplots(len(found), 2, squeeze=False)
    for (name, frame), (left, right) in zip(found.items(), panels, strict=True):
        _draw(left, frame, "unfair", f"{name}: unfair windows")
        _draw(right, frame, "accuracy", f"{name}: accuracy")
        left.set_xlim(0, 105)
        right.set_yticklabels([])
        right.margins(x=0.25)
        right.grid(axis="x", color="#DDDDDD", zorder=0)
    for axes in panels[-1]:
        axes.set_xlabel("%, mean over streams ± standard error")
    figure.suptitle(title, size=13, color=INK)
    save_small(figure, path, 140)


def _draw(axes: Any, frame: pd.DataFrame, value: str, title: str) -> None:
    error = {"ecolor": INK, "capsize": 3}
    for i, (name, colour) in enumerate(COLOURS.items()):
        values = 100 * frame.loc[frame["method"] == name, value]
        mean, sem = values.mean(), values.sem()
        if value == "unfair":
            axes.barh(i, mean, xerr=sem, color=colour, height=0.65, error_kw=error)
        else:  # its axis does not begin at 0, where a bar would have to
            axes.errorbar(mean, i, xerr=sem, fmt="o", ms=9, color=colour, zorder=3, **error)
        axes.annotate(f"{mean:.1f} %", (mean + sem, i), (9, 0), textcoords="offset points",
                      va="center", size=9, color=INK)  # fmt: skip
    axes.set_yticks(range(len(COLOURS)), COLOURS)
    axes.set_ylim(len(COLOURS) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", size=11, color=INK)


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def main() -> None:
    """Draw the picture of docs/fairlearn.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--bound", default="0.1")
    asked = parser.parse_args()
    sources = {"loans": (loans(20_000), loans(20_000, seed=1))}
    if os.environ.get("FAIRSHIELD_DATA"):
        sources["Adult"] = adult()
    prop = fs.DemographicParity(asked.bound)
    found = {
        name: compare(*people, prop=prop, horizon=asked.horizon, windows=100, streams=20)
        for name, people in sources.items()
    }
    plot(
        found, asked.picture,
        title=f"{prop} after every {asked.horizon} decisions: 20 streams of 100 windows",
    )  # fmt: skip
    for name, frame in found.items():
        table = frame.groupby("method", sort=False)[["unfair", "accuracy"]].agg(["mean", "sem"])
        print(name, table.round(4), sep="\n")  # noqa: T201  # its output is its purpose


if __name__ == "__main__":
    main()

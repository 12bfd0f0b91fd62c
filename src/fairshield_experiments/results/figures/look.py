"""Sizes, colours and names of figures, and functions that write them.

Colours are those of Okabe and Ito, which can be told apart under every colour blindness; markers,
hatches and line styles do the same in black-and-white print.  This module knows nothing about rows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from fairshield_experiments.results.names import SHIELDS as TITLES
from fairshield_experiments.results.parts import Figure

INK, GREY, BAND = "#222222", "#8A8A8A", "#FFF0B8"
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

WIDTH = 7.0
"""Inches of two columns of print; texts of 8 points and more are meant at this width."""
DPI = 200

LOOK = style.context(
    [
        "default",
        {
            "font.size": 8,
            "axes.titlesize": 8.5,
            "axes.labelsize": 8,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "legend.fontsize": 8,
            "figure.titlesize": 9,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.linewidth": 0.7,
            "xtick.color": INK,
            "ytick.color": INK,
            "text.color": INK,
            "legend.frameon": False,
            "hatch.linewidth": 0.6,
            "lines.linewidth": 1.2,
            "figure.constrained_layout.h_pad": 0.06,
            "figure.constrained_layout.w_pad": 0.06,
        },
    ]
)
"""A decorator for functions that draw: the user's settings of matplotlib have no effect."""


@dataclass(frozen=True)
class Look:
    """Look is one thing compared: its name, and four ways to tell it from the others."""

    name: str
    colour: str
    marker: str = "o"
    line: Any = "-"
    hatch: str = ""


SHIELDS = {
    "none": Look(TITLES["none"], GREY, "s", (0, (1, 1)), "..."),
    "finite-horizon": Look(TITLES["finite-horizon"], BLUE, "o", "-", "///"),
    "static-fair": Look(TITLES["static-fair"], ORANGE, "^", (0, (5, 1)), "\\\\\\"),
    "static-bounded": Look(TITLES["static-bounded"], PURPLE, "v", (0, (4, 1, 1, 1)), "xxx"),
    "dynamic": Look(TITLES["dynamic"], BLUE, "o", "-", "///"),
    "inactive": Look(TITLES["inactive"], SKY, "D", (0, (2, 1)), "|||"),
    "exact": Look(TITLES["exact"], GREEN, "P", (0, (3, 1, 1, 1, 1, 1)), "---"),
    "perpetual": Look(TITLES["perpetual"], VERMILION, "X", (0, (6, 2)), "+++"),
    "optimal": Look(TITLES["optimal"], INK, "*", (0, (1, 2)), "ooo"),
}
BOUNDS = {
    0.05: Look("κ = 0.05", SKY, "o", "-", ""),
    0.1: Look("κ = 0.1", ORANGE, "s", (0, (4, 1)), "///"),
    0.15: Look("κ = 0.15", GREEN, "^", (0, (4, 1, 1, 1)), "..."),
    0.2: Look("κ = 0.2", PURPLE, "D", (0, (1, 1)), "xxx"),
}
INPUTS = {
    "agnostic": Look("agnostic", GREY, "s"),
    "learned": Look("learned", ORANGE, "^"),
    "confidence": Look("confidence", BLUE, "o"),
}
CONVENTIONS = {"rate-0": "rate 0", "bias-0": "bias 0"}
"""What an empty group counts as: a rate of 0 (the published runs), no bias (the paper's text)."""


def convention_text(undefined: str) -> str:
    """The convention in words, for captions."""
    texts = {
        "bias-0": "An empty group counts as no bias (the paper's text).",
        "rate-0": "An empty group counts as a rate of 0 (the published runs).",
    }
    return texts.get(undefined, f"Empty groups: {undefined}.")


def number(value: float, digits: int = 2) -> str:
    """The value with a proper minus sign; what rounds to zero has none.

    >>> number(-0.034), number(-0.001)
    ('\N{MINUS SIGN}0.03', '0.00')
    """
    text = f"{value:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text.lstrip("-")


def grid(
    n_rows: int, n_columns: int, height: float, **options: Any
) -> tuple[Drawing, NDArray[np.object_]]:
    """A drawing of print width, ``height`` inches high, and its ``(n_rows, n_columns)`` panels."""
    drawing = Drawing(figsize=(WIDTH, height), layout="constrained")
    panels = drawing.subplots(n_rows, n_columns, squeeze=False, **options)
    for axes in panels.flat:
        # A fixed number of ticks: else labels change after the layout was computed.
        axes.locator_params(nbins=5)
    return drawing, panels


def say(axes: Axes, text: str = "not run") -> None:
    """Write into an empty panel why it is empty."""
    axes.tick_params(left=False, labelleft=False)
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#595959",
        style="italic", in_layout=False,
    )  # fmt: skip


def legend_above(drawing: Drawing, handles: Sequence[Any], columns: int | None = None) -> None:
    """One legend for all panels, above them and so never over data."""
    if handles:
        drawing.legend(
            handles=handles, loc="outside upper center", ncols=columns or len(handles),
            handlelength=2.6, columnspacing=1.4,
        )  # fmt: skip


def finish(name: str, title: str, caption: str, drawing: Drawing) -> Figure:
    """The figure with its layout settled, so that every file of it shows the same."""
    engine = drawing.get_layout_engine()
    if engine is not None:
        engine.execute(drawing)
    # No layout engine from here on: with any, matplotlib would draw everything twice.
    drawing.set_layout_engine(None)
    return Figure(name, title, caption, drawing)


def drawn(figure: Figure) -> Figure:
    """The figure as the contents of its files."""
    files = {kind: render(figure, kind) for kind in ("svg", "png")}
    return replace(figure, drawing=None, files=files)


@LOOK
def render(figure: Figure, kind: str) -> bytes:
    """The file's content, ``kind`` "svg" or "png": the same bytes for the same figure."""
    if figure.drawing is None:
        return figure.files[kind]
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": figure.name}):
        figure.drawing.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def save(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Write ``NAME.svg`` and ``NAME.png`` into ``folder``, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = (folder / f"{figure.name}.{kind}" for kind in ("svg", "png"))
    for path in (svg, png):
        path.write_bytes(render(figure, path.suffix[1:]))
    return svg, png

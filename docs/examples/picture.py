"""Draw docs/images/shield.svg, how a shield works: ``python docs/examples/picture.py [FILE]``.

The picture brings its own light ground, so that it reads the same on light and on dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH, HEIGHT = 860, 392
INK, GREY, BLUE, ORANGE = "#222222", "#5F6670", "#0072B2", "#C24E00"
PALE_BLUE, PALE_ORANGE, PALE_GREY = "#E4F0F8", "#FCEADF", "#F1F3F5"
FONT = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
PEOPLE = "bababb"
TITLE = "How a shield works"
WORDS = (
    "People come one after the other. A classifier sees their features and proposes a decision. "
    "The shield sees the proposed decision, the cost of overruling it and the person's group, "
    "looks up its policy at the counters of the window, gives the final decision and counts it. "
    "The policy was made before, of the property, the horizon and an input model."
)


def text(x: float, y: float, words: str, *, size: int = 14, colour: str = INK,
         anchor: str = "middle", bold: bool = False) -> str:  # fmt: skip
    """A line of text whose base line is at ``y``."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}"{weight}>{words}</text>'
    )


def box(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    """A box with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="9" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.6"/>'
    )


def arrow(*points: tuple[float, float], colour: str = INK, dashed: bool = False) -> str:
    """A line through these points, with a head at the last."""
    path = " L".join(f"{x:g},{y:g}" for x, y in points)
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    head = {INK: "ink", GREY: "grey", ORANGE: "orange"}[colour]
    return (
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes} '
        f'marker-end="url(#{head})"/>'
    )


def heads() -> Iterator[str]:
    """The heads of arrows, one for each colour."""
    for name, colour in (("ink", INK), ("grey", GREY), ("orange", ORANGE)):
        yield (
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7.5" '
            f'markerHeight="7.5" orient="auto"><path d="M0,0.8 L10,5 L0,9.2 Z" fill="{colour}"/>'
            "</marker>"
        )


def people() -> Iterator[str]:
    """People with their groups; those who come later are paler."""
    for i, group in enumerate(PEOPLE):
        x, colour = 150 - 26 * i, BLUE if group == "a" else ORANGE
        yield f'<g opacity="{1 - 0.15 * i:g}">'
        yield f'<circle cx="{x}" cy="287" r="6.5" fill="{colour}"/>'
        yield f'<path d="M{x - 10},318 v-9 a10,10 0 0 1 20,0 v9 Z" fill="{colour}"/>'
        yield text(x, 315, group, size=12, colour="#FFFFFF", bold=True)
        yield "</g>"


def shield() -> Iterator[str]:
    """The shield with its policy and the counters of the window."""
    yield box(468, 96, 196, 180, PALE_ORANGE, ORANGE)
    yield text(566, 120, "fairness shield", size=16, bold=True)
    yield box(482, 132, 168, 44, "#FFFFFF", ORANGE)
    yield text(566, 150, "policy", bold=True)
    yield text(566, 168, "a decision for every state", size=12, colour=GREY)
    yield box(482, 186, 168, 78, "#FFFFFF", ORANGE)
    yield text(566, 204, "counters", bold=True)
    for y, group, colour, told in (
        (226, "a", BLUE, "9 of 21 accepted"),
        (249, "b", ORANGE, "17 of 38 accepted"),
    ):
        yield f'<circle cx="504" cy="{y - 4}" r="9" fill="{colour}"/>'
        yield text(504, y, group, size=12, colour="#FFFFFF", bold=True)
        yield text(520, y, told, size=13, anchor="start")


def picture() -> str:
    """The picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title words" '
        f'font-family="{FONT}">',
        f'<title id="title">{TITLE}</title><desc id="words">{WORDS}</desc>',
        "<defs>", *heads(), "</defs>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12" '
        'fill="#FFFFFF" stroke="#D5DAE0"/>',
        # Before: what the policy is made of.
        box(430, 18, 272, 40, PALE_GREY, GREY),
        text(566, 43, "property, horizon, input model", size=14),
        arrow((566, 58), (566, 94), colour=GREY, dashed=True),
        text(576, 80, "synthesis, once", size=12, colour=GREY, anchor="start"),
        # The classifier and what it says.
        box(64, 122, 172, 84, PALE_BLUE, BLUE),
        text(150, 158, "classifier", size=16, bold=True),
        text(150, 180, "any: model, score, rule", size=12, colour=GREY),
        arrow((236, 138), (466, 138)),
        text(351, 129, "proposed decision"),
        text(351, 154, "accept? or reject?", size=12, colour=GREY),
        arrow((236, 192), (466, 192)),
        text(351, 183, "cost of overruling it"),
        # People: features to the classifier, the group to the shield.
        *people(),
        text(14, 343, "people, one after the other", size=13, anchor="start"),
        arrow((150, 274), (150, 208)),
        text(159, 245, "features", anchor="start"),
        arrow((164, 302), (360, 302), (360, 238), (466, 238)),
        text(262, 293, "group"),
        text(262, 320, "the shield sees no features", size=12, colour=GREY),
        # The shield and what it says.
        *shield(),
        arrow((664, 160), (726, 160)),
        box(728, 118, 116, 84, PALE_GREY, GREY),
        text(786, 146, "final", size=15, bold=True),
        text(786, 165, "decision", size=15, bold=True),
        text(786, 187, "accept or reject", size=12, colour=GREY),
        arrow((786, 202), (786, 238), (666, 238), colour=ORANGE),
        text(727, 256, "counted", size=13, colour=ORANGE),
        # Where outcomes say who counts.
        arrow((786, 304), (786, 284), (620, 284), (620, 278), colour=GREY, dashed=True),
        text(844, 321, "later: the outcome, where the", size=12, colour=GREY, anchor="end"),
        text(844, 336, "property counts people by it", size=12, colour=GREY, anchor="end"),
        # What is promised.
        text(430, 374, "After the last decision of the window the property holds, whoever came in "
             "whatever order.", size=14, bold=True),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    default = Path(__file__).parents[1] / "images" / "shield.svg"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target.write_text(picture(), encoding="utf-8")

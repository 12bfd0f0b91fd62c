"""Colours, sizes and file writing that all pictures share.

matplotlib is imported when the first picture is drawn.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fairshield.base.errors import MissingExtraError

# The orange and blue of Okabe and Ito can be told apart under every colour blindness.
ORANGE, BLUE, GREY, BAND, INK = "#D55E00", "#0072B2", "#8A8A8A", "#FFF0B8", "#222222"
WIDTH_INCHES = 10.0


def require_matplotlib() -> Any:
    """The module; if it is missing, an error that says how to get it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib, which is not installed: pip install 'fairshield[plot]'"
        ) from None
    return mpl


def save_small(figure: Any, path: Path, dpi: int) -> None:
    """Write a figure as PNG with a palette: a third of the size, without a visible difference."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    image.save(path, format="PNG", optimize=True)

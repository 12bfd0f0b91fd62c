"""What can go wrong in the experiments and not in the library."""

from __future__ import annotations

import fairshield as fs


class DataError(fs.FairshieldError, OSError):
    """A raw file is missing, is not the published one, or cannot be downloaded."""

"""DataError, the error that only the experiments raise."""

from __future__ import annotations

import fairshield as fs


class DataError(fs.FairshieldError, OSError):
    """DataError says that a raw file is missing, is not the published one, or is out of reach."""

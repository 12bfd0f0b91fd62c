"""Public import path of :mod:`fairshield.adapters.fairlearn`; needs the extra ``fairlearn``."""

from fairshield.adapters.fairlearn import constraint_of as constraint_of
from fairshield.adapters.fairlearn import exempt_windows as exempt_windows
from fairshield.adapters.fairlearn import metric_frame as metric_frame
from fairshield.adapters.fairlearn import property_of as property_of
from fairshield.adapters.fairlearn import unfair_windows as unfair_windows
from fairshield.adapters.fairlearn import window_disparity as window_disparity

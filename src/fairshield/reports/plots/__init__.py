"""Pictures of windows, periods and bounds, and sparklines of text."""

from fairshield._renamed import NAMES
from fairshield.base.renamed import old_names
from fairshield.reports.plots.look import BLUE as BLUE
from fairshield.reports.plots.look import GREY as GREY
from fairshield.reports.plots.look import INK as INK
from fairshield.reports.plots.look import ORANGE as ORANGE
from fairshield.reports.plots.look import require_matplotlib as require_matplotlib
from fairshield.reports.plots.look import save_small as save_small
from fairshield.reports.plots.pareto import plot_pareto as plot_pareto
from fairshield.reports.plots.periods import plot_periods as plot_periods
from fairshield.reports.plots.running import Comparison as Comparison
from fairshield.reports.plots.running import DrawnWindows as DrawnWindows
from fairshield.reports.plots.running import plot_running_bias as plot_running_bias
from fairshield.reports.plots.running import signed_gap as signed_gap
from fairshield.reports.plots.text import sparkline as sparkline
from fairshield.reports.plots.text import tenths as tenths

__getattr__ = old_names(__name__, NAMES)

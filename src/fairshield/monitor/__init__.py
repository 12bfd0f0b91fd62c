"""Monitor watches decisions without changing them: their fairness, and the input model.

A :class:`Monitor` checks the same properties on the same windows and periods as shields do.  Its
intervals are valid at all times at once, its alarms are false with a small probability only, and a
shadow shield, which nobody obeys, says what it would have decided.
"""

from fairshield.monitor.monitor import Monitor as Monitor
from fairshield.monitor.report import Alarm as Alarm
from fairshield.monitor.report import MonitoredGroup as MonitoredGroup
from fairshield.monitor.report import MonitoredPair as MonitoredPair
from fairshield.monitor.report import MonitoredWindow as MonitoredWindow
from fairshield.monitor.report import MonitorReport as MonitorReport
from fairshield.monitor.report import Observation as Observation
from fairshield.monitor.report import ShadowReport as ShadowReport
from fairshield.monitor.saving import Saving as Saving
from fairshield.spec import Interval as Interval

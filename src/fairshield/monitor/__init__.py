"""Watching decisions without changing them: whether they are fair, and the input model right.

A :class:`Monitor` asks the same properties of the same windows and periods as shields do, with
intervals that are right at all times at once, alarms that are seldom false, and a shield in the
shadow that says what it would have done.
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
from fairshield.monitor.sequences import Interval as Interval

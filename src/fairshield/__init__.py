"""Runtime shields that make any sequential classifier fair, on every input sequence."""

from importlib import import_module
from typing import TYPE_CHECKING

from fairshield._version import __version__ as __version__
from fairshield.counts import Counts as Counts
from fairshield.counts import GroupCount as GroupCount
from fairshield.errors import ArtifactError as ArtifactError
from fairshield.errors import FairshieldError as FairshieldError
from fairshield.errors import InfeasibleError as InfeasibleError
from fairshield.errors import InvalidValueError as InvalidValueError
from fairshield.errors import MemoryLimitError as MemoryLimitError
from fairshield.errors import OutcomePendingError as OutcomePendingError
from fairshield.errors import OutcomesWarning as OutcomesWarning
from fairshield.errors import UnexpectedOutcomeError as UnexpectedOutcomeError
from fairshield.errors import UnknownGroupError as UnknownGroupError
from fairshield.errors import VacuousWarning as VacuousWarning
from fairshield.errors import WindowOverError as WindowOverError
from fairshield.explain import Explanation as Explanation
from fairshield.explain import explain as explain
from fairshield.groups import Unseen as Unseen
from fairshield.groups import intersection as intersection
from fairshield.inputs import InputModel as InputModel
from fairshield.inputs import InputSchedule as InputSchedule
from fairshield.pareto import Pareto as Pareto
from fairshield.pareto import pareto as pareto
from fairshield.policy import Policy as Policy
from fairshield.reading import Reading as Reading
from fairshield.runtime.audit import audit as audit
from fairshield.runtime.report import AuditReport as AuditReport
from fairshield.runtime.shield import Shield as Shield
from fairshield.runtime.step import Decision as Decision
from fairshield.runtime.step import State as State
from fairshield.runtime.step import Why as Why
from fairshield.runtime.step import step as step
from fairshield.spec import BoundedRates as BoundedRates
from fairshield.spec import Certificate as Certificate
from fairshield.spec import DemographicParity as DemographicParity
from fairshield.spec import DisparateImpact as DisparateImpact
from fairshield.spec import EqualOpportunity as EqualOpportunity
from fairshield.spec import Finding as Finding
from fairshield.spec import LinearProperty as LinearProperty
from fairshield.spec import Measured as Measured
from fairshield.spec import PredictiveEquality as PredictiveEquality
from fairshield.spec import Property as Property
from fairshield.spec import ShareParity as ShareParity
from fairshield.spec import Sustained as Sustained
from fairshield.synthesis import synthesize as synthesize
from fairshield.verify import Verification as Verification
from fairshield.verify import verify as verify

if TYPE_CHECKING:
    from fairshield.client import AsyncClient as AsyncClient
    from fairshield.client import Client as Client
    from fairshield.frames import audit_frame as audit_frame
    from fairshield.frames import shield_batches as shield_batches
    from fairshield.frames import shield_frame as shield_frame
    from fairshield.monitor import Alarm as Alarm
    from fairshield.monitor import Monitor as Monitor
    from fairshield.monitor import MonitorReport as MonitorReport
    from fairshield.monitor import ShadowReport as ShadowReport
    from fairshield.periodic import DynamicShield as DynamicShield
    from fairshield.periodic import ExactPeriodicShield as ExactPeriodicShield
    from fairshield.periodic import Guarantee as Guarantee
    from fairshield.periodic import PeriodicPolicy as PeriodicPolicy
    from fairshield.periodic import PeriodicShield as PeriodicShield
    from fairshield.periodic import PeriodicState as PeriodicState
    from fairshield.periodic import PerpetualShield as PerpetualShield
    from fairshield.periodic import StaticBoundedShield as StaticBoundedShield
    from fairshield.periodic import StaticFairShield as StaticFairShield
    from fairshield.sklearn import ShieldedClassifier as ShieldedClassifier
    from fairshield.stream import Answers as Answers
    from fairshield.stream import Stream as Stream
    from fairshield.windows import ShieldReport as ShieldReport

_LAZY = {
    name: f"fairshield.{module}"
    for module, names in {
        "client": "AsyncClient Client",
        "frames": "audit_frame shield_batches shield_frame",
        "monitor": "Alarm Monitor MonitorReport ShadowReport",
        "periodic": "DynamicShield ExactPeriodicShield Guarantee PeriodicPolicy PeriodicShield "
        "PeriodicState PerpetualShield StaticBoundedShield StaticFairShield",
        "sklearn": "ShieldedClassifier",
        "stream": "Answers Stream",
        "windows": "ShieldReport",
    }.items()
    for name in names.split()
}
"""Loaded when first asked for: whoever decides in one window, in this process, does without."""


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})

"""Runtime shields that make any sequential decision maker fair, on every input sequence."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from fairshield._renamed import MODULES, NAMES
from fairshield._version import __version__
from fairshield.analysis.explain import Explanation, explain
from fairshield.analysis.report import AuditReport
from fairshield.analysis.verify import Verification
from fairshield.base.counts import Counts, GroupCount
from fairshield.base.errors import (
    ArtifactError,
    FairshieldError,
    InfeasibleError,
    InvalidValueError,
    MemoryLimitError,
    MissingExtraError,
    OutcomePendingError,
    OutcomesWarning,
    UnexpectedOutcomeError,
    UnknownGroupError,
    VacuousWarning,
    WindowOverError,
)
from fairshield.base.groups import Unseen
from fairshield.base.intersections import intersection
from fairshield.base.renamed import OldModules, old_names
from fairshield.inputs import InputModel, InputSchedule
from fairshield.policy import Policy
from fairshield.records.reading import Reading
from fairshield.runtime.shield import Batch, Shield
from fairshield.runtime.step import Decision, State, Why, step
from fairshield.spec import (
    BoundedRates,
    DemographicParity,
    DisparateImpact,
    EqualOpportunity,
    Finding,
    LinearProperty,
    Measured,
    PredictiveEquality,
    Property,
    RateDifference,
    ShareParity,
)
from fairshield.synthesis import synthesize

if TYPE_CHECKING:
    from fairshield.adapters.frames import audit_frame, shield_batches, shield_frame
    from fairshield.adapters.sklearn import ShieldedClassifier
    from fairshield.analysis.pareto import Pareto, pareto
    from fairshield.analysis.simulate import Simulation, simulate
    from fairshield.client import AsyncClient, Client
    from fairshield.monitor import Alarm, Monitor, MonitorReport, ShadowReport
    from fairshield.periodic import (
        DynamicShield,
        ExactPeriodicShield,
        Guarantee,
        OptimalPeriodicShield,
        PeriodicPolicy,
        PerpetualShield,
        Run,
        StaticBoundedShield,
        StaticFairShield,
        load_policy,
    )
    from fairshield.periodic.audit import audit
    from fairshield.periodic.verify import verify
    from fairshield.periodic.windows import ShieldReport
    from fairshield.runtime.evaluate import Evaluation, evaluate

__all__ = [
    "Alarm",
    "ArtifactError",
    "AsyncClient",
    "AuditReport",
    "Batch",
    "BoundedRates",
    "Client",
    "Counts",
    "Decision",
    "DemographicParity",
    "DisparateImpact",
    "DynamicShield",
    "EqualOpportunity",
    "Evaluation",
    "ExactPeriodicShield",
    "Explanation",
    "FairshieldError",
    "Finding",
    "GroupCount",
    "Guarantee",
    "InfeasibleError",
    "InputModel",
    "InputSchedule",
    "InvalidValueError",
    "LinearProperty",
    "Measured",
    "MemoryLimitError",
    "MissingExtraError",
    "Monitor",
    "MonitorReport",
    "OptimalPeriodicShield",
    "OutcomePendingError",
    "OutcomesWarning",
    "Pareto",
    "PeriodicPolicy",
    "PerpetualShield",
    "Policy",
    "PredictiveEquality",
    "Property",
    "RateDifference",
    "Reading",
    "Run",
    "ShadowReport",
    "ShareParity",
    "Shield",
    "ShieldReport",
    "ShieldedClassifier",
    "Simulation",
    "State",
    "StaticBoundedShield",
    "StaticFairShield",
    "UnexpectedOutcomeError",
    "UnknownGroupError",
    "Unseen",
    "VacuousWarning",
    "Verification",
    "Why",
    "WindowOverError",
    "__version__",
    "audit",
    "audit_frame",
    "evaluate",
    "explain",
    "intersection",
    "load_policy",
    "pareto",
    "shield_batches",
    "shield_frame",
    "simulate",
    "step",
    "synthesize",
    "verify",
]

_LAZY = {
    name: f"fairshield.{module}"
    for module, names in {
        "adapters.frames": "audit_frame shield_batches shield_frame",
        "adapters.sklearn": "ShieldedClassifier",
        "analysis.pareto": "Pareto pareto",
        "analysis.simulate": "Simulation simulate",
        "client": "AsyncClient Client",
        "monitor": "Alarm Monitor MonitorReport ShadowReport",
        "periodic": "DynamicShield ExactPeriodicShield Guarantee OptimalPeriodicShield "
        "PeriodicPolicy PerpetualShield Run StaticBoundedShield StaticFairShield load_policy",
        "periodic.audit": "audit",
        "periodic.verify": "verify",
        "periodic.windows": "ShieldReport",
        "runtime.evaluate": "Evaluation evaluate",
    }.items()
    for name in names.split()
}
"""Modules of names that are imported on first use, so that ``import fairshield`` is fast."""

_old_name = old_names(__name__, NAMES, stacklevel=4)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    return _old_name(name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """_Package keeps a public function from being replaced by a module of its name."""

    def __setattr__(self, name: str, value: object) -> None:
        # fairshield.simulate is a function.  When a module of that name is imported by its old
        # path, the import system tries to put the module in its place; that is ignored.
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
sys.meta_path.insert(0, OldModules(MODULES))

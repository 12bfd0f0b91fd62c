"""The five learners of the paper, with its hyper-parameters."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairshield_experiments.learners.base import Learner
from fairshield_experiments.learners.diffdp import DiffDP
from fairshield_experiments.learners.erm import ERM
from fairshield_experiments.learners.hsic import HSIC
from fairshield_experiments.learners.laftr import LAFTR
from fairshield_experiments.learners.prejudice_remover import PrejudiceRemover

LEARNERS: Mapping[str, Learner] = MappingProxyType(
    {
        "ERM": ERM(),
        "DiffDP": DiffDP(weight=1.0),
        "HSIC": HSIC(weight=100.0),
        "LAFTR": LAFTR(reconstruction=8.0, prediction=4.0, adversary=2.1),
        "PR": PrejudiceRemover(weight=0.06),
    }
)
"""By the names that tables use."""

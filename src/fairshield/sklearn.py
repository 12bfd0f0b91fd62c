"""Public import path of :mod:`fairshield.adapters.sklearn`; needs the extra ``sklearn``."""

from fairshield.adapters.sklearn import ShieldedClassifier as ShieldedClassifier

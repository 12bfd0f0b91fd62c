"""ShieldedClassifier is a classifier of scikit-learn together with its shield.

Needs the extra ``sklearn``.
"""

from fairshield.base.extras import check_installed

check_installed("ShieldedClassifier", "sklearn", extra="sklearn")

from fairshield.adapters.sklearn.classifier import ShieldedClassifier as ShieldedClassifier

"""ShieldedClassifier is a classifier of scikit-learn together with its shield.

Needs the extra ``sklearn``.
"""

from importlib.util import find_spec

from fairshield.base.errors import MissingExtraError

if find_spec("sklearn") is None:
    raise MissingExtraError(
        "ShieldedClassifier needs scikit-learn, which is not installed: "
        "pip install 'fairshield[sklearn]'"
    )

from fairshield.adapters.sklearn.classifier import ShieldedClassifier as ShieldedClassifier

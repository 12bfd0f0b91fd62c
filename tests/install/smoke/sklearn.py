"""What scikit-learn estimators build on is there."""

import sys

import sklearn

import fairshield as fs

fs.InputModel.from_scores([0.2, 0.8], ["a", "b"])
sys.stdout.write(f"scikit-learn {sklearn.__version__}")

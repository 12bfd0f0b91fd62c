"""Translate constraints of Fairlearn."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings of Fairlearn itself
    import fairlearn

    from fairshield.fairlearn import property_of

assert str(property_of("demographic_parity", "0.1")) == "demographic parity ≤ 1/10"
sys.stdout.write(f"Fairlearn {fairlearn.__version__}")

"""Adapters put shields into other libraries: frames, scikit-learn, Fairlearn, MLflow, TOML."""

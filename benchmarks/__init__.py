"""Speed and memory, each figure beside its target and its baseline: ``python -m benchmarks``."""

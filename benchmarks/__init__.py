"""Benchmarks of speed and memory beside targets and baselines: ``python -m benchmarks``."""

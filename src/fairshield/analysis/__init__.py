"""Functions that examine policies (verify, simulate, explain, pareto) and logs (audit)."""

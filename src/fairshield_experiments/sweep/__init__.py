"""Many independent computations: in parallel, on one machine or several, resumed if interrupted."""

"""The CUDA backend: makes tables of all decisions for two groups on a device."""

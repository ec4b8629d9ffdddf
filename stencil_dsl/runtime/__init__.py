"""Arrays with halo and padding, kernels, launching and validation."""

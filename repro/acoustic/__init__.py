"""The acoustic wave of the Minimod proxy application: the compiler's kernels beside Triton and CUDA."""

"""Kernels of the probes. Nothing imports these files: the harness reads their text."""

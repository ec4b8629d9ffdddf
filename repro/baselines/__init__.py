"""What the kernels of the DSL are compared with; see README.md."""

"""Executable claims: one module a question, its docstring the claim, its variants side by side."""

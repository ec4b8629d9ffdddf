"""Sphinx settings; `make docs` builds docs/_build/html."""

from stencil_dsl import __version__

project = "stencil-dsl"
author = "the stencil-dsl authors"
release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Stencils in Python, compiled to CUDA tile kernels"}
myst_heading_anchors = 3
# The level-1 to level-3 listings are MLIR, which Pygments does not know.
suppress_warnings = ["misc.highlighting_failure"]

"""Draws the pictures of the examples: `python docs/examples/draw.py [NAME ...]` writes NAME.png beside this file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"


def draw(name: str) -> None:
    """Draw what the example's function `picture` puts on a pair of axes."""
    figure, axes = pyplot.subplots(figsize=(5, 3.4), layout="constrained")
    importlib.import_module(name).picture(axes)
    figure.savefig(HERE / f"{name}.png", dpi=80, metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    for each in sys.argv[1:] or sorted(p.stem for p in EXAMPLES.glob("*.py")):
        print(each, flush=True)
        draw(each)

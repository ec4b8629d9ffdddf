"""Draws docs/streaming.svg, one trip of the streaming loop for a radius of 2: `python docs/figures/streaming.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import FancyArrowPatch, Rectangle  # noqa: E402

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
RADIUS = 2


def draw(path: Path) -> None:
    plt.rcParams.update({"svg.hashsalt": "streaming", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(7.2, 3.4))
    for k in range(-1, 7):
        x = k * 1.35
        name = "x" if k == 0 else f"x+{k}" if k > 0 else f"x{k}"
        axes.add_patch(Rectangle((x, 2.2), 0.55, 1.9, facecolor="#f4f4f4", edgecolor=GREY))
        axes.text(x + 0.27, 4.25, name, ha="center", color=GREY)
        axes.add_patch(Rectangle((x, 0.1), 0.55, 0.7, facecolor="white", edgecolor=GREY))
    lead = RADIUS * 1.35
    axes.add_patch(Rectangle((lead, 2.2), 0.55, 1.9, facecolor=BLUE, alpha=0.25, edgecolor=BLUE))
    for row in range(6):
        fill = BLUE if row in (2, 3) else "white"
        axes.add_patch(Rectangle((lead + 0.06, 2.28 + 0.3 * row), 0.43, 0.22, facecolor=fill, edgecolor=BLUE))
    for k in range(2 * RADIUS + 1):
        x = k * 1.35
        color = ORANGE if k == 0 else BLUE
        axes.add_patch(Rectangle((x, 0.1), 0.55, 0.7, facecolor=color, alpha=0.35, edgecolor=color))
        axes.add_patch(
            FancyArrowPatch((lead + 0.27, 2.15), (x + 0.27, 0.85), arrowstyle="-|>", mutation_scale=9, color=color)
        )
        offset = RADIUS - k
        axes.text(x + 0.27, 0.45, f"{offset:+d}" if offset else "0", ha="center", va="center")
    axes.text(-1.3, 4.75, "planes of the input, loaded once each; filled rows: the block's own", color=GREY)
    axes.text(0.27, -0.3, "complete:\nstored", ha="center", va="top", color=ORANGE)
    axes.text(4.5, -0.3, "open: carried through the loop in registers", ha="center", va="top", color=BLUE)
    axes.text(-1.3, 1.35, "offset of\nthe plane", color=GREY)
    axes.set_xlim(-1.5, 9.2)
    axes.set_ylim(-1.1, 5.1)
    axes.axis("off")
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "streaming.svg")

"""A report as one HTML page that needs no other file: figures are part of it, nothing is fetched."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 8px; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
img { max-width: 100%; width: 46rem; display: block; }
code { background: #f2f2f2; padding: 0 3px; }
"""


def page(markdown: str, folder: Path) -> str:
    """The page of a report's Markdown (headings, paragraphs, lists, tables, pictures: what `repro.report` writes).

    Args:
        folder: where the report's pictures are.
    """
    blocks = [_block(block, folder) for block in markdown.strip().split("\n\n")]
    title = html.escape(markdown.split("\n", 1)[0].lstrip("# "))
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(blocks) + "\n</body></html>\n"


def _block(text: str, folder: Path) -> str:
    if heading := re.match(r"(#+) (.*)", text):
        level = len(heading[1])
        return f"<h{level}>{_inline(heading[2])}</h{level}>"
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", text):
        # PNG: the text of an SVG would need the reader's fonts to have the metrics it was laid out with.
        file = (folder / picture[2]).with_suffix(".png")
        data = base64.b64encode(file.read_bytes()).decode()
        return f'<img alt="{html.escape(picture[1])}" src="data:image/png;base64,{data}">'
    lines = text.split("\n")
    if text.startswith("|"):
        rows = [[_inline(cell.strip()) for cell in line.strip("|").split(" | ")] for line in lines]
        head = "".join(f"<th>{cell}</th>" for cell in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows[2:])
        return f'<div class="table"><table><tr>{head}</tr>\n{body}</table></div>'
    if text.startswith("- "):
        items = re.split(r"\n- ", text[2:])
        return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
    return f"<p>{_inline(text)}</p>"


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"<em>\1</em>", text)

"""What a toolkit says when a kernel is too new for it."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[^\n]*(?:requires?|needs?) tileiras [\d.]+ or (?:later|newer)(?:, toolkit[^\n;]*)?")


def lacking(words: str) -> str | None:
    """The line that names a newer toolkit as what is missing, or None where something else went wrong.

    The frontend says "... requires tileiras 13.4 or later", this package "... need tileiras 13.5 or newer, ...".
    """
    found = _WORDS.search(words)
    return None if found is None else found[0].strip()

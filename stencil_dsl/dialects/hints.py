"""Names of values that print to text which parses back.

xDSL drops one number from the end of a name and appends one to tell values of one name apart. A name that still ends
in a number would then meet the second value of a shorter name: `s_1_1` becomes `s_1`, and so does the second `s`.
"""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

_NUMBERED = re.compile(r"(_[1-9][0-9]*)+$")


def hint_of(name: str) -> str:
    """A name to use as a value's hint."""
    kept = SSAValue.extract_valid_name(name)
    return _NUMBERED.sub("", kept) if _NUMBERED.search(kept) else name

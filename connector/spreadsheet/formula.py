"""Text that a spreadsheet program would run: how a report keeps it inert, and gives it back.

A cell that begins with `=`, `+`, `-` or `@` is a formula to spreadsheet programs, whatever the
quotes of the csv around it. Some take the full-width forms of these signs for the signs, some
drop blanks that stand before them, and a tab, a line break or a NUL at the start can end up the
same way. All of these are *hazards* here. An apostrophe before one makes the cell text.

Marking and unmarking are inverse, whatever the cell holds: a cell is marked if it is a hazard
behind any number of apostrophes, none included, and unmarked if it is one behind at least one. So
what was marked always has one apostrophe to lose, and what was not marked has none before a
hazard.

A workbook says in each cell's type that it is text, so a hazard needs no mark there. A cell that
has apostrophes of its own before a hazard gets one more all the same: then one rule reads reports
of both kinds, even after somebody saved one as the other.
"""

from __future__ import annotations

import re

MISSING = "(missing)"
"""Stands in a report where a row had no cell at all, which is not the same as an empty cell."""

EMPTY = "(empty)"
"""Stands in a report for an empty cell behind the last heading: a row that is too wide by cells
that cannot be seen is too wide all the same.
"""

NOT_CALCULATED = "(not calculated) "
"""Stands in a report before a formula whose value the workbook does not hold."""

# Blanks and invisible marks before the sign are not dropped by all programs, but by some.
_UNSEEN = r"[\s\u200b-\u200f\u2060\ufeff]*"
# The full-width forms of the four signs follow them, by number.
_SIGN = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"
_STANDS_IN = r"\(not calculated\) |\((?:missing|empty)\)\Z"
_HAZARD = rf"(?:[\t\r\n\0]|{_UNSEEN}{_SIGN}|{_STANDS_IN})"
_PERHAPS_MARKED = re.compile(rf"'*{_HAZARD}")
_MARKED = re.compile(rf"'+{_HAZARD}")
_HAZARDOUS = re.compile(_HAZARD)


def mark(text: str) -> str:
    """The cell as a csv report holds it: inert, and never mistaken for one of our own tokens."""
    return f"'{text}" if _PERHAPS_MARKED.match(text) else text


def mark_text_cell(text: str) -> str:
    """The cell as a workbook's report holds it, in a cell whose type is text."""
    if _MARKED.match(text) or text in (MISSING, EMPTY) or text.startswith(NOT_CALCULATED):
        return f"'{text}"
    return text


def unmark(text: str) -> str:
    """The original cell, from a report of either kind."""
    return text[1:] if _MARKED.match(text) else text


def is_hazard(text: str) -> bool:
    """Whether a spreadsheet program might run the text, or it stands for something in a report."""
    return _HAZARDOUS.match(text) is not None

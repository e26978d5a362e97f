"""Names and texts as SQL has them, for statements that are put together.

A text could be a parameter instead, but with its first one DuckDB imports pandas, to see whether it
is a frame: 35 MB, for a process that has no other use of it.
"""

from __future__ import annotations


def quoted(name: str) -> str:
    """An SQL identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string, quoted."""
    return "'" + text.replace("'", "''") + "'"

"""Names and texts as SQL has them.

Whatever is written into a statement goes through one of these. A parameter would do for a text, but
with the first one DuckDB imports pandas, to see whether it is a frame: 40 MB, and half of a second.
"""

from __future__ import annotations


def quoted(name: str) -> str:
    """An SQL identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string, quoted."""
    return "'" + text.replace("'", "''") + "'"

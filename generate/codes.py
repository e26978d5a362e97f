"""The website's list of every code that a row of a spreadsheet can have, on the page of imports."""

from __future__ import annotations

from connector.spreadsheet.problems import PROBLEMS, REMARKS, WARNINGS
from generate.files import Texts, read_or_empty

_PAGE = "docs/IMPORT.md"
_KINDS = (
    ("Problems", "The row is not sent until the cell is corrected.", PROBLEMS),
    ("Warnings", "The row waits until the warning is accepted.", WARNINGS),
    ("Remarks", "The cell was changed without a loss. The row is sent.", REMARKS),
)


def codes_page() -> Texts:
    """Return the page, which ends with the codes, followed by their meanings."""
    parts = [read_or_empty(_PAGE)]
    for kind, about, codes in _KINDS:
        parts.append(f"\n### {kind}\n\n{about}\n\n| Code | Meaning and cure |\n|---|---|\n")
        parts += [f"| `{code}` | {text} |\n" for code, text in codes.items()]
    return {_PAGE: "".join(parts)}

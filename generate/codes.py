"""The website's page of every code that a row of a spreadsheet can have."""

from __future__ import annotations

from connector.spreadsheet.problems import PROBLEMS, REMARKS, WARNINGS
from generate.files import Texts

_KINDS = (
    ("Problems", "The row is not sent until the cell is corrected.", PROBLEMS),
    ("Warnings", "The row waits until the warning is accepted.", WARNINGS),
    ("Remarks", "The cell was changed without a loss. The row is sent.", REMARKS),
)


def codes_page() -> Texts:
    """Return the page."""
    parts = ["# Codes of rows\n\nFor recruiters and operators. Look up here the code of a row.\n"]
    for kind, about, codes in _KINDS:
        parts.append(f"\n## {kind}\n\n{about}\n\n| Code | Meaning and cure |\n|---|---|\n")
        parts += [f"| `{code}` | {text} |\n" for code, text in codes.items()]
    return {"docs/CODES.md": "".join(parts)}

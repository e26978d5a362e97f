"""The website's table of the behaviours that the sandbox can have."""

from __future__ import annotations

from connector.sandbox.behaviour import SWITCHES
from generate.files import Texts, read_or_empty

_PAGE = "docs/SANDBOX.md"


def behaviours_page() -> Texts:
    """Return the page, followed by a table of the behaviours with the sections of the API."""
    rows = [
        f"| `{each.name}` | {' · '.join(f'`{v}`' for v in each.values)} "
        f"| {each.about} | {each.section} |\n"
        for each in SWITCHES.values()
    ]
    head = "\n## All behaviours\n\n| Name | Values | What it decides | API |\n|---|---|---|---|\n"
    return {_PAGE: read_or_empty(_PAGE) + head + "".join(rows)}

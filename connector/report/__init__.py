"""The report: one page of HTML for an agency's director, made from the published file alone.

The page needs no network and no script, and holds all that it shows. What each figure means is
said by the file's own comments on its marts and columns, and is not repeated here.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from connector.report.page import Page, as_json, make_page
from connector.report.published import opened
from connector.report.writing import put

__all__ = ["REPORT_FILE", "Page", "as_json", "write_report"]

REPORT_FILE = "recruitment.html"
"""The page's name beside the published file."""


def write_report(
    file: Path, out: Path, *, written_at: datetime, account: str | None = None
) -> Page:
    """Write the page of the published `file` to `out`, and return it.

    `written_at` is the present moment, which the data's age is counted to; `account` stands in the
    title. Everything is read as of one publication. `out` is replaced at once, and only its owner
    may read it.

    Raises `NothingPublished` where there is no file, `MartsMissing` where it has no marts, or
    another `WarehouseError`.
    """
    with opened(file) as published:
        page = make_page(published, written_at=written_at, account=account)
    put(out, page.html)
    return page

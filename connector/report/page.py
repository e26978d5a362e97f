"""The page: what the published file answers, put into one HTML document that needs nothing else.

Text reaches it only through a template that escapes everything; the charts, whose text their
library has escaped, and our own styles are the only markup that is put in as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from connector.report import candidates, content, durations, fees, jobs, people
from connector.report import mirror as health
from connector.report.charts import PALETTE, draw
from connector.report.figure import Answered, Figure, KeyFigure, Section, age, capital, moment
from connector.report.key_figures import key_figures
from connector.report.published import Published, opened
from connector.system.atomic_files import replacing
from connector.warehouse.duckdb_file import naming_errors

SECTIONS: tuple[Section, ...] = (
    candidates.SECTION,
    jobs.SECTION,
    durations.SECTION,
    fees.SECTION,
    people.SECTION,
    content.SECTION,
    health.SECTION,
)
"""The page's sections, in order."""

_FOLDER = Path(__file__).parent
_TITLE = "Recruitment report"


@dataclass(frozen=True, slots=True)
class Page:
    """The document, and the key figures that it opens with."""

    html: str
    as_of: datetime | None
    key_figures: tuple[KeyFigure, ...]


def make_page(published: Published, *, written_at: datetime, account: str | None = None) -> Page:
    """The page of the published file; `account` is named in its title."""
    grid = key_figures(published)
    title = f"{_TITLE}: {account}" if account else _TITLE
    as_of = published.as_of
    html = _template().render(
        title=title,
        account=account,
        palette=PALETTE,
        style=Markup(_style()),  # noqa: S704 # our own, and it holds no value of anybody's
        as_of=None if as_of is None else moment(as_of),
        age=None if as_of is None else age(written_at - as_of),
        written_at=moment(written_at),
        facts=health.facts(published, written_at),
        grid=grid,
        sections=[
            (section, [_answer(figure, published) for figure in section.figures])
            for section in SECTIONS
        ],
        meaning=published.meaning,
        capital=capital,
        draw=lambda chart: Markup(draw(chart)),  # noqa: S704 # its text is escaped by the library
    )
    return Page(html, as_of, tuple(grid))


def _answer(figure: Figure, published: Published) -> Answered:
    contracts = tuple(published.contract(mart) for mart in figure.needs)
    lacking = published.missing(figure.needs)
    if lacking:
        words = f"The published file has no {', no '.join(lacking)}, which this is made from."
        return Answered(figure, contracts, None, words)
    shown = figure.draw(published)
    return Answered(figure, contracts, shown, "" if shown else figure.empty)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


@cache
def _style() -> str:
    return (_FOLDER / "page.css").read_text(encoding="utf-8")


def as_json(page: Page) -> dict[str, Any]:
    """The key figures as plain values, by their keys, each with its label and its words."""
    return {
        each.key: {
            "label": each.label,
            "shown": list(each.values),
            "detail": each.detail,
            "numbers": {name: _number(value) for name, value in each.numbers.items()},
        }
        for each in page.key_figures
    }


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _number(each) for name, each in value.items()}
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else float(value)


# -- Writing ---------------------------------------------------------------------------------------
# A page put in place on the disk: whole or not at all, and for its owner's eyes alone.


def put(path: Path, text: str) -> None:
    """Write the text in place of whatever the file was, readable by its owner alone.

    Whoever reads the file meanwhile sees the old text or the new one. Raises `DiskFull` or another
    `WarehouseError`.
    """
    with naming_errors(path), replacing(path) as file:
        file.write(text.encode())


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

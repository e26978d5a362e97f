"""The report's page: one HTML document that needs nothing else.

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

from connector.report.agency import CONTENT, FEES, PEOPLE
from connector.report.charts import PALETTE, draw
from connector.report.figure import Figure, FigureAnswer, KeyFigure, age, capital, moment
from connector.report.overview import MIRROR, QUESTIONS, answer, facts
from connector.report.pipeline import CANDIDATES, JOBS, TIME
from connector.report.published import PublishedFile, opened
from connector.system.atomic_files import replacing
from connector.warehouse.duckdb_file import naming_errors

SECTIONS = (CANDIDATES, JOBS, TIME, FEES, PEOPLE, CONTENT, MIRROR)
"""The page's sections, in order."""

REPORT_FILE = "recruitment.html"
"""The page's name beside the published file."""

_FOLDER = Path(__file__).parent
_TITLE = "Recruitment report"


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Page of the report: the document, and the key figures that it opens with."""

    html: str
    as_of: datetime | None
    key_figures: tuple[KeyFigure, ...]


def make_page(
    published: PublishedFile, *, written_at: datetime, account: str | None = None
) -> ReportPage:
    """The page of the published file; `account` is named in its title."""
    grid = tuple(answer(question, published) for question in QUESTIONS)
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
        facts=facts(published, written_at),
        grid=grid,
        sections=[
            (section, [_answer(figure, published) for figure in section.figures])
            for section in SECTIONS
        ],
        meaning=published.meaning,
        capital=capital,
        draw=lambda chart: Markup(draw(chart)),  # noqa: S704 # its text is escaped by the library
    )
    return ReportPage(html, as_of, grid)


def _answer(figure: Figure, published: PublishedFile) -> FigureAnswer:
    contracts = {mart: published.contract(mart) for mart in figure.needs}
    lacking = published.missing(figure.needs)
    if lacking:
        words = f"The published file has no {', no '.join(lacking)}, which this is made from."
        return FigureAnswer(figure, contracts, None, words)
    shown = figure.draw(published)
    return FigureAnswer(figure, contracts, shown, "" if shown else figure.empty)


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


def as_json(page: ReportPage) -> dict[str, Any]:
    """The key figures as plain values, by key, with their labels and words."""
    return {
        each.question.key: {
            "label": each.question.label,
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


def write_report(
    file: Path, out: Path, *, written_at: datetime, account: str | None = None
) -> ReportPage:
    """Write the page of the published `file` to `out`, and return it.

    `written_at` is the present moment, which the data's age is counted to; `account` stands in the
    title. Everything is read as of one publication. `out` is replaced at once, and only its owner
    may read it.

    Raises `NothingPublished` where there is no file, `MartsMissing` where it has no marts,
    `DiskFull` or another `WarehouseError`.
    """
    with opened(file) as published:
        page = make_page(published, written_at=written_at, account=account)
    with naming_errors(out), replacing(out) as written:
        written.write(page.html.encode())
    return page

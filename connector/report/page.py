"""HTML document of the report.

A template escapes all text. Only the charts, whose text the drawing library has escaped, and the
styles of this package are inserted as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from connector.atomic_files import write_atomically
from connector.log import escape_control_characters
from connector.report.agency import CONTENT, FEES, PEOPLE
from connector.report.charts import PALETTE, render_svg
from connector.report.figure import (
    Figure,
    FigureResult,
    capitalize,
    describe_age,
    format_day,
    format_timestamp,
)
from connector.report.front import FigureValue, FrontPage, KeyFigure, make_front_page
from connector.report.mirror import MIRROR, file_summary
from connector.report.period import PERIOD_DEFAULT, ReportPeriod
from connector.report.pipeline import CANDIDATES, JOBS, TIME
from connector.report.published import (
    PartMissing,
    PublishedFile,
    open_published,
    split_mart_comment,
)
from connector.warehouse.duckdb_file import convert_errors

SECTIONS = (CANDIDATES, JOBS, TIME, FEES, PEOPLE, CONTENT, MIRROR)
"""Sections of the page, in order."""

REPORT_FILE = "recruitment.html"
"""Default name of the page, next to the published file."""

_FOLDER = Path(__file__).parent
_TITLE = "Recruitment report"


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Report as an HTML document, with the time of its data and its first page."""

    html: str
    as_of: datetime | None
    front: FrontPage


def make_page(
    published: PublishedFile,
    *,
    written_at: datetime,
    account: str | None = None,
    period: str = PERIOD_DEFAULT,
    compare: Sequence[str] = (),
) -> ReportPage:
    """Return the page of the published file; `account` is named in its title.

    Raises `Misused` for a period that cannot be shown or compared.
    """
    today = published.today or written_at.date()
    front = make_front_page(published, today, period, compare)
    title = f"{_TITLE}: {account}" if account else _TITLE
    as_of = published.as_of
    html = _load_template().render(
        title=title,
        account=account,
        palette=PALETTE,
        style=Markup(_read_style()),  # noqa: S704 # our own, and it holds no value of anybody's
        as_of=None if as_of is None else format_timestamp(published.to_local_time(as_of)),
        age=None if as_of is None else describe_age(written_at - as_of),
        written_at=format_timestamp(published.to_local_time(written_at)),
        facts=file_summary(published, written_at),
        front=front,
        today=format_day(today),
        sections=[
            (
                section,
                _pair_figures([_draw_figure(figure, published) for figure in section.figures]),
            )
            for section in SECTIONS
        ],
        meaning=published.column_comment,
        capital=capitalize,
        draw=lambda chart: Markup(render_svg(chart)),  # noqa: S704 # its text is escaped by the library
    )
    # Names must be harmless in an editor or a terminal as well.
    return ReportPage(escape_control_characters(html, except_for="\n"), as_of, front)


def _draw_figure(figure: Figure, published: PublishedFile) -> FigureResult:
    """Return the figure with its content, or the reason why the file does not contain it."""
    contracts = {mart: split_mart_comment(published.marts.get(mart, "")) for mart in figure.marts}
    try:
        shown = figure.draw(published)
    except PartMissing as missing:
        return FigureResult(figure, contracts, None, f"The published file has no {missing}.")
    return FigureResult(figure, contracts, shown, "" if shown else figure.text_if_empty)


def _pair_figures(results: Sequence[FigureResult]) -> list[FigureResult]:
    """Return the figures with `is_wide` set for each one that has no neighbor in its row of two."""
    found: list[FigureResult] = []
    is_second = False
    for each, following in zip_longest(results, results[1:]):
        is_alone = not is_second and (following is None or following.figure.is_wide)
        is_wide = each.figure.is_wide or is_alone
        is_second = not is_wide and not is_second
        found.append(replace(each, is_wide=is_wide))
    return found


@cache
def _load_template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


@cache
def _read_style() -> str:
    return (_FOLDER / "page.css").read_text(encoding="utf-8")


def as_json(page: ReportPage) -> dict[str, Any]:
    """Return the period and the key figures as JSON values, by key, with their formatted texts."""
    return {
        "period": _period_json(page.front.period),
        "key_figures": {each.declaration.key: _figure_json(each) for each in page.front.figures},
    }


def _period_json(period: ReportPeriod) -> dict[str, Any]:
    return {"name": period.name, "begins": period.begins, "ends": period.ends}


def _figure_json(figure: KeyFigure) -> dict[str, Any]:
    others = [
        {
            "period": _period_json(each.period),
            **_value_json(each.reading),
            "change": each.change or None,
        }
        for each in figure.compared
    ]
    return {"label": figure.declaration.label, **_value_json(figure.reading), "compared": others}


def _value_json(reading: FigureValue) -> dict[str, Any]:
    value = float(reading.value) if isinstance(reading.value, Decimal) else reading.value
    return {"value": value, "shown": list(reading.texts), "detail": reading.detail}


def write_report(
    file: Path,
    out: Path,
    *,
    written_at: datetime,
    account: str | None = None,
    period: str = PERIOD_DEFAULT,
    compare: Sequence[str] = (),
) -> ReportPage:
    """Write the page of the published `file` to `out`, and return it.

    The file `out` is replaced atomically, and only its owner can read it. `written_at` is the
    current time, for the age of the data, and `account` a name for the title. `period` and
    `compare` are the periods of the first page.

    Raises:
        NothingPublished: There is no published file.
        MartsMissing: The file has no marts.
        Misused: A period is invalid.
        WarehouseError: The page cannot be written, or the file cannot be read.
    """
    with open_published(file) as published:
        page = make_page(
            published, written_at=written_at, account=account, period=period, compare=compare
        )
    with convert_errors(out), write_atomically(out) as written:
        written.write(page.html.encode())
    return page

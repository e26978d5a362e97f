"""The report as an HTML document: queries of the published file, formatted values, one template.

The page is one file that can be read without a network, printed and sent. A template escapes all
text; only the charts, whose text the drawing library escapes, are inserted as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jinja2
from markupsafe import Markup

from connector.atomic_files import write_atomically
from connector.errors import CHOOSE_PATH, WarehouseError
from connector.log import escape_control_characters
from connector.report.charts import draw_chart
from connector.report.figures import SECTIONS, TILES, Card, Tile
from connector.report.period import PERIOD_DEFAULT, Period, parse_period
from connector.warehouse.duckdb_file import convert_errors
from connector.warehouse.published_file import ABSENT, QueryResult, open_snapshot, require_published

REPORT_FILE = "recruitment.html"
"""Default name of the page, next to the published file."""

NOTHING = "-"
"""What is shown for a value that is not known."""

_FOLDER = Path(__file__).parent
_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_WRITTEN_WIDE = 16
"""Number of characters from which a tile's value is written smaller."""


@dataclass(frozen=True, slots=True)
class ShownTile:
    """Tile with the texts and values of the period and of the one before.

    Values are numbers, or amounts by currency code; None if the file lacks the mart.
    """

    tile: Tile
    text: str
    before: str
    value: Any
    value_before: Any
    definition: str

    @property
    def is_wide(self) -> bool:
        """True if the text needs a smaller size of letters."""
        return len(self.text) >= _WRITTEN_WIDE


@dataclass(frozen=True, slots=True)
class ShownCard:
    """Card with its chart or the rows of its table.

    Attributes:
        headings: Heading of each column, and whether it is a column of numbers.
        note: Sentence that is shown instead of the rows.
    """

    card: Card
    headings: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    chart: Markup
    note: str
    definition: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The page with its period and tiles, and the time of its data (None without any)."""

    html: str
    as_of: datetime | None
    period: Period
    tiles: Sequence[ShownTile]

    def as_json(self) -> dict[str, Any]:
        """Return the time, the period and the tiles as `--json` prints them."""
        return {
            "as_of": self.as_of,
            "period": _period_json(self.period),
            "compared_with": _period_json(self.period.previous),
            "key_figures": {
                each.tile.key: {
                    "label": each.tile.label,
                    "value": each.value,
                    "before": each.value_before,
                }
                for each in self.tiles
            },
        }


def write_report(
    file: Path,
    out: Path,
    *,
    written_at: datetime,
    account: str | None = None,
    period: str = PERIOD_DEFAULT,
) -> ReportPage:
    """Write the page of a published file, and return it. Only its owner can read the page.

    Args:
        file: Published file.
        out: Path of the page, which is replaced atomically.
        written_at: Current time, for a file without any data.
        account: Name in the title.
        period: Period of the tiles, as `parse_period` reads it.

    Raises:
        WarehouseError: There is no published file, it has no marts or cannot be read, or the page
            cannot be written.
        UnknownName, Misused: The period is invalid.
        ConnectorError: The drawing library is not installed.
    """
    with open_snapshot(require_published(file)) as ask:
        page = _make_page(_PublishedMarts(ask, file), written_at, account, period)
    with convert_errors(out, CHOOSE_PATH), write_atomically(out) as written:
        written.write(page.html.encode())
    return page


class _PublishedMarts:
    """Marts of an open published file: rows, comments, and the time of the data."""

    def __init__(self, ask: Callable[..., QueryResult], file: Path) -> None:
        self._ask = ask
        self.comments = dict[str, str](
            ask(
                "SELECT table_name, coalesce(comment, '') FROM duckdb_tables()"
                " WHERE schema_name = 'marts' UNION ALL SELECT view_name, coalesce(comment, '')"
                " FROM duckdb_views() WHERE schema_name = 'marts'"
            ).rows
        )
        if not self.comments:
            raise WarehouseError(f"{file} has no table in the schema marts", code="marts_missing")
        self.as_of: datetime | None
        self.today: date | None
        self.as_of, self.today, self.zone = self._read_time()

    def _read_time(self) -> tuple[datetime | None, date | None, str]:
        """Return the time and day that the marts use as now, and the account's time zone."""
        try:
            query = "SELECT epoch_us(max(as_of_at)), max(as_of_date), max(time_zone)"
            (found,) = self._ask(f"{query} FROM staging.as_of").rows
        except ABSENT:  # The file was published without the schema `staging`.
            try:
                query = "SELECT epoch_us(max(proven_at)), max(proven_at)::DATE, 'UTC'"
                (found,) = self._ask(f"{query} FROM marts.data_quality").rows
            except ABSENT:
                found = (None, None, "UTC")
        micros, today, zone = found
        at = None if micros is None else datetime.fromtimestamp(micros / 1e6, ZoneInfo("UTC"))
        return at, today, zone or "UTC"

    def query(self, sql: str, period: Period) -> QueryResult | None:
        """Return the rows of a query; None if the file lacks the mart or a column."""
        given = {"begins": period.begins, "ends": period.ends}
        try:
            return self._ask(sql, {name: at for name, at in given.items() if f"${name}" in sql})
        except ABSENT:
            return None

    def define(self, mart: str) -> str:
        """Return the definition of a mart: the text of its comment."""
        return _printable(" ".join(self.comments.get(mart, "").split()))

    def format(self, value: Any, heading: str = "") -> str:
        """Return a value as text; one below a heading with "share" is a rate."""
        if isinstance(value, datetime):
            value = value.astimezone(ZoneInfo(self.zone))
            return f"{_format_day(value)}, {value:%H:%M %Z}"
        if isinstance(value, date):
            is_month = heading == "month"
            return f"{value:%b %Y}" if is_month else _format_day(value)
        if isinstance(value, int | float | Decimal) and heading.endswith("share"):
            return _format_share(float(value))
        if isinstance(value, float):
            return f"{value:,.1f}".removesuffix(".0")
        if isinstance(value, int | Decimal):
            return f"{value:,.0f}"
        return NOTHING if value is None else _printable(str(value))


def _make_page(
    marts: _PublishedMarts, written_at: datetime, account: str | None, period_text: str
) -> ReportPage:
    """Return the page of the file."""
    period = parse_period(period_text, marts.today or written_at.date())
    tiles = [_show_tile(each, marts, period) for each in TILES]
    sections = [
        (title, [_show_card(each, marts, period) for each in cards]) for title, cards in SECTIONS
    ]
    html = _template().render(
        title=_printable(f"Recruitment report: {account}" if account else "Recruitment report"),
        style=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),  # noqa: S704 # our own file
        as_of=marts.format(marts.as_of),
        period=period,
        tiles=tiles,
        sections=sections,
    )
    # Names must be harmless in an editor or a terminal as well.
    html = escape_control_characters(html, except_for="\n")
    return ReportPage(html, marts.as_of, period, tiles)


def _show_tile(tile: Tile, marts: _PublishedMarts, period: Period) -> ShownTile:
    """Return the tile with its values of the period and of the period before."""
    now, before = (_read_value(tile, marts, each) for each in (period, period.previous))
    text, text_before = (_value_text(each, marts) for each in (now, before))
    return ShownTile(tile, text, text_before, now, before, marts.define(tile.mart))


def _read_value(tile: Tile, marts: _PublishedMarts, period: Period) -> Any:
    """Return the number, the amounts by currency, or None if the file lacks the mart."""
    found = marts.query(tile.sql, period)
    if found is None:
        return None
    if "currency" in found.columns:
        return {currency or "no currency": float(amount) for amount, currency in found.rows}
    return found.rows[0][0]


def _value_text(value: Any, marts: _PublishedMarts) -> str:
    """Return the value of a tile as text, as in 12 or GBP 1,200, EUR 300."""
    if isinstance(value, Mapping):
        amounts = (f"{currency} {amount:,.0f}" for currency, amount in value.items())
        return _printable(", ".join(amounts)) or "0"
    return marts.format(value)


def _show_card(card: Card, marts: _PublishedMarts, period: Period) -> ShownCard:
    """Return the card with its chart or rows."""
    definition, found = marts.define(card.mart), marts.query(card.sql, period)
    if found is None:
        note = f"The published file has no marts.{card.mart}, or lacks one of its columns."
        return ShownCard(card, (), (), Markup(), note, definition)
    names, rows = found.columns, found.rows
    texts = [
        [marts.format(value, name) for name, value in zip(names, row, strict=True)] for row in rows
    ]
    numbers = [
        any(isinstance(row[n], int | float | Decimal) for row in rows) for n in range(len(names))
    ]
    chart = Markup()
    if rows and card.kind != "table":
        bars = [(text[0], float(row[1] or 0), text[1])
                for row, text in zip(rows, texts, strict=True)]  # fmt: skip
        drawn = draw_chart(bars, by_month=card.kind == "months")
        chart = Markup(drawn)  # noqa: S704 # the library escapes its text
    headings = list(zip(map(_heading, names), numbers, strict=True))
    return ShownCard(card, headings, texts, chart, "" if rows else card.empty, definition)


def _heading(name: str) -> str:
    """Return a column's name as a heading."""
    return name[:1].upper() + name[1:]


def _format_day(value: date) -> str:
    """Format a date, as in 7 May 2026."""
    return f"{value.day} {value:%b %Y}"


def _format_share(value: float) -> str:
    """Format a share as a percentage, which is 0% or 100% only if it is exact."""
    percent = value * 100
    if 0 < percent < 0.5 or 99.5 <= percent < 100:
        return f"{min(max(percent, 0.1), 99.9):.1f}%"
    return f"{percent:.0f}%"


def _printable(text: str) -> str:
    """Return the text without characters that XML forbids: they end the drawing library."""
    return escape_control_characters(_NOT_IN_XML.sub("\ufffd", text))


def _period_json(period: Period) -> dict[str, Any]:
    """Return name and days of the period."""
    return {"name": period.name, "begins": period.begins, "ends": period.ends}


@cache
def _template() -> jinja2.Template:
    """Return the template of the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")

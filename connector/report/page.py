"""The report as an HTML document: queries of the published file, formatted values, one template.

The page is one file that can be read without a network, printed and sent. A template escapes all
text; only the charts, whose text the drawing library escapes, are inserted as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
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
from connector.warehouse.file import convert_errors
from connector.warehouse.user_query import ABSENT, QueryResult, open_snapshot, require_published

REPORT_FILE = "recruitment.html"
"""Default name of the page, next to the published file."""

NOTHING = "-"
"""What is shown for a value that is not known."""

_FOLDER = Path(__file__).parent
_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True, slots=True)
class ShownTile:
    """Tile with the texts of the period and of the one before."""

    label: str
    text: str
    before: str
    definition: str


@dataclass(frozen=True, slots=True)
class ShownCard:
    """Card with its chart or the rows of its table.

    Attributes:
        headings: Heading of each column, and whether it is a column of numbers.
        note: Sentence that is shown instead of the rows.
    """

    card: Card
    definition: str
    note: str = ""
    headings: Sequence[tuple[str, bool]] = ()
    rows: Sequence[Sequence[str]] = ()
    chart: str = ""


def write_report(
    file: Path, out: Path, *, account: str | None = None, period: str = PERIOD_DEFAULT
) -> None:
    """Write the page of a published file. Only its owner can read the page.

    Args:
        file: Published file.
        out: Path of the page, which is replaced atomically.
        account: Name in the title.
        period: Period of the tiles, as `parse_period` reads it.

    Raises:
        WarehouseError: There is no published file, it has no marts or cannot be read, or the page
            cannot be written.
        UnknownName, Misused: The period is invalid.
        ConnectorError: The drawing library is not installed.
    """
    with open_snapshot(require_published(file)) as ask:
        html = _Marts(ask, file).make_page(account, period)
    with convert_errors(out, CHOOSE_PATH), write_atomically(out) as written:
        written.write(html.encode())


class _Marts:
    """Marts of an open published file: rows, comments, and the time of the data."""

    def __init__(self, ask: Callable[..., QueryResult], file: Path) -> None:
        self._ask = ask
        query = "SELECT table_name, coalesce(comment, '') FROM duckdb_tables()"
        self._comments = dict[str, str](ask(f"{query} WHERE schema_name = 'marts'").rows)
        if not self._comments:
            raise WarehouseError(f"{file} has no table in the schema marts", code="marts_missing")
        found = self._query(
            "SELECT epoch_us(true_of), time_zone FROM sync.publications"
            " ORDER BY started_at DESC LIMIT 1"
        )
        micros, zone = found.rows[0] if found and found.rows else (None, None)
        self._zone = ZoneInfo(zone or "UTC")
        self._as_of = datetime.fromtimestamp(micros / 1e6, self._zone) if micros else None

    def make_page(self, account: str | None, period_text: str) -> str:
        """Return the page of the file as HTML."""
        today = (self._as_of or datetime.now(UTC)).date()
        period = parse_period(period_text, today)
        html = _TEMPLATES.get_template("page.html.jinja").render(
            title=_printable(f"Recruitment report: {account}" if account else "Recruitment report"),
            style=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),  # noqa: S704 # our own file
            as_of=self._format(self._as_of),
            period=period,
            tiles=[self._show_tile(each, period) for each in TILES],
            sections=[
                (title, [self._show_card(each, period) for each in cards])
                for title, cards in SECTIONS
            ],
        )
        # Names must be harmless in an editor or a terminal as well.
        return escape_control_characters(html, except_for="\n")

    def _query(self, sql: str, period: Period | None = None) -> QueryResult | None:
        """Return the rows of a query; None if the file lacks the table or a column."""
        given = {"begins": period.begins, "ends": period.ends} if period else {}
        try:
            return self._ask(sql, {name: at for name, at in given.items() if f"${name}" in sql})
        except ABSENT:
            return None

    def _define(self, mart: str) -> str:
        """Return the definition of a mart: the text of its comment."""
        return _printable(" ".join(self._comments.get(mart, "").split()))

    def _show_tile(self, tile: Tile, period: Period) -> ShownTile:
        text, before = (self._read_value(tile, each) for each in (period, period.previous))
        return ShownTile(tile.label, text, before, self._define(tile.mart))

    def _read_value(self, tile: Tile, period: Period) -> str:
        """Return the value of a tile as text, as in 12 or GBP 1,200, EUR 300."""
        found = self._query(tile.sql, period)
        if found is None:
            return NOTHING
        if "currency" not in found.columns:
            return self._format(found.rows[0][0])
        amounts = (f"{currency or 'no currency'} {value:,.0f}" for value, currency in found.rows)
        return _printable(", ".join(amounts)) or "0"

    def _show_card(self, card: Card, period: Period) -> ShownCard:
        """Return the card with its chart or rows."""
        definition, found = self._define(card.mart), self._query(card.sql, period)
        if found is None:
            note = f"The published file has no marts.{card.mart}, or lacks one of its columns."
            return ShownCard(card, definition, note)
        if not found.rows:
            return ShownCard(card, definition, card.empty)
        texts = [
            [self._format(value, name) for name, value in zip(found.columns, row, strict=True)]
            for row in found.rows
        ]
        headings = [
            (name[:1].upper() + name[1:], any(isinstance(v, int | float | Decimal) for v in values))
            for name, *values in zip(found.columns, *found.rows, strict=True)
        ]
        chart = ""
        if card.kind != "table":
            bars = [
                (label, float(row[1] or 0), text)
                for row, (label, text, *_) in zip(found.rows, texts, strict=True)
            ]
            drawn = draw_chart(bars, by_month=card.kind == "months")
            chart = Markup(drawn)  # noqa: S704 # the library escapes its text
        return ShownCard(card, definition, "", headings, texts, chart)

    def _format(self, value: Any, heading: str = "") -> str:
        """Return a value as text; one below a heading with "share" is a rate."""
        match value:
            case None:
                text = NOTHING
            case datetime():
                value = value.astimezone(self._zone)
                text = f"{value.day} {value:%b %Y, %H:%M %Z}"
            case date():
                text = f"{value:%b %Y}" if heading == "month" else f"{value.day} {value:%b %Y}"
            case int() | float() | Decimal() if heading.endswith("share"):
                text = _format_share(float(value))
            case float():
                text = f"{value:,.1f}".removesuffix(".0")
            case int() | Decimal():
                text = f"{value:,.0f}"
            case _:
                text = _printable(str(value))
        return text


def _format_share(value: float) -> str:
    """Format a share as a percentage, which is 0% or 100% only if it is exact."""
    percent = value * 100
    if 0 < percent < 0.5 or 99.5 <= percent < 100:
        return f"{min(max(percent, 0.1), 99.9):.1f}%"
    return f"{percent:.0f}%"


def _printable(text: str) -> str:
    """Return the text without characters that XML forbids: they end the drawing library."""
    return escape_control_characters(_NOT_IN_XML.sub("\ufffd", text))

"""Figures of the report: their declarations, charts and tables.

A figure (`Figure`) is a query, a chart, and sentences with fields. `Drawing` is its result for a
published file. Its definition is the comment in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from connector.errors import count_noun
from connector.report.published import PublishedFile, Row, sum_column

Number = float | Decimal

# -- Words -----------------------------------------------------------------------------------------
# Formats of values: counts, shares, days, amounts, dates. A missing value is a dash.

NOTHING = "–"  # noqa: RUF001 # a dash as wide as a digit


def format_count(value: Number) -> str:
    """Format a whole number, or an amount without decimals, as in 1,234."""
    return f"{value:,.0f}"


def format_share(value: Number) -> str:
    """Format a share as a percentage, which is only 0% or 100% if exact."""
    percent = float(value) * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f}%"
    return f"{percent:.0f}%" if percent >= 10 or percent == round(percent) else f"{percent:.1f}%"


def format_days(value: Number) -> str:
    """Format a number of days, with a decimal only below 10: 4.5 or 12."""
    text = f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return text.removesuffix(".0")


def format_money(currency: str, value: Number) -> str:
    """Format an amount with its currency code, as in GBP 12,300."""
    return f"{currency} {format_count(value)}"


def format_day(value: date) -> str:
    """Format a date, as in 7 May 2026."""
    return f"{value.day} {value:%B %Y}"


def format_timestamp(value: datetime) -> str:
    """Format a timestamp with its time zone, as in 7 May 2026, 14:03 CEST."""
    clock = f"{value:%Z}"
    # A zone without an abbreviation is named by its offset.
    clock = f"UTC{clock}" if clock[:1] in "+-" else clock
    return f"{format_day(value)}, {value:%H:%M} {clock}"


def format_age(value: timedelta) -> str:
    """Format a duration in minutes, in hours (below two days) or in days."""
    if value < timedelta(hours=1):
        return count_noun(round(value / timedelta(minutes=1)), "minute")
    if value < timedelta(days=2):
        return count_noun(round(value / timedelta(hours=1)), "hour")
    return count_noun(round(value / timedelta(days=1)), "day")


def describe_age(value: timedelta) -> str:
    """Format the age of data, as in 3 hours old; the data may be newer than the local clock."""
    return (
        f"{format_age(-value)} in the future" if value < timedelta() else f"{format_age(value)} old"
    )


def part_of_whole(part: int, whole: int, noun: str = "") -> str:
    """Format a part of a whole with its share, as in 3 of 12 jobs (25%)."""
    text = f"{part:,} of {count_noun(whole, noun) if noun else f'{whole:,}'}"
    return f"{text} ({format_share(part / whole)})" if whole else text


def capitalize(text: str) -> str:
    """Return the text with a capital first letter, unless it begins with a column name."""
    first = text.split(" ", maxsplit=1)[0]
    return text if "_" in first or "." in first.rstrip(".") else text[:1].upper() + text[1:]


def value_words(name: str) -> str:
    """Return a stored value with blanks instead of underscores: "new lead" for new_lead."""
    return name.replace("_", " ")


def _format_month(value: date) -> str:
    """Format a month, as in May 2026."""
    return f"{value:%B %Y}"


_FIGURES = (format_count, format_share, format_days)
_BY_TYPE: Mapping[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "yes" if value else "no",
    datetime: format_timestamp,
    date: format_day,
}


# -- Tables and charts -----------------------------------------------------------------------------


def parse_headings(text: str) -> dict[str, str]:
    """Return the headings by column of a text such as "stage Stage; p50_days Median days"."""
    return dict(each.split(" ", maxsplit=1) for each in text.split("; "))


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Table of a figure: its rows, and the headings of the columns to show.

    The comments of the mart's columns explain it. An open table is always visible. The reader can
    unfold other tables; print shows all.
    """

    caption: str
    mart: str
    headings: Mapping[str, str]
    rows: Sequence[Row]
    is_open: bool = False

    def formatter(self, column: str) -> Callable[[Any], str]:
        """Return the function that formats a column's values, by their type and its name."""
        kinds = [type(row[column]) for row in self.rows if row[column] is not None]
        if kinds and kinds[0] in _BY_TYPE:
            return _format_month if column.endswith("_start") else _BY_TYPE[kinds[0]]
        if column.endswith(("_rate", "coverage")):
            return format_share
        return format_days if "days" in column else format_count

    def is_numeric_column(self, column: str) -> bool:
        """Return True if the values of the column are aligned as numbers."""
        return self.formatter(column) in _FIGURES

    def cells(self) -> list[list[tuple[str, str]]]:
        """Return the cells of each row as (column, formatted text); a dash for a missing value."""
        writers = {column: self.formatter(column) for column in self.headings}
        return [
            [
                (column, NOTHING if row[column] in (None, "") else write(row[column]))
                for column, write in writers.items()
            ]
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart as a Vega-Lite specification, with its alternative text.

    `legend` has the CSS variable of each color, with its word.
    """

    specification: Mapping[str, Any]
    alternative_text: str
    legend: tuple[tuple[str, str], ...] = ()


# -- Figures ---------------------------------------------------------------------------------------

_MART = re.compile(r"\bmarts\.(\w+)")
_FIELD = re.compile(r"(?P<part>\w+)(?:(?P<sign>[/@*])(?P<other>\w+))?(?: (?P<noun>.+))?")


class SentenceFields:
    """Values of the fields of a sentence, from the rows of a figure.

    `{a}` is the total of a column, `{a job}` counts a noun, `{a/b job}` is a part of a whole.
    `{a@b}` is an amount in the currency of column b, `{a*b}` all amounts by currency. A column that
    begins with `the_` is the same in all rows. `{rows}` is the number of rows.

    `is_complete` becomes False if a used value is zero or unknown.
    """

    def __init__(self, rows: Sequence[Row], totals: Sequence[Row]) -> None:
        self._rows, self._totals, self.is_complete = rows, totals, True

    def column_value(self, column: str) -> Any:
        """Return the number of rows, the first value of a `the_` column, or the total of another
        column.
        """
        if column == "rows":
            return len(self._rows)
        if column.startswith("the_"):
            return self._rows[0][column]
        return sum_column(self._totals, column)

    def __getitem__(self, field: str) -> str:
        match = _FIELD.fullmatch(field)
        assert match is not None, field
        part, sign, other, noun = match.group("part", "sign", "other", "noun")
        value = self._amounts_by_currency(part, other) if sign == "*" else self.column_value(part)
        self.is_complete &= value is not None and bool(value or part.endswith("_days"))
        if isinstance(value, str):
            return value
        number = value or 0
        if sign == "@":
            codes = [row[other] for row in self._totals if row[part]]
            return format_money(codes[0], number) if codes else ""
        if sign == "/":
            return part_of_whole(int(number), int(self.column_value(other) or 0), noun or "")
        if noun:
            return count_noun(int(number), noun)
        return format_days(number) if part.endswith("_days") else format_count(number)

    def _amounts_by_currency(self, column: str, currency_column: str) -> str:
        """Return the total amounts, as in EUR 200, GBP 12,300."""
        sums: dict[str, Number] = {}
        for row in self._totals:
            if row[column] and row[currency_column]:
                sums[row[currency_column]] = sums.get(row[currency_column], 0) + row[column]
        # Amounts of two currencies are not ranked.
        return ", ".join(format_money(code, sums[code]) for code in sorted(sums))


@dataclass(frozen=True, slots=True)
class ExtraTable:
    """Declaration of a further table of a figure; `source` is SQL or a function for its rows."""

    caption: str
    mart: str
    source: str | Callable[[PublishedFile], Sequence[Row]]
    headings: Mapping[str, str]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Content of a figure for one file: a sentence, charts, notes on missing data, and tables."""

    finding: str
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    tables: Sequence[FigureTable] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Declaration of a figure: a query, its table and chart, and sentences on its numbers.

    Attributes:
        findings: Alternative sentences. The first one without a zero is shown, or else the last.
        text_if_empty: Text if there are no rows, or if the total of `counted_column` is zero.
        notes: Sentences that are each shown if they have no zero.
        has_total: True if the last row is the total of the others.
        further_marts: Other marts whose definitions belong to the figure.
        is_wide: True if the figure uses the whole width of the page.
    """

    key: str
    title: str
    mart: str
    sql: str
    headings: Mapping[str, str]
    caption: str
    findings: Sequence[str]
    text_if_empty: str
    notes: Sequence[str] = ()
    chart: Callable[[PublishedFile, Sequence[Row]], Sequence[Chart]] | None = None
    counted_column: str = ""
    has_total: bool = False
    further_marts: Sequence[str] = ()
    more: Sequence[ExtraTable] = ()
    rows: Callable[[PublishedFile, Sequence[Row]], Sequence[Row]] | None = None
    is_open: bool = False
    is_wide: bool = False

    @property
    def marts(self) -> Sequence[str]:
        """Names of the marts that the figure reads, beginning with the one that defines it."""
        queries = " ".join((self.sql, *(f"marts.{each.mart}" for each in self.more)))
        return list(dict.fromkeys((self.mart, *self.further_marts, *_MART.findall(queries))))

    def draw(self, published: PublishedFile) -> Drawing | None:
        """Return the content for the file; None if there is no data. Raises `PartMissing`."""
        rows: Sequence[Row] = published.query_rows(self.sql)
        if self.rows and rows:
            rows = self.rows(published, rows)
        totals = rows[-1:] if self.has_total else rows
        if not rows or (self.counted_column and not sum_column(totals, self.counted_column)):
            return None
        notes = [text for each in self.notes if (text := fill_sentence(each, rows, totals))]
        found = (text for each in self.findings if (text := fill_sentence(each, rows, totals)))
        finding = next(found, "") or self.findings[-1].format_map(SentenceFields(rows, totals))
        caption = self.caption.format_map(SentenceFields(rows, rows))
        tables = [FigureTable(caption, self.mart, self.headings, rows, self.is_open)]
        for each in self.more:
            source = each.source
            if (
                shown := published.query_rows(source)
                if isinstance(source, str)
                else source(published)
            ):
                caption = each.caption.format_map(SentenceFields(shown, shown))
                tables.append(FigureTable(caption, each.mart, each.headings, shown, each.is_open))
        for table in tables:
            published.require_columns(table.mart, table.headings, table.rows)
        charts = self.chart(published, rows) if self.chart else ()
        return Drawing(capitalize(finding), charts, [capitalize(each) for each in notes], tables)


def fill_sentence(template: str, rows: Sequence[Row], totals: Sequence[Row]) -> str:
    """Return the template with its fields filled in; "" if one of the numbers is zero or unknown.

    The numbers are totals of the rows in `totals`; see `SentenceFields`.
    """
    fields = SentenceFields(rows, totals)
    text = template.format_map(fields)
    return text if fields.is_complete else ""


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the report: figures, and a sentence on the records that they count."""

    key: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class FigureResult:
    """Figure for one file: its drawing, or the `reason` for its absence.

    `contracts` has the parts of the comment of each mart, by mart and label.
    """

    figure: Figure
    contracts: Mapping[str, Mapping[str, str]]
    drawing: Drawing | None
    reason: str = ""
    is_wide: bool = False

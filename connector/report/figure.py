"""Figures of the page, as values: their declarations, charts and tables.

A figure is a record (`Figure`): a query, a chart, and sentences with fields. It is drawn from a
published file (`Drawing`). Its definition is not here: the file's own comments have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from connector.errors import count_noun
from connector.report.published import PublishedFile, Row, total

Number = float | Decimal

# -- Words -----------------------------------------------------------------------------------------
# Values as a reader meets them: counts, shares, days, amounts, dates. None is a dash.

NOTHING = "–"  # noqa: RUF001 # a dash as wide as a digit


def count(value: Number) -> str:
    """A whole number, or an amount in whole units, as in 1,234."""
    return f"{value:,.0f}"


def share(value: Number) -> str:
    """A part of one as a percentage, which is 0% or 100% only where it is so."""
    percent = float(value) * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f}%"
    return f"{percent:.0f}%" if percent >= 10 or percent == round(percent) else f"{percent:.1f}%"


def days(value: Number) -> str:
    """A number of days: with a decimal below 10, whole above."""
    text = f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return text.removesuffix(".0")


def money(currency: str, value: Number) -> str:
    """Money with its currency code, as in GBP 12,300."""
    return f"{currency} {count(value)}"


def day(value: date) -> str:
    """A day, as in 7 May 2026."""
    return f"{value.day} {value:%B %Y}"


def moment(value: datetime) -> str:
    """A time on the clock that it bears, as in 7 May 2026, 14:03 CEST."""
    clock = f"{value:%Z}"
    # A zone without letters of its own is named by its distance.
    clock = f"UTC{clock}" if clock[:1] in "+-" else clock
    return f"{day(value)}, {value:%H:%M} {clock}"


def age(value: timedelta) -> str:
    """A length of time in minutes, hours, or days from two on."""
    if value < timedelta(hours=1):
        return count_noun(round(value / timedelta(minutes=1)), "minute")
    if value < timedelta(days=2):
        return count_noun(round(value / timedelta(hours=1)), "hour")
    return count_noun(round(value / timedelta(days=1)), "day")


def describe_age(value: timedelta) -> str:
    """The age of data, as in 3 hours old; data may be of later than the clock that is asked."""
    return f"{age(-value)} in the future" if value < timedelta() else f"{age(value)} old"


def part_of_whole(part: int, whole: int, noun: str = "") -> str:
    """A part of a whole with its share, as in 3 of 12 jobs (25%)."""
    text = f"{part:,} of {count_noun(whole, noun) if noun else f'{whole:,}'}"
    return f"{text} ({share(part / whole)})" if whole else text


def capitalize(text: str) -> str:
    """The text with its first letter large, unless a column's name begins it."""
    first = text.split(" ", maxsplit=1)[0]
    return text if "_" in first or "." in first.rstrip(".") else text[:1].upper() + text[1:]


def value_words(name: str) -> str:
    """A stored value in words: new_lead as new lead."""
    return name.replace("_", " ")


def _month(value: date) -> str:
    return f"{value:%B %Y}"


def _flag(value: bool) -> str:
    return "yes" if value else "no"


_FIGURES = (count, share, days)
_BY_TYPE: Mapping[type, Callable[[Any], str]] = {str: str, bool: _flag, datetime: moment, date: day}


# -- Tables and charts -----------------------------------------------------------------------------


def parse_headings(text: str) -> dict[str, str]:
    """Headings by column, as in "stage Stage; days_in_stage Median days"."""
    return dict(each.split(" ", maxsplit=1) for each in text.split("; "))


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Table of a figure; headings are by the columns' names in rows and mart.

    An open table is always shown. The reader unfolds any other table, and print shows it.
    """

    caption: str
    mart: str
    headings: Mapping[str, str]
    rows: Sequence[Row]
    is_open: bool = False

    def writer(self, column: str) -> Callable[[Any], str]:
        """Return the format function of a column, by the type of its values and its name."""
        kinds = [type(row[column]) for row in self.rows if row[column] is not None]
        if kinds and kinds[0] in _BY_TYPE:
            return _month if column.endswith("_start") else _BY_TYPE[kinds[0]]
        if column.endswith(("_rate", "coverage")):
            return share
        return days if "days" in column else count

    def is_numeric_column(self, column: str) -> bool:
        """Whether its values are aligned as figures."""
        return self.writer(column) in _FIGURES

    def cells(self) -> list[list[tuple[str, str]]]:
        """The rows as written, each value with its column; a dash for a missing value."""
        writers = {column: self.writer(column) for column in self.headings}
        return [
            [
                (column, NOTHING if row[column] in (None, "") else write(row[column]))
                for column, write in writers.items()
            ]
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart as Vega-Lite says it, and its alternative text.

    `legend` has each colour, as it is written in styles, with its word.
    """

    specification: Mapping[str, Any]
    alternative: str
    legend: tuple[tuple[str, str], ...] = ()


# -- Figures ---------------------------------------------------------------------------------------

_MART = re.compile(r"\bmarts\.(\w+)")
_FIELD = re.compile(r"(?P<part>\w+)(?:(?P<sign>[/@*])(?P<other>\w+))?(?: (?P<noun>.+))?")


class Sentence:
    """Fields of a sentence, by the rows of a figure.

    `{a}` is the total of a column, `{a job}` counts a noun, `{a/b job}` is a part of a whole.
    `{a@b}` is an amount in the currency of column b, `{a*b}` all amounts by currency. A column that
    begins with `the_` is the same in all rows. `{rows}` is the number of rows.
    """

    def __init__(self, rows: Sequence[Row], totals: Sequence[Row]) -> None:
        self._rows, self._totals, self.is_complete = rows, totals, True

    def number(self, column: str) -> Any:
        """The column's total, or its one value."""
        if column == "rows":
            return len(self._rows)
        if column.startswith("the_"):
            return self._rows[0][column]
        return total(self._totals, column)

    def __getitem__(self, field: str) -> str:
        match = _FIELD.fullmatch(field)
        assert match is not None, field
        part, sign, other, noun = match.group("part", "sign", "other", "noun")
        value = self._amounts(part, other) if sign == "*" else self.number(part)
        self.is_complete &= value is not None and bool(value or part.endswith("_days"))
        if isinstance(value, str):
            return value
        number = value or 0
        if sign == "@":
            codes = [row[other] for row in self._totals if row[part]]
            return money(codes[0], number) if codes else ""
        if sign == "/":
            return part_of_whole(int(number), int(self.number(other) or 0), noun or "")
        if noun:
            return count_noun(int(number), noun)
        return days(number) if part.endswith("_days") else count(number)

    def _amounts(self, part: str, currency: str) -> str:
        sums: dict[str, Number] = {}
        for row in self._totals:
            if row[part] and row[currency]:
                sums[row[currency]] = sums.get(row[currency], 0) + row[part]
        # Amounts of two currencies are not ranked.
        return ", ".join(money(code, sums[code]) for code in sorted(sums))


@dataclass(frozen=True, slots=True)
class MoreTable:
    """Another table of a figure, of a query or function. `caption` may have fields."""

    caption: str
    mart: str
    source: str | Callable[[PublishedFile], Sequence[Row]]
    headings: Mapping[str, str]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Drawing of a figure: its sentence, charts, what they lack, and tables."""

    finding: str
    charts: Sequence[Chart] = ()
    coverage: Sequence[str] = ()
    tables: Sequence[FigureTable] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure of the page: a query, its table and chart, and sentences on its numbers.

    `findings` are alternatives: the first one without a zero is shown, else the last. Each of
    `notes` is shown if it has no zero. Without rows, or with a `counted` of zero, the figure shows
    `empty`. If it `has_total`, the last row is the total of the others. `also` are further marts
    whose definitions belong to the figure. A wide figure takes the whole width of the page.
    """

    key: str
    title: str
    mart: str
    sql: str
    headings: Mapping[str, str]
    caption: str
    findings: Sequence[str]
    empty: str
    notes: Sequence[str] = ()
    chart: Callable[[PublishedFile, Sequence[Row]], Sequence[Chart]] | None = None
    counted: str = ""
    has_total: bool = False
    also: Sequence[str] = ()
    more: Sequence[MoreTable] = ()
    rows: Callable[[PublishedFile, Sequence[Row]], Sequence[Row]] | None = None
    is_open: bool = False
    is_wide: bool = False

    @property
    def marts(self) -> Sequence[str]:
        """The marts that the figure reads; its definition is the first one's."""
        queries = " ".join((self.sql, *(f"marts.{each.mart}" for each in self.more)))
        return list(dict.fromkeys((self.mart, *self.also, *_MART.findall(queries))))

    def draw(self, published: PublishedFile) -> Drawing | None:
        """The figure of the file; None if there is nothing to show. Raises `PartMissing`."""
        rows: Sequence[Row] = published.rows(self.sql)
        if self.rows and rows:
            rows = self.rows(published, rows)
        totals = rows[-1:] if self.has_total else rows
        if not rows or (self.counted and not total(totals, self.counted)):
            return None
        notes = [text for each in self.notes if (text := fill_sentence(each, rows, totals))]
        found = (text for each in self.findings if (text := fill_sentence(each, rows, totals)))
        finding = next(found, "") or self.findings[-1].format_map(Sentence(rows, totals))
        caption = self.caption.format_map(Sentence(rows, rows))
        tables = [FigureTable(caption, self.mart, self.headings, rows, self.is_open)]
        for each in self.more:
            source = each.source
            if shown := published.rows(source) if isinstance(source, str) else source(published):
                caption = each.caption.format_map(Sentence(shown, shown))
                tables.append(FigureTable(caption, each.mart, each.headings, shown, each.is_open))
        for table in tables:
            published.require(table.mart, table.headings, table.rows)
        charts = self.chart(published, rows) if self.chart else ()
        return Drawing(capitalize(finding), charts, [capitalize(each) for each in notes], tables)


def fill_sentence(template: str, rows: Sequence[Row], totals: Sequence[Row]) -> str:
    """The sentence with its numbers; "" if one of them is zero or unknown."""
    fields = Sentence(rows, totals)
    text = template.format_map(fields)
    return text if fields.is_complete else ""


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the page: figures, with a sentence on what is counted in all of them."""

    key: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class FigureAnswer:
    """Answer of a file to a figure: its drawing, or `words` that say why not.

    `contracts` are what the file says of the marts, part by part, in the figure's order.
    """

    figure: Figure
    contracts: Mapping[str, Mapping[str, str]]
    shown: Drawing | None
    words: str = ""
    is_wide: bool = False

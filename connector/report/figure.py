"""Figures of the page, as values: their declarations, charts and tables.

A figure is declared once (`Figure`), with the marts and columns that it rests on, and drawn from a
published file (`Drawing`). Its definition is not here: the file's own comments have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from connector.errors import count_noun

if TYPE_CHECKING:
    from connector.report.published import PublishedFile, Row

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
    """A moment on the clock that it bears, as in 7 May 2026, 14:03 CEST."""
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


def aged(value: timedelta) -> str:
    """The age of data, as in 3 hours old; data may be of later than the clock that is asked."""
    return f"{age(-value)} in the future" if value < timedelta() else f"{age(value)} old"


def of(part: int, whole: int, noun: str = "") -> str:
    """A part of a whole with its share, as in 3 of 12 jobs (25%)."""
    text = f"{part:,} of {count_noun(whole, noun) if noun else f'{whole:,}'}"
    return f"{text} ({share(part / whole)})" if whole else text


def lacking(part: int, whole: int, noun: str, words: str) -> tuple[str, ...]:
    """What is not covered, as in 25% of jobs (3 of 12) have no fee; if any."""
    return (f"{share(part / whole)} of {noun} ({part:,} of {whole:,}) {words}",) if part else ()


def capital(text: str) -> str:
    """The text with its first letter large, unless a column's name begins it."""
    first = text.split(" ", maxsplit=1)[0]
    return text if "_" in first or "." in first.rstrip(".") else text[:1].upper() + text[1:]


def plain(name: str) -> str:
    """A stored value in words: new_lead as new lead."""
    return name.replace("_", " ")


def _month(value: date) -> str:
    return f"{value:%B %Y}"


def _flag(value: bool) -> str:
    return "yes" if value else "no"


_FIGURES = (count, share, days)
_BY_TYPE: Mapping[type, Callable[[Any], str]] = {str: str, bool: _flag, datetime: moment, date: day}


# -- Tables and charts -----------------------------------------------------------------------------


def headed(text: str) -> dict[str, str]:
    """Headings by column, as in "stage Stage; days_in_stage Median days"."""
    return dict(each.split(" ", maxsplit=1) for each in text.split("; "))


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Table of a figure; headings are by the columns' names in rows and mart.

    An open table is shown at once, any other is unfolded by the reader, and printed.
    """

    caption: str
    mart: str
    headings: Mapping[str, str]
    rows: Sequence[Row]
    is_open: bool = False

    def writer(self, column: str) -> Callable[[Any], str]:
        """How a column is written: by the type of its values, and a figure by its name."""
        kinds = [type(row[column]) for row in self.rows if row[column] is not None]
        if kinds and kinds[0] in _BY_TYPE:
            return _month if column.endswith("_start") else _BY_TYPE[kinds[0]]
        if column.endswith(("_rate", "coverage")):
            return share
        return days if "days" in column else count

    def is_figure(self, column: str) -> bool:
        """Whether its values are aligned as figures."""
        return self.writer(column) in _FIGURES

    def cells(self) -> list[list[tuple[str, str]]]:
        """The rows as written, each value with its column; a dash where there is none."""
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
    """Chart as Vega-Lite says it, and the text that stands for it.

    `legend` has each colour, as it is written in styles, with its word.
    """

    specification: Mapping[str, Any]
    alternative: str
    legend: tuple[tuple[str, str], ...] = ()


# -- Figures ---------------------------------------------------------------------------------------

Needs = Mapping[str, str]
"""The columns that are read, by mart, with blanks between them. The definition that is shown is
the first mart's.
"""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Drawing of a figure: its sentence, charts, what they lack, and tables."""

    finding: str
    charts: tuple[Chart, ...] = ()
    coverage: tuple[str, ...] = ()
    tables: tuple[FigureTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure as it is declared.

    `draw` returns None where there is nothing to show, and `empty` says so then. A wide figure
    takes the whole width of the page.
    """

    key: str
    title: str
    needs: Needs
    draw: Callable[[PublishedFile], Drawing | None]
    empty: str
    is_wide: bool = False


def figure(
    key: str, title: str, needs: Needs, *, empty: str, is_wide: bool = False
) -> Callable[[Callable[[PublishedFile], Drawing | None]], Figure]:
    """Make a figure of the function below, which draws it."""
    return lambda draw: Figure(key, title, needs, draw, empty, is_wide)


def tabled_figure(
    key: str,
    title: str,
    needs: Needs,
    sql: str,
    *,
    caption: str,
    headings: Mapping[str, str],
    empty: str,
    is_open: bool = False,
    is_wide: bool = False,
) -> Callable[[Callable[[list[Row]], Drawing | None]], Figure]:
    """Make a figure of a query's rows, its table; the function below draws them.

    There is nothing to show where there are no rows, or where the function returns None.
    """

    def declare(draw: Callable[[list[Row]], Drawing | None]) -> Figure:
        def drawn(published: PublishedFile) -> Drawing | None:
            rows = published.rows(sql)
            drawing = draw(rows) if rows else None
            table = FigureTable(caption, next(iter(needs)), headings, rows, is_open)
            return drawing and replace(drawing, tables=(table,))

        return Figure(key, title, needs, drawn, empty, is_wide)

    return declare


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

"""What the page is made of, as values: sections of figures, each with its chart and its tables.

A figure is declared once (`Figure`) with the marts and columns that it rests on, and answered from
a published file (`Answered`). Its definition is not here: the file's own comments have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from connector.errors import count_noun

if TYPE_CHECKING:
    from connector.report.published import Contract, Published


# -- Words -----------------------------------------------------------------------------------------
# Values as a reader meets them: counts, shares, days, amounts, dates. None is a dash.


Kind = Literal["text", "count", "share", "days", "amount", "day", "month", "moment", "flag"]
"""How a column's values are written; all but text, day, month, moment and flag are figures."""

FIGURES = frozenset(("count", "share", "days", "amount"))
"""The kinds that are aligned as figures."""

NOTHING = "–"  # noqa: RUF001 # a dash as wide as a digit
_SHORT_AGE = timedelta(hours=48)


def count(value: float | Decimal) -> str:
    """A whole number, as in 1,234."""
    return f"{value:,.0f}"


def share(value: float | Decimal) -> str:
    """A part of one as a percentage; rounding makes nothing of something, or all of less, never."""
    percent = float(value) * 100
    if 0 < percent < 0.1:
        return "under 0.1%"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f}%"
    return f"{percent:.0f}%" if percent >= 10 or percent == round(percent) else f"{percent:.1f}%"


def days(value: float | Decimal) -> str:
    """A number of days: with a decimal below 10, whole above."""
    text = f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return text.removesuffix(".0")


def amount(value: float | Decimal) -> str:
    """Money without its currency, in whole units."""
    return f"{value:,.0f}"


def money(currency: str, value: float | Decimal) -> str:
    """Money with its currency code, as in GBP 12,300."""
    return f"{currency} {amount(value)}"


def day(value: date) -> str:
    """A day, as in 7 May 2026."""
    return f"{value.day} {value:%B %Y}"


def month(value: date) -> str:
    """A month, as in May 2026."""
    return f"{value:%B %Y}"


def moment(value: datetime) -> str:
    """A moment in UTC, as in 7 May 2026, 14:03 UTC."""
    shown = value.astimezone(UTC)
    return f"{day(shown)}, {shown:%H:%M} UTC"


def age(value: timedelta) -> str:
    """A length of time in its largest sensible unit: minutes, hours, or days from two on."""
    if value < timedelta(hours=1):
        return count_noun(max(0, round(value / timedelta(minutes=1))), "minute")
    if value < _SHORT_AGE:
        return count_noun(round(value / timedelta(hours=1)), "hour")
    return count_noun(round(value / timedelta(days=1)), "day")


def of(part: int, whole: int, noun: str = "") -> str:
    """A part of a whole with its share, as in 3 of 12 jobs (25%)."""
    text = f"{part:,} of {count_noun(whole, noun) if noun else f'{whole:,}'}"
    return f"{text} ({share(part / whole)})" if whole else text


def capital(text: str) -> str:
    """The text with its first letter large, unless it begins with the name of a column."""
    first = text.split(" ", maxsplit=1)[0]
    return text if "_" in first or "." in first.rstrip(".") else text[:1].upper() + text[1:]


def plain(name: str) -> str:
    """A stored value in words: new_lead as new lead."""
    return name.replace("_", " ")


def _flag(value: bool) -> str:
    return "yes" if value else "no"


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "count": count,
    "share": share,
    "days": days,
    "amount": amount,
    "day": day,
    "month": month,
    "moment": moment,
    "flag": _flag,
}


def written(kind: Kind, value: Any) -> str:
    """The value as its kind is written; a dash where there is none."""
    return NOTHING if value is None or value == "" else _WRITERS[kind](value)


# -- Figure ----------------------------------------------------------------------------------------
#


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, how its values are written, and the column of the mart
    that it shows (its `key` unless `of` names another; "" for one that is made here).
    """

    key: str
    heading: str
    kind: Kind = "count"
    of: str | None = None

    @property
    def source(self) -> str:
        """The mart's column whose comment says what this one means."""
        return self.key if self.of is None else self.of

    @property
    def is_figure(self) -> bool:
        """Whether its values are aligned as figures."""
        return self.kind in FIGURES


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a caption; `mart` is the one that its columns belong to. An open table is shown
    at once, any other is unfolded by the reader, and printed.
    """

    caption: str
    mart: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    is_open: bool = False

    def cells(self) -> list[list[tuple[Column, str]]]:
        """The rows as written, each cell with its column."""
        return [
            [(column, written(column.kind, row[column.key])) for column in self.columns]
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, as Vega-Lite says it, with the text that stands for it, and what its colours
    mean: each as it is written in styles, with its word.
    """

    specification: Mapping[str, Any]
    alternative: str
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure's numbers: the sentence that they come to, charts, tables, and what they lack."""

    finding: str
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    coverage: tuple[str, ...] = ()


Needs = Mapping[str, tuple[str, ...]]
"""The columns that are read, by mart; the first mart is the one whose definition is shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as it is declared. `draw` returns None where there is nothing to show, and `empty`
    says so then. A wide figure takes the whole width of the page.
    """

    key: str
    title: str
    needs: Needs
    draw: Callable[[Published], Shown | None]
    empty: str
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A figure as a published file answers it: `shown`, or else the `words` that say why not.
    `contracts` are what the file says of the marts, in the figure's order.
    """

    figure: Figure
    contracts: tuple[Contract, ...]
    shown: Shown | None
    words: str = ""

    def line(self, part: str) -> str:
        """The part of the contracts that is shown with the figure: of the first that has it."""
        return next((c.parts[part] for c in self.contracts if part in c.parts), "")


@dataclass(frozen=True, slots=True)
class Section:
    """Figures under one heading, with a sentence on what is counted in all of them."""

    key: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A figure of the grid at the top: what it is, its value in words, and what it is a part of.

    `numbers` are the plain values behind it; `source` is the mart, or the column as `mart.column`,
    that it is taken from, and `means` what the file says of that; `section` is where more stands.
    """

    key: str
    label: str
    values: tuple[str, ...]
    detail: str
    source: str
    means: str
    section: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """A key figure as it is declared. `means` is the mart whose rows it counts, or the column, as
    `mart.column`, that it shows; `draw` returns None where there is nothing to count.
    """

    key: str
    label: str
    needs: Needs
    means: str
    section: str
    draw: Callable[[Published], tuple[tuple[str, ...], str, Mapping[str, Any]] | None]
    empty: str

"""What the page is made of, as values: sections of figures, each with its chart and its tables.

A figure is declared once (`Figure`) with the marts and columns that it rests on, and answered from
a published file (`Answered`). Its definition is not here: the file's own comments have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connector.report.words import FIGURES, Kind, written

if TYPE_CHECKING:
    from connector.report.published import Contract, Published


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

"""The tables of a page of Markdown, and what their cells name; knows nothing of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a Markdown page."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rows_as_dicts(self) -> Iterator[dict[str, str]]:
        """Yield each row as cells by column heading."""
        for row in self.rows:
            yield dict(zip(self.header, row, strict=True))


def list_quoted_words(cell: str) -> tuple[str, ...]:
    """Return the words between backticks in a cell, in order."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def parse_tables(page: str) -> list[Table]:
    """Return the tables of a Markdown page, in order.

    Raises:
        ValueError: A row has more or fewer cells than the header.
    """
    tables: list[Table] = []
    lines: list[list[str]] = []
    for line in [*page.splitlines(), ""]:
        if line.lstrip().startswith("|"):
            lines.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif lines:
            header, _, *rows = lines
            for row in rows:
                if len(row) != len(header):
                    raise ValueError(f"a row has {len(row)} cells: {row}")
            tables.append(Table(tuple(header), tuple(tuple(row) for row in rows)))
            lines = []
    return tables

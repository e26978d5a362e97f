"""The tables of a page of Markdown, and what their cells name; knows nothing of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a Markdown page; `section` is the number of the heading above it, such as "2.1"."""

    section: str
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
    section, lines = "", []
    for line in [*page.splitlines(), ""]:
        heading = re.match(r"#+ (\d(?:\.\d)?)", line)
        section = heading.group(1) if heading else section
        if line.lstrip().startswith("|"):
            lines.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif lines:
            header, _, *rows = lines
            for row in rows:
                if len(row) != len(header):
                    raise ValueError(f"API {section}: a row has {len(row)} cells: {row}")
            tables.append(Table(section, tuple(header), tuple(tuple(row) for row in rows)))
            lines = []
    return tables

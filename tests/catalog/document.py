"""The tables of a page of Markdown, and what their cells name; knows nothing of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

API_DOCUMENT = Path(__file__).parents[2] / "docs" / "API.md"


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the page; `section` is the number of the heading above it ("2.1")."""

    section: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def records(self) -> Iterator[dict[str, str]]:
        """Each row as cells by column."""
        for row in self.rows:
            yield dict(zip(self.header, row, strict=True))


def list_quoted_words(cell: str) -> tuple[str, ...]:
    """Return the words between backticks in a cell, in order."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def read_tables(page: str) -> list[Table]:
    """Every table of a page of Markdown, in order. Raises `ValueError` for a row whose number of
    cells is not the header's.
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


def find_table(tables: list[Table], section: str, *first: str) -> Table:
    """Return the only table of the section whose header begins with these cells."""
    (found,) = (t for t in tables if t.section == section and t.header[: len(first)] == first)
    return found

"""The facts that `docs/API.md` states, read from its tables; knows nothing of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

API_DOCUMENT = Path(__file__).parents[2] / "docs" / "API.md"

FIELD_HEADER = (
    *("Field", "Type", "Values", "Create", "Update"),
    *("List item", "Detail", "Sort", "Filter", "Notes"),
)
ENDPOINT_HEADER = (*("Operation", "Method", "Path", "Scope", "Query", "Body", "Status", "Answer"),)


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


@dataclass(frozen=True, slots=True)
class Terms:
    """What a body or a list says of a field: `no`, `yes`, `optional` or `required`, and which
    values where fewer are meant than the field has.
    """

    word: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldFact:
    """One row of a field table."""

    kind: str
    values: tuple[str, ...]
    create: Terms
    update: Terms
    item: Terms
    detail: Terms
    is_sortable: bool
    is_filterable: bool


@dataclass(frozen=True, slots=True)
class RuleFact:
    """One row of a *Body* table: what holds only in company with another field."""

    body: str
    fields: tuple[str, ...]
    rule: str
    on: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndpointFact:
    """One row of an endpoint table; `query` maps a parameter to its type where the row gives one,
    and `echo` is empty where the answer is not described by the fields it holds.
    """

    operation: str
    method: str
    path: str
    scope: str
    query: tuple[tuple[str, str], ...]
    status: str
    echo: tuple[str, ...]


def quoted(cell: str) -> tuple[str, ...]:
    """What a cell holds between backticks, in order."""
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


def read_terms(cell: str, values: tuple[str, ...]) -> Terms:
    """A cell such as ``optional: `draft` ``; the values are dropped where they are all of them."""
    word, _, listed = cell.partition(":")
    named = quoted(listed)
    return Terms(word, () if named == values else named)


def read_fields(table: Table) -> dict[str, FieldFact]:
    """The rows of a field table by the field's name."""
    facts = {}
    for row in table.records():
        values = quoted(row["Values"])
        (name,) = quoted(row["Field"])
        facts[name] = FieldFact(
            kind=row["Type"],
            values=values,
            create=read_terms(row["Create"], values),
            update=read_terms(row["Update"], values),
            item=read_terms(row["List item"], values),
            detail=read_terms(row["Detail"], values),
            is_sortable=row["Sort"] == "yes",
            is_filterable=row["Filter"] == "yes",
        )
    return facts


def read_rules(tables: list[Table], section: str) -> set[RuleFact]:
    """The rules across fields that a section states."""
    return {
        RuleFact(
            body=row["Body"],
            fields=quoted(row["Fields"]),
            rule=row["Rule"],
            on="".join(quoted(row["On"])),
            values=quoted(row["Values"]),
        )
        for table in tables
        if table.section == section and table.header[0] == "Body"
        for row in table.records()
    }


def read_endpoints(tables: list[Table]) -> dict[tuple[str, str], EndpointFact]:
    """Every endpoint of section 4, by method and path."""
    facts = {}
    for table in tables:
        if table.header != ENDPOINT_HEADER:
            continue
        for row in table.records():
            (path,) = quoted(row["Path"])
            (scope,) = quoted(row["Scope"])
            echo = quoted(row["Answer"]) if row["Answer"].startswith("`id`") else ()
            facts[row["Method"], path] = EndpointFact(
                operation=row["Operation"],
                method=row["Method"],
                path=path,
                scope=scope,
                query=tuple(re.findall(r"`(\w+)`(?: \((\w+)\))?", row["Query"])),
                status=row["Status"],
                echo=echo,
            )
    return facts


def table_of(tables: list[Table], section: str, *first: str) -> Table:
    """The one table of that section whose header begins so."""
    (found,) = (t for t in tables if t.section == section and t.header[: len(first)] == first)
    return found

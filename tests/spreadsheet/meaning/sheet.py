"""Tables of Python values, and a landing in memory that shares no code with the warehouse."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connector.catalog.content import ContentTypeField
from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import Cell, SheetRow
from connector.spreadsheet.row_reader import CheckedRow
from connector.spreadsheet.table import Spreadsheet
from connector.spreadsheet.targets import PushTarget, push_target
from connector.state.row import KnownId, LandedRecord, Mode


@dataclass(frozen=True)
class ValuesTable:
    """A table of Python values that the checks accept like a file."""

    headings: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]

    def rows(self) -> Iterator[SheetRow]:
        """Yield the rows, numbered from 2 as in a spreadsheet with headings."""
        for number, cells in enumerate(self.cells, 2):
            yield SheetRow(number, cells)


def make_table(*records: Mapping[str, Cell]) -> ValuesTable:
    """Return a table with a row for each record; missing fields are blank."""
    headings = tuple(dict.fromkeys(name for record in records for name in record))
    return ValuesTable(
        headings, tuple(tuple(r.get(name, "") for name in headings) for r in records)
    )


@dataclass
class InMemoryLanding:
    """Loaded records by resource, and the fields of the content type `posts`.

    `queries` counts the lookups.
    """

    records: Mapping[str, Sequence[LandedRecord]] = field(default_factory=dict)
    fields: Sequence[ContentTypeField] | None = None
    queries: int = 0
    known: Mapping[str, Sequence[KnownId]] = field(default_factory=dict)

    def find_ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """Return for each tuple of values the ids of the live records that have them, in any
        case.
        """
        self.queries += 1
        live = [each.record for each in self.records.get(resource, ()) if not each.is_deleted]
        return [
            tuple(
                sorted(
                    record["id"]
                    for record in live
                    if all(
                        str(record.get(name, "")).lower() == str(value).lower()
                        for name, value in zip(fields, wanted, strict=True)
                    )
                )
            )
            for wanted in values
        ]

    def list_texts(self, resource: str, fields: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return id and texts of the live records that have all these fields."""
        live = [each.record for each in self.records.get(resource, ()) if not each.is_deleted]
        return [
            (record["id"], *(record[name] for name in fields))
            for record in live
            if all(record.get(name) for name in fields)
        ]

    def known_ids(self, field: str) -> Sequence[KnownId]:
        """Return the users or lead statuses."""
        return self.known.get(field, ())

    def landed_records(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """Return the loaded rows with these ids, including deleted ones."""
        self.queries += 1
        there = self.records.get(resource, ())
        return {each.record["id"]: each for each in there if each.record["id"] in ids}

    def has_records(self, resource: str) -> bool:
        """Return True if the resource has a record."""
        return bool(self.records.get(resource))

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """Return the fields of the content type `posts`, None for other types."""
        return self.fields if content_type == "posts" else None


def make_landing(
    fields: Sequence[ContentTypeField] | None = None, **records: Sequence[Any]
) -> InMemoryLanding:
    """Return a landing with these records by resource. A mapping is a complete, live record."""
    made = {
        resource: [each if isinstance(each, LandedRecord) else LandedRecord(each) for each in given]
        for resource, given in records.items()
    }
    return InMemoryLanding(made, fields)


CANDIDATE: Mapping[str, Cell] = {
    "first_name": "Zoë",
    "last_name": "O'Brien",
    "email": "zoe@people.example",
    "employment_type": "permanent",
}
"""The fields that a candidate requires."""


def make_target(
    resource: str = "candidates",
    mode: Mode = "create",
    landing: InMemoryLanding | None = None,
    **options: Any,
) -> PushTarget:
    """Return the target of a push in this mode for an in-memory landing."""
    return push_target(resource, mode, landing or InMemoryLanding(), **options)


def check_table(
    table: ValuesTable | Spreadsheet,
    target: PushTarget,
    landing: InMemoryLanding | None = None,
    saved: SavedMap | None = None,
) -> list[CheckedRow]:
    """Map the headings, check the table's rows against the landing, and return them."""
    columns = map_headings(table.headings, target, saved=saved)
    return list(check_rows(table.rows(), columns, target, landing or InMemoryLanding()))


def list_problems(found: Sequence[CheckedRow]) -> list[tuple[int, str | None, str]]:
    """Return row number, column and code of every problem."""
    return [(each.row.number, p.column, p.code) for each in found for p in each.problems]


def get_changes(found: CheckedRow) -> dict[str, tuple[Any, Any]]:
    """Return old and new value of each field that a row changes."""
    changes = () if found.task is None else replace(found.task, outcome="update").changes
    return {name: (old, new) for name, old, new in changes}


def list_mappings(columns: ColumnMap) -> dict[str, tuple[str, str]]:
    """Return for each mapped heading the column and the kind of match."""
    return {each.heading: (each.target.name, each.match_kind) for each in columns.columns}

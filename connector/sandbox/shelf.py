"""One resource's records in SQLite: where they lie, in which order they come out.

Each resource has two tables. The narrow one has a column for whatever lists sort, filter or join
by, and its indexes, so that counting, filtering and deep offsets never touch a whole record; the
other holds the record as a JSON object. Both are derived from the declaration. This module knows
no rule of the API: the store decides what is written and when a transaction ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connector.catalog import CATALOG
from connector.resource import Declaration
from connector.value import Kind

Stored = dict[str, Any]
"""A record as kept: every field that has a value, the write-only ones and undeclared ones too.

A name that begins with an underscore is the sandbox's own and never shown.
"""

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Row:
    """A record with its place: `serial` counts insertions, `parent` is its content type's id."""

    serial: int
    parent: str | None
    record: Stored


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on the narrow table, named `t`, and its parameters; by default all rows."""

    sql: str = "1"
    parameters: tuple[Any, ...] = ()

    def narrowed(self, sql: str, *parameters: Any) -> Where:
        """The condition and another one."""
        joined = sql if self.sql == "1" else f"{self.sql} AND {sql}"
        return Where(joined, self.parameters + parameters)


def relations(declaration: Declaration) -> dict[str, str]:
    """The fields that hold another resource's id, each with that resource's name.

    A field is one when its name is a resource's singular and `_id`; users have no endpoint, so
    `assigned_to` is none.
    """
    targets = {f"{each.singular}_id": name for name, each in CATALOG.items()}
    return {name: targets[name] for name in declaration.fields if name in targets}


class Shelf:
    """The two tables of one resource; every method works within the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, declaration: Declaration) -> None:
        self._connection = connection
        self._declaration = declaration
        self._table = declaration.name
        related = relations(declaration)
        self._columns = tuple(
            each.name
            for each in declaration.fields.values()
            if (each.listed or each.sortable or each.filterable or each.name in related)
            and each.name != "id"
            # What is computed for each answer is not kept.
            and not (each.kind is Kind.INTEGER and not each.create.accepted)
        )
        self._related = tuple(related)

    def build(self) -> None:
        """Make the tables, unless they are there."""
        columns = "".join(f", {name}{self._collation(name)}" for name in self._columns)
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            f"(serial INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, parent TEXT{columns})"
        )
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self._table}_record "
            "(serial INTEGER PRIMARY KEY, record TEXT NOT NULL)"
        )

    def index(self) -> None:
        """Make the indexes, unless they are there; last, since filling comes cheaper without."""
        self._run(f"CREATE UNIQUE INDEX IF NOT EXISTS {self._table}_id ON {self._table} (id)")
        within = ("parent",) if self._declaration.parent else ()
        for name in self._declaration.sortable:
            self._index(*within, name)
        for name in self._related:
            self._index(name, *(("status",) if "status" in self._columns else ()))
        for each in self._declaration.filters:
            if each.name in self._columns:
                for order in ("created_at", "updated_at"):
                    self._index(*within, each.name, order)

    def _index(self, *columns: str) -> None:
        name = "_".join((self._table, "by", *columns))
        listed = ", ".join(columns)
        self._run(f"CREATE INDEX IF NOT EXISTS {name} ON {self._table} ({listed})")

    def _collation(self, column: str) -> str:
        # People's words sort without regard to case, as databases behind such services do.
        declared = self._declaration.fields[column]
        is_text = declared.kind is Kind.STRING and not declared.values
        return " COLLATE NOCASE" if is_text else ""

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def add(self, records: Iterable[tuple[Stored, str | None]]) -> None:
        """Insert records with their parents, in this order.

        Raises `sqlite3.IntegrityError` where an id is taken.
        """
        serial: int = self._run(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", (self._table,)
        ).fetchone()[0]
        marks = ", ".join("?" * (3 + len(self._columns)))
        narrow = f"INSERT INTO {self._table} VALUES ({marks})"
        whole = f"INSERT INTO {self._table}_record VALUES (?, ?)"
        rows, texts = [], []
        for record, parent in records:
            serial += 1
            rows.append((serial, record["id"], parent, *map(record.get, self._columns)))
            texts.append((serial, _text(record)))
        self._connection.executemany(narrow, rows)
        self._connection.executemany(whole, texts)

    def replace(self, serial: int, record: Stored) -> None:
        """Put another version of a record in its place."""
        values = ", ".join(f"{name} = ?" for name in ("id", *self._columns))
        self._run(
            f"UPDATE {self._table} SET {values} WHERE serial = ?",
            (record["id"], *map(record.get, self._columns), serial),
        )
        self._run(
            f"UPDATE {self._table}_record SET record = ? WHERE serial = ?",
            (_text(record), serial),
        )

    def remove(self, serial: int) -> None:
        """Delete a record; its serial is never used again."""
        self._run(f"DELETE FROM {self._table} WHERE serial = ?", (serial,))
        self._run(f"DELETE FROM {self._table}_record WHERE serial = ?", (serial,))

    def find(self, id: str, *, parent: str | None = None) -> Row | None:
        """The record of that id (under that parent, where one is given), or None."""
        found = self._run(
            f"SELECT t.serial, t.parent, r.record FROM {self._table} t "
            f"JOIN {self._table}_record r ON r.serial = t.serial WHERE t.id = ?",
            (id,),
        ).fetchone()
        if found is None or (parent is not None and found[1] != parent):
            return None
        return Row(found[0], found[1], json.loads(found[2]))

    def has(self, where: Where) -> bool:
        """Whether any record meets the condition."""
        sql = f"SELECT 1 FROM {self._table} t WHERE {where.sql} LIMIT 1"
        return self._run(sql, where.parameters).fetchone() is not None

    def count(self, where: Where) -> int:
        """How many records meet the condition."""
        sql = f"SELECT count(*) FROM {self._table} t WHERE {where.sql}"
        counted: int = self._run(sql, where.parameters).fetchone()[0]
        return counted

    def tally(self, where: Where, by: str) -> Iterator[tuple[Any, int]]:
        """How many records meet the condition, by the values of one column."""
        sql = f"SELECT {by}, count(*) FROM {self._table} t WHERE {where.sql} GROUP BY {by}"
        return iter(self._run(sql, where.parameters))

    def page(self, where: Where, order: str, *, limit: int, offset: int) -> list[Stored]:
        """The records of one page. `order` is SQL over the narrow table."""
        # In two steps: a join would fetch every record that the offset skips.
        serials = [
            found[0]
            for found in self._run(
                f"SELECT t.serial FROM {self._table} t WHERE {where.sql} "
                f"ORDER BY {order} LIMIT ? OFFSET ?",
                (*where.parameters, limit, offset),
            )
        ]
        marks = ", ".join("?" * len(serials))
        texts = dict(
            self._run(
                f"SELECT serial, record FROM {self._table}_record WHERE serial IN ({marks})",
                serials,
            )
        )
        return [json.loads(texts[serial]) for serial in serials]

    def rows(self, parent: str | None = None) -> Iterator[Row]:
        """Every record in the order of insertion, of one parent where that is given."""
        condition = "" if parent is None else "WHERE t.parent = ?"
        found = self._run(
            f"SELECT t.serial, t.parent, r.record FROM {self._table} t "
            f"JOIN {self._table}_record r ON r.serial = t.serial {condition} ORDER BY t.serial",
            () if parent is None else (parent,),
        )
        while batch := found.fetchmany(_BATCH):
            for serial, owner, text in batch:
                yield Row(serial, owner, json.loads(text))


def _text(record: Stored) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))

"""Keeping those who were erased out of the landing: what is read of them lands without them.

Called where the warehouse is written to and where answers are compared with it, so that nobody
comes back by another door and an unchanged answer stays an unchanged row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import duckdb

from connector.engine import ask
from connector.engine.ask import Commit, Event
from connector.engine.bookmark import Stream
from connector.resource import Resource
from connector.suppression import Suppressed
from connector.warehouse.looks import Held, held_rows
from connector.warehouse.rows import as_json

SUPPRESSED = "suppressed"
"""The kind of the event that says so."""


def without_erased(
    connection: duckdb.DuckDBPyConnection, stream: Stream, what: Commit, folder: Path
) -> Commit:
    """The commit as it may land: records of people who were erased have lost what tells of them,
    and an event says so of each that is new or changed. Raises a `WarehouseError`.
    """
    if not what.items and not what.records:
        return what
    list_ = Suppressed.of(folder)
    if list_ is None:
        return what
    stripped: dict[str, Resource] = {}

    def left(record: Resource) -> Resource:
        made = list_.strip(record)
        if made is not record:
            stripped[made.id] = made
        return made

    items = tuple(left(each) for each in what.items)
    records = tuple(replace(each, record=left(each.record)) for each in what.records)
    if not stripped:
        return what
    held = held_rows(connection, stream.resource, stripped)
    events = (*what.events, *_told(stripped, held))
    return replace(what, items=items, records=records, events=events)


def _told(stripped: Mapping[str, Resource], held: Mapping[str, Held]) -> Iterator[Event]:
    for id, record in stripped.items():
        row = held.get(id)
        is_seen_before = row is not None and (record.is_item or row.shows(as_json(record.raw)))
        if not is_seen_before:
            yield Event(SUPPRESSED, "of a person who was erased: landed without what tells so", id)


def asked_without_erased(wanted: ask.Look, folder: Path) -> ask.Look:
    """The question with the same answers in it that would land. Raises a `WarehouseError`."""
    if not isinstance(wanted, ask.Differing | ask.Differences):
        return wanted
    list_ = Suppressed.of(folder)
    if list_ is None:
        return wanted
    if isinstance(wanted, ask.Differing):
        return replace(wanted, items=tuple(map(list_.strip, wanted.items)))
    return replace(wanted, records=tuple(map(list_.strip, wanted.records)))

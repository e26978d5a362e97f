"""What the tests of the pull share: pulling from a sandbox, and comparing what landed with its
store.

The comparison reads the store's own records and the published file, and uses none of the code
between them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog import CATALOG
from connector.ledger.ledger import Ledger
from connector.pulls.outcome import PullReport
from connector.pulls.run import pull
from connector.pulls.workspace import compare_files, write_identity
from connector.sandbox.server import Sandbox
from connector.settings.model import Settings, load_settings
from connector.warehouse.duckdb_file import literal
from connector.warehouse.warehouse import Warehouse

COUNTS = {
    "jobs": 20,
    "candidates": 210,
    "companies": 10,
    "bookings": 104,
    "leads": 102,
    "content_types": 3,
    "content_items": 30,
}
SMALL = {
    "jobs": 5,
    "candidates": 104,
    "companies": 3,
    "bookings": 5,
    "leads": 5,
    "content_types": 3,
    "content_items": 6,
}


def settings_of(sandbox: Sandbox, folder: Path, key: str | None = None) -> Settings:
    """Settings that point at the sandbox, with a data folder of the test's own."""
    environ = {
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": key or sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
    }
    return load_settings({}, environ, folder)


def pulled(sandbox: Sandbox, folder: Path, *resources: str, key: str | None = None) -> PullReport:
    """Pull, and return the report."""
    return asyncio.run(pull(settings_of(sandbox, folder, key), resources))


def published(folder: Path) -> Path:
    """The file for analysts."""
    return folder / "data" / "recruitment.duckdb"


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads the file as an analyst would, and lets go of it in the end.

    The file is attached to one DuckDB that stays open, since starting another is what costs.
    """
    name = f"file_{next(_NUMBERS)}"
    with _duckdb().cursor() as connection:
        connection.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
        try:
            connection.execute(f"USE {name}; SET TimeZone = 'UTC'")
            yield connection
        finally:
            connection.execute(f"USE memory; DETACH {name}")


_NUMBERS = count()


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    """The rows of a query on the file, opened as an analyst would."""
    with reading(path) as connection:
        return _rows(connection, query)


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.execute(query).to_arrow_table().to_pylist()
    return found


def differences(sandbox: Sandbox, path: Path) -> list[str]:
    """Every way in which the published landing differs from the store, field by field."""
    with reading(path) as landing:
        return [each for name in CATALOG for each in _differences(sandbox, landing, name)]


def _differences(sandbox: Sandbox, landing: duckdb.DuckDBPyConnection, name: str) -> Iterator[str]:
    query = f'SELECT * FROM landing."{name}" WHERE _deleted_at IS NULL'  # our names
    found = _rows(landing, query)
    landed = {row["id"]: row for row in found}
    held = sandbox.store.records(name)
    if len(landed) != len(found):
        yield f"{name}: an id is landed twice"
    for id in held.keys() ^ landed.keys():
        yield f"{name} {id}: {'not landed' if id in held else 'landed, and not in the store'}"
    for id in held.keys() & landed.keys():
        for field in CATALOG[name].detail_fields:
            expected = held[id].get(field.name)
            if field.kind == "array":
                yield from _part_differences(landing, id, expected or [])
            elif not _is_same(field.kind, expected, landed[id][field.name]):
                yield f"{name} {id} {field.name}: {expected!r}, landed {landed[id][field.name]!r}"
        if json.loads(landed[id]["_record"]) != held[id]:
            yield f"{name} {id}: _record is not the answer"


def _part_differences(
    landing: duckdb.DuckDBPyConnection, id: str, expected: list[Mapping[str, Any]]
) -> Iterator[str]:
    query = f"SELECT * FROM landing.content_type_fields WHERE _content_type_id = '{id}'"  # an id
    landed = {row["id"]: row for row in _rows(landing, query)}
    if landed.keys() != {part["id"] for part in expected}:
        yield f"content type {id}: other fields landed"
        return
    for part in expected:
        for name, value in part.items():
            if landed[part["id"]][name] != value:
                yield f"content type field {part['id']} {name}: {value!r}"


def _is_same(kind: str, expected: Any, landed: Any) -> bool:
    if expected is None or landed is None:
        return expected is None and landed is None
    if kind == "datetime":
        moment = datetime.fromisoformat(expected)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return bool(moment == landed)
    if kind == "date":
        return bool(date.fromisoformat(expected) == landed)
    if kind == "object":
        return bool(json.loads(landed) == expected)
    return bool(expected == landed)


def belongs_to(folder: Path, address: str) -> None:
    """Give a copied folder to the workspace at another address, as after a confirmed move."""
    with Ledger(folder) as ledger:
        warehouse = Warehouse(folder)
        found = compare_files(ledger, warehouse)
        assert found is not None
        write_identity(ledger, warehouse, replace(found, address=address))

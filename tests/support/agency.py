"""Accounts of a sandbox: pulls, pushes, and the comparison of the published file with the server.

The comparison reads the sandbox's own records and the published file, without the connector's code.
"""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog import CATALOG
from connector.pulls.account import check_folder, write_identity
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.pushes.options import PushFile
from connector.pushes.report import PushReport, push
from connector.sandbox.server import Sandbox
from connector.settings import Settings, load_settings
from connector.state.database import Database
from connector.warehouse.file import literal
from connector.warehouse.warehouse import Warehouse
from tests.support.command import CommandResult, call, variables

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


def settings_of(sandbox: Sandbox, folder: Path, key: str | None = None, **flags: int) -> Settings:
    """Return settings for the sandbox, with the data folder `folder / "data"`."""
    return settings_at(sandbox.base_url, folder, key or sandbox.key, **flags)


def settings_at(base_url: str, folder: Path, key: str, **flags: int) -> Settings:
    """Return settings for a server at this address."""
    return load_settings(dict(flags), variables(base_url, folder / "data", key), folder)


def pulled(sandbox: Sandbox, folder: Path, *resources: str, key: str | None = None) -> PullReport:
    """Pull the named resources, or all, in real time, and return the report."""
    return asyncio.run(pull(settings_of(sandbox, folder, key), resources))


def published(folder: Path) -> Path:
    """Return the path of the published file of the account in this folder."""
    return folder / "data" / "recruitment.duckdb"


@contextmanager
def open_read_only(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database file for reading, with UTC as the time zone.

    The file is attached to a DuckDB that stays open, because starting one is slow.
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
    """Return the DuckDB of this process, started once."""
    return duckdb.connect()


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query on a database file, each by column name."""
    with open_read_only(path) as connection:
        return _query(connection, query)


def _query(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query, each by column name."""
    found: list[dict[str, Any]] = connection.execute(query).to_arrow_table().to_pylist()
    return found


def differences(sandbox: Sandbox, path: Path) -> list[str]:
    """Return a line for each difference between the published tables and the sandbox's records."""
    with open_read_only(path) as landing:
        return [each for name in CATALOG for each in _find_differences(sandbox, landing, name)]


def _find_differences(
    sandbox: Sandbox, landing: duckdb.DuckDBPyConnection, name: str
) -> Iterator[str]:
    """Yield a line for each difference in one resource."""
    query = f'SELECT * FROM landing."{name}" WHERE _deleted_at IS NULL'  # our names
    found = _query(landing, query)
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
                yield from _find_nested_differences(landing, id, expected or [])
            elif not _is_equal(field.kind, expected, landed[id][field.name]):
                yield f"{name} {id} {field.name}: {expected!r}, landed {landed[id][field.name]!r}"
        if json.loads(landed[id]["_record"]) != held[id]:
            yield f"{name} {id}: _record is not the answer"


def _find_nested_differences(
    landing: duckdb.DuckDBPyConnection, id: str, expected: list[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a line for each difference in the fields of a content type."""
    query = f"SELECT * FROM landing.content_type_fields WHERE _content_type_id = '{id}'"  # an id
    landed = {row["id"]: row for row in _query(landing, query)}
    if landed.keys() != {part["id"] for part in expected}:
        yield f"content type {id}: other fields landed"
        return
    for part in expected:
        for name, value in part.items():
            if landed[part["id"]][name] != value:
                yield f"content type field {part['id']} {name}: {value!r}"


def _is_equal(kind: str, expected: Any, landed: Any) -> bool:
    """Return True if the column of this field kind contains the expected JSON value."""
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


def set_address(folder: Path, address: str) -> None:
    """Change the server's address that a copied data folder belongs to."""
    with Database(folder) as database:
        warehouse = Warehouse(folder)
        found = check_folder(database, warehouse)
        assert found is not None
        write_identity(database, warehouse, replace(found, address=address))


class SandboxAccount:
    """An account that is connected to a sandbox. `data` is its data folder, inside `folder`."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder, self.data = sandbox, folder, folder / "data"
        self.environ = variables(sandbox.base_url, self.data, sandbox.key)
        self.settings = load_settings({}, self.environ, folder)
        self.published = published(folder)

    def call(self, *arguments: str, **environ: str) -> CommandResult:
        """Run a command with the account's settings and `environ` in this process."""
        return call(arguments, self.environ | environ)

    def pull(self, *resources: str) -> PullReport:
        """Pull the named resources, or all."""
        return pulled(self.sandbox, self.folder, *resources)

    def push(self, file: PushFile, *, pulls: bool = True) -> PushReport:
        """Push a file and return the report. `pulls` selects a pull before the push."""
        options = replace(file.options, apply=True, pull=pulls)
        file = replace(file, options=options)
        return asyncio.run(push(self.settings, file))

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write a spreadsheet with the keys of the rows as headings."""
        path = self.folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def emails(self) -> list[str]:
        """Return the email addresses of all candidates on the server."""
        return sorted(e["email"] for e in self.sandbox.store.records("candidates").values())

    def change_two_candidates(self) -> None:
        """Update the first candidate on the server and delete the second."""
        first, second, *_ = sorted(self.sandbox.store.records("candidates"))
        self.sandbox.store.update("candidates", first, {"city": "Leeds"})
        self.sandbox.store.delete("candidates", second)

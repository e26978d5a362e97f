"""An older file gets the missing tables and columns. A newer one is refused and not changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.errors import ConnectorError, WarehouseError
from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.warehouse.schema import declared_tables
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import differences, published, pulled
from tests.support.errors import has_code

COUNTS = {
    "jobs": 4,
    "candidates": 9,
    "companies": 3,
    "bookings": 12,
    "leads": 4,
    "content_types": 2,
    "content_items": 5,
}
KEPT = ("id", "created_at", "updated_at")
"""Columns that existed in the first version of every resource."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A server with a few records of every resource."""
    with Sandbox(counts=COUNTS) as made:
        yield made


@pytest.fixture(scope="module")
def pulled_folder(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder after two pulls, with several versions of some records. Tests use copies."""
    folder = tmp_path_factory.mktemp("pulled")
    pulled(sandbox, folder)
    for name in ("candidates", "leads"):
        sandbox.store.update(name, min(sandbox.store.records(name)), {"notes": "changed"})
    pulled(sandbox, folder)
    return folder / "data"


@pytest.fixture
def warehouse(pulled_folder: Path, tmp_path: Path) -> Warehouse:
    """A warehouse with all records pulled, and several versions of some."""
    return Warehouse(shutil.copytree(pulled_folder, tmp_path / "data"))


def list_columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Return schema, table, name, type and comment of every column of the file."""
    return connection.execute(
        "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY ALL"
    ).fetchall()


def read_content(connection: duckdb.DuckDBPyConnection) -> dict[str, list[dict[str, Any]]]:
    """Return every row of landing and history, independent of the column order."""
    found = {}
    for table in declared_tables():
        if table.name.startswith(("landing.", "history.")):
            names = ", ".join(f'"{name}"' for name in sorted(each.name for each in table.columns))
            rows = connection.execute(f"SELECT {names} FROM {table.name} ORDER BY ALL")
            found[table.name] = rows.to_arrow_table().to_pylist()
    return found


@pytest.mark.slow
def test_columns_missing_in_a_work_file_are_added_with_their_values(warehouse: Warehouse) -> None:
    with duckdb.connect(str(warehouse.work)) as connection:
        before, wanted = read_content(connection), list_columns(connection)
        for table in declared_tables():
            for each in table.columns:
                if each.field is not None and each.name not in KEPT:
                    connection.execute(f'ALTER TABLE {table.name} DROP COLUMN "{each.name}"')
        assert len(list_columns(connection)) < len(wanted)

    warehouse.prepare()

    with duckdb.connect(str(warehouse.work)) as connection:
        assert wanted == list_columns(connection)
        assert before == read_content(connection)


def test_the_pull_after_adding_a_column_is_exact_without_extra_requests(
    warehouse: Warehouse, sandbox: Sandbox, tmp_path: Path
) -> None:
    usual = pulled(sandbox, tmp_path).requests
    with duckdb.connect(str(warehouse.work)) as connection:
        connection.execute("ALTER TABLE landing.candidates DROP COLUMN city")
        connection.execute("ALTER TABLE history.bookings DROP COLUMN start_datetime")
        connection.execute("ALTER TABLE landing.content_type_fields DROP COLUMN name")

    report = pulled(sandbox, tmp_path)

    assert ("done", usual) == (report.outcome, report.requests)
    assert [] == differences(sandbox, published(tmp_path))


def open_newer_work_file(folder: Path) -> ConnectorError:
    """Return the error of opening a work file of a newer version in this folder."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    with duckdb.connect(str(warehouse.work)) as connection:
        connection.execute("UPDATE sync.schema_version SET version = 99")
    before = warehouse.work.read_bytes()
    for act in (Warehouse.prepare, Warehouse.status):
        with pytest.raises(WarehouseError, check=has_code("not_a_warehouse")) as caught:
            act(Warehouse(folder))
    assert before == warehouse.work.read_bytes()
    return caught.value


def open_newer_state(folder: Path) -> ConnectorError:
    """Return the error of opening a state of a newer version in this folder."""
    with Database(folder) as database:
        database.note("anything", 1)
        database.write("PRAGMA user_version = 99")
    with (
        pytest.raises(WarehouseError, check=has_code("not_a_state")) as caught,
        Database(folder) as database,
    ):
        database.fact("anything")
    return caught.value


@pytest.mark.parametrize("open_newer_file", [open_newer_work_file, open_newer_state])
def test_a_file_of_a_newer_version_is_rejected(open_newer_file: Any, tmp_path: Path) -> None:
    error = open_newer_file(tmp_path)

    assert "by a newer version of the connector" in str(error)
    assert str(tmp_path) in str(error)
    assert "Install that version, or restore a backup of this version" in error.action

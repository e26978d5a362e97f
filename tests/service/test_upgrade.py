"""Files of earlier versions open, are brought up to this one and go on; those of later ones are
refused by name, and stay as they are.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from connector.errors import ConnectorError, NotALedger, NotAWarehouse
from connector.ledger.ledger import Ledger
from connector.ledger.ledger_schema import LATEST, SCHEMA
from connector.ledger.sqlite_file import APPLICATION_ID
from connector.pulls.run import pull
from connector.sandbox.draw import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.schema import SCHEMA_VERSION, declared_tables, migrate
from connector.warehouse.warehouse import Warehouse
from tests.ledger.account import used
from tests.pulls.landed import differences, published, rows, settings_of

FIRST = Path(__file__).with_name("versions") / "work_1.dump"
"""A work file as the first version left it, in SQL: made by that version's own code."""

NOW = datetime(2026, 11, 22, 13, 0, tzinfo=UTC)

STATEMENTS = (4, 5, 20, 22, 26, 28, 29, 30, 31)
"""How many of the ledger's statements the versions from 1 to 9 had."""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the first version, made once: DuckDB's own defaults, as that version had them."""
    path = tmp_path_factory.mktemp("first") / "work.duckdb"
    with duckdb.connect(
        str(path), config={"storage_compatibility_version": "v1.2.0"}
    ) as connection:
        connection.execute(FIRST.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    """A data folder as the first version left it: the work file, and a published copy of it."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    for name in ("work.duckdb", "recruitment.duckdb"):
        shutil.copyfile(first, data / name)
    return tmp_path


def make_ledger(path: Path, version: int = 1) -> None:
    """A ledger of an earlier version: the tables that it had, with requests in them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in SCHEMA.split(";")[: STATEMENTS[version - 1]]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("INSERT INTO spent VALUES ('2026-11-20', 'pull', 'jobs.list', 40)")
        connection.execute(
            "INSERT INTO blocks (run_id, command, day, requests) VALUES ('a', 'pull',"
            " '2026-11-21', 7)"
        )


def fill(sandbox: Sandbox, work: Path) -> None:
    """Put into the platform what the file of the first version holds of it."""
    query = "SELECT _record, {} FROM landing.{} WHERE _deleted_at IS NULL"
    for name in ("companies", "jobs", "candidates", "leads", "bookings", "content_types"):
        found = rows(work, query.format("NULL AS parent", name))
        sandbox.store.load(name, ((json.loads(r["_record"]), None) for r in found))
    found = rows(work, query.format("_content_type_id AS parent", "content_items"))
    sandbox.store.load("content_items", ((json.loads(r["_record"]), r["parent"]) for r in found))


def churn(sandbox: Sandbox) -> None:
    """What people did between the two versions: a change, a deletion, somebody new."""
    first, second, *_ = sorted(sandbox.store.records("candidates"))
    sandbox.store.update("candidates", first, {"city": "Leeds"})
    sandbox.store.delete("candidates", second)
    sandbox.store.create(
        "leads",
        {"email": "new@lead.example", "lead_status_id": LEAD_STATUSES[0], "first_name": "Zoë"},
    )


def test_a_folder_of_the_first_version_upgrades_and_pulls_to_an_exact_copy(folder: Path) -> None:
    data = folder / "data"
    make_ledger(data / "ledger.sqlite")
    with Sandbox(clock=lambda: NOW) as sandbox:
        fill(sandbox, data / "work.duckdb")
        churn(sandbox)
        report = asyncio.run(pull(settings_of(sandbox, folder), now=lambda: NOW))
        assert "done" == report.outcome, report.as_json()
        assert [] == differences(sandbox, published(folder))

    # A first load would have read every detail again: 18 of them, and every page twice.
    assert report.requests <= 24, report.requests
    found = rows(published(folder), "SELECT number FROM sync.migrations ORDER BY number")
    assert [1, SCHEMA_VERSION] == [row["number"] for row in found]
    assert 3 == len(rows(published(folder), "SELECT run_id FROM sync.runs"))
    versions = rows(
        published(folder), "SELECT id, count(*) AS n FROM history.candidates GROUP BY id"
    )
    assert {1, 2} == {row["n"] for row in versions}
    with Ledger(data) as ledger:
        assert 47 + report.requests == used(ledger, NOW)


def test_the_fixture_is_of_the_first_version(folder: Path) -> None:
    path = folder / "data" / "work.duckdb"

    assert [1] == [each["number"] for each in rows(path, "SELECT number FROM sync.migrations")]
    assert [] == rows(path, "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'history'")
    assert 6 == len(rows(path, "SELECT 1 FROM landing.candidates"))


@pytest.mark.parametrize("last", range(1, LATEST))
def test_a_ledger_of_every_version_upgrades(last: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, last)

    with Ledger(tmp_path) as ledger:
        assert 47 == used(ledger, NOW)
    with closing(sqlite3.connect(path)) as connection:
        upgraded = tables(connection)
        assert [(LATEST,)] == connection.execute("PRAGMA user_version").fetchall()
    (tmp_path / "new").mkdir()
    with Ledger(tmp_path / "new") as ledger:
        ledger.uses()
        with closing(sqlite3.connect(ledger.path)) as connection:
            assert tables(connection) == upgraded


def tables(connection: sqlite3.Connection) -> set[str]:
    """What there is in the file, as it was said."""
    return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql}


def columns_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Every column of a work file, with its type and what it is said to mean."""
    return connection.execute(
        "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY ALL"
    ).fetchall()


def test_a_work_file_of_any_version_gets_every_table_and_column(first: Path) -> None:
    with duckdb.connect() as connection:
        migrate(connection, "new")
        wanted = columns_of(connection)
    for place in range(3):
        with duckdb.connect() as connection:
            connection.execute(FIRST.read_text(encoding="utf-8"))
            migrate(connection, "work")
            for number, table in enumerate(declared_tables()):
                if table.schema == "landing" or table.name == "migrations":
                    continue
                name = f'{table.schema}."{table.name}"'
                if number % 3 == place and table.schema != "history":
                    connection.execute(f"DROP TABLE {name}")
                else:
                    column = table.columns[1 + (number + place) % (len(table.columns) - 1)].name
                    connection.execute(f'ALTER TABLE {name} DROP COLUMN "{column}"')
            connection.execute("UPDATE sync.migrations SET number = 5 WHERE number > 1")
            migrate(connection, "work")
            migrate(connection, "work")

            assert wanted == columns_of(connection)
            found = connection.execute("SELECT number FROM sync.migrations ORDER BY ALL").fetchall()
            assert [(1,), (5,), (SCHEMA_VERSION,)] == found
            counts = "SELECT (SELECT count(*) FROM {0}.candidates)".format
            assert [(6,)] == connection.execute(counts("landing")).fetchall()
            assert [(6,)] == connection.execute(counts("history")).fetchall()


def later_work(folder: Path) -> Iterator[ConnectorError]:
    """What an older program says of a work file of a later version."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    with duckdb.connect(str(warehouse.work)) as connection:
        connection.execute("INSERT INTO sync.migrations (number, name) VALUES (99, 'later')")
    before = warehouse.work.read_bytes()
    with pytest.raises(NotAWarehouse) as caught:
        warehouse.prepare()
    assert before == warehouse.work.read_bytes()
    yield caught.value


def later_ledger(folder: Path) -> Iterator[ConnectorError]:
    """What an older program says of a ledger of a later version."""
    with Ledger(folder) as ledger:
        ledger.uses()
        with closing(sqlite3.connect(ledger.path)) as connection:
            connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NotALedger) as caught:
        Ledger(folder).uses()
    yield caught.value


@pytest.mark.parametrize("made", [later_work, later_ledger])
def test_an_older_program_refuses_a_newer_file(made: object, tmp_path: Path) -> None:
    assert callable(made)
    (error,) = made(tmp_path)

    assert "later version" in str(error)
    assert str(tmp_path) in str(error)
    assert "Install" in error.action

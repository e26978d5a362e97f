"""Readers in other processes during publications, and older DuckDB versions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings import load_settings
from connector.warehouse.file import open_file, transaction
from connector.warehouse.warehouse import Warehouse
from tests.models.account import Account
from tests.models.killable_publisher import PublishedFileReader, PublisherForkServer
from tests.support.kill_points import IS_ALL
from tests.support.recorded import last_publications

PUBLICATIONS = 50 if IS_ALL else 4


def insert_into_two_tables(account: Account, number: int) -> None:
    """Insert the number into two tables in one transaction, so readers must see both or none."""
    with open_file(account.warehouse.work) as connection, transaction(connection):
        connection.execute("INSERT INTO landing.jobs (id) VALUES (?)", [f"{number:04}"])
        connection.execute("INSERT INTO landing.companies (id) VALUES (?)", [f"{number:04}"])


@pytest.mark.slow
def test_readers_see_no_error_and_no_mixed_state_during_publications(tmp_path: Path) -> None:
    account = Account(tmp_path, (), CONNECTOR_MODELS="off")
    insert_into_two_tables(account, 0)
    account.publish()
    number = 0
    with (
        PublisherForkServer() as fork_server,
        PublishedFileReader(account.file, stays=False) as coming,
        PublishedFileReader(account.file, stays=True) as staying,
    ):
        for _ in range(PUBLICATIONS):
            number += 1
            insert_into_two_tables(account, number)
            coming.start_reads()
            staying.start_reads()
            assert 0 == fork_server.publish(account.environ)[0]
    states = [f"{each:04}" for each in range(number + 1)]
    assert [["0000", "0000"]] == staying.seen
    assert all(one == other and one in states for one, other in coming.seen)
    assert sorted(coming.seen) == coming.seen
    assert len(coming.seen) > 2
    assert [] == account.leftovers()
    assert [(f"{number:04}",)] == account.query("SELECT max(id) AS id FROM landing.jobs")


VERSIONS = ("1.2.2", "1.3.2", "1.4.1", "1.4.4")
PULLS = 2
READERS = [Path(__file__).parents[2] / ".venv-readers" / version for version in VERSIONS]

READ = """\
import sys, duckdb
assert sys.argv[1] == duckdb.__version__
for file in sys.argv[2:]:
    with duckdb.connect(file, read_only=True) as connection:
        relations = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            "UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        for schema, name in relations:
            connection.execute(f'SELECT max(hash(t)) FROM "{schema}"."{name}" AS t').fetchall()
        print(len(relations))
"""
"""Program of a reader: reads every value of every table and view."""


@pytest.mark.slow
@pytest.mark.skipif(
    not all(each.exists() for each in READERS),
    reason="no older versions of DuckDB: 'make readers' installs them",
)
def test_older_duckdb_versions_read_every_table(tmp_path: Path) -> None:
    Warehouse(tmp_path).prepare()
    files = [tmp_path / name for name in ("recruitment.duckdb", "work.duckdb")]
    wide = f"SELECT {', '.join(f'range AS c{number}' for number in range(400))} FROM range(2)"
    for number in range(5):
        with open_file(files[1]) as connection:
            for table in range(6):
                if number == 0:
                    connection.execute(f"CREATE TABLE wide_{table} AS {wide}")
                elif (table + number) % 3:
                    connection.execute(f"UPDATE wide_{table} SET c0 = c0 + 1")
    with Sandbox(counts={"jobs": 9, "candidates": 30, "content_types": 2}) as sandbox:
        environ = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
        for number in range(PULLS):
            id = list(sandbox.store.records("jobs"))[number]
            sandbox.store.update("jobs", id, {"title": f"Renamed {number}"})
            is_read = number == PULLS - 1
            # No reader opens the file of this pull, so it needs no models.
            options = {} if is_read else {"models": "off"}
            settings = load_settings({"data_dir": str(tmp_path), **options}, environ, tmp_path)
            assert "done" == asyncio.run(pull(settings, ())).outcome
            for reader in READERS if is_read else ():
                found = subprocess.run(
                    [sys.executable, "-S", "-c", READ, reader.name, *files],
                    env={"PYTHONPATH": str(reader)},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert (0, "") == (found.returncode, found.stderr[-500:]), (number, reader.name)
                assert min(map(int, found.stdout.split())) >= 25


HOLD = """
import sys, duckdb
from tests.tiers import first_fast
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read only")
connection.execute("SELECT 1")
if sys.argv[2] == "with its own table":
    connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
print("open", flush=True)
sys.stdin.read()
"""
"""A reader that has the published file open until its input ends."""


@pytest.mark.parametrize("reader_mode", ["read only", "default", "with its own table"])
def test_publications_succeed_while_a_reader_has_the_file(
    account: Account, reader_mode: str
) -> None:
    insert_into_two_tables(account, 0)
    account.publish()
    for number in (1, 2):
        command = (sys.executable, "-c", HOLD, str(account.file), reader_mode)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdout is not None
            assert reader.stdin is not None
            assert "open\n" == reader.stdout.readline()
            insert_into_two_tables(account, number)
            account.publish()
            reader.stdin.close()

    assert "0002" in {id for (id,) in account.query("SELECT id FROM landing.jobs")}
    assert ["published"] * 3 == [
        each.outcome for each in last_publications(account.warehouse.folder, 3)
    ]
    assert account.query("SELECT count(*) AS n FROM marts.fct_jobs") != [(0,)]

"""A planted key is in no output, log, table, file or backup, in any of its forms."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from connector.log import encoded_forms
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.command import CommandResult, call, variables

PLANTED = "planted/key+5f0c1e=of~tests"
"""A key that addresses, JSON and base64 each write in another way."""

COUNTS = {"jobs": 2, "candidates": 3, "companies": 1}
PEOPLE = "First name,Last name,Email,Employment type\nAnn,Lee,ann@new.example,permanent\n"


def read_database_texts(path: Path) -> Iterator[str]:
    """Yield all texts of a SQLite or DuckDB file; none of other files."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as connection:
            yield from connection.iterdump()
    elif path.suffix == ".duckdb":
        with duckdb.connect(str(path), read_only=True) as connection:
            tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()")
            for schema, table in tables.fetchall():
                rows = connection.execute(f'SELECT row_to_json(t) FROM {schema}."{table}" AS t')
                yield from (str(row) for (row,) in rows.fetchall())


def find_files_with_key(folder: Path) -> list[str]:
    """Return the files below a folder that contain a form of the key, in bytes or a table."""
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        texts = (path.read_bytes().decode("latin-1"), *read_database_texts(path))
        found += [path.name for text in texts for form in encoded_forms(PLANTED) if form in text]
    return found


def test_no_command_leaves_the_key_in_output_or_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = tmp_path / "people.csv"
    people.write_text(PEOPLE, encoding="utf-8")
    data = tmp_path / "data"
    calls: list[CommandResult] = []
    with Sandbox(counts=COUNTS, keys={PLANTED: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, data, PLANTED)

        def run_command(*words: str, **more: str) -> CommandResult:
            calls.append(call([*words, "--debug"], {**environ, **more}))
            return calls[-1]

        for words in (
            "pull jobs candidates companies",
            f"push candidates {people} --mode create --apply",
            "verify jobs",
            "status --json",
            "status",
            "person find ann@new.example",
            "doctor",
        ):
            assert 0 == run_command(*words.split()).status, words
        assert 0 == run_command("backup", str(tmp_path / "backups"), CONNECTOR_LOG="json").status
        assert 1 == run_command("pull", "jobs", CONNECTOR_API_KEY=f"{PLANTED}x").status

        def raise_error(self: Warehouse) -> None:
            raise RuntimeError(f"with {' '.join(encoded_forms(PLANTED))} in it")

        with monkeypatch.context() as patch:
            patch.setattr(Warehouse, "status", raise_error)
            for form in ("text", "json"):
                failed = run_command("status", CONNECTOR_LOG=form)
                assert (1, True) == (failed.status, "RuntimeError" in failed.err)
                assert "Traceback" in failed.err

    outputs = [text for each in calls for text in (each.out, each.err)]
    assert [] == [text for text in outputs for each in encoded_forms(PLANTED) if each in text]
    made = {path.name for path in data.iterdir()}
    assert {"work.duckdb", "state.sqlite", "recruitment.duckdb"} <= made
    assert [] == find_files_with_key(tmp_path)


def test_the_search_finds_a_key_in_a_table_and_in_a_file(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "work.duckdb")) as connection:
        connection.execute("CREATE TABLE a AS SELECT ? AS b", [encoded_forms(PLANTED)[0]])
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state, state:
        state.execute("CREATE TABLE a (b)")
        state.execute("INSERT INTO a VALUES (?)", (PLANTED,))
    (tmp_path / "report.csv").write_text(encoded_forms(PLANTED)[1], encoding="utf-8")

    found = set(find_files_with_key(tmp_path))
    assert {"work.duckdb", "state.sqlite", "report.csv"} == found

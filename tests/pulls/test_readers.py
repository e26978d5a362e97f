"""Analysts and the connector never wait for each other."""

from __future__ import annotations

from pathlib import Path

import duckdb

from connector.sandbox.server import Sandbox
from tests.support.agency import published, pulled

COUNTS = {"jobs": 12, "companies": 3}


def test_an_open_file_keeps_its_state_and_a_new_one_is_complete(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
        held = duckdb.connect(str(published(tmp_path)), read_only=True)
        query = "SELECT id, title FROM landing.jobs ORDER BY id"
        before = held.execute(query).fetchall()
        for id in sandbox.store.records("jobs"):
            sandbox.store.update("jobs", id, {"title": "Renamed"})
        report = pulled(sandbox, tmp_path)

        assert "done" == report.outcome
        assert before == held.execute(query).fetchall()
        held.close()
        with duckdb.connect(str(published(tmp_path)), read_only=True) as fresh:
            titles = fresh.execute("SELECT DISTINCT title FROM landing.jobs").fetchall()
        assert [("Renamed",)] == titles


def test_the_published_file_has_comments_and_types_for_its_columns(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
    with duckdb.connect(str(published(tmp_path)), read_only=True) as connection:
        bare = connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() "
            "WHERE schema_name = 'landing' AND comment IS NULL"
        ).fetchall()
        types = dict(
            connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() "
                "WHERE schema_name = 'landing' AND table_name = 'jobs'"
            ).fetchall()
        )

    assert [] == bare
    expected = {
        "id": "VARCHAR",
        "salary_min": "DOUBLE",
        "positions_available": "BIGINT",
        "show_salary": "BOOLEAN",
        "start_date": "DATE",
        "updated_at": "TIMESTAMP WITH TIME ZONE",
        "_record": "JSON",
        "_hydrated_at": "TIMESTAMP WITH TIME ZONE",
    }
    assert expected == {name: types[name] for name in expected}
    assert "internal_notes" not in types


def test_data_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        pulled(sandbox, tmp_path)
    folder = tmp_path / "data"

    assert 0o700 == folder.stat().st_mode & 0o777
    for each in folder.iterdir():
        assert 0o600 == each.stat().st_mode & 0o777, each.name

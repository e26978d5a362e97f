"""Reading a published file, and its export to Parquet files."""

from __future__ import annotations

import json
import os
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import connector
from connector.errors import Misused, NothingPublished, UnknownName
from connector.publishing.exports import MANIFEST, export
from connector.warehouse.published_file import query
from tests.publishing.agency import PublishingAccount


# DuckDB 1.5 calls pandas 3 with an argument that pandas is about to remove.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_read_returns_a_relation_with_the_types_of_the_file(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    agency.insert_rows(
        "candidates",
        {"id": "c1", "created_at": "2026-03-04T05:06:07+01:00", "rating": 3},
        {"id": "c2"},
    )
    agency.publish()
    for name, value in agency.environ.items():
        monkeypatch.setenv(name, value)

    frame = connector.read("landing.candidates").df().set_index("id")
    counted = connector.sql(
        "SELECT count(*) AS n, 1.50::DECIMAL(9, 2) AS fee, DATE '2026-01-02' AS day "
        "FROM landing.candidates"
    )

    assert pd.Timestamp("2026-03-04T04:06:07", tz="UTC") == frame.loc["c1", "created_at"]
    assert frame.loc["c2", ["rating", "email", "created_at"]].isna().all()
    assert [(2, Decimal("1.50"), date(2026, 1, 2))] == counted.fetchall()
    assert [{"n": 2, "fee": Decimal("1.50"), "day": date(2026, 1, 2)}] == (
        counted.to_arrow_table().to_pylist()
    )
    held = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert str(agency.published_file) not in held


def test_read_returns_the_newest_published_state(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in agency.environ.items():
        monkeypatch.setenv(name, value)
    agency.publish()
    with duckdb.connect(str(agency.published_file), read_only=True) as held:
        agency.insert_rows("jobs", {"id": "j3", "title": "Driver"})
        agency.publish()

        assert 3 == len(connector.read("landing.jobs"))
        assert 3 == connector.sql("FROM marts.fct_jobs SELECT count(*)").fetchall()[0][0]
        assert 3 == query(agency.published_file, "SELECT count(*) FROM landing.jobs").rows[0][0]
        assert (2,) == held.execute("SELECT count(*) FROM landing.jobs").fetchone()


def test_read_of_an_unknown_table_suggests_the_nearest_name(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in agency.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NothingPublished):
        connector.read("marts.fct_jobs")
    agency.publish()

    with pytest.raises(UnknownName, match=r"Did you mean 'marts.fct_jobs'\?"):
        connector.read("marts.fct_job")
    with pytest.raises(UnknownName):
        connector.read('landing.jobs"; DROP TABLE x; --')
    with pytest.raises(Misused, match=r'the query cannot be run: .*"titel" not found'):
        connector.sql("SELECT titel FROM landing.jobs")


def test_export_writes_schemas_as_parquet_and_replaces_an_earlier_export(
    agency: PublishingAccount, tmp_path: Path
) -> None:
    agency.publish()
    folder = tmp_path / "lake"

    first = export(agency.published_file, folder, ["marts", "staging"])
    inode = folder.stat().st_ino
    second = export(agency.published_file, folder, ["marts"])

    assert ("marts.dim_people", "marts.fct_jobs", "staging.stg_jobs") == first
    assert ("marts.dim_people", "marts.fct_jobs") == second
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert {MANIFEST, "marts/dim_people.parquet", "marts/fct_jobs.parquet"} == files
    assert inode != folder.stat().st_ino
    assert [5, 4] == list(pd.read_parquet(folder / "marts" / "fct_jobs.parquet")["letters"])
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert "marts/fct_jobs.parquet" == manifest["tables"]["marts.fct_jobs"]
    modes = {p: p.stat().st_mode & 0o777 for p in (folder, *folder.rglob("*"))}
    assert modes == {p: 0o700 if p.is_dir() else 0o600 for p in modes}
    assert ["data", "lake", "project"] == sorted(p.name for p in tmp_path.iterdir())


def test_export_rejects_an_existing_folder_that_it_did_not_create(
    agency: PublishingAccount, tmp_path: Path
) -> None:
    agency.publish()
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")

    with pytest.raises(Misused, match="already exists and was not created by an export"):
        export(agency.published_file, folder)
    with pytest.raises(UnknownName, match="'mart' is not a schema"):
        export(agency.published_file, tmp_path / "lake", ["mart"])

    assert ["thesis.txt"] == [p.name for p in folder.iterdir()]
    assert not (tmp_path / "lake").exists()

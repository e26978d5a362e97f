"""Reading a published file as data frames, and its export to Parquet files."""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pandas as pd
import pytest

import connector
from connector.errors import Misused, NothingPublished, UnknownName
from connector.publishing.exports import MANIFEST, export
from connector.warehouse.published_file import query
from tests.publishing.agency import PublishingAccount


def test_read_returns_a_data_frame_with_matching_types(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    agency.insert_rows(
        "candidates",
        {
            "id": "c1",
            "created_at": "2026-03-04T05:06:07+01:00",
            "available_from": "2026-04-01",
            "rating": 3,
            "willing_to_relocate": True,
            "expected_salary": 50.5,
        },
        {"id": "c2"},
    )
    agency.publish()
    for name, value in agency.environ.items():
        monkeypatch.setenv(name, value)

    frame = connector.read("landing.candidates").set_index("id")
    people = connector.read("marts.dim_people")

    assert pd.Timestamp("2026-03-04T04:06:07", tz="UTC") == frame.loc["c1", "created_at"]
    assert pd.Timestamp("2026-04-01") == frame.loc["c1", "available_from"]
    assert "datetime64" in str(frame["available_from"].dtype)
    kinds = {name: str(frame[name].dtype) for name in ("rating", "willing_to_relocate", "email")}
    assert {"rating": "Int64", "willing_to_relocate": "boolean", "email": "string"} == kinds
    assert frame.loc["c2", ["rating", "email", "created_at"]].isna().all()
    assert 50.5 == people["hoped_for"].sum()
    assert "float64" == str(people["hoped_for"].dtype)
    counted = connector.sql(
        "SELECT status, count(*) AS n, sum(length(id)) AS letters, sum(rating) AS stars, "
        "sum(2::HUGEINT ** 64) AS many FROM landing.candidates GROUP BY ALL"
    )
    assert {"n": 2, "letters": 4, "stars": 3} == counted[["n", "letters", "stars"]].loc[0].to_dict()
    assert {"n": "Int64", "letters": "Int64", "stars": "Int64", "many": "float64"} == {
        name: str(counted[name].dtype) for name in counted.columns[1:]
    }
    empty = connector.sql("SELECT sum(rating) AS stars FROM landing.candidates WHERE id = 'x'")
    assert "Int64" == str(empty["stars"].dtype)
    held = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert str(agency.published_file) not in held


def test_an_unchanged_result_converts_to_arrow_and_to_polars_if_installed(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    agency.publish()
    for name, value in agency.environ.items():
        monkeypatch.setenv(name, value)
    frame = connector.sql("SELECT 1.50::DECIMAL(9, 2) AS fee, DATE '2026-01-02' AS day")
    table = frame.arrow()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match="pip install polars"):
        frame.pl()
    polars = SimpleNamespace(from_arrow=lambda found: ("polars", found))
    monkeypatch.setitem(sys.modules, "polars", polars)

    assert [{"fee": Decimal("1.50"), "day": date(2026, 1, 2)}] == table.to_pylist()
    assert ("polars", table) == frame.pl()
    assert 3 == connector.read("landing.jobs").arrow().num_rows + 1
    assert type(frame.head()) is pd.DataFrame
    frame["vat"] = 0.2
    with pytest.raises(ValueError, match="the frame was changed"):
        frame.arrow()


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
        assert 3 == connector.sql("FROM marts.fct_jobs SELECT count(*) AS n").loc[0, "n"]
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

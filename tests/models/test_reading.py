"""Reading a published file, and its export to Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import httpx
import pandas as pd
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.dataset import dataset
from pyarrow.fs import FileSelector, FileSystem, FileType

import connector
from connector.errors import Misused, UnknownName, WarehouseError
from connector.models.exports import MANIFEST, export
from tests.models.account import Account
from tests.support.errors import has_code

PARQUET = ("marts/fct_jobs.parquet", "marts/sum_jobs.parquet", "staging/stg_jobs.parquet")


# DuckDB 1.5 calls pandas 3 with an argument that pandas is about to remove.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_read_returns_a_relation_with_the_types_of_the_file(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.insert(
        "candidates",
        {"id": "c1", "created_at": "2026-03-04T05:06:07+01:00", "rating": 3},
        {"id": "c2"},
    )
    account.publish()
    for name, value in account.environ.items():
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
    assert str(account.file) not in held


def test_read_of_an_unknown_table_suggests_the_nearest_name(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in account.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WarehouseError, check=has_code("nothing_published")):
        connector.read("marts.fct_jobs")
    account.publish()

    with pytest.raises(UnknownName, match=r"Did you mean 'marts.fct_jobs'\?"):
        connector.read("marts.fct_job")
    with pytest.raises(UnknownName):
        connector.read('landing.jobs"; DROP TABLE x; --')
    with pytest.raises(Misused, match=r'the query cannot be run: .*"titel" not found'):
        connector.sql("SELECT titel FROM landing.jobs")


def test_export_writes_schemas_as_parquet_and_replaces_an_earlier_export(
    account: Account, tmp_path: Path
) -> None:
    account.publish()
    folder = tmp_path / "lake"

    first = export(account.file, str(folder), ["marts", "staging"])
    inode = folder.stat().st_ino
    second = export(account.file, str(folder), ["marts"])

    assert ("marts.fct_jobs", "marts.sum_jobs", "staging.stg_jobs") == first
    assert ("marts.fct_jobs", "marts.sum_jobs") == second
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert {MANIFEST, "marts/fct_jobs.parquet", "marts/sum_jobs.parquet"} == files
    assert inode != folder.stat().st_ino
    assert [2, 1] == sorted(pd.read_parquet(folder / "marts" / "sum_jobs.parquet")["jobs"])[::-1]
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert "marts/fct_jobs.parquet" == manifest["tables"]["marts.fct_jobs"]
    modes = {p: p.stat().st_mode & 0o777 for p in (folder, *folder.rglob("*"))}
    assert modes == {p: 0o700 if p.is_dir() else 0o600 for p in modes}
    assert ["data", "lake", "my_models", "project"] == sorted(p.name for p in tmp_path.iterdir())


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of an empty bucket on a server that speaks S3's protocol."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environ = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    for name, value in {**environ, "ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    assert httpx.put(f"http://{host}:{port}/lake").is_success
    yield "s3://lake"
    server.stop()


def test_export_writes_to_a_bucket_with_a_partition_for_each_account(
    account: Account, bucket: str
) -> None:
    account.publish()
    for name in ("acme", "beta"):
        export(account.file, f"{bucket}/account={name}", ["marts", "staging"])
    export(account.file, f"{bucket}/account=acme", ["marts"])

    store, root = FileSystem.from_uri(bucket)
    found = store.get_file_info(FileSelector(root, recursive=True))
    names = {each.path for each in found if each.type is FileType.File}
    assert {
        *(f"lake/account=acme/{name}" for name in (MANIFEST, *PARQUET[:2])),
        *(f"lake/account=beta/{name}" for name in (MANIFEST, *PARQUET)),
    } == names
    jobs = [each for each in names if each.endswith("fct_jobs.parquet")]
    rows = dataset(jobs, filesystem=store, partitioning="hive").to_table()
    assert ["acme"] * 3 + ["beta"] * 3 == sorted(rows["account"].to_pylist())


def test_export_to_an_unknown_bucket_names_the_address(account: Account, bucket: str) -> None:
    account.publish()

    with pytest.raises(WarehouseError, match="the export to s3://other/x failed"):
        export(account.file, "s3://other/x")


def test_export_rejects_an_existing_folder_that_it_did_not_create(
    account: Account, tmp_path: Path
) -> None:
    account.publish()
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")

    with pytest.raises(Misused, match="already exists and was not created by an export"):
        export(account.file, str(folder))
    with pytest.raises(UnknownName, match="'mart' is not a schema"):
        export(account.file, str(tmp_path / "lake"), ["mart"])

    assert ["thesis.txt"] == [p.name for p in folder.iterdir()]
    assert not (tmp_path / "lake").exists()

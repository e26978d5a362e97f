"""The published file: swapped as a whole, complete, with the mode that the operator gave it."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import duckdb
import openpyxl
import pytest

import connector
from tests.contract.kit import COUNTS, RESOURCES, Account, Server, World, candidate, query_file

KEPT = {
    "dim_candidates": "candidates", "dim_companies": "companies", "dim_jobs": "jobs",
    "fct_leads": "leads", "fct_bookings": "bookings",
}  # fmt: skip


BARE: dict[str, dict[str, str]] = {
    "jobs": {
        "title": "Welder", "location": "Leeds", "description": "Welds.",
        "employment_type": "permanent",
    },
    "candidates": candidate(1),
    "companies": {"name": "Bare Ltd", "email": "bare@people.example"},
}  # fmt: skip


@pytest.fixture(scope="module")
def built(server: Server, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small agency with all marts, and with a record of each kind that has little more than an
    id.
    """
    folder = tmp_path_factory.mktemp("built")
    with server.serve(data=folder / "records.sqlite", counts=COUNTS):
        account = Account(server, folder, CONNECTOR_MODELS="on")
        for resource, fields in BARE.items():
            server.api("POST", f"/{resource}", **fields)
        account.pull()
    return World(server, folder / "records.sqlite", account.data)


@pytest.fixture(scope="module")
def file(built: World) -> Path:
    """The published file with all marts, for reading."""
    return built.data / "recruitment.duckdb"


@pytest.mark.parametrize("mart", KEPT)
def test_a_mart_has_one_row_for_each_record(file: Path, mart: str) -> None:
    where = {"dim_companies": " WHERE created_at IS NOT NULL AND NOT is_deleted"}
    where |= {"dim_jobs": " WHERE is_live", "fct_leads": " WHERE NOT is_deleted"}
    (found,) = query_file(
        file,
        f"""SELECT (SELECT count(*) FROM landing.{KEPT[mart]} WHERE _deleted_at IS NULL) AS landed,
        count(*) AS rows FROM marts.{mart}{where.get(mart, "")}""",
    )
    assert found["landed"] == found["rows"] > 0


def test_placements_are_the_bookings_of_contracts_and_permanent_jobs(file: Path) -> None:
    """Counted from the API's records, without the staging views."""
    (found,) = query_file(
        file,
        """SELECT (SELECT count(*) FROM landing.bookings WHERE _deleted_at IS NULL AND
        booking_type IN ('contract', 'permanent') AND
        status NOT IN ('draft', 'cancelled')) AS landed, count(*) AS rows
        FROM marts.fct_placements""",
    )
    assert found["rows"] >= found["landed"]


def test_every_mart_and_each_of_its_columns_has_a_comment(file: Path) -> None:
    rows = query_file(
        file,
        """SELECT table_name || '.' || column_name AS name FROM duckdb_columns()
        WHERE schema_name = 'marts' AND comment IS NULL""",
    )
    assert [] == rows
    count = "SELECT count(DISTINCT table_name) AS n FROM duckdb_columns() WHERE schema_name='marts'"
    assert query_file(file, count)[0]["n"] >= 15


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_resource_is_published_with_its_record(file: Path, resource: str) -> None:
    rows = query_file(file, f"SELECT id, _record FROM landing.{resource}")
    assert rows
    assert all(row["id"] == json.loads(row["_record"])["id"] for row in rows)


@pytest.fixture
def models(built: World, tmp_path: Path) -> Account:
    """An account with marts that needs no server."""
    shutil.copytree(built.data, tmp_path / "data")
    return Account(built.server, tmp_path, CONNECTOR_MODELS="on")


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_file_keeps_the_mode_that_the_operator_gave_it(account: Account, mode: int) -> None:
    account.published.chmod(mode)
    account.server.api("PUT", f"/jobs/{account.server.ids('jobs')[0]}", title="Changed")
    account.pull("jobs")
    assert mode == stat.S_IMODE(account.published.stat().st_mode)


def test_the_files_of_a_folder_are_private(account: Account) -> None:
    assert 0o700 == stat.S_IMODE(account.data.stat().st_mode)
    for path in account.data.rglob("*"):
        assert 0 == path.stat().st_mode & 0o077, path


def test_an_open_connection_keeps_the_old_file(account: Account) -> None:
    query = "SELECT count(*) FROM landing.candidates WHERE city = 'Leeds'"
    with duckdb.connect(str(account.published), read_only=True) as reader:
        before = reader.execute(query).fetchall()
        id = account.server.ids("candidates")[0]
        account.server.api("PUT", f"/candidates/{id}", city="Leeds")
        account.pull("candidates")
        assert before == reader.execute(query).fetchall()


def own_models(account: Account, **files: str) -> str:
    """Write models of the user's own, and return their folder."""
    folder = account.folder / "own"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return str(folder)


@pytest.mark.slow
def test_an_own_model_is_published(models: Account) -> None:
    own = own_models(models, own_jobs="select count(*) as n from {{ ref('dim_jobs') }}")
    result = models.run("publish", CONNECTOR_MODELS_FOLDER=own)
    assert 0 == result.status, result.text
    assert 0 < models.rows("SELECT n FROM own.own_jobs")[0]["n"]


@pytest.mark.slow
def test_a_blocking_check_keeps_the_old_file(models: Account) -> None:
    before = models.published.read_bytes()
    own = own_models(
        models, own_jobs="select 1 as n", own_check="-- audit: own_check\n"
        "-- Every row is wrong.\nselect * from {{ ref('own_jobs') }}",
    )  # fmt: skip
    assert 1 == models.run("publish", CONNECTOR_MODELS_FOLDER=own).status
    assert before == models.published.read_bytes()


def test_a_model_with_wrong_sql_keeps_the_old_file(models: Account) -> None:
    before = models.published.read_bytes()
    own = own_models(models, own_jobs="select nonsense from {{ ref('dim_jobs') }}")
    assert models.run("publish", CONNECTOR_MODELS_FOLDER=own).status in (1, 2)
    assert before == models.published.read_bytes()


@pytest.mark.slow
def test_personal_values_are_in_no_byte_of_a_masked_file(models: Account) -> None:
    emails = [row["email"] for row in models.rows("SELECT email FROM landing.candidates")]
    own = own_models(models, own_people="select email as anything from {{ ref('dim_candidates') }}")
    result = models.run(
        "publish", "--personal", "hash", CONNECTOR_PUBLISH_HASH_KEY="k" * 40,
        CONNECTOR_MODELS_FOLDER=own,
    )  # fmt: skip
    assert 0 == result.status, result.text
    content = models.published.read_bytes()
    assert [] == [each for each in emails if each.encode() in content]


@pytest.mark.slow
def test_tables_are_exported(models: Account) -> None:
    lake, book = models.folder / "lake", models.folder / "a.xlsx"
    result = models.run(
        "publish", "--parquet", lake, "--schema", "marts",
        "--xlsx", book, "--table", "marts.dim_jobs",
    )  # fmt: skip
    assert 0 == result.status, result.text
    expected = models.rows("SELECT count(*) AS n FROM marts.dim_jobs")[0]["n"]
    with duckdb.connect() as reader:
        (path,) = [each for each in lake.rglob("*.parquet") if "dim_jobs" in str(each)]
        assert [(expected,)] == reader.execute(f"SELECT count(*) FROM '{path}'").fetchall()
    sheet = openpyxl.load_workbook(book).active
    assert sheet is not None
    assert expected + 1 == sheet.max_row


def test_the_public_names_read_the_file(
    built: World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTOR_DATA_DIR", str(built.data))
    (expected,) = query_file(file, "SELECT count(*) AS n FROM marts.dim_jobs")
    query = "SELECT count(*) FROM marts.dim_jobs"
    assert [(expected["n"],)] == connector.sql(query).fetchall() != [(0,)]
    assert expected["n"] == len(connector.read("marts.dim_jobs").fetchall())


def test_a_report_for_a_director_is_one_file(models: Account) -> None:
    out = models.folder / "r.html"
    result = models.run("report", "--out", out)
    assert 0 == result.status, result.text
    assert "<html" in out.read_text("utf-8")
    assert 0o600 == stat.S_IMODE(out.stat().st_mode)

"""Models in the user's folder are read, built, checked and masked, and their errors reported."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.errors import ModelError, ModelFailed, PublishingRefused, SettingsError
from connector.models import publish as publishing
from connector.models.mask import find_undeclared
from connector.models.project import Project, load_project
from connector.models.publish import load_account_project, publish
from connector.sandbox.server import Sandbox
from connector.settings import Settings
from connector.warehouse.stream import Bookmark, Commit, FoundDetail, Stream
from tests.models.agency import PublishingAccount, list_columns
from tests.repository import ROOT
from tests.support.command import call

NAME, EMAIL = "Zebediah", "zebediah@planted.example"
CANDIDATE = {
    "id": "c1",
    "first_name": NAME,
    "last_name": "Oak",
    "email": EMAIL,
    "status": "new_lead",
    "expected_salary": 87654.0,
}
PLANTED = (NAME.encode(), EMAIL.encode())

PEOPLE = """\
select
    candidate_id,
    status,
    'a note of ' || email as note,
    'constant' as label
from {{ ref('dim_people') }}
"""

SCHEMA = """\
models:
  - name: people
    description: The agency's people.
    columns:
      - {name: candidate_id, description: The candidate., data_tests: [unique, not_null]}
      - {name: status, description: The stage.}
      - {name: note, description: A note., meta: {personal: true}}
"""


def load_own_project(agency: PublishingAccount, settings: Settings) -> Project:
    """Load the account's three models and those in its folder `my_models`."""
    own = agency.folder / "my_models"
    return load_project(agency.project_folder, own=own)


@pytest.fixture
def own_agency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishingAccount:
    """Account with one candidate, a project of three models, and an empty folder for own models."""
    (tmp_path / "my_models").mkdir()
    made = PublishingAccount(tmp_path)
    monkeypatch.setattr(publishing, "load_account_project", partial(load_own_project, made))
    made.insert_rows("candidates", CANDIDATE)
    return made


@pytest.fixture
def shipped_agency(tmp_path: Path) -> PublishingAccount:
    """Account with one candidate, the shipped models, and an empty folder for own models."""
    (tmp_path / "my_models").mkdir()
    made = PublishingAccount(tmp_path, CONNECTOR_MODELS_FOLDER=str(tmp_path / "my_models"))
    stamps = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
    now = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    found = (FoundDetail(Candidate({**CANDIDATE, **stamps}), now),)
    commit = Commit(records=found, bookmark=Bookmark(proven_at=now))
    made.warehouse.commit(Stream(CATALOG["candidates"]), commit, "run-1", now)
    return made


def write_models(agency: PublishingAccount, **files: str) -> Path:
    """Write files to the folder of own models, and return the last path.

    Keyword names end in `_yml` or `_sql`, which becomes the file's extension.
    """
    path = agency.folder / "my_models"
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        path = agency.folder / "my_models" / f"{stem}.{suffix}"
        path.write_text(text, encoding="utf-8")
    return path


def test_own_models_can_use_plain_table_names_instead_of_ref(own_agency: PublishingAccount) -> None:
    write_models(
        own_agency,
        a_counts_sql="select status, count(*) as people from {{ ref('people') }} group by status",
        people_sql="select candidate_id, status from marts.dim_people",
    )

    own_agency.publish()
    own_agency.insert_rows("candidates", {**CANDIDATE, "id": "c2", "email": "b@planted.example"})
    own_agency.publish()

    assert [{"status": "new_lead", "people": 2}] == own_agency.query("FROM own.a_counts")


def test_the_schema_file_of_own_models_adds_comments_and_checks(
    own_agency: PublishingAccount,
) -> None:
    write_models(own_agency, people_sql=PEOPLE, schema_yml=SCHEMA)

    own_agency.publish()

    assert [{"comment": "The agency's people."}] == own_agency.query(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'people' AND schema_name = 'own'"
    )
    doubled = PEOPLE + "union all by name select 'c1' as candidate_id, 'x' as status\n"
    write_models(own_agency, people_sql=doubled)
    with pytest.raises(PublishingRefused, match="unique_people_candidate_id"):
        own_agency.publish()
    assert [{"n": 1}] == own_agency.query("SELECT count(*) AS n FROM own.people")


def test_an_own_audit_warns_or_blocks_by_its_severity(own_agency: PublishingAccount) -> None:
    audit = "-- audit: stages_are_known\n-- No candidate is new.\n{config}\nselect candidate_id"
    audit += " from {{{{ ref('dim_people') }}}} where status = 'new_lead'\n"
    write_models(
        own_agency, stages_are_known_sql=audit.format(config="{{ config(severity='warn') }}")
    )

    assert "stages_are_known" in own_agency.publish().publication.failed_checks

    write_models(own_agency, stages_are_known_sql=audit.format(config=""))
    with pytest.raises(PublishingRefused, match="stages_are_known"):
        own_agency.publish()


@pytest.mark.parametrize("personal", ["drop", "hash"])
def test_undeclared_text_columns_of_own_models_are_masked(
    own_agency: PublishingAccount, personal: str
) -> None:
    write_models(own_agency, people_sql=PEOPLE, schema_yml=SCHEMA)
    own_agency.environ["CONNECTOR_PUBLISH_PERSONAL"] = personal
    own_agency.environ["CONNECTOR_PUBLISH_HASH_KEY"] = "planted-hash-key-77aa"

    own_agency.publish()

    columns = list_columns(own_agency.published_file)["own.people"]
    if personal == "drop":
        # The note is declared as personal, and the label is not declared.
        assert ["candidate_id", "status"] == columns
    else:
        assert ["candidate_id", "status", "note", "label"] == columns
        (row,) = own_agency.query("FROM own.people")
        assert ("c1", "new_lead") == (row["candidate_id"], row["status"])
        assert (32, 32) == (len(row["note"]), len(row["label"]))
    assert not [each for each in PLANTED if each in own_agency.published_file.read_bytes()]


PASSED_ON = {
    "select id, count(*) as n from landing.jobs group by id": ["id", "n"],
    "select j.id, c.email from landing.jobs as j, landing.candidates as c": ["id"],
    "select upper(c.email) as id, 1 as n from landing.jobs, landing.candidates as c": ["n"],
    "select id || '-' || title as id, 1 as n from landing.jobs": ["n"],
    # A text is personal even if a column that is not personal has its name.
    "select id, name from landing.companies": ["id"],
}


@pytest.mark.parametrize("sql", PASSED_ON)
def test_an_undeclared_id_is_kept_if_it_is_passed_on_unchanged_and_no_text_is(
    own_agency: PublishingAccount, sql: str
) -> None:
    own_agency.insert_rows("jobs", {"id": "j1", "title": "Nurse"})
    write_models(own_agency, of_jobs_sql=sql)

    publish(own_agency.settings(CONNECTOR_PUBLISH_PERSONAL="drop"))

    assert PASSED_ON[sql] == list_columns(own_agency.published_file)["own.of_jobs"]


def test_a_declaration_of_personal_overrides_the_column_type(own_agency: PublishingAccount) -> None:
    (own_agency.folder / "regions.csv").write_text("region\nNorth\n", encoding="utf-8")
    sql = (
        f"select region, 1 as size, 'x' as secret from read_csv('{own_agency.folder}/regions.csv')"
    )
    column_text = "{name: %s, meta: {personal: %s}}"
    columns = ", ".join((column_text % ("region", "false"), column_text % ("size", "true")))
    write_models(
        own_agency, regions_sql=sql, schema_yml=f"models: [{{name: regions, columns: [{columns}]}}]"
    )

    publish(own_agency.settings(CONNECTOR_PUBLISH_PERSONAL="drop"))

    assert ["region"] == list_columns(own_agency.published_file)["own.regions"]


def test_undeclared_own_models_and_columns_are_listed(own_agency: PublishingAccount) -> None:
    write_models(own_agency, people_sql=PEOPLE, jobs_sql="select job_id from {{ ref('stg_jobs') }}")
    write_models(own_agency, schema_yml=SCHEMA)

    project = load_own_project(own_agency, own_agency.settings())

    assert ["own.people.label"] == find_undeclared(project)


@pytest.mark.slow
def test_models_commands_and_publish_warn_of_undeclared_columns(
    shipped_agency: PublishingAccount,
) -> None:
    write_models(shipped_agency, notes_sql=PEOPLE.replace("dim_people", "stg_candidates"))
    write_models(shipped_agency, schema_yml=SCHEMA.replace("name: people", "name: notes"))

    for command in ("models list own", "publish", "models test own"):
        called = call(command.split(), shipped_agency.environ)
        assert 0 == called.status, called.err
        assert "own.notes.label" in called.err, command
        assert "no schema.yml declares" in called.err
    tested = call(["models", "test", "own", "--json"], shipped_agency.environ)
    assert ["own.notes.label"] == tested.object["undeclared"]
    assert {"notes"} == {each["model"] for each in tested.object["checks"]}
    assert [{"note": f"a note of {EMAIL}"}] == shipped_agency.query("SELECT note FROM own.notes")


WRONG: dict[str, tuple[str, str, type[Exception], str]] = {
    "a column that is not there": (
        "people.sql",
        "select candidate_id,\n  stauts from {{ ref('dim_people') }}\n",
        ModelFailed,
        r"people\.sql:2: people cannot be built: .*stauts",
    ),
    "no name of a table": ("My Mart.sql", PEOPLE, ModelError, "is not a valid table name"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_errors_in_own_models_name_file_and_line(own_agency: PublishingAccount, fault: str) -> None:
    file, text, error, message = WRONG[fault]
    write_models(own_agency, stages_sql="select candidate_id, status from {{ ref('dim_people') }}")
    (own_agency.folder / "my_models" / file).write_text(text, encoding="utf-8")

    with pytest.raises(error, match=message):
        own_agency.publish()


def test_a_missing_models_folder_is_rejected(tmp_path: Path) -> None:
    settings = PublishingAccount(tmp_path).settings(
        CONNECTOR_MODELS_FOLDER=str(tmp_path / "nowhere")
    )

    with pytest.raises(SettingsError, match=r"models_folder is .*nowhere.*a folder that exists"):
        load_account_project(settings)


# -- Commands and documents ------------------------------------------------------------------------


PAGE = (ROOT / "docs" / "MARTS.md").read_text(encoding="utf-8")


def read_code_blocks(language: str) -> list[str]:
    """Return the code blocks of one language in docs/MARTS.md."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_documented_session_with_own_models_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for block in read_code_blocks("sh") for line in block.splitlines()]
    served = next(line for line in lines if line.startswith("connector sandbox"))
    counts = {name: int(n) for name, n in re.findall(r"--(jobs|[a-z]+s) (\d+)", served)}
    (tmp_path / "my_models").mkdir()
    (tmp_path / "my_models" / "own_open_jobs.sql").write_text(
        read_code_blocks("sql")[0], encoding="utf-8"
    )
    (tmp_path / "connector.toml").write_text(read_code_blocks("toml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Sandbox(counts=counts) as sandbox:
        environ = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
        for line in lines:
            if line.startswith("connector") and line != served:
                called = call(line.split()[1:], environ)
                assert 0 == called.status, called.err

    exec(read_code_blocks("python")[0], {})  # noqa: S102  # the page's own code

    assert capsys.readouterr().out.strip() == read_code_blocks("text")[0].strip()

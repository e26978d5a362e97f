"""Models of the user's own folder: read, built, checked, masked, and reported when wrong."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.errors import (
    ModelError,
    ModelFailed,
    PublishingRefused,
    ReferenceUnknown,
    SettingsError,
    UnknownName,
)
from connector.publishing import publication as publishing
from connector.publishing.project import Project
from connector.publishing.project_loader import OwnModels, load_project
from connector.publishing.pseudonymize import find_undeclared
from connector.publishing.publication import project_of, publish
from connector.publishing.starter import OWN_FILES, SOURCES_FILE, write_dbt_project
from connector.sandbox.server import Sandbox
from connector.settings.model import Settings, load_settings
from connector.warehouse.bookmark import Bookmark, Stream
from connector.warehouse.pull_commands import Commit, FoundDetail
from tests.publishing.agency import PublishingAccount, tables_of
from tests.repository import ROOT
from tests.support.command import call
from tests.support.errors import has_code

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


def project(agency: PublishingAccount, settings: Settings) -> Project:
    """The agency's three models, and those of its own folder."""
    own = OwnModels(agency.folder / "my_models", settings.models_schema.value)
    return load_project(agency.project_folder, own=own)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishingAccount:
    """An agency with one candidate, three models, and a folder of its own ones."""
    (tmp_path / "my_models").mkdir()
    made = PublishingAccount(tmp_path)
    monkeypatch.setattr(publishing, "project_of", partial(project, made))
    made.land("candidates", CANDIDATE)
    return made


@pytest.fixture
def shipped(tmp_path: Path) -> PublishingAccount:
    """An agency with one candidate, the shipped models, and a folder of its own ones."""
    (tmp_path / "my_models").mkdir()
    made = PublishingAccount(tmp_path, CONNECTOR_MODELS_FOLDER=str(tmp_path / "my_models"))
    stamps = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
    now = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    found = (FoundDetail(Candidate({**CANDIDATE, **stamps}), now),)
    commit = Commit(records=found, bookmark=Bookmark(proven_at=now))
    made.warehouse.commit(Stream(CATALOG["candidates"]), commit, "run-1", now)
    return made


def write(agency: PublishingAccount, **files: str) -> Path:
    """Write files of own models, named with `_yml` and `_sql`; the last one's path."""
    path = agency.folder / "my_models"
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        path = agency.folder / "my_models" / f"{stem}.{suffix}"
        path.write_text(text, encoding="utf-8")
    return path


def test_one_file_is_built_and_published_in_its_own_schema(own: PublishingAccount) -> None:
    write(own, people_sql=PEOPLE)

    done = own.publish()

    assert [{"status": "new_lead", "note": f"a note of {EMAIL}"}] == own.rows(
        "SELECT status, note FROM own.people"
    )
    assert done.built is not None
    assert "own" == {each.name: each.schema for each in done.built.models}["people"]


def test_own_models_may_name_shipped_tables_and_each_other_without_braces(
    own: PublishingAccount,
) -> None:
    write(
        own,
        a_counts_sql="select status, count(*) as people from {{ ref('people') }} group by status",
        people_sql="select candidate_id, status from marts.dim_people",
    )

    own.publish()
    own.land("candidates", {**CANDIDATE, "id": "c2", "email": "b@planted.example"})
    own.publish()

    assert [{"status": "new_lead", "people": 2}] == own.rows("FROM own.a_counts")


def test_the_schema_file_describes_and_tests(own: PublishingAccount) -> None:
    write(own, people_sql=PEOPLE, schema_yml=SCHEMA)

    own.publish()

    assert [{"comment": "The agency's people."}] == own.rows(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'people' AND schema_name = 'own'"
    )
    doubled = PEOPLE + "union all by name select 'c1' as candidate_id, 'x' as status\n"
    write(own, people_sql=doubled)
    with pytest.raises(PublishingRefused, match="unique_people_candidate_id"):
        own.publish()
    assert [{"n": 1}] == own.rows("SELECT count(*) AS n FROM own.people")


def test_an_own_audit_warns_or_blocks(own: PublishingAccount) -> None:
    audit = "-- audit: stages_are_known\n-- No candidate is new.\n{config}\nselect candidate_id"
    audit += " from {{{{ ref('dim_people') }}}} where status = 'new_lead'\n"
    write(own, stages_are_known_sql=audit.format(config="{{ config(severity='warn') }}"))

    assert "stages_are_known" in own.publish().publication.failed_checks

    write(own, stages_are_known_sql=audit.format(config=""))
    with pytest.raises(PublishingRefused, match="stages_are_known"):
        own.publish()


def test_the_schema_has_another_name_by_the_setting(own: PublishingAccount) -> None:
    write(own, people_sql=PEOPLE)

    publish(own.settings(CONNECTOR_MODELS_SCHEMA="acme"))

    assert ["candidate_id", "status", "note", "label"] == tables_of(own.file)["acme.people"]


@pytest.mark.parametrize("personal", ["drop", "hash"])
def test_text_that_is_not_declared_is_masked(own: PublishingAccount, personal: str) -> None:
    write(own, people_sql=PEOPLE, schema_yml=SCHEMA)
    own.given["CONNECTOR_PUBLISH_PERSONAL"] = personal
    own.given["CONNECTOR_PUBLISH_HASH_KEY"] = "planted-hash-key-77aa"

    own.publish()

    columns = tables_of(own.file)["own.people"]
    if personal == "drop":
        # The note is declared as personal, and the label is not declared.
        assert ["candidate_id", "status"] == columns
    else:
        assert ["candidate_id", "status", "note", "label"] == columns
        (row,) = own.rows("FROM own.people")
        assert ("c1", "new_lead") == (row["candidate_id"], row["status"])
        assert (32, 32) == (len(row["note"]), len(row["label"]))
    assert not [each for each in PLANTED if each in own.file.read_bytes()]


def test_what_the_schema_file_says_of_a_column_counts(own: PublishingAccount) -> None:
    (own.folder / "regions.csv").write_text("region\nNorth\n", encoding="utf-8")
    sql = f"select region, 1 as size, 'x' as secret from read_csv('{own.folder}/regions.csv')"
    said = "{name: %s, meta: {personal: %s}}"
    columns = ", ".join((said % ("region", "false"), said % ("size", "true")))
    write(own, regions_sql=sql, schema_yml=f"models: [{{name: regions, columns: [{columns}]}}]")

    publish(own.settings(CONNECTOR_PUBLISH_PERSONAL="drop"))

    assert ["region"] == tables_of(own.file)["own.regions"]


def test_personal_is_no_text(own: PublishingAccount) -> None:
    columns = "[{name: status, meta: {personal: maybe}}]"
    path = write(own, schema_yml=f"models: [{{name: people, columns: {columns}}}]")

    with pytest.raises(
        ModelError, match="Input should be a valid boolean", check=has_code("model_invalid")
    ) as caught:
        project(own, own.settings())

    assert path == caught.value.path


def test_what_is_not_declared_is_named(own: PublishingAccount) -> None:
    write(own, people_sql=PEOPLE, jobs_sql="select job_id from {{ ref('stg_jobs') }}")
    write(own, schema_yml=SCHEMA)

    found = [
        (e.table, e.column, e.is_masked) for e in find_undeclared(project(own, own.settings()))
    ]

    assert {
        ("own.jobs", None, False),
        ("own.jobs", "job_id", True),
        ("own.people", "label", True),
    } == set(found)


@pytest.mark.slow
def test_commands_build_own_models_and_warn(shipped: PublishingAccount) -> None:
    write(shipped, notes_sql=PEOPLE.replace("dim_people", "stg_candidates"))
    write(shipped, schema_yml=SCHEMA.replace("name: people", "name: notes"))

    for command in ("models list own", "models build", "models test own", "publish"):
        called = call(command.split(), shipped.given)
        assert 0 == called.status, called.err
        assert "own.notes.label" in called.err, command
        assert "is not declared in a schema.yml" in called.err
    tested = call(["models", "test", "own", "--json"], shipped.given)
    assert ["label"] == [each["column"] for each in tested.object["undeclared"]]
    assert {"notes"} == {each["model"] for each in tested.object["checks"]}
    assert [{"note": f"a note of {EMAIL}"}] == shipped.rows("SELECT note FROM own.notes")


WRONG: dict[str, tuple[str, str, type[Exception], str]] = {
    "a column that is not there": (
        "people.sql",
        "select candidate_id,\n  stauts from {{ ref('dim_people') }}\n",
        ModelFailed,
        r"people\.sql:2: people cannot be built: .*stauts",
    ),
    "a missing model": (
        "people.sql",
        "select 1 as x from {{ ref('dim_peple') }}\n",
        ReferenceUnknown,
        r"people\.sql:1: .*Did you mean dim_people",
    ),
    "braces": (
        "people.sql",
        "select 1 as x from {{ var('x') }}\n",
        ModelError,
        r"people\.sql:1: the template cannot be evaluated: 'var' is undefined",
    ),
    "the name of a shipped mart": ("fct_jobs.sql", PEOPLE, ModelError, "fct_jobs is also"),
    "no name of a table": ("My Mart.sql", PEOPLE, ModelError, "is not a valid table name"),
    "a declared model that is not there": (
        "schema.yml",
        SCHEMA,
        ReferenceUnknown,
        r"schema\.yml:2: there is no model 'people'",
    ),
    "a declared column that is not there": (
        "schema.yml",
        SCHEMA.replace("people", "stages").replace("candidate_id", "candidat_id"),
        ModelError,
        "has no such column",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_and_line(own: PublishingAccount, name: str) -> None:
    file, text, error, told = WRONG[name]
    write(own, stages_sql="select candidate_id, status from {{ ref('dim_people') }}")
    (own.folder / "my_models" / file).write_text(text, encoding="utf-8")

    with pytest.raises(error, match=told):
        own.publish()


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    settings = PublishingAccount(tmp_path).settings(
        CONNECTOR_MODELS_FOLDER=str(tmp_path / "nowhere")
    )

    with pytest.raises(SettingsError, match=r"models_folder is .*nowhere.*a folder that exists"):
        project_of(settings)


# -- Settings --------------------------------------------------------------------------------------


def read(folder: Path, text: str, **flags: Any) -> Any:
    """The settings of a project file."""
    (folder / "connector.toml").write_text(text, encoding="utf-8")
    return load_settings(flags, {}, folder)


def test_a_table_of_the_project_file_has_the_settings(tmp_path: Path) -> None:
    settings = read(tmp_path, '[models]\nfolder = "my_models"\nschema = "acme"\n')

    assert tmp_path / "my_models" == settings.models_folder.value
    assert ("acme", "on") == (settings.models_schema.value, settings.models.value)
    assert "connector.toml" == settings.models_folder.origin


def test_an_account_has_a_table_of_its_own(tmp_path: Path) -> None:
    text = '[models]\nfolder = "all"\n[accounts.a.models]\nfolder = "of_a"\n[accounts.b]\n'

    assert tmp_path / "of_a" == read(tmp_path, text, account="a").models_folder.value
    assert tmp_path / "all" == read(tmp_path, text, account="b").models_folder.value


def test_an_unknown_key_of_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'folder'"):
        read(tmp_path, '[models]\nfoldr = "x"\n')


@pytest.mark.parametrize("name", ["marts", "main", "Own", "", "1a"])
def test_a_schema_of_another_meaning_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="models_schema"):
        read(tmp_path, f'[models]\nschema = "{name}"\n')


def test_a_published_file_without_own_models_has_no_such_schema(own: PublishingAccount) -> None:
    own.publish()

    with duckdb.connect(str(own.file), read_only=True) as connection:
        found = connection.execute("SELECT DISTINCT schema_name FROM duckdb_tables()").fetchall()
    assert ("own",) not in found


# -- Commands and documents ------------------------------------------------------------------------


@pytest.mark.slow
def test_init_writes_a_model_that_builds(shipped: PublishingAccount) -> None:
    folder = shipped.folder / "my_models"

    first = call(["models", "init", str(folder), "--json"], shipped.given)
    (folder / "own_open_jobs.sql").write_text("select 'mine' as consultant_id", encoding="utf-8")
    again = call(["models", "init", str(folder), "--json"], shipped.given)

    assert sorted(OWN_FILES) == sorted(Path(each).name for each in first.object["written"])
    assert [] == again.object["written"]
    assert "mine" in (folder / "own_open_jobs.sql").read_text(encoding="utf-8")
    (folder / "own_open_jobs.sql").write_text(OWN_FILES["own_open_jobs.sql"], encoding="utf-8")
    built = call(["models", "build"], shipped.given)
    assert (0, False) == (built.status, "own.own_open_jobs" in built.err), built.err
    tested = call(["models", "test", "own", "--json"], shipped.given)
    names = {each["name"] for each in tested.object["checks"]}
    assert {"unique_own_open_jobs_consultant_id", "own_open_jobs_have_positions"} <= names


def test_init_says_which_setting_is_missing(tmp_path: Path) -> None:
    called = call(["models", "init", str(tmp_path / "new")], {"CONNECTOR_DATA_DIR": str(tmp_path)})

    assert f'  folder = "{tmp_path / "new"}"' in called.err


PAGE = (ROOT / "docs" / "OWN_MODELS.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_session_of_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    served = next(line for line in lines if line.startswith("connector sandbox"))
    counts = {name: int(n) for name, n in re.findall(r"--(jobs|[a-z]+s) (\d+)", served)}
    (tmp_path / "my_models").mkdir()
    (tmp_path / "my_models" / "own_open_jobs.sql").write_text(blocks("sql")[0], encoding="utf-8")
    (tmp_path / "connector.toml").write_text(blocks("toml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Sandbox(counts=counts) as sandbox:
        environ = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
        for line in lines:
            if line.startswith("connector") and line != served:
                called = call(line.split()[1:], environ)
                assert 0 == called.status, called.err

    exec(blocks("python")[0], {})  # noqa: S102  # the page's own code

    assert capsys.readouterr().out.strip() == blocks("text")[0].strip()


# -- dbt -------------------------------------------------------------------------------------------

DBT = ROOT / ".venv-referee" / "bin" / "dbt"


def test_a_dbt_project_needs_a_published_file(tmp_path: Path) -> None:
    environ = {"CONNECTOR_DATA_DIR": str(tmp_path)}

    called = call(["models", "dbt", str(tmp_path / "analysis")], environ)

    assert (1, True) == (called.status, "nothing has been published yet" in called.err)


def test_the_sources_of_a_dbt_project_describe_the_file(own: PublishingAccount) -> None:
    write(own, people_sql=PEOPLE, schema_yml=SCHEMA)
    own.publish()
    folder = own.folder / "with 'quotes' and \"more\""
    first = write_dbt_project(folder, own.file, "own")
    (folder / "models/open_jobs.sql").write_text("select 1 as mine", encoding="utf-8")
    (folder / SOURCES_FILE).unlink()

    again = write_dbt_project(folder, own.file, "own")

    assert "select 1 as mine" == (folder / "models/open_jobs.sql").read_text(encoding="utf-8")
    assert ((), (folder / SOURCES_FILE,)) == (first.kept, again.written)
    sources = yaml.safe_load((folder / SOURCES_FILE).read_text(encoding="utf-8"))["sources"]
    named = {each["name"]: {table["name"]: table for table in each["tables"]} for each in sources}
    assert {"marts", "staging", "own"} == named.keys()
    people = named["own"]["people"]
    assert "The agency's people." == people["description"]
    assert {"name": "status", "description": "The stage."} in people["columns"]


@pytest.mark.slow
@pytest.mark.skipif(not DBT.exists(), reason="no dbt: 'make referee' installs it")
def test_dbt_builds_over_the_published_file(shipped: PublishingAccount, tmp_path: Path) -> None:
    write(shipped, notes_sql=PEOPLE.replace("dim_people", "stg_candidates"))
    assert 0 == call(["models", "build"], shipped.given).status
    folder = tmp_path / "an 'own' project"
    assert 0 == call(["models", "dbt", str(folder)], shipped.given).status
    sql = "select status, note from {{ source('own', 'notes') }}"
    (folder / "models" / "mine.sql").write_text(sql, encoding="utf-8")

    done = subprocess.run(
        [str(DBT), "build"],
        env={**os.environ, "DO_NOT_TRACK": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-3000:]
    assert "PASS=4" in done.stdout
    with duckdb.connect(str(folder / "analysis.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT status, note FROM main.mine").fetchall()
    assert [("new_lead", f"a note of {EMAIL}")] == rows

"""Carrying over: a file that was published from an earlier one is the file that a build from
nothing makes at the same moment, table by table and check by check.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from connector.publishing import publication as publishing
from connector.publishing.carry import InputDigests, _starred
from connector.publishing.folder import load_project, shipped_folder
from connector.publishing.project import BuildRecord, Project, read_template
from connector.publishing.publication import Published, prepare, publish
from connector.settings.model import Settings, load_settings
from connector.warehouse.duckdb_file import opened
from tests.faults.sampling import IS_ALL
from tests.publishing.agency import Agency
from tests.publishing.demonstration import AT, FEW, land_agency
from tests.publishing.small import Follower, Small

STEPS = 40 if IS_ALL else 3
SEED = 11

_OWN = "sync.publications"
"""The one table that says when, and by which attempt, the file was published."""


class Account:
    """One account's data and models, of which a test may change anything between publications."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.data = folder, folder / "data"
        self.project_folder = folder / "project"
        shutil.copytree(shipped_folder(), self.project_folder)
        self.warehouse = land_agency(self.data, FEW)
        self.warehouse.release()
        self.at = AT
        monkeypatch.setattr(publishing, "project_of", self.project)

    def project(self, settings: Settings) -> Project:
        """The models as they are now, with the seeds of the account's own."""
        seeds = settings.folder / "seeds"
        return load_project(self.project_folder, seeds=seeds if seeds.is_dir() else None)

    def publish(self, data: Path | None = None, **given: str) -> Published:
        """Publish the account's data, or those of another folder."""
        environ = {"CONNECTOR_DATA_DIR": str(data or self.data), **given}
        return publish(load_settings({}, environ, self.folder), now=lambda: self.at)

    def publish_both(self, **given: str) -> Published:
        """Publish, and hold the file against one that is made from nothing."""
        fresh = self.folder / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        shutil.copy(self.warehouse.work, fresh)
        if (self.data / "seeds").exists():
            shutil.copytree(self.data / "seeds", fresh / "seeds")
        carried, built = self.publish(self.data, **given), self.publish(fresh, **given)
        assert carried.built
        assert built.built
        assert built.built.checks == carried.built.checks
        assert [] == differences(built.file, carried.file)
        return carried

    def write(self, *statements: str) -> None:
        """Run statements in the work file."""
        with opened(self.warehouse.work) as connection:
            for each in statements:
                connection.execute(each)


def differences(one: Path, other: Path) -> list[str]:
    """What one file has and the other has not: tables, views, columns, texts and rows."""
    with duckdb.connect(":memory:") as connection:
        for name, file in (("one", one), ("other", other)):
            connection.execute(f"ATTACH '{file}' AS {name} (READ_ONLY)")
        found = [repr(row) for row in connection.execute(_either_way(_SHAPE)).fetchall()]
        tables = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() "
            "WHERE database_name = 'one'"
        ).fetchall()
        for (table,) in tables:
            rows = "" if found else _either_way(f"SELECT * FROM {{db}}.{table}")
            if table != _OWN and rows and connection.execute(rows).fetchall():
                found.append(table)
    return found


_SHAPE = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = '{db}' UNION ALL
SELECT schema_name, table_name, '', '', comment FROM duckdb_tables() WHERE database_name = '{db}'
UNION ALL
SELECT schema_name, view_name, '', sql, comment FROM duckdb_views() WHERE database_name = '{db}'
"""


def _either_way(sql: str) -> str:
    one, other = sql.format(db="one"), sql.format(db="other")
    return f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"


def made(done: Published) -> set[str]:
    """The names of the tables that were built and not copied."""
    assert done.built is not None
    return {e.name for e in done.built.models if e.kind == "table" and not e.is_carried}


# -- Changes ---------------------------------------------------------------------------------------
# In statements `{at}` is the moment, `{n}` a number that is another one each time, and `{one}` says
# which of a resource's records is meant.

_STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "looked at again and found as it was": (
        "UPDATE landing.{table} SET _hydrated_at = '{at}', _seen_at = '{at}' WHERE {one}",
        "UPDATE history.{table} SET _observed_to = '{at}' WHERE _valid_to IS NULL",
    ),
    "gone": (
        "UPDATE history.{table} SET _valid_to = '{at}', _ended_after = '{at}', "
        "_ended_before = '{at}', _ended_by = 'deletion' WHERE _valid_to IS NULL AND {one}",
        "UPDATE landing.{table} SET _deleted_at = '{at}' WHERE {one}",
    ),
    "another version": tuple(
        f"UPDATE {schema}.{change} WHERE id = (SELECT min(id) FROM landing.{change.split()[0]})"
        for schema in ("landing", "history")
        for change in (
            "jobs SET status = 'filled', placement_fee = {n}",
            "candidates SET status = 'screening', source = 'Billboard {n}'",
            "bookings SET start_datetime = '2026-08-03 09:00:00+00'",
            "companies SET name = 'Renamed {n}'",
        )
    ),
    "began earlier": (
        "UPDATE history.candidates SET _valid_from = _valid_from - INTERVAL 3 DAY, "
        "_began_after = _began_after - INTERVAL 3 DAY "
        "WHERE id = (SELECT max(id) FROM history.candidates)",
    ),
    "another run": (
        "INSERT INTO sync.runs (run_id, command, started_at, ended_at, outcome) "
        "VALUES ('run-{n}', 'pull', '{at}', '{at}', 'done')",
        "INSERT INTO sync.run_resources (run_id, resource, outcome, proven, requests) "
        "VALUES ('run-{n}', 'jobs', 'done', TRUE, {n} % 50)",
    ),
    "a setting that a model reads: the day on which a cycle begins": (
        "INSERT INTO sync.quota (cycle_begins, day, command, kind, requests) VALUES "
        "(DATE '2026-08-01' + {n} % 28, '2026-08-30', 'pull', 'list', 5)",
    ),
}
_RESOURCES = ("jobs", "candidates", "companies", "bookings", "leads", "content_items")

_TEXTS = (
    ("marts/sum_time_to_fill.sql", "count(days", "(0 * {n}) + count(days"),
    ("marts/fct_time_in_stage.sql", "86400", "(86400 + 0 * {n})"),
    ("marts/dim_companies.sql", "-- grain: one", "-- grain: {n}, one"),
    ("staging/stg_leads.sql", "_run_id as", "_run_id || '{n}' as"),
    ("staging/stg_jobs.sql", "_seen_at as", "_seen_at + interval {n} second as"),
    ("audits/dates_are_in_order.sql", "interval 1", "interval {n}"),
    ("marts/schema.yml", "whole record", "whole record {n}"),
    ("seeds/holidays.csv", "2026-12-25,", "2026-12-25,{n} "),
)
"""Texts of models, views, audits and seeds, and what takes their place."""


def _change(account: Account, what: str, chance: random.Random) -> None:
    """Change something of the account's data or models."""
    number = chance.randint(2, 10**6)
    if what == "later":
        account.at += chance.choice([timedelta(minutes=2), timedelta(hours=9), timedelta(days=6)])
        account.write(f"UPDATE sync.bookmarks SET proven_at = '{account.at.isoformat()}'")
    elif what == "the account's own seed":
        account.data.joinpath("seeds").mkdir(exist_ok=True)
        account.data.joinpath("seeds/people.csv").write_text(f"id,name,team\nu,Ada {number},\n")
    elif what == "a text":
        file, old, new = chance.choice(_TEXTS)
        text = (shipped_folder() / file).read_text()
        assert old in text, f"{old!r} is not in {file}"
        account.project_folder.joinpath(file).write_text(text.replace(old, new.format(n=number)))
    else:
        table, place = chance.choice(_RESOURCES), chance.randint(0, 5)
        one = f"id = (SELECT id FROM landing.{table} ORDER BY id LIMIT 1 OFFSET {place})"
        said = {"table": table, "one": one, "at": account.at.isoformat(), "n": number}
        account.write(*(each.format(**said) for each in _STATEMENTS[what]))


CHANGES = (*_STATEMENTS, "later", "the account's own seed", "a text")


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """An agency's account, with the models as they are shipped."""
    return Account(tmp_path, monkeypatch)


@pytest.mark.slow
def test_whatever_changes_it_is_as_built_from_nothing(account: Account) -> None:
    chance = random.Random(f"carried {SEED}")
    first = made(account.publish())
    copied: set[str] = set()
    for step in range(STEPS):
        for change in chance.sample(CHANGES, chance.randint(1, 4)):
            _change(account, change, chance)
        masked = {"CONNECTOR_PUBLISH_PERSONAL": "drop"} if step == STEPS // 2 else {}
        copied |= first - made(account.publish_both(**masked))
    assert len(copied) > 15


@pytest.mark.slow
def test_a_quiet_night_builds_what_depends_on_the_moment(account: Account) -> None:
    chance = random.Random(SEED)
    account.publish()
    assert set() == made(account.publish())
    _change(account, "looked at again and found as it was", chance)
    looked = made(account.publish())
    account.at += timedelta(days=1)
    _change(account, "later", chance)
    _change(account, "another run", chance)
    later = made(account.publish())

    assert {"data_freshness", "dim_jobs"} >= looked
    assert {"data_freshness", "fct_time_in_stage", "fct_job_ageing"} <= later
    assert not {"dim_candidates", "fct_candidate_stages", "fct_placements", "dim_days"} & later


SPOIL: Mapping[str, Callable[[Path, Path], object]] = {
    "no record": lambda _, record: record.unlink(),
    "half a record": lambda _, record: record.write_text("{"),
    "written to": lambda file, _: os.utime(file),
    "no file": lambda file, _: file.unlink(),
}


@pytest.mark.parametrize("name", SPOIL)
def test_without_a_record_of_the_file_everything_is_built(agency: Agency, name: str) -> None:
    agency.publish()
    SPOIL[name](agency.file, agency.file.with_name("recruitment.duckdb.json"))
    watch, again = Follower(), Follower()
    agency.publish(watch=watch)
    agency.publish(watch=again)

    assert {"stg_jobs", "fct_jobs", "dim_people"} == set(watch.made)
    assert ["stg_jobs"] == again.made


def test_what_was_prepared_is_carried_on(agency: Agency) -> None:
    agency.publish(prepared=prepare(agency.settings()).publication)
    first, second = Follower(), Follower()
    agency.publish(watch=first)
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    prepare(agency.settings())
    agency.publish(watch=second)

    assert ["stg_jobs"] == first.made
    assert "fct_jobs" in second.made


def test_a_check_that_failed_is_run_again(agency: Agency) -> None:
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    first, second = (done.built for done in (agency.publish(), agency.publish()))

    assert first
    assert second
    assert ["jobs_are_few"] == [each.name for each in second.warnings]
    assert first.checks == second.checks


def test_what_a_selection_left_stale_is_built_the_next_time(agency: Agency) -> None:
    agency.publish()
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    agency.publish(select=("dim_people",))
    stale = agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")
    agency.publish()

    assert [{"n": 2}] == stale
    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")


# -- Texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "whole"),
    [
        ("select id, count(*) as n, 2 * id as twice from {{ ref('a') }} group by id", ""),
        ("select * from {{ ref('a') }}", "a"),
        ("select distinct * from {{ ref('a') }}", "a"),
        ("select b.* from {{ ref('a') }} as a join {{ ref('b') }} as b on a.id = b.id", "b"),
        ("select b.* from {{ ref('a') }} join {{ ref('b') }} as b on a.id = b.id", "ab"),
        ("select \"b\" . * from {{ ref('a') }} as a, {{ ref('b') }} as b", "b"),
        ("with c as (select id from {{ ref('a') }}) select * from c", ""),
        ("with c as (select id from {{ ref('a') }}) select * from c, {{ ref('b') }} as b", "b"),
        ("select (select max(x) from t), * from {{ ref('a') }} as a", "a"),
        ("select id from {{ ref('a') }} union all select * from {{ ref('b') }}", "b"),
        ("select s.* from (select id from {{ ref('a') }}) as s -- *", ""),
        ("select id from {{ ref('a') }} as a, (select a.* from t) as s", "a"),
        ("select x from {{ ref('a') }} as a(x)", "a"),
        ("select '*' as star, json_extract(x, '$.*') from {{ ref('a') }}", ""),
    ],
)
def test_a_star_reads_all_columns_of_its_tables(sql: str, whole: str) -> None:
    found = _starred(read_template(sql, Path("model.sql")))

    assert whole == "".join(sorted({each.name for each in found}))


@pytest.mark.parametrize(
    "text",
    [
        "now() as at",
        "current_date as day",
        "random() as chance",
        "(select max(title) from landing.jobs) as newest",
        "(select count(*) from read_csv('rates.csv')) as rates",
        "rowid as place",
    ],
)
def test_a_text_that_may_depend_on_more_is_built_each_time(small: Small, text: str) -> None:
    (small.folder / "rates.csv").write_text("rate\n1\n")
    sql = text.replace("rates.csv", f"{small.folder}/rates.csv")
    small.replace("marts/sum_jobs.sql", "status, count", f"status, {sql}, count")
    project = small.project()
    with duckdb.connect(str(small.file)) as connection:
        digests = InputDigests(connection, project, BuildRecord())

    assert digests.is_open(project.models["sum_jobs"].template)
    assert not digests.is_open(project.models["fct_jobs"].template)

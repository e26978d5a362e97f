"""The lakehouse has the rows of the accounts' published files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from connector.errors import LakehouseError
from connector.publishing.lakehouse_publication import publish_to_lakehouse
from connector.publishing.lakehouse_tables import SCHEMAS
from connector.publishing.publication import publish
from connector.warehouse.duckdb_file import open_file
from tests.lakehouse.group import AccountGroup
from tests.support.errors import has_code

pytestmark = pytest.mark.slow

JOBS = ({"id": "j1", "title": "Nurse", "salary_min": 1.5}, {"id": "j2", "title": "Cook"})


FILLED = (
    "SELECT DISTINCT s.schema_name || '.' || t.table_name FROM ducklake_data_file AS f "
    "JOIN ducklake_table AS t USING (table_id) JOIN ducklake_schema AS s USING (schema_id) WHERE "
    "f.end_snapshot IS NULL AND t.end_snapshot IS NULL AND s.schema_name <> 'lakehouse' "
    "AND starts_with(f.path, 'account={account}/')"
)


def find_differing_tables(
    group: AccountGroup, lake: duckdb.DuckDBPyConnection, account: str
) -> list[str]:
    """Return the tables whose rows differ between an account's published file and the lakehouse."""
    tables = read_filled_tables(group.published_file(account))
    assert tables
    there = group.server.query(group.database, FILLED.format(account=account))
    found = sorted({table for (table,) in there} ^ set(tables))
    lake.execute(f"ATTACH '{group.published_file(account)}' AS own (READ_ONLY)")
    for table, names in tables.items():
        columns = ", ".join(f'"{each}"' for each in names)
        held = f"SELECT {columns} FROM lake.{table} WHERE account = '{account}'"
        wanted = f"SELECT {columns} FROM own.{table}"
        # Equal numbers, and no row only in the file: then no row is only in the lakehouse either.
        ((is_same,),) = lake.execute(
            f"SELECT (SELECT count(*) FROM ({held})) = (SELECT count(*) FROM ({wanted}))"
        ).fetchall()
        if not is_same or lake.execute(f"{wanted} EXCEPT ALL {held}").fetchall():
            found.append(table)
    lake.execute("DETACH own")
    return found


def read_filled_tables(file: Path) -> dict[str, list[str]]:
    """Return the columns of each table with rows that the file shares with the lakehouse."""
    with duckdb.connect(str(file), read_only=True) as connection:
        rows = connection.execute(
            "SELECT schema_name || '.' || table_name, list(column_name) FROM duckdb_columns() "
            f"WHERE schema_name IN {SCHEMAS} GROUP BY 1"
        ).fetchall()
        return {
            table: names
            for table, names in rows
            if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()
        }


def test_the_lakehouse_has_the_rows_of_the_published_files(group: AccountGroup) -> None:
    version = {"id": "j1", "_version": 1, "_changed": ["title"], "_record": '{"a": [1, "é"]}'}
    group.insert_rows(
        "acme", "jobs", *JOBS, {"id": "j3", "_seen_at": datetime(2026, 9, 1, tzinfo=UTC)}
    )
    group.insert_rows("acme", "history.jobs", version, version)
    group.insert_rows("globex", "jobs", JOBS[1])

    acme, globex = group.publish("acme"), group.publish("globex")

    assert acme.lakehouse is not None
    assert ("published", 5, 0) == (
        acme.lakehouse.outcome,
        acme.lakehouse.inserted,
        acme.lakehouse.removed,
    )
    with group.open_read_only() as lake:
        for account in ("acme", "globex"):
            assert [] == find_differing_tables(group, lake, account)
        assert [("acme", 3), ("globex", 1)] == lake.execute(
            "SELECT account, count(DISTINCT id) FROM lake.landing.jobs GROUP BY 1 ORDER BY 1"
        ).fetchall()
        schemas = "SELECT DISTINCT schema_name FROM duckdb_tables() WHERE database_name = 'lake'"
        assert {"landing", "history", "lakehouse"} == {
            name for (name,) in lake.execute(schemas).fetchall()
        }
        comment = "SELECT comment FROM duckdb_columns() WHERE database_name = 'lake' AND "
        assert lake.execute(f"{comment} column_name = '_valid_from'").fetchall()[0][0]
    assert globex.lakehouse is not None
    assert globex.lakehouse.snapshot == group.latest_snapshot()
    assert {"landing/jobs/account=acme", "landing/jobs/account=globex"} <= {
        each.rpartition("/")[0] for each in group.list_parquet_files()
    }


def _get_outcome_and_counts(result: object) -> tuple[object, ...]:
    """Return outcome, inserted rows and removed rows of a publication to the lakehouse."""
    return tuple(getattr(result, name) for name in ("outcome", "inserted", "removed"))


def test_publishing_the_same_file_twice_changes_nothing(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", *JOBS)
    group.publish("acme")
    before = group.latest_snapshot(), group.list_parquet_files()

    again = publish_to_lakehouse(group.settings("acme"))

    assert ("unchanged", 0, 0) == _get_outcome_and_counts(again)
    assert before == (group.latest_snapshot(), group.list_parquet_files())
    assert ("published", 2, 2) == _get_outcome_and_counts(
        publish_to_lakehouse(group.settings("acme"), force=True)
    )


def test_publishing_a_changed_file_replaces_the_rows_of_its_account(group: AccountGroup) -> None:
    for account in ("acme", "globex"):
        group.insert_rows(
            account, "jobs", *({"id": f"j{n}", "title": f"Job {n}"} for n in range(40))
        )
        twin = {"id": "j1", "title": "twin"}
        group.insert_rows(account, "history.jobs", *({**twin, "_version": n} for n in (1, 1, 2)))
        group.publish(account)
    group.run_sql(
        "acme",
        "DELETE FROM landing.jobs WHERE id = 'j3'",
        "UPDATE landing.jobs SET title = 'Chef' WHERE id = 'j4'",
        "DELETE FROM history.jobs WHERE rowid = 0",
    )

    done = group.publish("acme")

    assert ("published", 39 + 2, 40 + 3) == _get_outcome_and_counts(done.lakehouse)
    with group.open_read_only() as lake:
        for account in ("acme", "globex"):
            assert [] == find_differing_tables(group, lake, account)


def test_publishing_an_older_file_changes_nothing(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", JOBS[0])
    group.publish("acme")
    group.insert_rows("acme", "jobs", JOBS[1])
    earlier = datetime.now(UTC) - timedelta(days=1)

    done = publish(group.settings("acme"), now=lambda: earlier)

    assert ("unchanged", 0, 0) == _get_outcome_and_counts(done.lakehouse)
    assert [(1,)] == group.query("SELECT count(*) FROM lake.landing.jobs")
    assert "published" == publish_to_lakehouse(group.settings("acme"), force=True).outcome


def test_an_account_does_not_overwrite_another_one_of_the_same_name(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", *JOBS)
    key = {"CONNECTOR_API_KEY": "k"}
    group.publish("acme", CONNECTOR_BASE_URL="https://acme.example", **key)

    done = group.publish("acme", CONNECTOR_BASE_URL="https://other.example", **key)

    assert isinstance(done.lakehouse_error, LakehouseError)
    assert "https://acme.example" in str(done.lakehouse_error)
    assert "remove" in done.lakehouse_error.action
    assert [(2,)] == group.query("SELECT count(*) FROM lake.landing.jobs")


def test_tables_excluded_from_the_file_are_removed_from_the_lakehouse(group: AccountGroup) -> None:
    person = {"id": "c1", "email": "zeb@planted.example", "_record": '{"email": "zeb"}'}
    for account in ("acme", "globex"):
        group.insert_rows(account, "candidates", person)
        group.insert_rows(account, "history.candidates", {**person, "_version": 1})
        group.publish(account)

    group.publish(
        "acme", CONNECTOR_PUBLISH_PERSONAL="drop", CONNECTOR_PUBLISH_WITHOUT="history,sync"
    )

    assert [("acme", "c1", None, None), ("globex", "c1", person["email"], person["_record"])] == (
        group.query("SELECT account, id, email, _record FROM lake.landing.candidates ORDER BY 1")
    )
    assert [("globex",)] == group.query("SELECT account FROM lake.history.candidates")


def change_published_file(file: Path, *statements: str) -> None:
    """Change a published file, and mark it as a new publication."""
    with open_file(file) as connection:
        for each in statements:
            connection.execute(each)
        connection.execute(
            "UPDATE sync.publications SET publication = publication || '+', "
            "started_at = started_at + INTERVAL 1 SECOND"
        )


def test_new_columns_are_added_and_changed_types_are_refused(group: AccountGroup) -> None:
    for account in ("acme", "globex"):
        group.insert_rows(account, "jobs", JOBS[0])
        group.publish(account)
    settings, file = group.settings("acme"), group.published_file("acme")
    change_published_file(file, "ALTER TABLE landing.jobs ADD COLUMN grade INTEGER DEFAULT 3")
    publish_to_lakehouse(settings)
    jobs = "SELECT account, grade FROM lake.landing.jobs ORDER BY 1"
    assert [("acme", 3), ("globex", None)] == group.query(jobs)

    change_published_file(file, "ALTER TABLE landing.jobs ALTER grade TYPE BIGINT")
    change_published_file(file, "UPDATE landing.jobs SET grade = 5000000000")
    publish_to_lakehouse(settings)
    assert [("acme", 5_000_000_000), ("globex", None)] == group.query(jobs)

    change_published_file(file, "ALTER TABLE landing.jobs ALTER grade TYPE VARCHAR")
    with pytest.raises(
        LakehouseError,
        match=r"landing\.jobs\.grade is BIGINT .* VARCHAR",
        check=has_code("lakehouse_differs"),
    ) as caught:
        publish_to_lakehouse(settings)
    assert "publish --all" in caught.value.action
    assert [("acme", 5_000_000_000), ("globex", None)] == group.query(jobs)


def test_every_account_publishes_its_rows_of_a_dropped_table_again(group: AccountGroup) -> None:
    for account in ("acme", "globex"):
        group.insert_rows(account, "jobs", JOBS[0])
        group.publish(account)
    with group.open_for_change() as lake:
        lake.execute("DROP TABLE lake.landing.jobs")

    sent = [
        publish_to_lakehouse(group.settings(account), force=True) for account in ("acme", "globex")
    ]

    assert [("published", 1, 0)] * 2 == [_get_outcome_and_counts(each) for each in sent]
    assert [("acme",), ("globex",)] == group.query(
        "SELECT account FROM lake.landing.jobs ORDER BY 1"
    )

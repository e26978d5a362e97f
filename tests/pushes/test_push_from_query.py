"""Push from a query: its result becomes a file, which is pushed like any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.state.runs import Publication
from tests.support.command import CommandResult, call, variables

IDS = "select id from landing.candidates order by id limit {}"


@dataclass(frozen=True, slots=True)
class Analyst:
    """User who pushes results of queries of the published file, which has no models."""

    sandbox: Sandbox
    folder: Path

    def push(
        self, query: str, *options: str, arguments: Sequence[str] = ("candidates",)
    ) -> CommandResult:
        """Push the query's result with these arguments.

        The mode is update, unless the options contain another.
        """
        mode = () if "--mode" in options else ("--mode", "update")
        environ = variables(self.sandbox.base_url, self.folder, self.sandbox.key)
        return call(["push", *arguments, "--query", query, *mode, *options], environ)

    def undo(self) -> CommandResult:
        """Undo the last push."""
        environ = variables(self.sandbox.base_url, self.folder, self.sandbox.key)
        return call(["undo", "last", "--apply", "--json"], environ)

    def read_query_files(self) -> list[str]:
        """Return the contents of the files that queries were written to, the newest last."""
        found = [p for p in (self.folder / "pushes").iterdir() if ".report" not in p.name]
        return [p.read_text("utf-8-sig") for p in sorted(found, key=lambda p: p.stat().st_mtime)]


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    """Analyst of an agency with six candidates, which were pulled."""
    folder = tmp_path_factory.mktemp("query") / "data"
    with Sandbox(counts={"candidates": 6}) as sandbox:
        pulled = call(["pull"], variables(sandbox.base_url, folder, sandbox.key))
        assert 0 == pulled.status, pulled.err
        yield Analyst(sandbox, folder)


def test_query_values_are_sent_with_their_types_and_nulls_are_skipped(analyst: Analyst) -> None:
    query = """
        select id, date '2027-01-02' as available_from, 1250.50::decimal(9, 2) as current_salary,
            45.125::decimal(9, 3) as expected_day_rate, 0.1::float as current_day_rate,
            1e7::double as expected_salary, true as willing_to_relocate, null as notes,
            7::tinyint as notice_period_days, ['SQL', 'Rust'] as skills, '0044' as postal_code
        from landing.candidates order by id limit 1
    """
    store = analyst.sandbox.store
    id = min(store.records("candidates"))
    store.update("candidates", id, {"notes": "Keep"})
    pushed = analyst.push(query, "--apply", "--json")

    assert (0, 1) == (pushed.status, pushed.object["updated"]), pushed
    record = store.get("candidates", id).record
    assert {
        "available_from": "2027-01-02",
        "current_salary": 1250.5,
        "expected_day_rate": 45.125,
        "current_day_rate": 0.1,
        "expected_salary": 10_000_000,
        "willing_to_relocate": True,
        "notes": "Keep",
        "notice_period_days": 7,
        "skills": "SQL; Rust",
        "postal_code": "0044",
    }.items() <= record.items()
    written = Path(pushed.object["file"])
    assert (analyst.folder / "pushes", 0o600) == (written.parent, written.stat().st_mode & 0o777)


@pytest.mark.slow
def test_clear_nulls_empties_fields_and_can_be_undone_and_sent_again(analyst: Analyst) -> None:
    store, id = analyst.sandbox.store, max(analyst.sandbox.store.records("candidates"))
    store.update("candidates", id, {"city": "Leeds", "industry": "Energy"})
    query = (f"select '{id}' as id, null as city, '' as industry", "--clear-nulls", "--apply")
    counts, cities = [], []

    def push(*options: str) -> None:
        done = analyst.push(*query, *options, "--json")
        assert 0 == done.status, done
        counts.append(done.object.get("updated", 0))
        cities.append(store.get("candidates", id).record["city"])

    push()
    assert "done" == analyst.undo().object["outcome"]
    cities.append(store.get("candidates", id).record["city"])
    push()
    store.update("candidates", id, {"city": "York"})
    push()
    push("--resend")

    assert [1, 1, 0, 1] == counts
    assert [None, "Leeds", None, "York", None] == cities
    assert "Energy" == store.get("candidates", id).record["industry"]
    # Equal rows result in the same file.
    assert 1 == analyst.read_query_files().count(f"id,city,industry\n{id},\\N,\n")


def test_a_sql_file_can_replace_the_query(analyst: Analyst, tmp_path: Path) -> None:
    id, path = "6f1f7b3e-0000-4000-8000-000000000001", tmp_path / "a.sql"
    path.write_text(
        f"-- one row\nselect '{id}' as id, 'Bath' as city,"
        " timestamptz '2026-01-02 10:00:00+01' as x; -- the end\n"
    )

    pushed = analyst.push(str(path), "--ignore", "x")

    assert "invalid\t1" in pushed.out, pushed
    assert "2026-01-02 09:00:00Z" in analyst.read_query_files()[-1]


def test_an_infinite_date_costs_its_row(analyst: Analyst) -> None:
    pushed = analyst.push(
        "select id, if(id = max(id) over (), 'infinity', '2027-01-02')::date as available_from"
        " from landing.candidates"
    )

    assert "invalid\t1" in pushed.out, pushed
    assert "to update\t" in pushed.out, pushed


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select id from landing.missing", "the query failed: Table with name missing"),
        ("select 'é',\n id form jobs", "failed in line 2: syntax error at or near"),
        ("select id, city, phone as CITY from {c}", "returns 2 columns named 'city'"),
        ("select id, {'a': 1} as city from {c}", "has the type STRUCT(a INTEGER)"),
        ("select id, email::int as rating from {c}", "Could not convert string a value to INT32"),
        ("gone.sql", "gone.sql cannot be read"),
        ("select 1; select 2", "is not one SELECT statement"),
        ("", "is not one SELECT statement"),
        ("from read_csv('/etc/passwd')", "a query can read only the published file"),
        ("from read_blob('{folder}/state.sqlite')", "a query can read only the published file"),
        ("from '/etc/passwd'", "Table with name /etc/passwd does not exist"),
        ("copy landing.jobs to '{folder}/x.csv'", "is not one SELECT statement"),
        ("attach ':memory:' as x", "is not one SELECT statement"),
        ("delete from {c}", "is not one SELECT statement"),
        ("set enable_external_access = true", "is not one SELECT statement"),
        ("from analyst", "Table with name analyst does not exist"),
        ("from tab", "Table with name tab does not exist [misused]"),
    ],
)
def test_an_unusable_query_is_rejected_without_showing_data(
    analyst: Analyst, query: str, message: str
) -> None:
    query = query.replace("{folder}", str(analyst.folder)).replace("{c}", "landing.candidates")
    pushed = analyst.push(query)

    assert (2, "") == (pushed.status, pushed.out)
    assert message in pushed.err
    assert "@" not in pushed.err


def test_the_key_is_masked_in_the_message_about_a_query(analyst: Analyst, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(f'select id from "{analyst.sandbox.key}"')
    pushed = analyst.push(str(path))

    assert "Table with name [key] does not exist" in pushed.err


def test_nothing_is_sent_if_a_column_of_the_query_is_no_field(analyst: Analyst) -> None:
    sent = len(analyst.sandbox.log)
    pushed = analyst.push("select id, created_at from landing.candidates", "--apply")

    assert (3, sent) == (pushed.status, len(analyst.sandbox.log))
    assert "1 column with values would not be imported: 'created_at'" in pushed.err
    assert "Nothing was sent. Answer the question above first." in pushed.err


def test_a_query_is_rejected_if_nothing_is_published_or_values_are_hashed(
    analyst: Analyst, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Analyst(analyst.sandbox, tmp_path / "data").push(IDS.format(1))
    hashed = Publication("p", datetime.now(UTC), personal="hash")
    monkeypatch.setattr("connector.pushes.query.own_publication", lambda _: hashed)
    pushed = analyst.push("select id, city, md5(first_name) as first_name from landing.candidates")

    assert "nothing has been published yet" in new.err
    assert 2 == pushed.status
    assert "column 'first_name' of the query contains hashes of personal fields" in pushed.err

"""Record of the published tables: rows, and a hash of each column, of the demo and of a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from tests.records import program
from tests.records.program import Account
from tests.records.record import Record
from tests.repository import ROOT

COUNTS = {
    "jobs": 20,
    "candidates": 120,
    "companies": 10,
    "bookings": 60,
    "leads": 40,
    "content_types": 3,
    "content_items": 30,
}

SCHEMAS = ("landing", "history", "push", "staging", "marts", "seeds")
"""Recorded schemas. The tables of `sync` describe runs."""

LEFT_OUT = {"_run_id", "run_id", "batch", "change", "file", "seconds"}
"""Columns that differ from run to run: random ids, paths and durations."""

LEAVING: frozenset[str] = frozenset()
"""Tables, as `schema.table`, that are no longer recorded."""


def record_published_file(path: Path) -> Record:
    """Return rows and hashes of all tables of a published file.

    A table has one hash of its values, and one for each column of a mart and each column that the
    pull adds (`_valid_from`). The order of rows does not count: a hash is a sum over the rows.
    """
    with duckdb.connect(str(path), read_only=True, config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return dict(_describe_tables(connection))


def _describe_tables(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    tables = connection.execute(
        "SELECT table_schema, table_name, list((column_name, data_type) ORDER BY ordinal_position)"
        " FROM information_schema.columns WHERE list_contains(?, table_schema)"
        " GROUP BY ALL ORDER BY table_schema, table_name",
        [SCHEMAS],
    ).fetchall()
    for schema, table, columns in tables:
        if f"{schema}.{table}" in LEAVING:
            continue
        texts = {name: _as_text(name, kind) for name, kind in columns if name not in LEFT_OUT}
        values = [text for name, text in texts.items() if not name.startswith("_")]
        each = {name: t for name, t in texts.items() if schema == "marts" or name.startswith("_")}
        hashed = [f"concat_ws('|', {', '.join(values)})", *each.values()]
        sums = ", ".join(f"sum(md5_number_lower({text}))::HUGEINT % 4294967296" for text in hashed)
        query = f'SELECT count(*), {sums} FROM "{schema}"."{table}"'
        count, *found = connection.execute(query).fetchall()[0]
        whole, *parts = (f"{int(value or 0):08x}" for value in found)
        yield f"{schema}.{table}", f"{count} rows {whole}"
        yield from zip((f"{schema}.{table}.{name}" for name in each), parts, strict=True)


def _as_text(name: str, kind: str) -> str:
    """Return the SQL of a column's value as text. The last digits of sums depend on their order."""
    value = f'round("{name}", 6)' if kind in ("DOUBLE", "FLOAT") else f'"{name}"'
    return f"coalesce({value}::VARCHAR, 'null')"


def record_sandbox(folder: Path) -> Record:
    """Pull an account, let records change, pull, push a file, and record the published tables."""
    with program.open_account(folder, COUNTS) as account:
        account.run("pull")
        change_records(account)
        account.pass_days(1)
        account.run("pull")
        account.pass_days(1)
        sample = ROOT / "docs" / "samples" / "people.csv"
        file = folder / sample.name
        file.write_bytes(sample.read_bytes())
        account.run("push", "candidates", file, "--mode", "create", "--apply", expects=(0, 1, 2, 3))
        return record_published_file(account.data / program.PUBLISHED)


def change_records(account: Account) -> None:
    """Change a record of each resource, move a candidate to another stage, and delete three."""
    account.pass_days(1)
    candidates, jobs = account.ids("candidates"), account.ids("jobs")
    account.request("PUT", f"candidates/{candidates[0]}", {"city": "Leeds", "status": "placed"})
    account.request("PUT", f"candidates/{candidates[1]}", {"status": "submitted"})
    account.request("PUT", f"jobs/{jobs[0]}", {"title": "Head of Welding"})
    account.request("PUT", f"companies/{account.ids('companies')[0]}", {"city": "York"})
    account.request("PUT", f"leads/{account.ids('leads')[0]}", {"phone": "+44 20 7946 0123"})
    for path in (
        f"candidates/{candidates[2]}",
        f"jobs/{jobs[1]}",
        f"leads/{account.ids('leads')[1]}",
    ):
        account.request("DELETE", path)

"""Personal data in the lakehouse: find and erase the rows of a person."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from connector.errors import LakehouseError, NothingPublished
from connector.ledger.person import Person
from connector.publishing.lakehouse_connection import (
    CATALOG,
    LAKE,
    LakehouseAccount,
    open_for_change,
    open_for_reading,
    retry_conflicts,
    run_transaction,
)
from connector.publishing.lakehouse_publication import (
    GRACE,
    LakehouseResult,
    clean_up,
    conflict_with_other_changes,
    replace_account_rows,
)
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import literal
from connector.warehouse.persons import identifier_conditions
from connector.warehouse.warehouse import Warehouse


@dataclass(slots=True)
class LakehouseMatches:
    """Number of a person's rows by table, and the paths of files that could not be read."""

    rows: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)


def find_in_lakehouse(settings: Settings, person: Person) -> LakehouseMatches:
    """Count the person's rows in all snapshots; none without a lakehouse."""
    found = LakehouseMatches()
    lakehouse = LakehouseAccount.from_settings(settings)
    if lakehouse is None:
        return found
    try:
        with open_for_reading(lakehouse) as connection:
            for table, files in _find_files(connection, lakehouse).items():
                _count_in_files(connection, table, files, person, found)
    except NothingPublished:
        return found
    found.rows = +found.rows
    return found


def _find_files(
    connection: duckdb.DuckDBPyConnection, lakehouse: LakehouseAccount
) -> dict[str, list[str]]:
    """Return the account's files by table, including files that no snapshot needs."""
    pattern = f"{lakehouse.data}/*/*/account={lakehouse.account}/*.parquet"
    found: dict[str, list[str]] = {}
    for (path,) in connection.execute(f"SELECT file FROM glob({literal(pattern)})").fetchall():
        schema, table = path.split("/")[-4:-2]
        found.setdefault(f"{schema}.{table}", []).append(path)
    return found


def _count_in_files(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    files: Sequence[str],
    person: Person,
    found: LakehouseMatches,
) -> None:
    """Add the number of the person's rows, and files that cannot be read, to `found`."""
    try:
        found.rows[table] += _count_rows_of_person(connection, files, person)
    except duckdb.Error:
        if len(files) == 1:
            found.unreadable += files
        else:
            for each in files:
                _count_in_files(connection, table, (each,), person, found)


def _count_rows_of_person(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], person: Person
) -> int:
    """Return the number of rows in the files with an identifier of the person in a text column."""
    listed = ", ".join(map(literal, files))
    source = f"read_parquet([{listed}], union_by_name => true, hive_partitioning => false)"
    names = [
        name
        for name, type in connection.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {source})"
        ).fetchall()
        if type == "VARCHAR"
    ]
    where = " OR ".join(each for name in names for each in identifier_conditions(name, person))
    if not where:
        return 0
    ((count,),) = connection.execute(f"SELECT count(*) FROM {source} WHERE {where}").fetchall()
    return int(count)


# -- Erasing ---------------------------------------------------------------------------------------
# The account's rows are written again from the published file, all earlier snapshots expire, and
# DuckLake removes their files with their statistics. DuckLake never narrows the statistics of a
# whole table, its minimum and maximum, so they are computed again.

_STATISTICS = f"{CATALOG}.ducklake_table_column_stats"

# A number is compared as a number, any other value as text, as in DuckLake.
_COMPARED = (
    "struct_pack(number := CASE WHEN regexp_matches(column_type, '^(u?int|float|decimal)') "
    "THEN {0}::DOUBLE END, text := {0})"
)
_RENEW = f"""
UPDATE {_STATISTICS} AS held SET min_value = found.least, max_value = found.greatest FROM (
    SELECT s.table_id, s.column_id,
        (min({_COMPARED.format("f.min_value")}) FILTER (f.min_value IS NOT NULL)).text AS least,
        (max({_COMPARED.format("f.max_value")}) FILTER (f.max_value IS NOT NULL)).text AS greatest
    FROM {_STATISTICS} AS s
    JOIN {CATALOG}.ducklake_column AS c
        ON c.table_id = s.table_id AND c.column_id = s.column_id AND c.end_snapshot IS NULL
    LEFT JOIN {CATALOG}.ducklake_file_column_stats AS f
        ON f.table_id = s.table_id AND f.column_id = s.column_id
    GROUP BY ALL
) AS found
WHERE held.table_id = found.table_id AND held.column_id = found.column_id AND (
    held.min_value IS DISTINCT FROM found.least OR held.max_value IS DISTINCT FROM found.greatest
)
"""

# PostgreSQL keeps old versions of rows, and samples of values in its own statistics. It skips
# tables that are in use and tables of another owner.
_VACUUM = (
    "VACUUM (FULL, ANALYZE, SKIP_LOCKED) ducklake_table_column_stats, ducklake_file_column_stats, "
    "pg_catalog.pg_statistic"
)


def erase_from_lakehouse(settings: Settings) -> None:
    """Replace the account's rows with its published file, and remove all other data.

    Earlier snapshots expire for all accounts, because a snapshot contains the whole lakehouse. The
    next call continues after an error. Raises the errors of `publish_to_lakehouse`.
    """
    if (lakehouse := LakehouseAccount.from_settings(settings)) is not None:
        file = Warehouse(settings.folder).published
        _replace_rows_and_clean(lakehouse, file if file.exists() else None)


def remove_account(settings: Settings) -> LakehouseResult:
    """Delete the account's rows. Raises the errors of `publish_to_lakehouse`."""
    return _replace_rows_and_clean(LakehouseAccount.require(settings), None)


def _replace_rows_and_clean(lakehouse: LakehouseAccount, published: Path | None) -> LakehouseResult:
    """Replace the account's rows, then remove every trace of earlier rows.

    These are snapshots, their files, and PostgreSQL's statistics. Raises `LakehouseError` if files
    remain.
    """
    began = time.monotonic()
    with open_for_change(lakehouse, published=published) as connection:
        done = replace_account_rows(connection, lakehouse, published, force=True)
        clean_up(connection, None, GRACE)
        is_new = True
        while is_new:
            # A publication that began with the old statistics would write them back, so it must
            # conflict.
            run_transaction(connection, lambda: conflict_with_other_changes(connection))
            is_new = retry_conflicts(lambda: connection.execute(_RENEW).fetchone()) != (0,)
        connection.execute(
            f"CALL postgres_execute('{CATALOG}', '{_VACUUM}', use_transaction => false)"
        )
        _check_no_file_remains(connection, lakehouse)
    return replace(done, seconds=time.monotonic() - began)


def _check_no_file_remains(
    connection: duckdb.DuckDBPyConnection, lakehouse: LakehouseAccount
) -> None:
    """Raise `LakehouseError` if files of a stopped publication are too new to be removed."""
    ((files,),) = connection.execute(
        f"SELECT count(*) FROM ducklake_delete_orphaned_files('{LAKE}', cleanup_all => true, "
        f"dry_run => true) WHERE contains(path, {literal(f'/account={lakehouse.account}/')})"
    ).fetchall()
    if files:
        hours = GRACE.total_seconds() / 3600
        raise LakehouseError(
            f"{files} files of an unfinished publication are newer than {hours:.0f} hours",
            action=f"Run the command again {hours:.0f} hours later.",
            code="lakehouse_busy",
        )

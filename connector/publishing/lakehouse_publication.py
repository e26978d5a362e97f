"""Publications to the lakehouse: one transaction replaces the rows of an account.

Readers see the rows before it or after it. A process that is killed changes nothing. Two
transactions at the same time conflict, and the later one starts again. The lakehouse has a table
`lakehouse.publications` with the latest publication of each account.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import duckdb

from connector.errors import ConnectorError, LakehouseError, WarehouseError
from connector.publishing.lakehouse_connection import (
    LAKE,
    LakehouseAccount,
    open_for_change,
    retry_conflicts,
    run_transaction,
)
from connector.publishing.lakehouse_tables import (
    delete_rows,
    ensure_table,
    insert_rows,
    lakehouse_tables,
    published_tables,
)
from connector.settings.model import Settings
from connector.version import program_version
from connector.warehouse.duckdb_file import literal
from connector.warehouse.internal_tables import RowMapper
from connector.warehouse.published_file import require_published
from connector.warehouse.runs import LakehouseAttempt, record_lakehouse_attempt
from connector.warehouse.warehouse import Warehouse

Outcome = Literal["published", "unchanged", "failed"]

GRACE = timedelta(days=1)
"""Age at which an unneeded file is removed; a query or a publication may use a newer one."""

PUBLICATIONS, CHANGES = "lakehouse.publications", "lakehouse.changes"

_COLUMNS: Mapping[str, str] = {
    "account VARCHAR": "The account, by its name; `_unnamed` for the unnamed account.",
    "publication VARCHAR": "The published file (`sync.publications` of the account).",
    "published_at TIMESTAMPTZ": "When the file was made.",
    "true_of TIMESTAMPTZ": "Time up to which the account's data is verified.",
    "personal VARCHAR": "The policy for personal fields: keep, drop or hash.",
    "source VARCHAR": "Web address (URL) of the API from which the account's records come.",
    "version VARCHAR": "The version of the connector that published.",
    "tables INTEGER": "Number of tables with rows of the account.",
    "rows BIGINT": "Number of rows of the account.",
}


@dataclass(frozen=True, slots=True)
class LakehouseEntry:
    """Row of `lakehouse.publications`: the latest publication of one account.

    `published_at` is the time when its file was made.
    """

    account: str
    publication: str
    published_at: datetime
    true_of: datetime | None
    personal: str | None
    source: str | None
    version: str
    tables: int = 0
    rows: int = 0


_ENTRIES = RowMapper(LakehouseEntry, f"{LAKE}.{PUBLICATIONS}", _COLUMNS)


@dataclass(frozen=True, slots=True)
class LakehouseResult:
    """Result of publishing to the lakehouse.

    Attributes:
        outcome: `unchanged` if the lakehouse already had this file or a newer one.
        publication: Id of the published file's publication.
        snapshot: Number of the new snapshot of the lakehouse.
        tables: Number of tables with rows.
        inserted: Number of rows written.
        removed: Number of rows replaced.
    """

    account: str
    outcome: Outcome
    publication: str | None = None
    snapshot: int | None = None
    tables: int = 0
    inserted: int = 0
    removed: int = 0
    seconds: float = 0.0
    error: ConnectorError | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "error"}
        shown["seconds"] = round(self.seconds, 3)
        return shown if self.error is None else {**shown, "error": self.error.as_json()}


def publish_to_lakehouse(settings: Settings, *, force: bool = False) -> LakehouseResult:
    """Publish the account's published file, then remove unneeded files of earlier snapshots.

    If the lakehouse has this file or a newer one, nothing changes unless `force` is set. Raises
    `SettingsError` if there is no lakehouse, `NothingPublished`, and a `LakehouseError`.
    """
    lakehouse = LakehouseAccount.require(settings)
    file = require_published(Warehouse(settings.folder).published)
    began = time.monotonic()
    with open_for_change(lakehouse, published=file) as connection:
        done = replace_account_rows(connection, lakehouse, file, force=force)
        if done.outcome == "published":
            clean_up(connection, timedelta(days=settings.lakehouse_keep_days.value), GRACE)
    return replace(done, seconds=time.monotonic() - began)


def publish_and_record(
    settings: Settings,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    *,
    force: bool = False,
) -> LakehouseResult:
    """Publish to the lakehouse, and record the attempt in the work file.

    An error is part of the result instead of being raised, except `SettingsError` if no lakehouse
    is configured.
    """
    lakehouse = LakehouseAccount.require(settings)
    started_at = now()
    try:
        done = publish_to_lakehouse(settings, force=force)
    except ConnectorError as error:
        done = LakehouseResult(lakehouse.account, "failed", error=error)
    copied = ("outcome", "publication", "snapshot", "tables", "inserted", "removed")
    row = LakehouseAttempt(
        started_at,
        now(),
        **{name: getattr(done, name) for name in copied},
        error_code=None if done.error is None else done.error.code,
        message=None if done.error is None else str(done.error),
    )
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        with suppress(WarehouseError):
            record_lakehouse_attempt(warehouse.work, row)
    return done


def replace_account_rows(
    connection: duckdb.DuckDBPyConnection,
    lakehouse: LakehouseAccount,
    file: Path | None,
    *,
    force: bool,
) -> LakehouseResult:
    """Replace the account's rows with those of the attached file; without a file, delete them.

    The outcome is `unchanged` if the lakehouse has this file or a newer one, unless `force` is set.
    """
    done = run_transaction(
        connection, lambda: _replace_in_transaction(connection, lakehouse, file, force=force)
    )
    if done.outcome == "unchanged":
        return done
    ((snapshot,),) = connection.execute(
        f"SELECT * FROM ducklake_last_committed_snapshot('{LAKE}')"
    ).fetchall()
    return replace(done, snapshot=snapshot)


def _replace_in_transaction(
    connection: duckdb.DuckDBPyConnection,
    lakehouse: LakehouseAccount,
    file: Path | None,
    *,
    force: bool,
) -> LakehouseResult:
    """Replace the account's rows and its entry; the result has no snapshot yet."""
    account, existing = lakehouse.account, lakehouse_tables(connection)
    last = next((e for e in read_entries(connection) if e.account == account), None)
    entry = None if file is None else _describe_attached_file(connection, file, lakehouse)
    if entry is None:
        if last is None:
            return LakehouseResult(account, "unchanged")
    elif last is not None:
        _check_same_source(last, entry)
        if last.published_at >= entry.published_at and not force:
            return LakehouseResult(account, "unchanged", entry.publication)
    conflict_with_other_changes(connection)
    removed = sum(
        delete_rows(connection, table, account)
        for name, table in existing.items()
        if name not in (PUBLICATIONS, CHANGES)
    )
    inserted = []
    for table in () if entry is None else published_tables(connection):
        ensure_table(connection, table, existing.get(str(table)))
        inserted.append(insert_rows(connection, table, account))
    tables, rows = sum(map(bool, inserted)), sum(inserted)
    connection.execute(f"DELETE FROM {LAKE}.{PUBLICATIONS} WHERE account = {literal(account)}")
    publication = None if entry is None else entry.publication
    if entry is not None:
        _ENTRIES.insert(connection, replace(entry, tables=tables, rows=rows))
    message = "removed" if publication is None else f"publication {publication}"
    connection.execute(f"CALL {LAKE}.set_commit_message({literal(account)}, {literal(message)})")
    return LakehouseResult(account, "published", publication, None, tables, rows, removed)


def conflict_with_other_changes(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the transaction conflict with every other change, even of other accounts.

    DuckLake compares transactions table by table, and every change updates `lakehouse.changes`.
    """
    if PUBLICATIONS in lakehouse_tables(connection):
        connection.execute(f"UPDATE {LAKE}.{CHANGES} SET number = number + 1")
        return
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LAKE}.lakehouse")
    connection.execute(f"CREATE TABLE {LAKE}.{CHANGES} (number BIGINT)")
    connection.execute(f"INSERT INTO {LAKE}.{CHANGES} VALUES (1)")
    connection.execute(f"CREATE TABLE {LAKE}.{PUBLICATIONS} ({', '.join(_COLUMNS)})")
    connection.execute(f"ALTER TABLE {LAKE}.{PUBLICATIONS} SET PARTITIONED BY (account)")
    for column, about in _COLUMNS.items():
        name = column.partition(" ")[0]
        connection.execute(f"COMMENT ON COLUMN {LAKE}.{PUBLICATIONS}.{name} IS {literal(about)}")


def read_entries(connection: duckdb.DuckDBPyConnection) -> tuple[LakehouseEntry, ...]:
    """Return the latest publication of each account, sorted by account."""
    if PUBLICATIONS not in lakehouse_tables(connection):
        return ()
    rows = connection.execute(
        f"SELECT {_ENTRIES.select_list} FROM {LAKE}.{PUBLICATIONS} ORDER BY account"
    ).fetchall()
    return tuple(map(_ENTRIES.read, rows))


def _describe_attached_file(
    connection: duckdb.DuckDBPyConnection, file: Path, lakehouse: LakehouseAccount
) -> LakehouseEntry:
    """Return the entry for the attached file, from its latest publication.

    A file without the schema `sync` is identified by the time of its last change.
    """
    source, own = lakehouse.source, program_version()
    with suppress(duckdb.CatalogException):
        rows = connection.execute(
            "SELECT publication, epoch_us(started_at), epoch_us(true_of), personal "
            "FROM published.sync.publications ORDER BY started_at DESC LIMIT 1"
        ).fetchall()
        if rows:
            return _ENTRIES.read((lakehouse.account, *rows[0], source, own, 0, 0))
    at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return LakehouseEntry(lakehouse.account, f"{at:%Y%m%dT%H%M%S.%fZ}", at, None, None, source, own)


def _check_same_source(last: LakehouseEntry, entry: LakehouseEntry) -> None:
    """Raise `LakehouseError` if the rows in the lakehouse came from another address of the API."""
    if None in (last.source, entry.source) or last.source == entry.source:
        return
    raise LakehouseError(
        f"the lakehouse has an account {entry.account!r} with records from {last.source}, but the"
        f" records of this account are from {entry.source}",
        action="Rename one of the two accounts. If the address has changed, remove the account"
        " from the lakehouse first: 'connector lakehouse remove'.",
    )


def clean_up(
    connection: duckdb.DuckDBPyConnection, keep: timedelta | None, grace: timedelta
) -> None:
    """Expire snapshots older than `keep` (None: all but the latest), and delete unneeded files.

    A file is kept for `grace`, because a query may read it. Files without a snapshot belong to a
    killed process or to a running publication. Without `keep`, files are deleted immediately.
    """
    now = datetime.now(UTC)
    unused = f"older_than => {literal((now - grace).isoformat())}::TIMESTAMPTZ"
    expired = f"older_than => {literal((now - (keep or timedelta())).isoformat())}::TIMESTAMPTZ"
    for selected, function, which in (
        # A timestamp would need a package that is not installed.
        ("snapshot_id", "ducklake_expire_snapshots", expired),
        ("path", "ducklake_cleanup_old_files", "cleanup_all => true" if keep is None else unused),
        ("path", "ducklake_delete_orphaned_files", unused),
    ):
        _execute_with_retries(connection, f"SELECT {selected} FROM {function}('{LAKE}', {which})")


def _execute_with_retries(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Execute a statement, and repeat it after conflicts with other processes."""
    retry_conflicts(lambda: connection.execute(statement).fetchall())

"""One publication to the lakehouse: the account's part becomes what its published file holds.

All of it is one transaction: readers see the part as it was or as it is, and a publisher that is
killed leaves the lakehouse as it was. It is made under the lock, and again from the beginning where
somebody without the lock has changed the same tables meanwhile. The same file once more changes
nothing, and a file that is older than what is there is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from connector.errors import (
    ConnectorError,
    LakehouseBusy,
    LakehouseError,
    NothingPublished,
    WarehouseError,
)
from connector.lakehouse import manifest as book
from connector.lakehouse.attaching import LAKE, WAIT_SECONDS, Place, changing, is_conflict
from connector.lakehouse.manifest import Entry
from connector.lakehouse.tables import (
    Changed,
    Part,
    Table,
    add_part,
    bring_up,
    change_part,
    lake_tables,
    published_tables,
    remove_part,
    replace_part,
    take_fingerprints,
)
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import literal
from connector.warehouse.runs import SharedPublication, write_shared
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from psycopg import Connection

Outcome = Literal["published", "unchanged", "failed"]

ATTEMPTS_MAX = 5
"""How often the transaction is made, where others come between each time."""

_RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Sent:
    """How it ended: `published`, `unchanged` where the lakehouse had it all, or `failed`.

    `publication` is that of the file, `snapshot` the lakehouse's after it. `tables` counts those
    in which something has changed, `inserted` and `removed` the rows; a changed row is in both.
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
        """The same as `--json` prints it."""
        told = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "error"}
        told["seconds"] = round(self.seconds, 3)
        return told if self.error is None else {**told, "error": self.error.as_json()}


def send(settings: Settings, *, anew: bool = False, wait_seconds: float = WAIT_SECONDS) -> Sent:
    """Publish the account's published file to the lakehouse, as it is now; `anew` writes every row
    again, whether or not it has changed, and whatever is there.

    Raises `SettingsError` where there is no lakehouse, `NothingPublished`, `LakehouseBusy` where
    others hold it for longer than `wait_seconds`, `LakehouseDiffers`, and another
    `LakehouseError`. The lakehouse is then as it was.
    """
    place = Place.asked_of(settings)
    file = Warehouse(settings.folder).published
    if not file.exists():
        raise NothingPublished(f"{file} is not there: nothing was published yet")
    began = time.monotonic()
    with changing(place, wait_seconds=wait_seconds, published=file) as (catalog, connection):
        return Sending(place, catalog, connection, began).carry_out(file, anew=anew)


def send_and_record(
    settings: Settings,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    *,
    anew: bool = False,
) -> Sent:
    """Publish to the lakehouse, and write down in the work file what became of it.

    Whatever keeps it from being done is in the result: the next publication makes it good.
    Raises `SettingsError` where there is no lakehouse.
    """
    place = Place.asked_of(settings)
    started_at = now()
    try:
        sent = send(settings, anew=anew)
    except ConnectorError as error:
        sent = Sent(place.account, "failed", error=error)
    _record(settings, sent, started_at, now())
    return sent


def _record(settings: Settings, sent: Sent, started_at: datetime, ended_at: datetime) -> None:
    """Write down in the work file what became of it, where that can be done."""
    row = SharedPublication(
        started_at=started_at,
        ended_at=ended_at,
        outcome=sent.outcome,
        publication=sent.publication,
        snapshot=sent.snapshot,
        tables=sent.tables,
        inserted=sent.inserted,
        removed=sent.removed,
        error_code=None if sent.error is None else sent.error.code,
        message=None if sent.error is None else str(sent.error),
    )
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        with suppress(WarehouseError):
            write_shared(warehouse.work, row)


class Sending:
    """One publication under way, under the lock of `catalog`, with the lakehouse attached."""

    def __init__(
        self,
        place: Place,
        catalog: Connection[Any],
        connection: duckdb.DuckDBPyConnection,
        began: float,
    ) -> None:
        self._place, self._catalog, self._connection = place, catalog, connection
        self._began = began

    def carry_out(self, file: Path, *, anew: bool) -> Sent:
        """Make the account's part what the attached file holds."""
        return self._repeated(lambda: self._send(file, anew=anew))

    def take_away(self) -> Sent:
        """Leave nothing of the account."""
        return self._repeated(self._take_away)

    def _repeated(self, act: Callable[[], Sent]) -> Sent:
        """Make the transaction, again where somebody has come between."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return self._in_transaction(act)
            except duckdb.Error as error:
                if not is_conflict(error):
                    raise
                time.sleep(_RETRY_SECONDS * attempt)
        raise LakehouseBusy(
            f"others have changed the lakehouse each of {ATTEMPTS_MAX} times that it was tried"
        )

    def _in_transaction(self, act: Callable[[], Sent]) -> Sent:
        self._connection.execute("BEGIN")
        try:
            sent = act()
            # Without the connection there is no lock any more, and another may have it.
            self._catalog.execute("SELECT 1")
            self._connection.execute("COMMIT" if sent.outcome == "published" else "ROLLBACK")
        except BaseException:
            with suppress(duckdb.Error):
                self._connection.execute("ROLLBACK")
            raise
        if sent.outcome == "unchanged":
            return sent
        ((snapshot,),) = self._connection.execute(
            f"SELECT * FROM ducklake_last_committed_snapshot('{LAKE}')"
        ).fetchall()
        return replace(sent, snapshot=snapshot, seconds=time.monotonic() - self._began)

    def _send(self, file: Path, *, anew: bool) -> Sent:
        connection, account = self._connection, self._place.account
        found = book.read_file(connection, file)
        held = lake_tables(connection)
        entry, parts = self._look_up(held)
        self._check_source(entry)
        if not anew and entry is not None and entry.published_at > found.published_at:
            return self._sent("unchanged", found.publication)
        tables = {str(each): each for each in published_tables(connection)}
        is_same = entry is not None and entry.publication == found.publication
        if is_same and not anew and set(parts) == set(tables) and set(tables) <= set(held):
            return self._sent("unchanged", found.publication)
        changes = [
            self._table(each, held.get(name), parts, anew=anew) for name, each in tables.items()
        ]
        for name in set(parts) - set(tables):
            if name in held:
                removed = remove_part(connection, held[name].quoted, account)
                changes.append(Changed(0, removed))
            del parts[name]
        book.write_entry(connection, self._place, found)
        book.write_parts(connection, account, parts)
        said = f"publication {found.publication}"
        connection.execute(f"CALL {LAKE}.set_commit_message({literal(account)}, {literal(said)})")
        return self._sent("published", found.publication, changes)

    def _table(
        self, table: Table, held: Table | None, parts: dict[str, Part], *, anew: bool
    ) -> Changed:
        """Bring one table up to the file, and note in `parts` how it is then."""
        account = self._place.account
        bring_up(self._connection, table, held)
        if held is None:
            # Somebody has dropped it: other accounts have nothing in it any more either.
            book.forget_table(self._connection, str(table))
        known = parts.get(str(table))
        part = parts[str(table)] = take_fingerprints(self._connection, table)
        if held is None or known is None:
            return add_part(self._connection, table, account) if part.rows else Changed()
        if anew:
            return replace_part(self._connection, table, account)
        return Changed() if part == known else change_part(self._connection, table, account)

    def _take_away(self) -> Sent:
        held = lake_tables(self._connection)
        _, parts = self._look_up(held)
        if not parts:
            return self._sent("unchanged", None)
        account = self._place.account
        changes = [
            Changed(0, remove_part(self._connection, held[name].quoted, account))
            for name in parts
            if name in held
        ]
        book.forget_account(self._connection, account)
        return self._sent("published", None, changes)

    def _look_up(self, held: Mapping[str, Table]) -> tuple[Entry | None, dict[str, Part]]:
        """What the account has published last; makes the book where there is none."""
        if book.PUBLICATIONS not in held:
            book.make_book(self._connection)
            return None, {}
        account = self._place.account
        entries = (e for e in book.read_entries(self._connection) if e.account == account)
        return next(entries, None), book.read_parts(self._connection, account)

    def _check_source(self, entry: Entry | None) -> None:
        """Refuse to publish over another account that has the same name."""
        source = self._place.source
        if entry is None or None in (entry.source, source) or entry.source == source:
            return
        raise LakehouseError(
            f"the account {self._place.account!r} of the lakehouse has its records from"
            f" {entry.source}, and this one from {source}",
            action="Give one of the two accounts another name; where the address has changed, take"
            " the account out first: 'connector lakehouse remove'.",
        )

    def _sent(
        self,
        outcome: Outcome,
        publication: str | None,
        changes: Sequence[Changed] = (),
    ) -> Sent:
        return Sent(
            self._place.account,
            outcome,
            publication,
            tables=sum(each != Changed() for each in changes),
            inserted=sum(each.inserted for each in changes),
            removed=sum(each.removed for each in changes),
            seconds=time.monotonic() - self._began,
        )

"""Publications to the lakehouse: an account's part becomes its published file.

All of it is one transaction: readers see the part as it was or as it is, and a publisher that is
killed leaves the lakehouse as it was. It is made under the lock, and again from the beginning where
somebody without the lock has changed the same tables meanwhile. The same file once more changes
nothing, and a file that is older than what is there is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
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
from connector.lakehouse import manifest
from connector.lakehouse.connect import LAKE, WAIT_SECONDS, LakehouseAccount, changing, is_conflict
from connector.lakehouse.manifest import ManifestEntry
from connector.lakehouse.tables import (
    Changed,
    Part,
    bring_up,
    lake_tables,
    published_tables,
    remove_part,
    take_fingerprints,
    update_part,
)
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import literal, transaction
from connector.warehouse.runs import SharedPublication, write_shared
from connector.warehouse.schema import TableSchema
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from psycopg import Connection

Outcome = Literal["published", "unchanged", "failed"]

ATTEMPTS_MAX = 5
"""How often the transaction is made, where others come between each time."""

_RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LakePublication:
    """A publication to the lakehouse; `unchanged` where the lakehouse had it all.

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
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "error"}
        shown["seconds"] = round(self.seconds, 3)
        return shown if self.error is None else {**shown, "error": self.error.as_json()}


def publish_to_lakehouse(
    settings: Settings, *, anew: bool = False, wait_seconds: float = WAIT_SECONDS
) -> LakePublication:
    """Publish the account's published file; `anew` writes unchanged rows again.

    Raises `SettingsError` where there is no lakehouse, `NothingPublished`, `LakehouseBusy` where
    others hold it for longer than `wait_seconds`, `LakehouseDiffers`, and another
    `LakehouseError`. The lakehouse is then as it was.
    """
    place = LakehouseAccount.required(settings)
    file = Warehouse(settings.folder).published
    if not file.exists():
        raise NothingPublished(f"{file} is not there: nothing was published yet")
    began = time.monotonic()
    with changing(place, wait_seconds=wait_seconds, published=file) as (catalog, connection):
        done = Publisher(place, catalog, connection).publish(file, anew=anew)
    return replace(done, seconds=time.monotonic() - began)


def publish_and_record(
    settings: Settings,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    *,
    anew: bool = False,
) -> LakePublication:
    """Publish to the lakehouse, and write down in the work file what became of it.

    Whatever keeps it from being done is in the result: the next publication makes it good.
    Raises `SettingsError` where there is no lakehouse.
    """
    place = LakehouseAccount.required(settings)
    started_at = now()
    try:
        done = publish_to_lakehouse(settings, anew=anew)
    except ConnectorError as error:
        done = LakePublication(place.account, "failed", error=error)
    copied = ("outcome", "publication", "snapshot", "tables", "inserted", "removed")
    row = SharedPublication(
        started_at,
        now(),
        **{name: getattr(done, name) for name in copied},
        error_code=None if done.error is None else done.error.code,
        message=None if done.error is None else str(done.error),
    )
    warehouse = Warehouse(settings.folder)
    if warehouse.exists:
        with suppress(WarehouseError):
            write_shared(warehouse.work, row)
    return done


class Publisher:
    """One publication under way, under the lock of `catalog`."""

    def __init__(
        self,
        place: LakehouseAccount,
        catalog: Connection[Any],
        connection: duckdb.DuckDBPyConnection,
    ) -> None:
        self._place, self._catalog, self._connection = place, catalog, connection

    def publish(self, file: Path, *, anew: bool) -> LakePublication:
        """Make the account's part what the attached file holds."""
        return self._committed(lambda: self._publish(file, anew=anew))

    def remove(self) -> LakePublication:
        """Leave nothing of the account."""
        return self._committed(self._remove)

    def _committed(self, act: Callable[[], LakePublication]) -> LakePublication:
        """Make the transaction, again where somebody has come between."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                with transaction(self._connection):
                    done = act()
                    # Without the connection there is no lock any more, and another may have it.
                    self._catalog.execute("SELECT 1")
            except duckdb.Error as error:
                if not is_conflict(error):
                    raise
                time.sleep(_RETRY_SECONDS * attempt)
                continue
            if done.outcome == "unchanged":
                return done
            ((snapshot,),) = self._connection.execute(
                f"SELECT * FROM ducklake_last_committed_snapshot('{LAKE}')"
            ).fetchall()
            return replace(done, snapshot=snapshot)
        raise LakehouseBusy(
            f"others have changed the lakehouse each of {ATTEMPTS_MAX} times that it was tried"
        )

    def _publish(self, file: Path, *, anew: bool) -> LakePublication:
        connection, account = self._connection, self._place.account
        entry = manifest.read_file(connection, file, self._place)
        unchanged = LakePublication(account, "unchanged", entry.publication)
        held = lake_tables(connection)
        last, parts = self._last(held)
        if last is not None:
            _check_source(last, entry)
            if not anew and last.published_at > entry.published_at:
                return unchanged
        tables = {str(each): each for each in published_tables(connection)}
        is_same = last is not None and last.publication == entry.publication
        if is_same and not anew and set(parts) == set(tables) and set(tables) <= set(held):
            return unchanged
        if manifest.PUBLICATIONS not in held:
            manifest.make_manifest(connection)
        changes = [
            self._update(each, held.get(name), parts, anew=anew) for name, each in tables.items()
        ]
        for name in set(parts) - set(tables):
            if name in held:
                changes.append(Changed(0, remove_part(connection, held[name].quoted, account)))
            del parts[name]
        manifest.write_entry(connection, entry)
        manifest.write_parts(connection, account, parts)
        message = f"publication {entry.publication}"
        connection.execute(
            f"CALL {LAKE}.set_commit_message({literal(account)}, {literal(message)})"
        )
        return _published(account, entry.publication, changes)

    def _update(
        self, table: TableSchema, held: TableSchema | None, parts: dict[str, Part], *, anew: bool
    ) -> Changed:
        """Bring one table up to the file, and note in `parts` how it is then."""
        bring_up(self._connection, table, held)
        if held is None:
            # Somebody has dropped it: other accounts have nothing in it any more either.
            manifest.forget_table(self._connection, str(table))
            parts.pop(str(table), None)
        known = parts.get(str(table), Part())
        part = parts[str(table)] = take_fingerprints(self._connection, table)
        if part == known and not anew:
            return Changed()
        return update_part(self._connection, table, self._place.account, anew=anew)

    def _remove(self) -> LakePublication:
        connection, account = self._connection, self._place.account
        held = lake_tables(connection)
        _, parts = self._last(held)
        if not parts:
            return LakePublication(account, "unchanged")
        removed = [
            remove_part(connection, held[each].quoted, account)
            for each in parts.keys() & held.keys()
        ]
        manifest.forget_account(connection, account)
        return _published(account, None, [Changed(0, each) for each in removed])

    def _last(
        self, held: Mapping[str, TableSchema]
    ) -> tuple[ManifestEntry | None, dict[str, Part]]:
        """What the account has published last."""
        if manifest.PUBLICATIONS not in held:
            return None, {}
        account = self._place.account
        entries = (e for e in manifest.read_entries(self._connection) if e.account == account)
        return next(entries, None), manifest.read_parts(self._connection).get(account, {})


def _check_source(last: ManifestEntry, entry: ManifestEntry) -> None:
    """Refuse to publish over another account that has the same name."""
    if None in (last.source, entry.source) or last.source == entry.source:
        return
    raise LakehouseError(
        f"the account {entry.account!r} of the lakehouse has its records from {last.source}, and"
        f" this one from {entry.source}",
        action="Give one of the two accounts another name; where the address has changed, take"
        " the account out first: 'connector lakehouse remove'.",
    )


def _published(
    account: str, publication: str | None, changes: Iterable[Changed]
) -> LakePublication:
    changed = [each for each in changes if each != Changed()]
    inserted, removed = (sum(each) for each in zip(Changed(), *changed, strict=True))
    return LakePublication(
        account, "published", publication, tables=len(changed), inserted=inserted, removed=removed
    )

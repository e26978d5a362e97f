"""Status and maintenance of the lakehouse.

Every publication writes small files, and every change of a row leaves the old one in its file until
that is written anew. Maintenance lets earlier states expire, joins small files, and removes what no
state needs any more; none of it changes what a reader sees now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from connector.lakehouse import manifest
from connector.lakehouse.connect import LAKE, LakehouseAccount, changing, reading
from connector.lakehouse.manifest import ManifestEntry
from connector.lakehouse.tables import lake_tables
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import from_microseconds, literal


@dataclass(frozen=True, slots=True)
class LakehouseStatus:
    """Status of the lakehouse: its states, the oldest first, and its accounts.

    `rows` are those of each table by account; `files` and `bytes` those of the present state.
    """

    data: str
    snapshots: tuple[tuple[int, datetime], ...]
    entries: tuple[ManifestEntry, ...]
    rows: dict[str, dict[str, int]]
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it; moments as ISO 8601."""
        return {
            "data": self.data,
            "snapshots": [{"id": n, "since": at.isoformat()} for n, at in self.snapshots],
            "files": self.files,
            "bytes": self.bytes,
            "accounts": [
                {
                    **asdict(each),
                    "published_at": each.published_at.isoformat(),
                    "true_of": None if each.true_of is None else each.true_of.isoformat(),
                    "rows": self.rows.get(each.account, {}),
                }
                for each in self.entries
            ],
        }


def read_status(settings: Settings) -> LakehouseStatus:
    """The lakehouse's status.

    Raises `SettingsError`, `NothingPublished`, and a `LakehouseError`.
    """
    place = LakehouseAccount.required(settings)
    with reading(place) as connection:
        has_manifest = manifest.PUBLICATIONS in lake_tables(connection)
        ((files, size),) = connection.execute(
            "SELECT coalesce(sum(file_count), 0)::BIGINT, "
            f"coalesce(sum(file_size_bytes), 0)::BIGINT FROM ducklake_table_info('{LAKE}')"
        ).fetchall()
        parts = manifest.read_parts(connection) if has_manifest else {}
        return LakehouseStatus(
            place.data,
            tuple(snapshots(connection)),
            manifest.read_entries(connection) if has_manifest else (),
            {name: {table: part.rows for table, part in e.items()} for name, e in parts.items()},
            files,
            size,
        )


# -- Maintenance -----------------------------------------------------------------------------------

GRACE = timedelta(hours=1)
"""How long files stay that nothing needs any more: somebody may be reading them."""

REWRITE_SHARE = 0.1
"""From which share of deleted rows on a file is written anew."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did, or would do; `keeps_from` is how far back states stay.

    In a preview `rewritten` and `joined` are not known.
    """

    keeps_from: datetime
    kept: int
    expired: int
    removed_files: int
    rewritten: int | None = None
    joined: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it."""
        return {**asdict(self), "keeps_from": self.keeps_from.isoformat()}


def maintain(
    settings: Settings,
    keep_days: int,
    *,
    applies: bool = False,
    grace: timedelta = GRACE,
    now: datetime | None = None,
) -> Maintained:
    """Look after the whole lakehouse; without `applies`, say what there is to do.

    Whatever was so at any moment of the last `keep_days` can still be asked for afterwards. Files
    that nothing needs are removed once they are older than `grace`. Raises `SettingsError` where
    there is no lakehouse, `NothingPublished`, and a `LakehouseError`.
    """
    place = LakehouseAccount.required(settings)
    moment = now or datetime.now(UTC)
    keeps_from = moment - timedelta(days=keep_days)
    with changing(place) as (_, connection):
        kept, expired = _expiring(connection, keeps_from)
        if not applies:
            waiting = remove_files(connection, moment - grace, applies=False)
            return Maintained(keeps_from, len(kept), len(expired), waiting)
        expire(connection, expired)
        rewritten = connection.execute(
            f"CALL ducklake_rewrite_data_files('{LAKE}', delete_threshold => {REWRITE_SHARE})"
        ).fetchall()
        joined = connection.execute(f"CALL ducklake_merge_adjacent_files('{LAKE}')").fetchall()
        removed = remove_files(connection, moment - grace, applies=True)
        kept, _ = _expiring(connection, keeps_from)
    return Maintained(keeps_from, len(kept), len(expired), removed, len(rewritten), len(joined))


def _expiring(
    connection: duckdb.DuckDBPyConnection, keeps_from: datetime
) -> tuple[list[int], list[int]]:
    """Snapshots that stay, and those that expire.

    The newest before the moment stays: it is what was so at that moment.
    """
    found = snapshots(connection)
    expiring = [number for number, at in found if at <= keeps_from][:-1]
    return [number for number, _ in found if number not in expiring], expiring


def snapshots(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, datetime]]:
    """The states that can be asked for, with the moment since when each was so."""
    rows = connection.execute(
        f"SELECT snapshot_id, epoch_us(snapshot_time) FROM ducklake_snapshots('{LAKE}') ORDER BY 1"
    ).fetchall()
    return [(number, at) for number, us in rows if (at := from_microseconds(us)) is not None]


def expire(connection: duckdb.DuckDBPyConnection, numbers: Sequence[int]) -> None:
    """Let these earlier states expire. Their files stay until they are removed."""
    if numbers:
        listed = ", ".join(map(str, numbers))
        # Only the number is fetched: a moment would need a package that is not there.
        connection.execute(
            f"SELECT snapshot_id FROM ducklake_expire_snapshots('{LAKE}', versions => [{listed}])"
        ).fetchall()


def remove_files(
    connection: duckdb.DuckDBPyConnection, older_than: datetime | None, *, applies: bool
) -> int:
    """Remove files that no state needs since the moment; returns how many.

    Without a moment all of them go, and with them those of publishers that were cut off.
    """
    which = (
        "cleanup_all => true"
        if older_than is None
        else f"older_than => {literal(older_than.isoformat())}::TIMESTAMPTZ"
    )
    preview = "" if applies else ", dry_run => true"
    removed = 0
    for function in ("ducklake_cleanup_old_files", "ducklake_delete_orphaned_files"):
        rows = connection.execute(
            f"SELECT path FROM {function}('{LAKE}', {which}{preview})"
        ).fetchall()
        removed += len(rows)
    return removed

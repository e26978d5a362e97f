"""Status of the lakehouse: its accounts and the snapshots that can be read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from connector.publishing.lakehouse_connection import LAKE, LakehouseAccount, open_for_reading
from connector.publishing.lakehouse_publication import LakehouseEntry, read_entries
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import from_microseconds


@dataclass(frozen=True, slots=True)
class LakehouseStatus:
    """Snapshots of the lakehouse (number and time, the oldest first), and its accounts.

    `files` and `bytes` are the number and the size of the files of the latest snapshot.
    """

    data: str
    snapshots: tuple[tuple[int, datetime], ...]
    entries: tuple[LakehouseEntry, ...]
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the status as `--json` prints it; times as ISO 8601."""
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
                }
                for each in self.entries
            ],
        }


def read_status(settings: Settings) -> LakehouseStatus:
    """Read the lakehouse. Raises `SettingsError`, `NothingPublished`, and a `LakehouseError`."""
    lakehouse = LakehouseAccount.require(settings)
    with open_for_reading(lakehouse) as connection:
        ((files, size),) = connection.execute(
            "SELECT coalesce(sum(file_count), 0)::BIGINT, "
            f"coalesce(sum(file_size_bytes), 0)::BIGINT FROM ducklake_table_info('{LAKE}')"
        ).fetchall()
        states = connection.execute(
            f"SELECT snapshot_id, epoch_us(snapshot_time) FROM ducklake_snapshots('{LAKE}')"
            " ORDER BY 1"
        ).fetchall()
        snapshots = tuple((n, at) for n, us in states if (at := from_microseconds(us)) is not None)
        return LakehouseStatus(lakehouse.data, snapshots, read_entries(connection), files, size)

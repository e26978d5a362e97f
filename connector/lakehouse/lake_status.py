"""How the lakehouse stands: its states, and what each account has published last."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from connector.lakehouse import manifest as book
from connector.lakehouse.attaching import LAKE, Place, reading
from connector.lakehouse.maintenance import snapshots
from connector.lakehouse.manifest import Entry
from connector.lakehouse.tables import lake_tables
from connector.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Standing:
    """`snapshots` are the states that can be asked for, the oldest first, each with the moment
    since when it was so; `rows` are those of each table by account. `files` and `bytes` are those
    of the state that is now.
    """

    data: str
    snapshots: tuple[tuple[int, datetime], ...]
    entries: tuple[Entry, ...]
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
                {**_plain(asdict(each)), "rows": self.rows.get(each.account, {})}
                for each in self.entries
            ],
        }


def standing(settings: Settings) -> Standing:
    """How the lakehouse stands. Raises `SettingsError` where there is none, `NothingPublished`, and
    a `LakehouseError`.
    """
    place = Place.asked_of(settings)
    with reading(place) as connection:
        found = snapshots(connection)
        has_book = book.PUBLICATIONS in lake_tables(connection)
        ((files, size),) = connection.execute(
            "SELECT coalesce(sum(file_count), 0)::BIGINT, "
            f"coalesce(sum(file_size_bytes), 0)::BIGINT FROM ducklake_table_info('{LAKE}')"
        ).fetchall()
        entries = book.read_entries(connection) if has_book else ()
        rows = book.count_rows(connection) if has_book else {}
    return Standing(place.data, tuple(found), entries, rows, files, size)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }

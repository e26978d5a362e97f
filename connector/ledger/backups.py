"""Records of backups and restores of an account's folder. One method is one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connector.ledger.ledger import Ledger
from connector.ledger.sqlite_file import columns_of, insert, read_records, to_column, values_of


@dataclass(frozen=True, slots=True)
class Backup:
    """Record of a backup. One without `ended_at` runs or was killed; one without `file` failed.

    The file may be gone since.
    """

    began_at: datetime
    ended_at: datetime | None = None
    file: Path | None = None
    bytes: int | None = None
    message: str | None = None


BACKUPS_KEPT = 50
"""Number of records of backups that stay."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore of the data folder from a backup. Pushes and requests since `made_at` are missing.

    Attributes:
        made_at: Time of the backup.
        proven: For each resource, server time up to which the restored files are verified.
    """

    restored_at: datetime
    made_at: datetime
    proven: Mapping[str, datetime | None]


class Backups:
    """Records of backups and restores of one folder. Methods can raise a `WarehouseError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record_backup(self, backup: Backup) -> None:
        """Record a backup, or replace the record with the same start."""
        with self._ledger.writing() as connection:
            connection.execute(
                "DELETE FROM backups WHERE began_at = ?", (to_column(backup.began_at),)
            )
            insert(connection, "backups", values_of(backup))
            connection.execute(
                "DELETE FROM backups WHERE began_at NOT IN"
                " (SELECT began_at FROM backups ORDER BY began_at DESC LIMIT ?)",
                (BACKUPS_KEPT,),
            )

    def latest_backups(self) -> tuple[Backup, ...]:
        """Return the records of backups, newest first."""
        query = f"SELECT {columns_of(Backup)} FROM backups ORDER BY began_at DESC"
        with self._ledger.reading() as connection:
            return tuple(read_records(connection, Backup, query))

    def record_restore(self, restore: Restore) -> None:
        """Record a restore."""
        with self._ledger.writing() as connection:
            insert(connection, "restores", values_of(restore))

    def latest_restore(self) -> Restore | None:
        """Return the latest restore; None if there is none."""
        query = f"SELECT {columns_of(Restore)} FROM restores ORDER BY restored_at DESC LIMIT 1"
        with self._ledger.reading() as connection:
            found = read_records(connection, Restore, query, (), {"proven": _parse_proven})
        return next(iter(found), None)


def _parse_proven(text: str) -> dict[str, datetime | None]:
    """Return the server time by resource, from JSON in the table `restores`."""
    return {
        name: None if each is None else datetime.fromisoformat(each)
        for name, each in json.loads(text).items()
    }

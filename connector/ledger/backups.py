"""Which backups were made of an account's folder, and how often it was restored from one.

One method, one transaction; every one raises a `WarehouseError` that names the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connector.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup as it was written; it may be gone by now."""

    made_at: datetime
    file: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class Restore:
    """A time when the folder was restored. `is_ledger_older` says that the ledger is the backup's,
    which knows nothing of what was pushed, erased or spent since `made_at`; `proven` is up to which
    server time each resource was proven in what was restored.
    """

    restored_at: datetime
    made_at: datetime
    is_ledger_older: bool
    proven: Mapping[str, datetime | None]


class Backups:
    """The notes on backups of one account's folder."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def note(self, backup: Backup) -> None:
        """Note that a backup was made; one that is written over counts once."""
        with self._ledger.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO backups (made_at, file, bytes) VALUES (?, ?, ?)",
                (backup.made_at.isoformat(), str(backup.file), backup.bytes),
            )

    def forget(self, files: Iterable[Path]) -> None:
        """Forget backups that were removed."""
        with self._ledger.writing() as connection:
            connection.executemany("DELETE FROM backups WHERE file = ?", [(str(f),) for f in files])

    def last(self) -> Backup | None:
        """The latest backup that was made; None where none was."""
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT made_at, file, bytes FROM backups ORDER BY made_at DESC LIMIT 1"
            ).fetchone()
            if row is None:
                return None
            return Backup(datetime.fromisoformat(row[0]), Path(row[1]), row[2])

    def note_restore(self, restore: Restore) -> None:
        """Note that the folder was restored."""
        proven = {
            name: None if each is None else each.isoformat()
            for name, each in restore.proven.items()
        }
        with self._ledger.writing() as connection:
            connection.execute(
                "INSERT INTO restores (restored_at, made_at, is_ledger_older, proven)"
                " VALUES (?, ?, ?, ?)",
                (
                    restore.restored_at.isoformat(),
                    restore.made_at.isoformat(),
                    restore.is_ledger_older,
                    json.dumps(proven),
                ),
            )

    def last_restore(self, *, is_ledger_older: bool | None = None) -> Restore | None:
        """The last time that the folder was restored, of all or of those that took the backup's
        ledger; None where it never was.
        """
        condition = "" if is_ledger_older is None else "WHERE is_ledger_older = ?"
        given = () if is_ledger_older is None else (is_ledger_older,)
        with self._ledger.reading() as connection:
            row = connection.execute(
                "SELECT restored_at, made_at, is_ledger_older, proven FROM restores"
                f" {condition} ORDER BY restored_at DESC LIMIT 1",
                given,
            ).fetchone()
            if row is None:
                return None
            proven = {
                name: None if each is None else datetime.fromisoformat(each)
                for name, each in json.loads(row[3]).items()
            }
            restored_at, made_at = map(datetime.fromisoformat, row[:2])
            return Restore(restored_at, made_at, bool(row[2]), proven)

"""Erasures and backups in the ledger. One method is one transaction.

An interrupted erasure continues from its entry here, and the list of erased people prevents that
they are loaded again. When the erasure has ended, its entry loses the people, and `compact` removes
the bytes, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from connector.errors import WarehouseBusy
from connector.ledger.journal_persons import JournalMatches, find_or_redact_person
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.ledger import Ledger
from connector.ledger.person import Person
from connector.ledger.receipts import (
    ListedHash,
    MissingReceipt,
    add_missing_hashes,
    missing_hashes,
    missing_receipts,
    record_release,
)
from connector.ledger.sqlite_file import (
    columns_of,
    insert,
    read_records,
    reader_of,
    to_column,
    values_of,
)

_CHECKPOINT_SECONDS = 10.0
_RETRY_SECONDS = 0.05
_text = reader_of(str)


@dataclass(frozen=True, slots=True)
class UnfinishedErasure:
    """Erasure that has not ended: its people, and `found`, the places of their data as JSON."""

    erasure: str
    begun_at: datetime
    persons: tuple[Person, ...]
    found: Mapping[str, Any]


class Erasures:
    """Erasures of one account, and its list of erased people, in the ledger.

    The list has keyed hashes of the identifiers of erased people. Every method raises a
    `WarehouseError`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find_person(self, person: Person) -> JournalMatches:
        """Return where the journal of pushes has data of a person. Changes nothing."""
        with self._ledger.reading() as connection:
            return find_or_redact_person(connection, person, None)

    def begin_erasure(
        self,
        erasure: str,
        persons: Sequence[Person],
        tokens: Sequence[Sequence[ListedHash]],
        found: Mapping[str, Any],
        at: datetime,
    ) -> None:
        """Record an erasure, list its people, and remove them from the journal of pushes.

        After this, neither a pull nor a push loads data of these people. `tokens` are the hashes of
        the identifiers of each person, in the order of `persons`. `found` are the places of their
        data as JSON, for the receipt.
        """
        with self._ledger.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            who = json.dumps([each.as_json() for each in persons])
            connection.execute(
                "INSERT INTO erasures (erasure, begun_at, who, found) VALUES (?, ?, ?, ?)",
                (erasure, at.isoformat(), who, json.dumps(found)),
            )
            connection.executemany(
                "INSERT INTO suppressed (token, kind, person, listed_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET person = excluded.person",
                [
                    (each.token, each.kind, f"{erasure}/{number}", at.isoformat())
                    for number, theirs in enumerate(tokens)
                    for each in theirs
                ],
            )
            self.remove_persons(persons, at)

    def remove_persons(self, persons: Sequence[Person], at: datetime) -> None:
        """Remove people from the journal of pushes. Called again because rows about them may have
        been added.
        """
        journal = JournalWriter(self._ledger, None, now=lambda: at)
        with journal.writing() as change:
            change.connection.execute("PRAGMA secure_delete = ON")
            for person in persons:
                find_or_redact_person(change.connection, person, journal)

    def unfinished_erasures(self) -> tuple[UnfinishedErasure, ...]:
        """Return the erasures that have not ended, the oldest first."""
        query = (
            "SELECT erasure, begun_at, who AS persons, found FROM erasures WHERE ended_at IS NULL"
            " ORDER BY begun_at, erasure"
        )

        def persons(who: str) -> tuple[Person, ...]:
            return tuple(map(Person.from_json, json.loads(who)))

        with self._ledger.reading() as connection:
            return tuple(
                read_records(connection, UnfinishedErasure, query, (), {"persons": persons})
            )

    def end_erasure(self, erasure: str, at: datetime) -> None:
        """Record that the erasure has ended, and delete its people and places from the record."""
        with self._ledger.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(
                "UPDATE erasures SET ended_at = ?, who = NULL, found = NULL WHERE erasure = ?",
                (at.isoformat(), erasure),
            )

    def listed_hashes(self) -> Iterator[tuple[ListedHash, str]]:
        """Return every hash on the list of erased people, with the pseudonym of its person
        (`ERASURE/NUMBER`).
        """
        with self._ledger.reading() as connection:
            rows = [
                tuple(map(_text, row))
                for row in connection.execute("SELECT kind, token, person FROM suppressed")
            ]
        return ((ListedHash(kind, token), person) for kind, token, person in rows)

    def restore_hashes(self, hashes: Iterable[tuple[ListedHash, str]], at: datetime) -> int:
        """Add hashes that are missing on the list of erased people, each with the pseudonym of its
        person.

        Returns the number of added hashes.
        """
        added = 0
        with self._ledger.writing() as connection:
            for each, person in hashes:
                added += connection.execute(
                    "INSERT INTO suppressed (token, kind, person, listed_at) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    (each.token, each.kind, person, at.isoformat()),
                ).rowcount
        return added

    def restore_hashes_from_receipts(self, *others: Path) -> int:
        """Add hashes from receipts that are missing on the list of erased people.

        Reads the receipts in the account's folder and in the folders `others`. Returns the number
        of added hashes.
        """
        with self._ledger.writing() as connection:
            return add_missing_hashes(connection, self._ledger.path.parent, *others)

    def count_missing_hashes(self) -> int:
        """Return the number of hashes in the receipts that are missing on the list of erased
        people.
        """
        with self._ledger.reading() as connection:
            return len(missing_hashes(connection, self._ledger.path.parent))

    def missing_receipts(self) -> list[MissingReceipt]:
        """Return the receipts of listed erasures whose files the account's folder lacks."""
        with self._ledger.reading() as connection:
            return missing_receipts(connection, self._ledger.path.parent)

    def restored_hash_counts(self) -> tuple[tuple[datetime, int], ...]:
        """Return each time at which hashes were restored from receipts, with their number, oldest
        first.
        """
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT at, hashes FROM relisted ORDER BY at").fetchall()
            whole = reader_of(int)
            return tuple((datetime.fromisoformat(at), whole(hashes)) for at, hashes in rows)

    def release_people(self, tokens: Iterable[str]) -> int:
        """Remove the people with these hashes from the list, with all of their hashes.

        The release is first recorded next to the receipts, so that a list that is restored from the
        receipts does not contain these people. Returns the number of removed hashes.
        """
        folder = self._ledger.path.parent
        with self._ledger.writing() as connection:
            add_missing_hashes(connection, folder)
            released = {
                token
                for each in tokens
                for (token,) in connection.execute(
                    "SELECT token FROM suppressed WHERE person IN"
                    " (SELECT person FROM suppressed WHERE token = ?)",
                    (each,),
                )
            }
            if released:
                record_release(connection, folder, released)
            connection.executemany(
                "DELETE FROM suppressed WHERE token = ?", [(each,) for each in released]
            )
        return len(released)

    def compact(self) -> None:
        """Rewrite the ledger's file without deleted data, and empty its write-ahead log.

        Raises `WarehouseBusy` if another process reads the log for more than ten seconds.
        """
        until = time.monotonic() + _CHECKPOINT_SECONDS
        with self._ledger.reading() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            while True:
                ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                if not is_busy:
                    return
                if time.monotonic() >= until:
                    raise WarehouseBusy(
                        f"another process is reading {self._ledger.path}, so deleted data cannot "
                        f"be removed from it",
                        action=(
                            "Stop that process, then run 'connector erase --apply' again to "
                            "continue."
                        ),
                    )
                time.sleep(_RETRY_SECONDS)


# -- Backups ---------------------------------------------------------------------------------------
# Records of backups and restores of an account's folder. One method is one transaction.


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
    """Restore of the data folder from a backup.

    Attributes:
        made_at: Time of the backup.
        is_ledger_older: True if the ledger was restored from the backup, so that it lacks
            pushes, erasures and requests since `made_at`. False if the folder kept its own ledger.
        proven: For each resource, server time up to which the restored files are verified.
    """

    restored_at: datetime
    made_at: datetime
    is_ledger_older: bool
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

    def latest_restore(self, *, is_ledger_older: bool | None = None) -> Restore | None:
        """Return the latest restore; None if there is none.

        If `is_ledger_older` is given, only restores with that value count.
        """
        query = (
            f"SELECT {columns_of(Restore)} FROM restores WHERE is_ledger_older = ?1 OR ?1 IS NULL"
            " ORDER BY restored_at DESC LIMIT 1"
        )
        with self._ledger.reading() as connection:
            found = read_records(
                connection, Restore, query, (is_ledger_older,), {"proven": _parse_proven}
            )
        return next(iter(found), None)


def _parse_proven(text: str) -> dict[str, datetime | None]:
    """Return the server time by resource, from JSON in the table `restores`."""
    return {
        name: None if each is None else datetime.fromisoformat(each)
        for name, each in json.loads(text).items()
    }

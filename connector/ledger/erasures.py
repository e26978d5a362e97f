"""What is to be erased, and who was: the notes by which an erasure that was cut
off goes on, and the list of those who must not come back unnoticed.

One method, one transaction. The note of whom an erasure is about is wiped when it has ended, and
`compact` takes the bytes away as well.
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
from connector.ledger.journal_persons import JournalMatches, reduce_journal
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.ledger import Ledger
from connector.ledger.person import Person
from connector.ledger.receipts import (
    ListedHash,
    MissingReceipt,
    list_receipted,
    missing_receipts,
    note_release,
    unlisted,
)
from connector.ledger.sqlite_file import columns_of, insert, read_records, reader_of, values_of

_CHECKPOINT_SECONDS = 10.0
_RETRY_SECONDS = 0.05
_text = reader_of(str)


@dataclass(frozen=True, slots=True)
class OpenErasure:
    """An erasure that has not ended: its persons, and what was found of them."""

    erasure: str
    begun_at: datetime
    persons: tuple[Person, ...]
    found: Mapping[str, Any]


class Erasures:
    """Erasures of one account. Every method raises a `WarehouseError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find_person(self, person: Person) -> JournalMatches:
        """Find a person in the journal of pushes. Changes nothing."""
        with self._ledger.reading() as connection:
            return reduce_journal(connection, person, None)

    def begin(
        self,
        erasure: str,
        persons: Sequence[Person],
        tokens: Sequence[Sequence[ListedHash]],
        found: Mapping[str, Any],
        at: datetime,
    ) -> None:
        """Note what is begun, list the persons, each with the hashes of the same place in
        `tokens`, and take them out of the journal: all of it or nothing. From here on
        neither a pull nor a push brings them back.
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
            self._remove_persons(persons, at)

    def remove_persons(self, persons: Sequence[Person], at: datetime) -> None:
        """Take persons out of the journal again: something may have come in since."""
        with self._ledger.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            self._remove_persons(persons, at)

    def _remove_persons(self, persons: Sequence[Person], at: datetime) -> None:
        journal = JournalWriter(self._ledger, None, now=lambda: at)
        with journal.writing() as change:
            for person in persons:
                reduce_journal(change.connection, person, journal)

    def open_erasures(self) -> tuple[OpenErasure, ...]:
        """The erasures that were begun and have not ended, the oldest first."""
        query = (
            "SELECT erasure, begun_at, who AS persons, found FROM erasures WHERE ended_at IS NULL"
            " ORDER BY begun_at, erasure"
        )

        def persons(who: str) -> tuple[Person, ...]:
            return tuple(map(Person.from_json, json.loads(who)))

        with self._ledger.reading() as connection:
            return tuple(read_records(connection, OpenErasure, query, (), {"persons": persons}))

    def end(self, erasure: str, at: datetime) -> None:
        """Note that the erasure has ended, and forget whom it was about."""
        with self._ledger.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(
                "UPDATE erasures SET ended_at = ?, who = NULL, found = NULL WHERE erasure = ?",
                (at.isoformat(), erasure),
            )

    def listed(self) -> dict[str, str]:
        """Every hash on the list, with the name under which its person's are listed."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT token, person FROM suppressed")
            return {_text(token): _text(person) for token, person in rows}

    def all_listed(self) -> Iterator[tuple[ListedHash, str]]:
        """Every hash on the list as it is listed, with the name of its person."""
        with self._ledger.reading() as connection:
            rows = [
                tuple(map(_text, row))
                for row in connection.execute("SELECT kind, token, person FROM suppressed")
            ]
        return ((ListedHash(kind, token), person) for kind, token, person in rows)

    def relist_hashes(self, hashes: Iterable[tuple[ListedHash, str]], at: datetime) -> int:
        """Put missing hashes of persons back on the list; returns how many those were."""
        added = 0
        with self._ledger.writing() as connection:
            for each, person in hashes:
                added += connection.execute(
                    "INSERT INTO suppressed (token, kind, person, listed_at) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    (each.token, each.kind, person, at.isoformat()),
                ).rowcount
        return added

    def relist_receipts(self, *others: Path) -> int:
        """Put back on the list what the receipts of the account's folder, and of `others`,
        have and it has not; returns how many hashes that were. Raises `ErasuresUnknown`.
        """
        with self._ledger.writing() as connection:
            return list_receipted(connection, self._ledger.path.parent, *others)

    def unlisted(self) -> int:
        """Count the hashes of receipts that the list lacks. Raises `ErasuresUnknown`."""
        with self._ledger.reading() as connection:
            return len(unlisted(connection, self._ledger.path.parent))

    def missing_receipts(self) -> list[MissingReceipt]:
        """Return the receipts that are missing by the list. Raises `ErasuresUnknown`."""
        with self._ledger.reading() as connection:
            return missing_receipts(connection, self._ledger.path.parent)

    def relisted(self) -> tuple[tuple[datetime, int], ...]:
        """Times when the list lacked hashes of receipts, and how many hashes."""
        with self._ledger.reading() as connection:
            rows = connection.execute("SELECT at, hashes FROM relisted ORDER BY at").fetchall()
            whole = reader_of(int)
            return tuple((datetime.fromisoformat(at), whole(hashes)) for at, hashes in rows)

    def release(self, tokens: Iterable[str]) -> int:
        """Take the persons of these hashes off the list, with all of their hashes; returns
        how many hashes those were. The release is noted next to the receipts as well, before
        it counts here: a list that is made again from the receipts does not have these
        persons.
        """
        folder = self._ledger.path.parent
        with self._ledger.writing() as connection:
            list_receipted(connection, folder)
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
                note_release(connection, folder, released)
            connection.executemany(
                "DELETE FROM suppressed WHERE token = ?", [(each,) for each in released]
            )
        return len(released)

    def compact(self) -> None:
        """Write the file again without what was deleted, and empty the log next to it.

        Raises `WarehouseBusy` where another process keeps reading the log for too long.
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
# Which backups were made of an account's folder, and how often it was restored from one.
#
# One method, one transaction; every one raises a `WarehouseError` that names the file.


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup as it was written; it may be gone by now."""

    made_at: datetime
    file: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class Restore:
    """A time when the folder was restored. `is_ledger_older` says that the ledger is
    the backup's, which knows nothing of what was pushed, erased or spent since `made_at`;
    `proven` is up to which server time each resource was proven in what was restored.
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
            connection.execute("DELETE FROM backups WHERE file = ?", (str(backup.file),))
            insert(connection, "backups", values_of(backup))

    def delete_entries(self, files: Iterable[Path]) -> None:
        """Delete the entries of removed backup files."""
        with self._ledger.writing() as connection:
            connection.executemany("DELETE FROM backups WHERE file = ?", [(str(f),) for f in files])

    def last(self) -> Backup | None:
        """The latest backup that was made; None where none was."""
        query = "SELECT made_at, file, bytes FROM backups ORDER BY made_at DESC LIMIT 1"
        with self._ledger.reading() as connection:
            return next(iter(read_records(connection, Backup, query)), None)

    def note_restore(self, restore: Restore) -> None:
        """Note that the folder was restored."""
        with self._ledger.writing() as connection:
            insert(connection, "restores", values_of(restore))

    def last_restore(self, *, is_ledger_older: bool | None = None) -> Restore | None:
        """The last restore, of all or of those that took the backup's ledger."""
        query = (
            f"SELECT {columns_of(Restore)} FROM restores WHERE is_ledger_older = ?1 OR ?1 IS NULL"
            " ORDER BY restored_at DESC LIMIT 1"
        )
        with self._ledger.reading() as connection:
            found = read_records(
                connection, Restore, query, (is_ledger_older,), {"proven": _proven}
            )
        return next(iter(found), None)


def _proven(text: str) -> dict[str, datetime | None]:
    return {
        name: None if each is None else datetime.fromisoformat(each)
        for name, each in json.loads(text).items()
    }

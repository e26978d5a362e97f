"""Receipts of erasures: they restore the list of erased people if a ledger has lost it.

Pulls and pushes use the list in the ledger. Each receipt in the account's folder has the hashes of
one erasure. Each `released-*.json` next to them lists released hashes with the name of their
erasure, so that no clock decides. A hash is on the list if a receipt contains it that no release
names. The functions use an open connection; the caller holds the transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

from connector.atomic_files import write_atomically
from connector.errors import WarehouseError, count_noun, file_error
from connector.ledger.person import (
    KEY_FILE,
    KEY_LOST,
    IdentifierKind,
    key_fingerprint,
    read_suppression_key,
)
from connector.log import new_id
from connector.settings.layers import RECEIPTS_FOLDER

T = TypeVar("T")

_RECEIPTS, _RELEASES = "erasure-*.json", "released-*.json"


@dataclass(frozen=True, slots=True)
class ListedHash:
    """Keyed hash of an identifier of an erased person, with the identifier's kind."""

    kind: IdentifierKind
    token: str


# An erasure that has not ended has no receipt yet.
_LISTED = """
    WITH listed AS (
        SELECT *, substr(person, 1, instr(person, '/') - 1) AS erasure FROM suppressed
    )
    SELECT erasure, kind, token,
        coalesce(begun_at, listed_at) AS begun_at, coalesce(ended_at, listed_at) AS ended_at
    FROM listed LEFT JOIN erasures USING (erasure)
    WHERE begun_at IS NULL OR ended_at IS NOT NULL
    ORDER BY begun_at, erasure, CAST(substr(person, instr(person, '/') + 1) AS INTEGER),
        instr('id email phone profile', kind), token
"""
"""Query for every hash on the list with its erasure, sorted as in a receipt."""


@dataclass(frozen=True, slots=True)
class _ListEntry:
    """Hash from a receipt, with all that its entry on the list of erased people needs."""

    erasure: str
    begun_at: str
    listed: ListedHash
    person: str


@dataclass(frozen=True, slots=True)
class MissingReceipt:
    """Receipt whose file the account's folder lacks although the ledger lists its hashes."""

    path: Path
    begun_at: datetime
    ended_at: datetime
    hashes: tuple[ListedHash, ...]

    def __str__(self) -> str:
        return (
            f"{self.path} is missing: if the ledger were lost, too, the connector would not "
            f"recognize"
            f" {count_noun(len(self.hashes), 'hash', 'hashes')} of erased people"
        )


RECEIPT_MISSING_ACTION = (
    "Restore the receipt from a backup. Without a backup, run 'connector doctor --repair': it"
    " writes the hashes again from the ledger."
)
"""What to do if a receipt is missing and the ledger is in order."""


def missing_receipts(connection: sqlite3.Connection, folder: Path) -> list[MissingReceipt]:
    """Return the receipts that the ledger's list expects and the folder lacks, the oldest first.

    Raises `WarehouseError` for a receipt that cannot be read.
    """
    receipts = folder / RECEIPTS_FOLDER
    kept = {each.listed.token for each in _read_receipts(receipts)}
    found: dict[str, list[tuple[IdentifierKind, str, str, str]]] = {}
    for erasure, *row in connection.execute(_LISTED):
        found.setdefault(erasure, []).append((row[0], row[1], row[2], row[3]))
    return [
        MissingReceipt(
            path,
            datetime.fromisoformat(rows[0][2]),
            datetime.fromisoformat(rows[0][3]),
            tuple(ListedHash(kind, token) for kind, token, *_ in rows),
        )
        for erasure, rows in found.items()
        if not (path := receipts / f"{erasure}.json").exists()
        and not kept.issuperset(token for _, token, *_ in rows)
    ]


def add_missing_hashes(connection: sqlite3.Connection, folder: Path, *others: Path) -> int:
    """Add the hashes of receipts that the ledger's list lacks, and return their number.

    Reads the receipts in the account's `folder` and in the folders `others`, and records the time
    in the table `relisted`. Raises a `WarehouseError`.
    """
    rows = missing_hashes(connection, folder, *others)
    connection.executemany(
        "INSERT INTO suppressed (token, kind, person, listed_at) VALUES (?, ?, ?, ?)", rows
    )
    if rows:
        at = datetime.now(UTC).isoformat()
        connection.execute("INSERT INTO relisted (at, hashes) VALUES (?, ?)", (at, len(rows)))
    return len(rows)


def missing_hashes(
    connection: sqlite3.Connection, folder: Path, *others: Path
) -> list[tuple[str, str, str, str]]:
    """Return the hashes of receipts that the ledger's list lacks, as rows of `suppressed`.

    The columns are token, kind, person and listed_at. Raises a `WarehouseError` if a receipt cannot
    be read, or if the key is lost and any hash depends on it.
    """
    entries = _listed_by_receipts(folder / RECEIPTS_FOLDER, *others)
    listed = {token for (token,) in connection.execute("SELECT token FROM suppressed")}
    if (entries or listed) and not (folder / KEY_FILE).exists():
        raise WarehouseError(
            f"{folder / KEY_FILE} is missing, so erased people would not be recognized",
            action=KEY_LOST,
            code="erasures_unknown",
        )
    _check_key(folder)
    rows = {e.listed.token: (e.listed.token, e.listed.kind, e.person, e.begun_at) for e in entries}
    return [row for token, row in rows.items() if token not in listed]


def _check_key(folder: Path) -> None:
    """Raise `WarehouseError` if a receipt in the folder was made with another key."""
    key = read_suppression_key(folder)
    if key is None:
        return
    for path, receipt in _read_json_files(folder / RECEIPTS_FOLDER, _RECEIPTS):
        if receipt.get("key", key_fingerprint(key)) != key_fingerprint(key):
            raise WarehouseError(
                f"{folder / KEY_FILE} is not the key of {path}: one of the two files belongs to"
                " another data folder, so the connector could load erased people again",
                action=f"Restore {KEY_FILE} from a backup, or move the receipt to its own folder.",
                code="erasures_unknown",
            )


def record_release(connection: sqlite3.Connection, folder: Path, tokens: Iterable[str]) -> None:
    """Write a file next to the receipts: these hashes are released from every erasure so far.

    The file survives a power cut. Raises a `WarehouseError`.
    """
    receipts = folder / RECEIPTS_FOLDER
    erasures = {each.erasure for each in _read_receipts(receipts)}
    erasures |= {name for (name,) in connection.execute("SELECT erasure FROM erasures")}
    at = datetime.now(UTC)
    document = {
        "released_at": at.isoformat(),
        "erasures": sorted(erasures),
        "hashes": sorted(tokens),
    }
    path = receipts / f"released-{new_id(at)}.json"
    try:
        receipts.mkdir(mode=0o700, exist_ok=True)
        with write_atomically(path) as file:
            file.write(f"{json.dumps(document, indent=2)}\n".encode())
    except OSError as error:
        raise file_error(path, error) from error


def _listed_by_receipts(*folders: Path) -> list[_ListEntry]:
    """Return an entry for each hash of each receipt, without released hashes."""
    released = {
        pair for folder in folders for pair in _parse_files(folder, _RELEASES, _released_pairs)
    }
    return [
        each
        for folder in folders
        for each in _read_receipts(folder)
        if (each.erasure, each.listed.token) not in released
    ]


def _read_receipts(folder: Path) -> Iterator[_ListEntry]:
    """Yield an entry for each hash of each receipt in the folder, including released hashes."""
    return _parse_files(folder, _RECEIPTS, _receipt_entries)


def _parse_files(folder: Path, pattern: str, parse: Callable[[Any], Iterable[T]]) -> Iterator[T]:
    """Yield the values that `parse` finds in each JSON file whose name matches the pattern."""
    for path, receipt in _read_json_files(folder, pattern):
        try:
            found = list(parse(receipt))
        except (ValueError, TypeError, KeyError) as error:
            raise _unreadable_error(path, error) from error
        yield from found


def _read_json_files(folder: Path, pattern: str) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the JSON document of each file whose name matches the pattern."""
    try:
        paths = sorted(folder.glob(pattern))
        contents = [(path, path.read_bytes()) for path in paths]
    except OSError as error:
        raise file_error(folder, error) from error
    for path, content in contents:
        try:
            document = json.loads(content)
        except ValueError as error:
            raise _unreadable_error(path, error) from error
        yield path, document


def _unreadable_error(path: Path, error: Exception) -> WarehouseError:
    """Return the error for a receipt or release that cannot be parsed."""
    return WarehouseError(
        f"{path} cannot be read ({type(error).__name__}), so the connector could load erased "
        f"people again",
        action="Restore the file from a backup. Without a backup, move the file away and run"
        " 'connector doctor --repair': it writes the hashes again if the ledger has them.",
        code="erasures_unknown",
    )


def _released_pairs(receipt: Any) -> Iterator[tuple[str, str]]:
    """Yield (erasure, hash) for every erasure and every hash of a release file."""
    return ((str(e), str(token)) for e in receipt["erasures"] for token in receipt["hashes"])


def _receipt_entries(receipt: Any) -> Iterator[_ListEntry]:
    """Yield an entry for each hash of a receipt, and number its people.

    Hashes of one person are sorted by kind: a hash whose kind comes earlier begins the next person.
    """
    order: tuple[IdentifierKind, ...] = get_args(IdentifierKind)
    erasure = str(receipt["erasure"])
    begun_at = datetime.fromisoformat(receipt["begun_at"]).isoformat()
    number = last = 0
    for each in receipt["hashes"]:
        place = order.index(each["of"])
        number += place < last
        last = place
        listed = ListedHash(order[place], str(each["hmac_sha256"]))
        yield _ListEntry(erasure, begun_at, listed, f"{erasure}/{number}")

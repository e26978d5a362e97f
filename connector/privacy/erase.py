"""Erasures: recorded first, then carried out everywhere, and checked at the end.

The ledger records an erasure before any other step, so that the next erasure continues one that was
interrupted. Every step can be repeated. The same transaction adds the person to the suppression
list and removes them from the journal, so that they cannot return unnoticed. The leases of pulls
and pushes are held until the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.errors import ConnectorError, MartsMissing, Misused
from connector.ledger.erasures import Erasures, UnfinishedErasure
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.ledger.person import (
    Person,
    hash_identifier,
    key_fingerprint,
    read_or_create_key,
    read_suppression_key,
)
from connector.ledger.receipts import ListedHash
from connector.ledger.request_budget import RENEWAL_SECONDS
from connector.log import new_id
from connector.privacy.folder_files import remove_from_files, search_files
from connector.privacy.locate import IdentifiedPerson, find_person, parse_address_or_id
from connector.privacy.person_locations import find_locations, find_returned_people
from connector.privacy.receipt import PersonLocations, PersonPlace, Receipt, write_receipt
from connector.publishing.publication import publication_lock as alone_publishing
from connector.publishing.publication import publish
from connector.pulls.run_context import PULL_LEASE
from connector.pulls.workspace import read_folder_identity
from connector.pushes.landed_writes import copy_journal
from connector.report.page import REPORT_FILE, write_report
from connector.settings.model import Settings
from connector.version import program_version
from connector.warehouse.duckdb_file import open_file, transaction
from connector.warehouse.persons import CurrentErasure, remove_person
from connector.warehouse.warehouse import Warehouse
from connector.warehouse.work_file import compact, remove_draft

_NAMES = (PULL_LEASE, PUSH_LEASE)


@contextmanager
def hold_pull_and_push_leases(
    ledger: Ledger, run_id: str, command: str, now: Callable[[], datetime]
) -> Iterator[None]:
    """Hold the account's leases for pulls and for pushes, and renew them in a thread.

    `run_id` and `command` identify the holder in the errors of other processes. Raises `LeaseHeld`,
    which names the running command, or a `WarehouseError`. The leases of a process that dies can be
    taken over immediately.
    """
    owner = LeaseOwner.of_this_process(run_id, command)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(RENEWAL_SECONDS):
            for name in _NAMES:
                # If the ledger cannot be written to now, the next heartbeat tries again.
                with suppress(ConnectorError):
                    ledger.renew_lease(name, run_id, now())

    renewal_thread = threading.Thread(target=beat, name="leases", daemon=True)
    try:
        for name in _NAMES:
            ledger.take_lease(name, owner, now())
        renewal_thread.start()
        yield
    finally:
        over.set()
        if renewal_thread.ident is not None:
            renewal_thread.join()
        for name in _NAMES:
            with suppress(ConnectorError):
                ledger.release_lease(name, run_id)


# -- Erase -----------------------------------------------------------------------------------------

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Result of an erasure: the data found, and the receipts of completed erasures.

    A preview has no receipt. `interrupted` is the number of erasures that an earlier run did not
    complete; a preview reports them.
    """

    found: PersonLocations | None
    receipts: tuple[Receipt, ...] = ()
    receipt_files: tuple[Path, ...] = ()
    interrupted: int = 0

    @property
    def exit_status(self) -> int:
        """Return 3 if a receipt lists steps that the user must do, else 0."""
        return 0 if all(each.is_clean for each in self.receipts) else 3

    def as_json(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            **({} if self.found is None else self.found.as_json()),
            "applied": bool(self.receipts),
            "unended": self.interrupted,
            "receipts": [each.as_json() for each in self.receipts],
            "files": [str(each) for each in self.receipt_files],
        }


def erase(
    settings: Settings, address_or_id: str | None, *, applies: bool = False, now: Clock = _now
) -> ErasureResult:
    """Erase the person with this address or id; without `applies`, only preview.

    Interrupted erasures are completed first. If `address_or_id` is None, only this is done, and
    erased people who have returned are erased again.

    Raises:
        Misused: The value is no address and no id, or rows of pushes about the person are in doubt.
        LeaseHeld: A pull or a push is running.
        PublishingRefused: No file could be published without the person.
        WarehouseError: A file cannot be used. The next call continues a started erasure.
    """
    seed = None if address_or_id is None else parse_address_or_id(address_or_id)
    if not applies:
        found = None if seed is None else find_locations(settings, find_person(settings, seed))
        return ErasureResult(found, interrupted=_count_unfinished_erasures(settings))
    if seed is None:
        return erase_all(settings, find_returned_people(settings), were_erased=True, now=now)
    return erase_all(settings, [seed], now=now)


def erase_all(
    settings: Settings,
    people: Sequence[Person],
    *,
    were_erased: bool = False,
    holds_leases: bool = False,
    now: Clock = _now,
) -> ErasureResult:
    """Erase all of these people in one run; raises as `erase` does.

    With `were_erased` an earlier erasure removed them, and restored files contain them again. With
    `holds_leases` the caller already holds the leases for pulls and pushes.
    """
    folder = settings.folder
    if not folder.is_dir():
        return ErasureResult(None)
    with ExitStack() as turn:
        ledger = turn.enter_context(Ledger(folder))
        read_folder_identity(ledger, Warehouse(folder))
        if not holds_leases:
            turn.enter_context(
                hold_pull_and_push_leases(ledger, _new_erasure_id(now()), "erase", now)
            )
        erasing = _ErasureRun(settings, ledger, now)
        # If the key is lost, a new one would be created, and erased people would not be recognized.
        erasing.erasures.restore_hashes_from_receipts()
        warehouse = Warehouse(folder)
        if warehouse.is_lost:
            # The next pull creates it, from a file that may contain the person.
            warehouse.prepare()
        receipts = [erasing.carry_out(each) for each in erasing.erasures.unfinished_erasures()]
        found = None
        located = [find_person(settings, seed, was_erased=were_erased) for seed in people]
        erasable = [each for each in located if find_locations(settings, each).is_erasable]
        if erasable:
            found, recorded = erasing.record_erasure(erasable)
            receipts.append(erasing.carry_out(recorded))
        elif located:
            found = find_locations(settings, located[0])
    return ErasureResult(
        found, tuple(each for each, _ in receipts), tuple(path for _, path in receipts)
    )


def remove_suppression(settings: Settings, address_or_id: str) -> int:
    """Remove an address or id, and all identifiers listed with it, from the list of erased people.

    Returns the number of removed hashes. No data is restored, but the next response or row with the
    person is accepted. Raises `Misused` and a `WarehouseError`.
    """
    key = read_suppression_key(settings.folder)
    if key is None:
        return 0
    tokens = [
        hash_identifier(key, kind, value)
        for kind, value in parse_address_or_id(address_or_id).identifiers()
    ]
    with Ledger(settings.folder) as ledger:
        return Erasures(ledger).release_people(tokens)


class _ErasureRun:
    """Records each erasure, then removes the data. The caller holds the account's leases."""

    def __init__(self, settings: Settings, ledger: Ledger, now: Clock) -> None:
        self._settings, self._folder, self._now = settings, settings.folder, now
        self._warehouse = Warehouse(settings.folder)
        self.erasures = Erasures(ledger)

    def record_erasure(
        self, located: Sequence[IdentifiedPerson]
    ) -> tuple[PersonLocations, UnfinishedErasure]:
        """Record an erasure in the ledger, with the places found now; no data is removed yet.

        Returns these places and the recorded erasure. Raises `Misused` if rows of pushes are in
        doubt.
        """
        found = _join_locations(self._settings, located)
        if found.rows_in_doubt:
            raise Misused(
                f"{found.rows_in_doubt} rows of pushes for this person are unconfirmed",
                action="Resolve them with 'connector resolve', then erase the person.",
            )
        began = self._now()
        persons = tuple(each.person for each in located)
        erasure = UnfinishedErasure(_new_erasure_id(began), began, persons, found.as_json())
        hashes = [self._identifier_hashes(each) for each in persons]
        self.erasures.begin_erasure(erasure.erasure, persons, hashes, erasure.found, began)
        return found, erasure

    def carry_out(self, erasure: UnfinishedErasure) -> tuple[Receipt, Path]:
        """Remove the people of a recorded erasure everywhere; return the receipt and its file.

        An erasure that was interrupted is repeated from its first step.
        """
        self.erasures.remove_persons(erasure.persons, erasure.begun_at)
        self._clean_work_file(erasure)
        for person in erasure.persons:
            remove_from_files(search_files(self._folder, person), person)
        self._publish_again()
        remaining = _join_locations(self._settings, map(IdentifiedPerson, erasure.persons))
        found = erasure.found
        receipt = Receipt(
            erasure=erasure.erasure,
            account=self._settings.account.value,
            version=program_version(),
            begun_at=erasure.begun_at,
            ended_at=self._now(),
            key=key_fingerprint(read_or_create_key(self._folder)),
            hashes=tuple(
                each for person in erasure.persons for each in self._identifier_hashes(person)
            ),
            removed=tuple(PersonPlace(**each) for each in found["places"]),
            left=remaining.places,
            by_hand=tuple(dict.fromkeys((*found["by_hand"], *remaining.by_hand))),
            not_searched=remaining.not_searched,
            mentions=remaining.mentions,
            shared_identifiers=found["shared_identifiers"],
            whole_files=tuple(found["whole_files"]),
        )
        path = write_receipt(receipt, self._folder)
        self.erasures.end_erasure(erasure.erasure, receipt.ended_at)
        self.erasures.compact()
        return receipt, path

    def _clean_work_file(self, erasure: UnfinishedErasure) -> None:
        """Remove the people from the work file and compact it."""
        if not self._warehouse.exists:
            return
        self._warehouse.prepare()
        copy_journal(self._settings)
        erasing = CurrentErasure(erasure.erasure, erasure.begun_at)
        with open_file(self._warehouse.work) as connection, transaction(connection):
            for person in erasure.persons:
                remove_person(connection, person, erasing)
        compact(self._warehouse.work)

    def _publish_again(self) -> None:
        """Delete prepared drafts, and rewrite the published file and the report."""
        published = self._warehouse.published
        # A prepared publication is older than the erasure.
        with alone_publishing(self._folder):
            for each in self._folder.glob(f"{published.name}.*"):
                if not each.name.endswith((".wal", ".tmp")):
                    remove_draft(each)
        if published.exists():
            publish(self._settings, now=self._now)
        page = self._folder / REPORT_FILE
        if page.exists():
            account = self._settings.account.value
            try:
                write_report(published, page, written_at=self._now(), account=account)
            except MartsMissing:
                # It was made when there were marts, and cannot be made again.
                page.unlink()

    def _identifier_hashes(self, person: Person) -> tuple[ListedHash, ...]:
        """Return the keyed hash of each identifier of the person."""
        key = read_or_create_key(self._folder)
        return tuple(
            ListedHash(k, hash_identifier(key, k, value)) for k, value in person.identifiers()
        )


def _count_unfinished_erasures(settings: Settings) -> int:
    """Return the number of erasures that the ledger records as begun and not ended."""
    with Ledger(settings.folder) as ledger:
        return len(Erasures(ledger).unfinished_erasures()) if ledger.exists else 0


def _join_locations(settings: Settings, located: Iterable[IdentifiedPerson]) -> PersonLocations:
    """Return the locations of all people together, searched now."""
    return sum((find_locations(settings, each) for each in located), PersonLocations())


def _new_erasure_id(at: datetime) -> str:
    """Return a new id of an erasure, which is also the name of its receipt."""
    return f"erasure-{new_id(at)}"

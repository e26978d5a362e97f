"""Alert checks: look, decide, write down, deliver; one at a time for an account.

A check decides before it delivers, and what it decides is on the disk before anything leaves. A
sink that fails is left alone until the check after next, and then for longer and longer; whatever
waits for it is kept. Messages about the same thing arrive in the order in which they happened.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.errors import ConnectorError, NotDelivered, WarehouseError, count_noun
from connector.errors_api import LeaseHeld
from connector.ledger.alert_states import AlertRecord, AlertStates, DeliveryRecord, MessageRecord
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.operations.alerts import ABOUT_SEPARATOR, ALERTS, Decision, Subject, decide
from connector.operations.delivery import Sink, sinks_of
from connector.operations.findings import JobRun, look, of_files, sight_of
from connector.pulls.outcome import plain
from connector.settings.model import Settings
from connector.system.atomic_files import FILE_MODE

ALERT_LEASE = "alerts"
"""What there is one of at a time, for each account: whoever decides and delivers."""

DELIVER_SECONDS = 30.0
"""For how long one check sends, whatever waits: the rest is for the next one."""

RETRY_MIN = timedelta(minutes=1)
RETRY_MAX = timedelta(minutes=15)
"""The wait after the first attempt in vain, and the longest that doubling it leads to."""

UNUSABLE = "files_unusable"
"""The alert of a work file or a ledger, which may be told without one."""

KEPT = timedelta(days=90)
"""For how long messages are kept that have arrived."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Messages that have not arrived at one sink.

    `failed_since` and `reason` tell of attempts in vain; both are None where none was made yet.
    """

    sink: str
    messages: int
    failed_since: datetime | None
    reason: str | None

    @property
    def failure(self) -> str | None:
        """A sentence where messages do not arrive; None where none was tried yet."""
        if self.failed_since is None:
            return None
        alerts = count_noun(self.messages, "alert has", "alerts have")
        since = f"{self.failed_since:%Y-%m-%d %H:%M:%S}Z"
        return f"{alerts} not arrived since {since}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AlertCheck:
    """Result of a check: what has changed, what stands, what has arrived, what waits.

    `is_skipped`: another process is at it.
    """

    account: str | None
    changes: tuple[MessageRecord, ...] = ()
    standing: tuple[AlertRecord, ...] = ()
    delivered: int = 0
    undelivered: tuple[DeliveryRecord, ...] = ()
    is_skipped: bool = False

    @property
    def waiting(self) -> tuple[Undelivered, ...]:
        """Messages that wait, by sink."""
        found = []
        for sink in sorted({each.sink for each in self.undelivered}):
            waits = [each for each in self.undelivered if each.sink == sink]
            tried = [each for each in waits if each.failed_since is not None]
            since = min((e.failed_since for e in tried if e.failed_since is not None), default=None)
            reason = max(tried, key=lambda e: e.next_at).reason if tried else None
            found.append(Undelivered(sink, len(waits), since, reason))
        return tuple(found)

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence on each sink that messages do not arrive at."""
        return tuple(failure for each in self.waiting if (failure := each.failure))

    def as_json(self) -> dict[str, Any]:
        """The check as `--json` prints it."""
        told: dict[str, Any] = plain(asdict(self))
        return told | {"failures": list(self.failures)}


def check_alerts(
    settings: Settings,
    *,
    jobs: Sequence[JobRun] = (),
    met: ConnectorError | None = None,
    forces: bool = False,
    sinks: Sequence[Sink] | None = None,
    seconds: float = DELIVER_SECONDS,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AlertCheck:
    """Decide which of the account's alerts are due, and deliver what waits.

    Nothing is done where no sink is set.

    `jobs` are the last runs of whatever runs the connector, and `met` is what ended the command
    that checks. It `forces` attempts that are not due yet. A delivery that fails is part of the
    result. Raises a `WarehouseError` of the ledger, once the sinks were told of it.
    """
    found = sinks_of(settings) if sinks is None else tuple(sinks)
    if not found:
        return AlertCheck(settings.account.value)
    settings.make_folder()
    moment = now()
    account = settings.account.value
    with Ledger(settings.folder) as ledger:
        try:
            with _alone(ledger, moment):
                book = AlertStates(ledger)
                standing = book.alerts()
                told = (*standing, *_told_without_ledger(settings, standing))
                decision = due(settings, told, moment, jobs, met)
                if decision.messages or decision.standing != standing:
                    names = [each.name for each in found]
                    book.record(decision.standing, decision.messages, names)
                    book.forget(moment - KEPT)
                for each in settings.folder.glob(f"{_TOLD}*"):
                    each.unlink()
                delivered = _deliver(book, found, now, seconds=seconds, forces=forces)
                left = book.undelivered(each.name for each in found)
        except LeaseHeld:
            return AlertCheck(account, is_skipped=True)
        except WarehouseError as error:
            _tell_without_ledger(settings, error, found, moment)
            raise
    return AlertCheck(account, decision.messages, decision.standing, delivered, left)


_TOLD = "told-without-ledger."
"""Beginning of the name of an empty file, which is all that a full disk has room for. The code of
the error that was told follows.
"""


def _told_without_ledger(
    settings: Settings, standing: Iterable[AlertRecord]
) -> Iterator[AlertRecord]:
    """The alert that was told while no ledger could keep it, unless one stands there."""
    is_there = any(each.code == UNUSABLE for each in standing)
    for each in [] if is_there else [*settings.folder.glob(f"{_TOLD}*")][:1]:
        at, code = datetime.fromtimestamp(each.stat().st_mtime, UTC), each.suffix.removeprefix(".")
        yield AlertRecord(UNUSABLE, "", at, at, ALERTS[UNUSABLE].meaning, "", (code,))


def _tell_without_ledger(
    settings: Settings, error: WarehouseError, sinks: Sequence[Sink], moment: datetime
) -> None:
    """Tell once that no alert can be written down. Raises `NotDelivered`."""
    mark = settings.folder / f"{_TOLD}{error.code}"
    if mark.exists():
        return
    sight = {Subject(UNUSABLE): of_files(error)}
    kinds, account = settings.alert_kinds.value, settings.account.value
    for message in decide((), sight, moment, kinds, account).messages:
        for sink in sinks:
            sink.send(message)
    with suppress(OSError):
        mark.touch(FILE_MODE)
        os.utime(mark, (moment.timestamp(), moment.timestamp()))


def due(
    settings: Settings,
    standing: Iterable[AlertRecord],
    now: datetime,
    jobs: Sequence[JobRun] = (),
    met: ConnectorError | None = None,
) -> Decision:
    """Decision that a check would come to now; nothing is written or sent."""
    standing = tuple(standing)
    sight = {
        subject: found and replace(found, action=settings.name_places(found.action))
        for subject, found in sight_of(look(settings, now, standing), jobs, met).items()
    }
    kinds = settings.alert_kinds.value
    return decide(standing, sight, now, kinds, settings.account.value)


def open_alerts(settings: Settings) -> AlertCheck:
    """Open alerts, and what has not arrived at the sinks that are set.

    Nothing is looked at anew, and no file is made. Raises a `WarehouseError`.
    """
    account = settings.account.value
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return AlertCheck(account)
        book = AlertStates(ledger)
        left = book.undelivered(each.name for each in sinks_of(settings))
        return AlertCheck(account, standing=book.alerts(), undelivered=left)


def present_alerts(settings: Settings, now: datetime) -> AlertCheck:
    """What a check would find now, sinks or not; nothing is sent or written."""
    stands = open_alerts(settings)
    decision = due(settings, stands.standing, now)
    return replace(stands, changes=decision.messages, standing=decision.standing)


def trial_message(now: datetime) -> MessageRecord:
    """A message that says nothing but that messages arrive."""
    return MessageRecord(
        id=f"{now:%Y%m%dT%H%M%S%fZ}-test-{secrets.token_hex(3)}",
        change="test",
        at=now,
        code="test",
        about="",
        since=now,
        happened="This is a test: alerts of this account arrive here.",
        action="Nothing need be done.",
    )


@contextmanager
def _alone(ledger: Ledger, now: datetime) -> Iterator[None]:
    """Hold the lease of alerts. Raises `LeaseHeld`."""
    owner = LeaseOwner.of_this_process(f"alerts-{secrets.token_hex(4)}", "alerts")
    ledger.take_lease(ALERT_LEASE, owner, now)
    try:
        yield
    finally:
        ledger.release_lease(ALERT_LEASE, owner.run_id)


def _deliver(
    book: AlertStates,
    sinks: Sequence[Sink],
    now: Callable[[], datetime],
    *,
    seconds: float,
    forces: bool,
) -> int:
    """Send what is due, sink by sink; says how many messages have arrived."""
    until = time.monotonic() + seconds
    delivered = 0
    for sink in sinks:
        behind: set[Subject] = set()
        for each in book.undelivered((sink.name,)):
            about = each.message.about.split(ABOUT_SEPARATOR)
            subjects = {Subject(each.message.code, name) for name in about}
            if subjects & behind or not (forces or each.next_at <= now()):
                behind |= subjects
                continue
            if time.monotonic() >= until:
                break
            try:
                sink.send(each.message)
            except NotDelivered as error:
                moment = now()
                wait = min(RETRY_MAX, RETRY_MIN * 2 ** min(each.attempts, 10))
                book.failed(each, moment, str(error), moment + wait)
                # Whoever failed just now will fail again: the rest waits for the next check.
                break
            book.arrived(each, now())
            delivered += 1
    return delivered

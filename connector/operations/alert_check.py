"""Alert checks: read, decide, record, deliver; one at a time for an account.

A decision is stored before its messages are sent. The next check sends a message that no channel
accepted again, with the same id.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from connector.atomic_files import FILE_MODE
from connector.errors import ConnectorError, NotDelivered, WarehouseError, count_noun
from connector.errors_api import LeaseHeld
from connector.ledger.alert_states import AlertRecord, read_alerts, write_alerts
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.operations.alerts import Message, decide_alerts, due_messages
from connector.operations.delivery import Sink, configured_sinks
from connector.operations.findings import (
    JobRun,
    Subject,
    file_problem,
    find_problems,
    read_snapshot,
)
from connector.pulls.outcome import to_json_value
from connector.settings.model import Settings

ALERT_LEASE = "alerts"
"""Lease of the process that checks an account's alerts."""

UNUSABLE = "files_unusable"
"""Code of the alert that can be sent without a ledger to record it."""


@dataclass(frozen=True, slots=True)
class AlertCheck:
    """Result of a check of one account's alerts.

    Attributes:
        alerts: All recorded alerts.
        due: Alerts to be sent.
        undelivered: Recorded alerts whose latest change was not delivered.
        delivered: Number of messages that were delivered.
        reasons: Reasons why other messages were not delivered.
        is_skipped: True if another process is checking.
    """

    account: str | None
    alerts: tuple[AlertRecord, ...] = ()
    due: tuple[AlertRecord, ...] = ()
    undelivered: tuple[AlertRecord, ...] = ()
    delivered: int = 0
    reasons: tuple[str, ...] = ()
    is_skipped: bool = False

    @property
    def open(self) -> tuple[AlertRecord, ...]:
        """Open alerts."""
        return tuple(each for each in self.alerts if each.is_open)

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences on undelivered messages, or on a second channel that does not work."""
        if not self.undelivered:
            return tuple(f"alerts reach one channel only: {each}" for each in self.reasons)
        alerts = count_noun(len(self.undelivered), "alert was", "alerts were")
        since = min(each.changed_at for each in self.undelivered)
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return (f"{alerts} not delivered since {since:%Y-%m-%d %H:%M:%S}Z{why}",)

    def as_json(self) -> dict[str, Any]:
        """Return the check as `--json` prints it."""
        return {
            "account": self.account,
            "alerts": [to_json_value(asdict(each)) for each in self.alerts],
            "delivered": self.delivered,
            "is_skipped": self.is_skipped,
            "failures": list(self.failures),
        }


def check_alerts(
    settings: Settings,
    *,
    jobs: Sequence[JobRun] = (),
    command_error: ConnectorError | None = None,
    sinks: Sequence[Sink] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AlertCheck:
    """Decide which of the account's alerts are due and deliver them. Does nothing without a sink.

    `jobs` are the last runs of Dagster's jobs. `command_error` is the error that ended the
    current command. Raises a `WarehouseError` of the ledger, after sending it to the sinks.
    """
    found = configured_sinks(settings) if sinks is None else tuple(sinks)
    account, at = settings.account.value, now()
    if not found:
        return AlertCheck(account)
    settings.make_folder()
    owner = LeaseOwner.of_this_process(f"alerts-{secrets.token_hex(4)}", "alerts")
    with Ledger(settings.folder) as ledger:
        try:
            ledger.take_lease(ALERT_LEASE, owner, at)
            try:
                before = read_alerts(ledger)
                alerts = due_alerts(
                    settings, _add_unrecorded_alert(settings, before), at, jobs, command_error
                )
                if alerts != before:
                    write_alerts(ledger, alerts)
                for each in settings.folder.glob(f"{_UNRECORDED}*"):
                    each.unlink()
                return _deliver(ledger, found, AlertCheck(account, alerts), at)
            finally:
                ledger.release_lease(ALERT_LEASE, owner.run_id)
        except LeaseHeld:
            return AlertCheck(account, is_skipped=True)
        except WarehouseError as error:
            _send_without_ledger(settings, error, found, at)
            raise


def due_alerts(
    settings: Settings,
    before: Iterable[AlertRecord],
    now: datetime,
    jobs: Sequence[JobRun] = (),
    command_error: ConnectorError | None = None,
) -> tuple[AlertRecord, ...]:
    """Return the alerts of the account after a check now; those without `sent_at` are to be sent.

    `before` are the recorded alerts. Writes and sends nothing.
    """
    before = tuple(before)
    problems = {
        subject: found
        and replace(found, action=settings.replace_variables_by_origins(found.action))
        for subject, found in find_problems(
            read_snapshot(settings, now, before, jobs, command_error)
        ).items()
    }
    zone = ZoneInfo(settings.time_zone.value)
    return decide_alerts(before, problems, now, settings.alert_kinds.value, zone)


def open_alerts(settings: Settings) -> AlertCheck:
    """Return the recorded alerts without checking the files. Raises a `WarehouseError`."""
    account = settings.account.value
    with Ledger(settings.folder) as ledger:
        alerts = read_alerts(ledger) if ledger.exists else ()
    is_heard = bool(configured_sinks(settings))
    undelivered = tuple(each for each in alerts if each.sent_at is None and is_heard)
    return AlertCheck(account, alerts, undelivered=undelivered)


def current_alerts(settings: Settings, now: datetime) -> AlertCheck:
    """Return the alerts that a check would find now, even without a channel. Writes nothing."""
    recorded = open_alerts(settings)
    alerts = due_alerts(settings, recorded.alerts, now)
    changed = tuple(each for each in alerts if each not in recorded.alerts and each.sent_at is None)
    return replace(recorded, alerts=alerts, due=changed)


def make_test_message(now: datetime) -> Message:
    """Return a message that tests the channels; it belongs to no alert."""
    return Message(
        id=f"{now:%Y%m%dT%H%M%S%fZ}-test-{secrets.token_hex(3)}",
        change="test",
        at=now,
        code="test",
        about=(),
        since=now,
        title="test of the alerts",
        happened="Alerts of this account arrive here.",
        action="",
    )


def _deliver(ledger: Ledger, sinks: Sequence[Sink], check: AlertCheck, now: datetime) -> AlertCheck:
    """Send due alerts to every channel; record each alert that at least one channel accepted."""
    working, reasons, delivered = list(sinks), list[str](), 0
    alerts, undelivered = list(check.alerts), list[AlertRecord]()
    changed = tuple(each for each in alerts if each.sent_at is None)
    for message, same in due_messages(alerts, check.account):
        is_taken = False
        for sink in tuple(working):
            try:
                sink.send(message)
                is_taken = True
            except NotDelivered as error:
                # The next message would fail too; the next check tries again.
                working.remove(sink)
                reasons.append(str(error))
        if not is_taken:
            undelivered += same
            continue
        delivered += 1
        alerts = [
            replace(each, sent_at=now) if each in same else each
            for each in alerts
            if each.is_open or each not in same
        ]
        write_alerts(ledger, alerts)
    return replace(
        check,
        alerts=tuple(alerts),
        due=changed,
        undelivered=tuple(undelivered),
        delivered=delivered,
        reasons=tuple(reasons),
    )


# -- Without a ledger ------------------------------------------------------------------------------
# A ledger cannot record that it cannot be written to. An empty file does, because it fits on a full
# disk: its name contains the error code.

_UNRECORDED = "told-without-ledger."


def _add_unrecorded_alert(
    settings: Settings, alerts: tuple[AlertRecord, ...]
) -> tuple[AlertRecord, ...]:
    """Add the alert that a marker file names, because it was sent without a ledger."""
    mark = next(settings.folder.glob(f"{_UNRECORDED}*"), None)
    if mark is None or any(each.code == UNUSABLE for each in alerts):
        return alerts
    at, code = datetime.fromtimestamp(mark.stat().st_mtime, UTC), mark.suffix.removeprefix(".")
    texts = ("the account's files cannot be used", "", "", (code,))
    return (*alerts, AlertRecord(UNUSABLE, "", at, at, "opened", at, *texts, sent_at=at))


def _send_without_ledger(
    settings: Settings, error: WarehouseError, sinks: Sequence[Sink], now: datetime
) -> None:
    """Send the alert that the ledger cannot be used, and mark it as sent by a file.

    Does nothing if the file exists. Raises `NotDelivered`.
    """
    mark = settings.folder / f"{_UNRECORDED}{error.code}"
    if mark.exists():
        return
    trouble = file_problem(error)
    trouble = replace(trouble, action=settings.replace_variables_by_origins(trouble.action))
    alerts = decide_alerts((), {Subject(UNUSABLE): trouble}, now, settings.alert_kinds.value)
    for message, _ in due_messages(alerts, settings.account.value):
        for sink in sinks:
            sink.send(message)
    with suppress(OSError):
        mark.touch(FILE_MODE)
        os.utime(mark, (now.timestamp(), now.timestamp()))

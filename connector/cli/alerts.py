"""`connector alerts`: which alerts are due, stand and wait; to send them; to try where they go.

Parses, calls, prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.engine.quota import shown
from connector.errors import ConnectorError, NotDelivered, SettingsError, count_noun
from connector.ledger.alert_states import AlertRecord, DeliveryRecord
from connector.operations.alert_check import (
    AlertCheck,
    Waiting,
    check_alerts,
    due,
    failure_of,
    standing_alerts,
    trial_message,
    waiting_of,
)
from connector.operations.alerts import DECLARED
from connector.operations.delivery import sinks_of
from connector.operations.findings import Proof
from connector.pulls.advice import explain
from connector.pulls.outcome import plain
from connector.settings.accounts import UNNAMED, configured_accounts
from connector.settings.model import Settings

COLUMNS = ("account", "kind", "alert", "about", "state", "since")
WAITING_COLUMNS = ("account", "to", "alert", "about", "change", "at", "attempts")


@click.command(
    cls=Command,
    examples=(
        "connector alerts",
        "connector alerts --send --all",
        "connector alerts --test",
    ),
    if_interrupted="What was not sent waits.",
)
@click.option("--send", "sends", is_flag=True, help="Check, and send now what is due or waits.")
@click.option(
    "--test", "tests", is_flag=True, help="Send a test to the webhook and by email, and say how."
)
@options.all_accounts
def alerts(session: Session, *, sends: bool, tests: bool, is_for_all: bool) -> int:
    """Show the alerts that are due, those that stand, and those that have not arrived.

    Without an option nothing is sent and nothing is written down. The exit status is 1 where an
    alert could not be delivered. Pulls, pushes and publications send what is due when they end.
    """
    terminal = session.terminal
    if tests:
        found, status = _each(session, _tried, is_for_all=is_for_all)
        return max(status, _print_tried(terminal, [trial for some in found for trial in some]))
    checks, status = _each(session, _sent if sends else _looked_at, is_for_all=is_for_all)
    _print(terminal, checks, sends=sends)
    return max(status, 1 if any(each.failures for each in checks) else 0)


Found = TypeVar("Found")


def _each(
    session: Session, look: Callable[[Settings], Found], *, is_for_all: bool
) -> tuple[list[Found], int]:
    """What is found of the account that is meant, or of each; what keeps one of all from being
    looked at is told, and its exit status is the second.
    """
    if not is_for_all:
        return [look(session.load())], 0
    found, status = list[Found](), 0
    for each in configured_accounts(os.environ, Path.cwd()):
        try:
            found.append(look(each.required()))
        except ConnectorError as error:
            session.terminal.warn(f"{each.title}: {explain(error)}")
            status = max(status, error.exit_status)
    return found, status


def _sent(settings: Settings) -> AlertCheck:
    _refuse_nowhere(settings)
    return check_alerts(settings, forces=True)


def _refuse_nowhere(settings: Settings) -> None:
    if not sinks_of(settings):
        raise SettingsError(
            "alerts go nowhere: neither a webhook nor an email is set",
            action="Set CONNECTOR_ALERT_WEBHOOK_FILE, or all of CONNECTOR_ALERT_EMAIL_TO,"
            " CONNECTOR_ALERT_EMAIL_FROM and CONNECTOR_ALERT_EMAIL_HOST.",
        )


def _looked_at(settings: Settings) -> AlertCheck:
    """What a check would find; nothing is sent or written down."""
    standing, undelivered = standing_alerts(settings)
    decision = due(settings, standing, datetime.now(UTC))
    return AlertCheck(settings.account.value, decision.messages, decision.standing, 0, undelivered)


def _tried(settings: Settings) -> list[dict[str, str | None]]:
    """A test to each sink of the account, and why one has not arrived."""
    _refuse_nowhere(settings)
    tried = list[dict[str, str | None]]()
    for sink in sinks_of(settings):
        failure = None
        try:
            sink.send(trial_message(datetime.now(UTC)))
        except NotDelivered as error:
            failure = str(error)
        tried.append({"account": settings.account.value, "to": sink.name, "failure": failure})
    return tried


def _print_tried(terminal: Terminal, tried: list[dict[str, str | None]]) -> int:
    """1 where a test has not arrived."""
    for each in tried:
        name = each["account"] or UNNAMED
        if each["failure"] is None:
            terminal.say(f"{name}: a test has arrived by {each['to']}.")
        else:
            terminal.warn(f"{name}: {each['failure']}. {_ADVICE}")
    if terminal.is_json:
        terminal.print_object({"tests": tried})
    return 1 if any(each["failure"] for each in tried) else 0


_ADVICE = "Check the alert_* settings: 'connector doctor' shows which are set, and where."


def _print(terminal: Terminal, checks: Iterable[AlertCheck], *, sends: bool) -> None:
    checks = list(checks)
    if terminal.is_json:
        terminal.print_object({"accounts": [each.as_json() for each in checks]})
    rows = [row for each in checks for row in _rows(each, sends=sends)]
    if rows:
        terminal.print_table(COLUMNS, rows)
    for check in checks:
        for alert in check.standing:
            terminal.print_line(f"{alert.code}: {alert.happened} {alert.action}")
    waiting = [_waiting_row(check, each) for check in checks for each in check.undelivered]
    if waiting:
        terminal.print_line("")
        terminal.print_table(WAITING_COLUMNS, waiting)
    for check in checks:
        name = check.account or UNNAMED
        for failure in check.failures:
            terminal.warn(f"{name}: {failure}.")
        if check.is_skipped:
            terminal.say(f"{name}: another process checks the alerts at this moment.")
    standing = sum(len(each.standing) for each in checks)
    sent = sum(each.delivered for each in checks)
    said = count_noun(standing, "alert stands", "alerts stand")
    terminal.say(f"{said}; {count_noun(sent, 'message')} sent." if sends else f"{said}.")


def _rows(check: AlertCheck, *, sends: bool) -> Iterator[tuple[object, ...]]:
    """A row for each alert that stands, would open, or has ended."""
    changed = {(each.code, each.about): each.change for each in check.changes}
    name = check.account or UNNAMED
    for each in check.standing:
        is_new = (each.code, each.about) in changed
        state = ("opened" if sends else "due") if is_new else "stands"
        kind = DECLARED[each.code].kind
        yield name, kind, each.code, each.about, state, shown(each.since)
    for message in check.changes:
        if message.change == "ended":
            kind = DECLARED[message.code].kind
            yield name, kind, message.code, message.about, "over", shown(message.since)


def _waiting_row(check: AlertCheck, each: DeliveryRecord) -> tuple[object, ...]:
    told = each.message
    return (
        *(check.account or UNNAMED, each.sink, told.code, told.about, told.change),
        *(shown(told.at), each.attempts),
    )


# -- Alerting --------------------------------------------------------------------------------------
# How alerts stand, in words, for the commands that show it beside other things.
#
# Words and exit statuses alone: nothing is decided and nothing is sent here.


@dataclass(frozen=True, slots=True)
class Watched:
    """The alerts that stand, and what waits for the sinks that are set."""

    standing: tuple[AlertRecord, ...]
    waiting: tuple[Waiting, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence on each sink that alerts do not arrive at."""
        return tuple(failure for each in self.waiting if (failure := failure_of(each)))


def watched(settings: Settings) -> Watched:
    """How alerts stand; no file is made. Raises a `WarehouseError`."""
    standing, undelivered = standing_alerts(settings)
    return Watched(standing, waiting_of(undelivered))


def lines(what: Watched) -> Iterator[str]:
    """A line for each alert that stands."""
    for each in what.standing:
        about = f" ({each.about})" if each.about else ""
        yield f"Alert since {shown(each.since)}: {each.code}{about}. {each.happened}"


def as_json(proof: Proof | None, what: Watched) -> dict[str, object]:
    """The same as an object."""
    told: dict[str, object] = {
        "alerts": [plain(asdict(each)) for each in what.standing],
        "alerts_waiting": [plain(asdict(each)) for each in what.waiting],
    }
    return told if proof is None else {**told, "silent": proof.sentence}


def judge(terminal: Terminal, proof: Proof | None, what: Watched) -> int:
    """Warn of alerts that do not arrive, and say whether what is pulled is too old; the exit
    status. Where a proof was asked for, alerts that cannot arrive make it 1 as well: their silence
    would mean nothing.
    """
    for failure in what.failures:
        terminal.warn(f"{failure}. 'connector alerts --test' says whether they would now.")
    if proof is None:
        return 0
    if proof.sentence is not None:
        terminal.warn(f"{proof.sentence} Check that the schedule runs; then run 'connector pull'.")
    return 1 if proof.sentence is not None or what.failures else 0

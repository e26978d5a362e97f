"""`connector alerts`: which alerts are due, stand and wait; to send them; to try where they go.

Parses, calls, prints.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from connector.accounts import configured_accounts
from connector.alerts import (
    DECLARED,
    AlertCheck,
    check_alerts,
    due,
    sinks_of,
    standing_alerts,
    trial_message,
)
from connector.cli import options
from connector.cli.ending import counted
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.engine.quota import shown
from connector.errors import ConnectorError, NotDelivered, SettingsError
from connector.ledger.alerts import DeliveryRecord
from connector.settings import Settings

COLUMNS = ("account", "kind", "alert", "about", "state", "since")
WAITING_COLUMNS = ("account", "to", "alert", "about", "change", "at", "attempts")
_UNNAMED = "(unnamed)"


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
    accounts = _accounts(session, is_for_all=is_for_all)
    if tests:
        return _test(terminal, accounts)
    checks, status = list[AlertCheck](), 0
    for settings in accounts:
        try:
            checks.append(_sent(settings) if sends else _looked_at(settings))
        except ConnectorError as error:
            if not is_for_all:
                raise
            status = max(status, _fail(terminal, settings, error))
    _print(terminal, checks, sends=sends)
    return max(status, 1 if any(each.failures for each in checks) else 0)


def _accounts(session: Session, *, is_for_all: bool) -> list[Settings]:
    if not is_for_all:
        return [session.load()]
    found = configured_accounts(os.environ, Path.cwd())
    for each in found:
        if each.error is not None:
            session.terminal.warn(f"{each.name or _UNNAMED}: {each.error} {each.error.action}")
    return [each.settings for each in found if each.settings is not None]


def _fail(terminal: Terminal, settings: Settings, error: ConnectorError) -> int:
    terminal.warn(f"{settings.account.value or _UNNAMED}: {error}. {error.action}")
    return error.exit_status


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


def _test(terminal: Terminal, accounts: Iterable[Settings]) -> int:
    tried = []
    for settings in accounts:
        _refuse_nowhere(settings)
        name = settings.account.value
        for sink in sinks_of(settings):
            failure = None
            try:
                sink.send(trial_message(datetime.now(UTC)))
            except NotDelivered as error:
                failure = str(error)
            tried.append({"account": name, "to": sink.name, "failure": failure})
            if failure is None:
                terminal.say(f"{name or _UNNAMED}: a test has arrived by {sink.name}.")
            else:
                terminal.warn(f"{name or _UNNAMED}: {failure}. {_ADVICE}")
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
        name = check.account or _UNNAMED
        for failure in check.failures:
            terminal.warn(f"{name}: {failure}.")
        if check.is_skipped:
            terminal.say(f"{name}: another process checks the alerts at this moment.")
    standing = sum(len(each.standing) for each in checks)
    sent = sum(each.delivered for each in checks)
    said = f"{counted(standing, 'alert')} {'stands' if standing == 1 else 'stand'}"
    terminal.say(f"{said}; {counted(sent, 'message')} sent." if sends else f"{said}.")


def _rows(check: AlertCheck, *, sends: bool) -> Iterator[tuple[object, ...]]:
    """A row for each alert that stands, would open, or has ended."""
    changed = {(each.code, each.about): each.change for each in check.changes}
    name = check.account or _UNNAMED
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
        *(check.account or _UNNAMED, each.sink, told.code, told.about, told.change),
        *(shown(told.at), each.attempts),
    )

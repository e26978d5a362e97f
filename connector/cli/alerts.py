"""`connector alerts`: show, send and test alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, NotDelivered, SettingsError, count_noun
from connector.ledger.quota import format_moment
from connector.operations.alert_check import (
    AlertCheck,
    check_alerts,
    current_alerts,
    make_test_message,
)
from connector.operations.alerts import due_messages
from connector.operations.delivery import configured_sinks
from connector.operations.findings import ALERTS, Proof
from connector.pulls.outcome import explain
from connector.settings.model import UNNAMED, Settings

COLUMNS = ("account", "kind", "alert", "resource", "state", "since")

SinkTest = dict[str, str | None]
"""Test of one sink: `account`, `to`, and `failure` (None if the message arrived)."""


@click.command(
    cls=Command,
    examples=("connector alerts", "connector alerts --send --all", "connector alerts --test"),
    if_interrupted="The next check sends the remaining messages.",
)
@click.option(
    "--send",
    "sends",
    is_flag=True,
    help="Check all alerts. Send new alerts, and alerts that were not delivered.",
)
@click.option(
    "--test", "tests", is_flag=True, help="Send a test message to the webhook and by email."
)
@options.all_accounts
def alerts(session: Session, *, sends: bool, tests: bool, is_for_all: bool) -> int:
    """Show, send or test alerts.

    Shows due, open and undelivered alerts. Sends and records nothing unless you add --send or
    --test. Exits with status 1 if an alert could not be delivered. Pulls, pushes and publications
    send their alerts when they end.
    """
    terminal, status = session.terminal, 0
    do: Callable[[Settings], AlertCheck | list[SinkTest]] = (
        _test_sinks
        if tests
        else _check_and_send
        if sends
        else lambda settings: current_alerts(settings, datetime.now(UTC))
    )
    checks, trials = list[AlertCheck](), list[SinkTest]()
    for account, done in session.for_each(do, is_for_all=is_for_all):
        if isinstance(done, ConnectorError):
            terminal.warn(f"{account.title}: {explain(done)}")
            status = max(status, done.exit_status)
            if sends and account.settings_for_alerts is not None:
                checks.append(
                    check_alerts(account.settings_for_alerts, command_error=account.error)
                )
        elif isinstance(done, list):
            trials += done
        elif isinstance(done, AlertCheck):
            checks.append(done)
    if tests:
        return max(status, _print_test_results(terminal, trials))
    _print_alerts(terminal, checks, sends=sends)
    return max(status, 1 if any(each.failures for each in checks) else 0)


def _check_and_send(settings: Settings) -> AlertCheck:
    """Check and send the account's alerts. Raises `SettingsError` without a webhook or email."""
    _require_sink(settings)
    return check_alerts(settings)


def _test_sinks(settings: Settings) -> list[SinkTest]:
    """Send a test message to the webhook and by email. Raises `SettingsError` if neither is
    configured.
    """
    _require_sink(settings)
    tried = list[SinkTest]()
    for sink in configured_sinks(settings):
        failure = None
        try:
            sink.send(make_test_message(datetime.now(UTC)))
        except NotDelivered as error:
            failure = str(error)
        tried.append({"account": settings.account.value, "to": sink.name, "failure": failure})
    return tried


def _require_sink(settings: Settings) -> None:
    """Raise `SettingsError` if no webhook or email is configured."""
    if not configured_sinks(settings):
        raise SettingsError(
            "no webhook or email is configured",
            action="Set CONNECTOR_ALERT_WEBHOOK_FILE, or all of CONNECTOR_ALERT_EMAIL_TO,"
            " CONNECTOR_ALERT_EMAIL_FROM and CONNECTOR_ALERT_EMAIL_HOST.",
        )


def _print_test_results(terminal: Terminal, trials: list[SinkTest]) -> int:
    """Print the tests, and return 1 if a message was not delivered."""
    for each in trials:
        name = each["account"] or UNNAMED
        if each["failure"] is None:
            terminal.say(f"{name}: test message sent by {each['to']}.")
        else:
            terminal.warn(
                f"{name}: {each['failure']}. Check the alert_* settings: 'connector "
                "doctor' shows their values and origins."
            )
    terminal.print_object({"tests": trials})
    return 1 if any(each["failure"] for each in trials) else 0


def _print_alerts(terminal: Terminal, checks: list[AlertCheck], *, sends: bool) -> None:
    """Print the alerts as a table, the actions, the failures and the number of open alerts.

    With `sends`, the last line also contains the number of sent messages.
    """
    terminal.print_object({"accounts": [each.as_json() for each in checks]})
    rows = [row for each in checks for row in _alert_rows(each)]
    if rows:
        terminal.print_table(COLUMNS, rows)
    for check in checks:
        for alert in check.open:
            text = f"{alert.title}. {alert.happened}".rstrip()
            terminal.print_line(f"{alert.code}: {text} What to do: {alert.action}")
    for check in checks:
        name = check.account or UNNAMED
        for failure in check.failures:
            terminal.warn(f"{name}: {failure}.")
        if check.is_skipped:
            terminal.say(f"{name}: another process is checking the alerts.")
    found = count_noun(sum(len(each.open) for each in checks), "open alert")
    sent = count_noun(sum(each.delivered for each in checks), "message")
    terminal.say(f"{found}, {sent} sent." if sends else f"{found}.")


def _alert_rows(check: AlertCheck) -> Iterator[tuple[object, ...]]:
    """Return a row for each alert: open, due (not recorded yet), not delivered, or ended."""
    name = check.account or UNNAMED
    waiting = {(each.code, each.about) for each in check.undelivered}
    due = {(each.code, each.about) for each in check.due} - waiting
    ended = [each for each in (*check.due, *check.undelivered) if not each.is_open]
    for each in dict.fromkeys((*check.open, *ended)):
        subject = (each.code, each.about)
        state: str = "not delivered" if subject in waiting else each.change
        if each.sent_at is not None:
            state = "open"
        elif subject in due and not check.delivered:
            state = "due"
        yield name, ALERTS[each.code].kind, each.code, each.about, state, format_moment(each.since)


# -- For other commands ----------------------------------------------------------------------------


def alert_lines(check: AlertCheck) -> Iterator[str]:
    """Yield a line for each open alert; alerts with the same cause share a line."""
    opened = (replace(each, change="opened", sent_at=None) for each in check.open)
    for message, _ in due_messages(opened, check.account):
        about = f"{', '.join(message.about)}: " if message.about else ""
        text = f"{message.title}. {message.happened}".rstrip()
        yield f"Alert since {format_moment(message.since)}: {about}{text} [{message.code}]"


def alerts_json(proof: Proof | None, check: AlertCheck) -> dict[str, object]:
    """Return the JSON fields `alerts`, `alerts_waiting` and `silent` of `connector status`."""
    silent = {} if proof is None else {"silent": proof.sentence}
    return {"alerts": check.open, "alerts_waiting": check.undelivered, **silent}


def print_alert_warnings(terminal: Terminal, proof: Proof | None, check: AlertCheck) -> int:
    """Warn about undelivered alerts and, with a maximum age, about old data. Return exit status.

    The status is 1 if a maximum age is given, and the data is older or an alert was not delivered.
    """
    for failure in check.failures:
        terminal.warn(f"{failure}. Run 'connector alerts --test' to see the error.")
    if proof is None:
        return 0
    if proof.sentence is not None:
        terminal.warn(f"{proof.sentence} Check that the schedule runs; then run 'connector pull'.")
    return 1 if proof.sentence is not None or check.failures else 0

"""`connector status`: print an account's state from its files, without API requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from connector.catalog import CATALOG
from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal, describe_age, describe_left
from connector.errors import DONE, FAILED, MISUSED, ConnectorError, SettingsError
from connector.operations.gauges import read_samples, write_gauges
from connector.operations.notify import notify
from connector.operations.problems import (
    AccountState,
    Problem,
    describe_problem,
    find_problems,
    read_state,
    settings_problem,
)
from connector.pulls.report import explain
from connector.settings import ConfiguredAccount, Settings
from connector.state.database import Database
from connector.state.quota import QuotaStatus, format_moment
from connector.state.runs import Run, Runs
from connector.warehouse.publish import own_publication
from connector.warehouse.queries import ResourceState
from connector.warehouse.warehouse import Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "summary only", "deleted", "pending", "API total", "verified until"),
    *("oldest read", "last result"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests")
ACCOUNT_COLUMNS = ("account", "verified until", "last run", "outcome", "requests", "of", "problems")
RUNS_SHOWN = 5

Examined = tuple[ConfiguredAccount, AccountState | None, list[Problem]]
"""Account, state of its files (None if its settings are invalid), and its problems."""


@click.command(
    cls=Command,
    examples=(
        "connector status",
        "connector status --account acme --json",
        "connector status --all --check --notify",
        "connector status --all --prometheus /var/lib/node_exporter/connector.prom",
    ),
)
@click.option(
    "--check",
    is_flag=True,
    help="Print one line per account, and exit with status 1 if an account has a problem.",
)
@click.option(
    "--notify",
    "notifies",
    is_flag=True,
    help="Send a message if the problems changed since the last message.",
)
@click.option(
    "--prometheus",
    type=options.FILE,
    metavar="FILE",
    help="Also write gauges for Prometheus to FILE.",
)
@options.all_accounts
def status(
    session: Session, *, check: bool, notifies: bool, prometheus: Path | None, is_for_all: bool
) -> int:
    """Show the state and the problems of the local copy, and the requests of this month.

    A problem is a failed pull or publication, a published file that is older than max_age,
    unconfirmed rows, a used-up quota, a damaged file, or a failed backup. Makes no API requests,
    and works during a pull.

    Use --check as a watchdog or as the health check of a container. Run it with --notify every
    hour, for example from cron.
    """
    now, terminal, exit_status = datetime.now(UTC), session.terminal, DONE
    if not (check or notifies or is_for_all or prometheus is not None):
        _print_account(session, now)
        return DONE
    accounts = [_examine(each, now) for each in session.accounts(is_for_all=is_for_all)]
    if notifies:
        exit_status = _notify_all(terminal, accounts)
    if prometheus is not None:
        _write_gauges(prometheus, accounts)
    if check:
        return max(exit_status, _print_health(terminal, accounts, now))
    if is_for_all:
        return max(exit_status, _print_summaries(terminal, accounts))
    _print_account(session, now)
    return exit_status


def _examine(account: ConfiguredAccount, now: datetime) -> Examined:
    """Read the account's files."""
    if account.settings is None:
        assert account.error is not None
        return account, None, [settings_problem(account.error)]
    state = read_state(account.settings, now)
    return account, state, find_problems(state)


def _notify_all(terminal: Terminal, examined: Sequence[Examined]) -> int:
    """Send a message for each account whose problems changed. Return the highest exit status."""
    exit_status = DONE
    for account, _, problems in examined:
        settings = account.settings or account.settings_for_alerts
        if settings is None:
            terminal.warn(f"{account.title}: the settings have no address for notifications.")
            exit_status = MISUSED
            continue
        try:
            if notify(settings, problems):
                terminal.say(f"{account.title}: sent a message about the problems.")
        except ConnectorError as error:
            terminal.warn(f"{account.title}: {explain(error)}")
            exit_status = max(exit_status, error.exit_status)
    return exit_status


def _write_gauges(path: Path, examined: Sequence[Examined]) -> None:
    """Write the gauges of all accounts. Raises a `ConnectorError` if the file cannot be written."""
    samples = [
        sample
        for account, state, problems in examined
        for sample in read_samples(
            account.name or "",
            account.settings.folder if account.settings else path.parent,
            state,
            problems,
        )
    ]
    try:
        write_gauges(path, samples)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise ConnectorError(message, action="Choose another FILE.") from None


# -- One account -----------------------------------------------------------------------------------


def _print_account(session: Session, now: datetime) -> None:
    """Print the state and the problems of one account."""
    settings, terminal = session.load(), session.terminal
    warehouse, state = Warehouse(settings.folder), read_state(settings, now)
    problems = find_problems(state)
    values: dict[str, Any] = {"folder": settings.folder, "resources": {}, "runs": []}
    values |= {"is_lost": warehouse.is_lost}
    if warehouse.exists:
        values = _print_state(terminal, warehouse, state)
        if state.holder is None and not problems and values["left"] is None:
            terminal.say("Up to date: no problem was found, and all records are loaded.")
    elif not warehouse.is_lost:
        terminal.say(f"{settings.folder} contains no records yet. {_first_step(settings)}")
    terminal.print_object(values | {"problems": [each.as_json() for each in problems]})
    for each in problems:
        terminal.print_line()
        for line in describe_problem(each):
            terminal.print_line(terminal.name_places(line))


def _first_step(settings: Settings) -> str:
    """Return a sentence with the command that loads the first records."""
    name = settings.account
    command = "connector pull" if name is None else f"connector pull --account {name}"
    try:
        settings.connection()
    except SettingsError as error:
        return (
            f"{error.action} Then run '{command}'. To try the connector without an account, "
            "run 'connector demo'."
        )
    return f"Run '{command}'."


def _print_state(terminal: Terminal, warehouse: Warehouse, state: AccountState) -> dict[str, Any]:
    """Print resources, runs, the published file and the quota; return the values for `--json`.

    Raises a `WarehouseError` if the work file cannot be read.
    """
    results = {name: result for name, (_, result) in state.health.resources.items()}
    names = {True: "running", False: "interrupted"}
    runs: list[Run] = [
        replace(each, outcome=each.outcome or names[each.run_id == state.running])
        for each in state.health.runs[:RUNS_SHOWN]
    ]
    resources = _read_resources(warehouse, state)
    waiting = [each for each in resources if each.pending or each.is_listing]
    rows = []
    for each in resources:
        last, oldest = results.get(each.resource), each.oldest_read_at
        counts = (each.live, each.listed_only, each.deleted, each.pending, last and last.total)
        verified = each.proven_at and format_moment(each.proven_at)
        age = oldest and describe_age(state.now - oldest)
        rows.append((each.resource, *counts, verified, age, last and last.outcome))
    terminal.print_table(RESOURCE_COLUMNS, rows)
    terminal.print_line()
    shown = [
        (
            *(each.run_id, each.command, format_moment(each.started_at), each.outcome),
            *(None if each.seconds is None else f"{each.seconds:.1f}", each.requests),
        )
        for each in runs
    ]
    terminal.print_table(RUN_COLUMNS, shown)
    terminal.print_line()
    published = _print_published(terminal, warehouse, state.now)
    for line in _quota_lines(state):
        terminal.print_line(line)
    left = sum(each.pending for each in waiting)
    if waiting:
        text = describe_left(left, is_known=not any(each.is_listing for each in waiting))
        terminal.say(text if state.holder is not None else f"{text} Run 'connector pull'.")
    if missing := [each.resource for each in resources if each.resource not in results]:
        terminal.say(f"Never pulled: {', '.join(missing)}.")
    return {
        "folder": warehouse.folder,
        "published": published,
        "resources": {
            e.resource: {**asdict(e), "last": results.get(e.resource)} for e in resources
        },
        "runs": runs,
        "left": left if waiting else None,
        "running": None if state.holder is None else asdict(state.holder),
        **({} if state.quota is None else _quota_json(state.quota)),
    }


def _read_resources(warehouse: Warehouse, state: AccountState) -> tuple[ResourceState, ...]:
    """Return the rows of each resource; while another process uses the account, those of the latest
    runs and of the run in progress.
    """
    if state.holder is None:
        # Raises if another program made the file, and changes nothing if it is up to date.
        warehouse.prepare()
        return warehouse.status()
    known = {
        name: ResourceState(
            name, run.live, None, None, run.pending,
            proven_at=run.bookmark_after,
            lateness_seconds=run.lateness_seconds,
            oldest_read_at=run.oldest_read_at,
        )
        for name, (_, run) in state.health.resources.items()
    }  # fmt: skip
    with Database(warehouse.folder) as database:
        latest = state.health.runs[:1]
        progress = Runs(database).progress_of(latest[0].run_id) if latest else None
    if progress is not None:
        name, live, pending = progress
        before = known.get(name, ResourceState(name, 0, None, None, 0))
        known[name] = replace(before, live=live, pending=pending)
    return tuple(known[name] for name in CATALOG if name in known)


def _print_published(terminal: Terminal, warehouse: Warehouse, now: datetime) -> dict[str, Any]:
    """Print the age of the published file and of its data; return the values for `--json`."""
    path = warehouse.published
    if not path.exists():
        terminal.say("Nothing is published yet. Run 'connector pull'.")
        return {"path": path, "published_at": None, "age_seconds": None}
    at, row = datetime.fromtimestamp(path.stat().st_mtime, UTC), own_publication(path)
    text = f"Published {describe_age(now - at)} ago: {path}"
    if row is not None and row.true_of is not None:
        text += f", data as of {format_moment(row.true_of)}"
    terminal.print_line(text)
    age = (now - at).total_seconds()
    found = {} if row is None else asdict(row)
    return {"path": path, "published_at": at, "age_seconds": age, **found}


def _quota_lines(state: AccountState) -> Iterator[str]:
    """Yield sentences on the running process and on the month's requests."""
    usage = state.quota
    if usage is None:
        return
    if state.holder is not None:
        yield f"Running: {state.holder}."
    month = usage.month
    text = f"Billing cycle {month.period.begins} to {month.period.ends}: {month.used:,} "
    if month.limit is None:
        text += "requests (monthly_requests is not set)"
    else:
        text += f"of {month.limit:,} requests ({month.used / month.limit:.1%})"
        text += f", {month.reserve:,} reserved for manual work" if month.reserve else ""
    if usage.forecast is not None:
        text += f"; forecast for the cycle: {usage.forecast:,}, at {usage.usual_day:,} a day"
    yield f"{text}."


def _quota_json(usage: QuotaStatus) -> dict[str, object]:
    """Return the JSON fields `month` and `limit_per_minute`."""
    month = usage.month
    return {
        "month": {
            "begins": month.period.begins,
            "ends": month.period.ends,
            "used": month.used,
            "limit": month.limit,
            "reserve": month.reserve,
            "left_for_pulls": month.requests_left(keeps_reserve=True),
            "usual_day": usage.usual_day,
            "forecast": usage.forecast,
            "spent_until": None if usage.exhaustion is None else usage.exhaustion.until,
        },
        "limit_per_minute": usage.limit_per_minute,
    }


# -- All accounts ----------------------------------------------------------------------------------
# One line for each account, also for an account whose files cannot be read.


def _print_summaries(terminal: Terminal, examined: Sequence[Examined]) -> int:
    """Print one line per account, and return the highest exit status of an account's error."""
    rows, objects, exit_status = list[Sequence[object]](), list[dict[str, Any]](), DONE
    for account, state, problems in examined:
        error = account.error or (state.error if state is not None else None)
        health, usage = state and state.health, state and state.quota
        last = health.runs[0] if health and health.runs else None
        known = [at for at in health.proven_at.values() if at is not None] if health else []
        values: dict[str, Any] = {
            "proven_at": min(known, default=None),
            "last_run_at": last and last.started_at,
            "last_outcome": last and (last.outcome or "not finished"),
            "requests": usage and usage.month.used,
            "limit": usage and usage.month.limit,
        }
        shown = {"account": account.name, **values, "error": error and error.as_json()}
        objects.append(shown | {"problems": [each.as_json() for each in problems]})
        moments = [at and format_moment(at) for at in (values["proven_at"], values["last_run_at"])]
        outcome = f"error: {error.code}" if error else values["last_outcome"] or "never pulled"
        codes = ", ".join(each.code for each in problems)
        numbers = (values["requests"], values["limit"])
        rows.append((account.title, *moments, outcome, *numbers, codes))
        if error is not None:
            terminal.warn(f"{account.title}: {explain(error)}")
            exit_status = max(exit_status, error.exit_status)
    terminal.print_table(ACCOUNT_COLUMNS, rows)
    terminal.print_object({"accounts": objects})
    return exit_status


def _print_health(terminal: Terminal, examined: Sequence[Examined], now: datetime) -> int:
    """Print "OK" or the problems of each account. Return 1 if an account has a problem, else 0."""
    is_ok = not any(problems for _, _, problems in examined)
    accounts = [
        {"account": account.name, "ok": not problems, "problems": [e.as_json() for e in problems]}
        for account, _, problems in examined
    ]
    terminal.print_object({"ok": is_ok, "at": format_moment(now), "accounts": accounts})
    for account, _, problems in examined:
        found = [" ".join(describe_problem(problem)) for problem in problems]
        terminal.print_line(f"{account.title}: {' '.join(found) or 'OK'}")
    return DONE if is_ok else FAILED

"""`connector status`: print an account's state from its files, without API requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from connector.catalog import CATALOG
from connector.cli import options
from connector.cli.backlog import Backlog, UnreadCounts, estimate_backlog
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal, describe_age
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
from connector.pulls.report import explain, explain_together
from connector.settings import ConfiguredAccount, Settings
from connector.state.database import Database
from connector.state.quota import QuotaStatus, format_moment
from connector.state.runs import Publication, ResourceRun, Run, Runs
from connector.warehouse.publish import own_publication
from connector.warehouse.queries import ResourceState
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "summary only", "deleted", "pending", "API total", "verified until"),
    *("oldest read", "last result"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests")
ACCOUNT_COLUMNS = ("account", "verified until", "last run", "outcome", "requests", "of", "problems")
RUNS_SHOWN = PUBLICATIONS_SHOWN = 5

RATE_REQUESTS_MIN = 50
"""Runs with fewer requests are too short to measure the requests per minute."""


@dataclass(frozen=True, slots=True)
class AccountStatus:
    """Status of one account.

    Attributes:
        state: State of the files.
        resources: Rows of each resource; while another process uses the account, those of the
            latest runs and of the run in progress.
        not_started: Resources that the last run did not reach.
        published: Description in the published file; None if it has none.
        published_at: Time of the published file; None if nothing is published.
    """

    warehouse: Warehouse
    state: AccountState
    problems: list[Problem]
    resources: tuple[ResourceState, ...]
    not_started: frozenset[str]
    published: Publication | None
    published_at: datetime | None

    @classmethod
    def read(cls, settings: Settings, warehouse: Warehouse, now: datetime) -> AccountStatus:
        """Read the account's state. Raises `WarehouseError`.

        Missing tables and columns of the work file are added.
        """
        state = read_state(settings, now)
        with Database(settings.folder) as database:
            runs = Runs(database) if database.exists else None
            unreached = runs.not_started() if runs is not None else frozenset()
            latest = state.health.runs[:1] if state.holder is not None else ()
            progress = runs.progress_of(latest[0].run_id) if runs is not None and latest else None
        if state.holder is None:
            # Raises if another program made the file, and changes nothing if it is up to date.
            warehouse.prepare()
            resources = warehouse.status()
        else:
            known = {name: _state_after(run) for name, (_, run) in state.health.resources.items()}
            if progress is not None:
                name, live, pending = progress
                before = known.get(name, ResourceState(name, 0, None, None, 0))
                known[name] = replace(before, live=live, pending=pending)
            resources = tuple(known[name] for name in CATALOG if name in known)
        path, at = warehouse.published, None
        if path.exists():
            at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        published, problems = own_publication(path), find_problems(state)
        return cls(warehouse, state, problems, resources, unreached, published, at)

    @property
    def results(self) -> Mapping[str, ResourceRun]:
        """Result of the latest run of each resource."""
        return {name: result for name, (_, result) in self.state.health.resources.items()}

    @property
    def runs(self) -> Sequence[Run]:
        """Latest runs with an outcome: "running", or "interrupted" without a process."""
        latest, running = self.state.health.runs[:RUNS_SHOWN], self.state.running
        names = {True: "running", False: "interrupted"}
        return [replace(e, outcome=e.outcome or names[e.run_id in running]) for e in latest]

    @property
    def failed_publication(self) -> Publication | None:
        """The latest attempt to publish if it failed; else None."""
        latest = self.state.health.publications[:PUBLICATIONS_SHOWN]
        ended = [e for e in latest if e.outcome in ("published", "refused", "failed")]
        return ended[0] if ended and ended[0].outcome != "published" else None

    @property
    def unread(self) -> Backlog | None:
        """The records still to be read; None if all are read."""
        waiting = [each for each in self.resources if each.pending or each.is_listing]
        quota = self.state.quota
        rate: float | None = quota.limit_per_minute if quota is not None else None
        for run in reversed(self.runs):  # A measured rate is better than the API's limit.
            if (run.requests or 0) >= RATE_REQUESTS_MIN and run.seconds:
                rate = (run.requests or 0) / run.seconds * 60
        return estimate_backlog(
            [UnreadCounts(each.pending, each.live, each.proven_at is not None) for each in waiting],
            month_limit=quota.month.limit if quota is not None else None,
            is_known=not any(each.is_listing for each in waiting),
            per_minute=rate,
        )

    def as_json(self) -> dict[str, object]:
        """Return the JSON object of `connector status --json` without problems."""
        at, now, quota = self.published_at, self.state.now, self.state.quota
        holder = self.state.holder
        return {
            "folder": self.warehouse.folder,
            "published": {
                "path": self.warehouse.published,
                "published_at": at,
                "age_seconds": None if at is None else (now - at).total_seconds(),
                **({} if self.published is None else asdict(self.published)),
            },
            "unpublished": self.failed_publication,
            "resources": {
                each.resource: {**asdict(each), "last": self.results.get(each.resource)}
                for each in self.resources
            },
            "runs": self.runs,
            "left": self.unread,
            "running": None if holder is None else asdict(holder),
            **({} if quota is None else _quota_json(quota)),
        }


def _state_after(result: ResourceRun) -> ResourceState:
    """Return what is known about a resource without its rows: the result of its latest run."""
    return ResourceState(
        resource=result.resource,
        live=result.live,
        listed_only=None,
        deleted=None,
        pending=result.pending,
        proven_at=result.bookmark_after,
        lateness_seconds=result.lateness_seconds,
        oldest_read_at=result.oldest_read_at,
    )


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


@click.command(
    cls=Command,
    examples=(
        "connector status",
        "connector status --account acme --json",
        "connector status --all --check --notify",
        "connector status --all --prometheus /var/lib/node_exporter/connector.prom",
    ),
)
@options.flag(
    "--check", "Print one line per account, and exit with status 1 if an account has a problem."
)
@options.flag("--notify notifies", "Send a message if the problems changed since the last message.")
@options.file("--prometheus", "Also write gauges for Prometheus to FILE.")
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


Examined = tuple[ConfiguredAccount, AccountState | None, list[Problem]]
"""Account, state of its files (None if its settings are invalid), and its problems."""


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
    warehouse = Warehouse(settings.folder)
    found = AccountStatus.read(settings, warehouse, now) if warehouse.exists else None
    problems = find_problems(read_state(settings, now)) if found is None else found.problems
    nothing = {"folder": settings.folder, "resources": {}, "runs": [], "is_lost": warehouse.is_lost}
    values = nothing if found is None else found.as_json()
    terminal.print_object(values | {"problems": [each.as_json() for each in problems]})
    if found is None and warehouse.is_lost:
        terminal.warn(f"{LOST}. {LOST_ACTION}")
        return
    if found is None:
        terminal.say(f"{settings.folder} contains no records yet. {_first_step(settings)}")
    elif not terminal.is_json:
        _print_status(terminal, found)
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


def _print_status(terminal: Terminal, found: AccountStatus) -> None:
    """Print the resources, the last runs, the published file, the quota and the next steps."""
    terminal.print_table(RESOURCE_COLUMNS, [_resource_row(e, found) for e in found.resources])
    for line in explain_together([each for each in found.results.values() if each.message]):
        terminal.warn(line)
    terminal.print_line()
    rows = [
        (each.run_id, each.command, format_moment(each.started_at), each.outcome,
         None if each.seconds is None else f"{each.seconds:.1f}", each.requests)
        for each in found.runs
    ]  # fmt: skip
    terminal.print_table(RUN_COLUMNS, rows)
    terminal.print_line()
    _print_published(terminal, found)
    for line in _quota_lines(found.state):
        terminal.print_line(line)
    for line in (*_first_load_lines(found.resources), *_next_steps(found)):
        terminal.say(line)


def _resource_row(state: ResourceState, found: AccountStatus) -> Sequence[object]:
    """Return the values of `RESOURCE_COLUMNS`."""
    last, oldest = found.results.get(state.resource), state.oldest_read_at
    outcome = last and last.outcome
    return (
        *(state.resource, state.live, state.listed_only, state.deleted, state.pending),
        last and last.total,
        state.proven_at and format_moment(state.proven_at),
        None if oldest is None else describe_age(found.state.now - oldest),
        "not started" if state.resource in found.not_started else outcome,
    )


def _print_published(terminal: Terminal, found: AccountStatus) -> None:
    """Print the age and the contents of the published file, and why it is not the latest."""
    row, now = found.published, found.state.now
    if found.published_at is None:
        terminal.say(
            "Nothing is published yet. The first successful pull publishes recruitment.duckdb."
        )
    else:
        age = describe_age(now - found.published_at)
        text = f"Published {age} ago: {found.warehouse.published}"
        if row is not None and row.true_of is not None:
            text += f", data as of {format_moment(row.true_of)}"
            text += f", {row.models} models, {row.checks} checks" if row.models else ""
            failed = len(row.failed_checks)
            text += f", {failed} of them with a warning" if failed else ""
            hidden = {"drop": ", personal fields left out", "hash": ", personal fields hashed"}
            text += hidden.get(row.personal, "")
        terminal.print_line(text)
    if (failure := found.failed_publication) is not None:
        since = describe_age(now - (failure.ended_at or failure.started_at))
        verb = "was refused" if failure.outcome == "refused" else "failed"
        terminal.warn(
            f"the latest records are not published. The last attempt ({since} ago) {verb}:"
            f" {(failure.message or '').removesuffix('.')}. Correct the cause, then run 'connector"
            " publish'."
        )


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


def _first_load_lines(resources: Sequence[ResourceState]) -> Iterator[str]:
    """Yield a sentence on the progress of each resource that is loaded for the first time."""
    for each in resources:
        if each.proven_at is None and each.is_listing:
            yield f"{each.resource}: first load, {each.live:,} records listed so far."
        elif each.proven_at is None and each.live and each.listed_only:
            read = each.live - each.listed_only
            share = f"{read:,} of {each.live:,} records read ({read / each.live:.0%})"
            yield f"{each.resource}: first load, {share}."


def _next_steps(found: AccountStatus) -> Iterator[str]:
    """Yield the next steps, or that everything is up to date."""
    is_running = found.state.holder is not None
    if (unread := found.unread) is not None:
        broken = sum(each.broken for each in found.resources)
        is_repeatable = not is_running and broken < unread.records
        yield str(unread) + (" Run 'connector pull'." if is_repeatable else "")
    if unread is not None or is_running:
        return
    pulled = [each for each in found.resources if each.resource in found.results]
    proven = [each.proven_at for each in pulled if each.proven_at is not None]
    # Content items without a content type have no list, so they are verified without a time.
    unproven = [e for e in pulled if e.proven_at is None and not found.results[e.resource].proven]
    if proven and not unproven and not found.problems:
        since = describe_age(found.state.now - min(proven))
        yield f"Up to date: all records are loaded and were verified {since} ago."
    never = [each.resource for each in found.resources if each.resource not in found.results]
    if never and pulled:
        yield f"Never pulled: {', '.join(never)}."


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
            "forecast": usage and usage.forecast,
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

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
from connector.cli.session import Command, Session
from connector.cli.terminal import Backlog, Terminal, UnreadCounts, describe_age
from connector.errors import ConnectorError, SettingsError, count_noun
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
from connector.settings.folders import SEEDS_FOLDER
from connector.state.database import Database
from connector.state.lock import Holder, holder_of
from connector.state.quota import QuotaStatus, format_moment, quota_status
from connector.state.runs import Publication, ResourceRun, Run, RunHealth, Runs
from connector.warehouse.publish import own_publication
from connector.warehouse.queries import ResourceState
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "summary only", "deleted", "pending", "API total"),
    *("verified until", "age", "oldest read", "last result"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests", "rate limited")
ACCOUNT_COLUMNS = (
    *("account", "verified until", "last run", "outcome", "requests", "of", "forecast", "problems"),
)
ACCOUNT_VALUES = ("proven_at", "last_run_at", "last_outcome", "requests", "limit", "forecast")
RUNS_SHOWN = 5
PUBLICATIONS_SHOWN = 5

RATE_REQUESTS_MIN = 50
"""Runs with fewer requests are too short to measure the requests per minute."""


@dataclass(frozen=True, slots=True)
class AccountStatus:
    """Status of one account at the time `now`.

    Args:
        results: Result of the latest run of each resource.
        published_at: Time of the published file; None if nothing is published.
        published: Description in the published file; None if it has none.
        publications: Latest attempts to publish, newest first.
        quota: Requests of the month; None if no request was ever counted.
        holder: Process that uses the account now.
        not_started: Resources that the last run did not reach.
    """

    warehouse: Warehouse
    resources: tuple[ResourceState, ...]
    results: Mapping[str, ResourceRun]
    runs: tuple[Run, ...]
    published_at: datetime | None
    published: Publication | None
    publications: tuple[Publication, ...]
    quota: QuotaStatus | None
    holder: Holder | None
    problems: list[Problem]
    now: datetime
    not_started: frozenset[str]

    @classmethod
    def read(cls, settings: Settings, warehouse: Warehouse, now: datetime) -> AccountStatus:
        """Read the account's state. Raises `WarehouseError`.

        Missing tables and columns of the work file are added. While another process uses the
        account, the numbers are those of the latest runs and of the run in progress.
        """
        holder = holder_of(settings.folder)
        with Database(settings.folder) as database:
            health = Runs(database).health() if database.exists else RunHealth()
            unreached = Runs(database).not_started() if database.exists else frozenset()
            progress = None
            if holder is not None and health.runs:
                progress = Runs(database).progress_of(health.runs[0].run_id)
            usage = quota_status(database, settings, now) if database.exists else None
        results = {name: result for name, (_, result) in health.resources.items()}
        if holder is None:
            # Raises if another program made the file, and changes nothing if it is up to date.
            warehouse.prepare()
            resources = warehouse.status()
        else:
            states = {name: _state_after(each) for name, each in results.items()}
            if progress is not None:
                name, live, pending = progress
                before = states.get(name, ResourceState(name, 0, None, None, 0))
                states[name] = replace(before, live=live, pending=pending)
            resources = tuple(states[name] for name in CATALOG if name in states)
        return cls(
            warehouse,
            resources,
            results,
            health.runs[:RUNS_SHOWN],
            _published_at(warehouse),
            own_publication(warehouse.published),
            health.publications[:PUBLICATIONS_SHOWN],
            usage,
            holder,
            find_problems(read_state(settings, now)),
            now,
            unreached,
        )

    @property
    def failed_publication(self) -> Publication | None:
        """The latest attempt to publish if it failed; else None."""
        for each in self.publications:
            if each.outcome in ("published", "refused", "failed"):
                return None if each.outcome == "published" else each
        return None

    def outcome_of(self, run: Run) -> str:
        """Return the run's outcome, "running", or "interrupted" if it has no outcome and no
        process.
        """
        is_under_way = self.holder is not None and run == self.runs[0]
        return run.outcome or ("running" if is_under_way else "interrupted")

    @property
    def unread(self) -> Backlog | None:
        """The records still to be read; None if all are read."""
        waiting = [each for each in self.resources if each.pending or each.is_listing]
        return Backlog.of_resources(
            [UnreadCounts(each.pending, each.live, each.proven_at is not None) for each in waiting],
            month_limit=self.quota.month.limit if self.quota is not None else None,
            is_known=not any(each.is_listing for each in waiting),
            per_minute=self._requests_per_minute,
        )

    @property
    def _requests_per_minute(self) -> float | None:
        """Measured rate of the current or the latest long run, else the API's limit; None if
        unknown.
        """
        rates = [(each.requests or 0, each.seconds or 0.0) for each in self.runs]
        for requests, seconds in rates:
            if requests >= RATE_REQUESTS_MIN and seconds > 0:
                return requests / seconds * 60
        return self.quota.limit_per_minute if self.quota is not None else None


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


@dataclass(frozen=True, slots=True)
class ExaminedAccount:
    """Account with the state of its files, None if its settings are invalid, and its problems."""

    account: ConfiguredAccount
    state: AccountState | None
    problems: list[Problem]

    @classmethod
    def examine(cls, account: ConfiguredAccount, now: datetime) -> ExaminedAccount:
        """Read the account's files."""
        if account.settings is None:
            assert account.error is not None
            return cls(account, None, [settings_problem(account.error)])
        state = read_state(account.settings, now)
        return cls(account, state, find_problems(state))


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
    type=click.Path(path_type=Path, dir_okay=False),
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
    now, exit_status = datetime.now(UTC), 0
    examined = list[ExaminedAccount]()
    if check or notifies or prometheus is not None:
        accounts = session.accounts(is_for_all=is_for_all)
        examined = [ExaminedAccount.examine(each, now) for each in accounts]
    if notifies:
        exit_status = _notify_all(session.terminal, examined)
    if prometheus is not None:
        _write_gauges(prometheus, examined)
    if check:
        return max(exit_status, _print_health(session.terminal, examined, now))
    if is_for_all:
        return max(exit_status, _print_summaries(session, now))
    _print_account(session, now)
    return exit_status


def _notify_all(terminal: Terminal, examined: Sequence[ExaminedAccount]) -> int:
    """Send a message for each account whose problems changed. Return the highest exit status."""
    exit_status = 0
    for each in examined:
        settings = each.account.settings or each.account.settings_for_alerts
        if settings is None:
            terminal.warn(f"{each.account.title}: the settings have no address for notifications.")
            exit_status = 2
            continue
        try:
            if notify(settings, each.problems):
                terminal.say(f"{each.account.title}: sent a message about the problems.")
        except ConnectorError as error:
            terminal.warn(f"{each.account.title}: {explain(error)}")
            exit_status = max(exit_status, error.exit_status)
    return exit_status


def _write_gauges(path: Path, examined: Sequence[ExaminedAccount]) -> None:
    """Write the gauges of all accounts. Raises a `ConnectorError` if the file cannot be written."""
    samples = [
        sample
        for each in examined
        for sample in read_samples(
            each.account.name or "",
            each.account.settings.folder if each.account.settings else path.parent,
            each.state,
            each.problems,
        )
    ]
    try:
        write_gauges(path, samples)
    except OSError as error:
        raise ConnectorError(
            f"{path} cannot be written: {error.strerror}", action="Choose another FILE."
        ) from None


def _print_account(session: Session, now: datetime) -> None:
    """Print the state and the problems of one account."""
    settings, terminal = session.load(), session.terminal
    warehouse = Warehouse(settings.folder)
    found = AccountStatus.read(settings, warehouse, now) if warehouse.exists else None
    problems = find_problems(read_state(settings, now)) if found is None else found.problems
    nothing = {"folder": settings.folder, "resources": {}, "runs": [], "is_lost": warehouse.is_lost}
    values = nothing if found is None else _as_json(found)
    terminal.print_object(values | {"problems": [each.as_json() for each in problems]})
    if found is None and warehouse.is_lost:
        terminal.warn(f"{LOST}. {LOST_ACTION}")
    elif found is None:
        terminal.say(f"{settings.folder} contains no records yet. {_first_step(settings)}")
        _print_problems(terminal, problems)
    elif not terminal.is_json:
        _print_status(terminal, found)


def _print_problems(terminal: Terminal, problems: Sequence[Problem]) -> None:
    """Print each problem with the next action."""
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


def _published_at(warehouse: Warehouse) -> datetime | None:
    """Return the modification time of the published file; None if there is none."""
    try:
        return datetime.fromtimestamp(warehouse.published.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


# -- One account -----------------------------------------------------------------------------------


def _print_status(terminal: Terminal, found: AccountStatus) -> None:
    """Print the resources, the last runs, the publications, the quota, alerts and next steps."""
    rows = [_resource_row(each, found) for each in found.resources]
    terminal.print_table(RESOURCE_COLUMNS, rows)
    troubled = [each for each in found.results.values() if each.message]
    for line in explain_together(troubled):
        terminal.warn(line)
    terminal.print_line()
    runs = [_run_row(each, found.outcome_of(each)) for each in found.runs]
    terminal.print_table(RUN_COLUMNS, runs)
    terminal.print_line()
    _print_publications(terminal, found)
    for line in _quota_lines(found):
        terminal.print_line(line)
    for line in (*_first_load_lines(found.resources), *_next_steps(found)):
        terminal.say(line)
    _print_problems(terminal, found.problems)


def _resource_row(state: ResourceState, found: AccountStatus) -> Sequence[object]:
    """Return the values of `RESOURCE_COLUMNS`."""
    proven_at, oldest, now = state.proven_at, state.oldest_read_at, found.now
    last = found.results.get(state.resource)
    outcome = None if last is None else last.outcome
    return (
        *(state.resource, state.live, state.listed_only, state.deleted, state.pending),
        None if last is None else last.total,
        None if proven_at is None else format_moment(proven_at),
        None if proven_at is None else describe_age(now - proven_at),
        None if oldest is None else describe_age(now - oldest),
        "not started" if state.resource in found.not_started else outcome,
    )


def _run_row(run: Run, outcome: str) -> Sequence[object]:
    """Return the values of `RUN_COLUMNS`."""
    seconds = None if run.seconds is None else f"{run.seconds:.1f}"
    started = format_moment(run.started_at)
    return (run.run_id, run.command, started, outcome, seconds, run.requests, run.rate_limited)


def _print_publications(terminal: Terminal, found: AccountStatus) -> None:
    """Print the age of the published file, and why it is not the latest."""
    if found.published_at is None:
        terminal.say(
            "Nothing is published yet. The first successful pull publishes recruitment.duckdb."
        )
    else:
        since = describe_age(found.now - found.published_at)
        text = _describe_published(found.published)
        terminal.print_line(f"Published {since} ago: {found.warehouse.published}{text}")
        if found.published is not None and found.published.unfilled_seeds:
            terminal.print_line(_describe_seeds(found.published, found.warehouse.folder))
    row = found.failed_publication
    if row is not None:
        terminal.warn(
            "the latest records are not published. The last attempt "
            f"({describe_age(found.now - (row.ended_at or row.started_at))} ago) "
            f"{'was refused' if row.outcome == 'refused' else 'failed'}: "
            f"{(row.message or '').removesuffix('.')}. Correct the cause, then run 'connector "
            "publish'."
        )


def _describe_published(row: Publication | None) -> str:
    """Return the end of a sentence on the published file: age of its data, models and checks."""
    if row is None or row.true_of is None:
        return ""
    text = f", data as of {format_moment(row.true_of)}"
    if row.models:
        failed = f", {len(row.failed_checks)} of them with a warning" if row.failed_checks else ""
        text += f", {row.models} models, {row.checks} checks{failed}"
    if row.personal != "keep":
        text += f", personal fields {'left out' if row.personal == 'drop' else 'hashed'}"
    return text


def _describe_seeds(row: Publication, folder: Path) -> str:
    """Return a sentence that names the seed files with values that the user has not filled in."""
    pairs = zip(row.unfilled_seeds, row.unfilled_rows, strict=True)
    seeds = ", ".join(f"{seed}.csv ({count_noun(rows, 'row')})" for seed, rows in pairs)
    return (
        f"Seed files with missing values (optional): {seeds}. Run 'connector models seeds "
        f"--write', then edit the files in {folder / SEEDS_FOLDER}."
    )


def _quota_lines(found: AccountStatus) -> Iterator[str]:
    """Yield sentences on running processes and on the month's requests."""
    usage = found.quota
    if usage is None:
        return
    if found.holder is not None:
        yield f"Running: {found.holder}."
    month = usage.month
    text = f"Billing cycle {month.period.begins} to {month.period.ends}: {month.used:,} "
    if month.limit is None:
        text += "requests (monthly_requests is not set)"
    else:
        text += f"of {month.limit:,} requests ({month.used / month.limit:.1%})"
        if month.reserve:
            text += f", {month.reserve:,} reserved for manual work"
    if usage.forecast is not None:
        text += f"; forecast for the cycle: {usage.forecast:,}, at {usage.usual_day:,} a day"
    yield f"{text}."
    if usage.exhaustion is not None:
        yield (
            f"The API reported at {format_moment(usage.exhaustion.noted_at)} that the monthly "
            "quota is used up. No requests are sent before "
            f"{format_moment(usage.exhaustion.until)}."
        )


def _first_load_lines(resources: Sequence[ResourceState]) -> Iterator[str]:
    """Yield a sentence on the progress of each resource that is loaded for the first time."""
    for each in resources:
        if each.proven_at is not None or not (each.live or each.is_listing):
            continue
        if each.is_listing:
            yield f"{each.resource}: first load, {each.live:,} records listed so far."
        elif each.listed_only:
            read = each.live - each.listed_only
            yield (
                f"{each.resource}: first load, {read:,} of {each.live:,} records read"
                f" ({read / each.live:.0%})."
            )


def _next_steps(found: AccountStatus) -> Iterator[str]:
    """Yield the next steps, or that everything is up to date."""
    unread = found.unread
    if unread is not None:
        broken = sum(each.broken for each in found.resources)
        is_repeatable = found.holder is None and broken < unread.records
        yield str(unread) + (" Run 'connector pull'." if is_repeatable else "")
        return
    if found.holder is not None:
        return
    pulled = [each for each in found.resources if each.resource in found.results]
    proven = [each.proven_at for each in pulled if each.proven_at is not None]
    # Content items without a content type have no list, so they are verified without a time.
    unproven = [e for e in pulled if e.proven_at is None and not found.results[e.resource].proven]
    if proven and not unproven and not found.problems:
        since = describe_age(found.now - min(proven))
        yield f"Up to date: all records are loaded and were verified {since} ago."
    never = [each.resource for each in found.resources if each.resource not in found.results]
    if never and pulled:
        yield f"Never pulled: {', '.join(never)}."


def _as_json(found: AccountStatus) -> dict[str, object]:
    """Return the JSON object of `connector status --json` without problems."""
    at, unread = found.published_at, found.unread
    values: dict[str, object] = {
        "folder": found.warehouse.folder,
        "published": {
            "path": found.warehouse.published,
            "published_at": at,
            "age_seconds": None if at is None else (found.now - at).total_seconds(),
            **({} if found.published is None else asdict(found.published)),
        },
        "unpublished": found.failed_publication,
        "resources": {
            each.resource: {**asdict(each), "last": found.results.get(each.resource)}
            for each in found.resources
        },
        "runs": [{**asdict(run), "outcome": found.outcome_of(run)} for run in found.runs],
        "left": None if unread is None else {**asdict(unread), "minutes": unread.minutes},
    }
    values["running"] = None if found.holder is None else asdict(found.holder)
    return values if found.quota is None else values | _quota_json(found.quota)


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


def _print_summaries(session: Session, now: datetime) -> int:
    """Print one line per account, and return the highest exit status of an account's error."""
    terminal, exit_status = session.terminal, 0
    rows, objects = list[Sequence[object]](), list[dict[str, Any]]()
    for account in session.accounts(is_for_all=True):
        found = ExaminedAccount.examine(account, now)
        error = account.error or (found.state.error if found.state is not None else None)
        values = _summary_values(found)
        problems = ", ".join(each.code for each in found.problems)
        moments = [at and format_moment(at) for at in (values["proven_at"], values["last_run_at"])]
        outcome = f"error: {error.code}" if error else values["last_outcome"] or "never pulled"
        numbers = (values["requests"], values["limit"], values["forecast"])
        rows.append((account.title, *moments, outcome, *numbers, problems))
        objects.append(
            {
                "account": account.name,
                **values,
                "error": error and error.as_json(),
                "problems": [each.as_json() for each in found.problems],
            }
        )
        if error is not None:
            terminal.warn(f"{account.title}: {explain(error)}")
            exit_status = max(exit_status, error.exit_status)
    terminal.print_table(ACCOUNT_COLUMNS, rows)
    terminal.print_object({"accounts": objects})
    return exit_status


def _summary_values(found: ExaminedAccount) -> dict[str, Any]:
    """Return the values of an account by the names in `ACCOUNT_VALUES`; unknown values are None."""
    state = found.state
    if state is None:
        return dict.fromkeys(ACCOUNT_VALUES)
    last = state.health.runs[0] if state.health.runs else None
    usage = state.quota
    values = (
        min((at for at in state.health.proven_at.values() if at is not None), default=None),
        last and last.started_at,
        last and (last.outcome or "not finished"),
        usage and usage.month.used,
        usage and usage.month.limit,
        usage and usage.forecast,
    )
    return dict(zip(ACCOUNT_VALUES, values, strict=True))


def _print_health(terminal: Terminal, examined: Sequence[ExaminedAccount], now: datetime) -> int:
    """Print "OK" or the problems of each account. Return 1 if an account has a problem, else 0."""
    accounts = [
        {"account": each.account.name, "ok": not each.problems}
        | {"problems": [problem.as_json() for problem in each.problems]}
        for each in examined
    ]
    is_ok = not any(each.problems for each in examined)
    terminal.print_object({"ok": is_ok, "at": format_moment(now), "accounts": accounts})
    for each in examined:
        found = [" ".join(describe_problem(problem)) for problem in each.problems]
        terminal.print_line(f"{each.account.title}: {' '.join(found) or 'OK'}")
    return 0 if is_ok else 1

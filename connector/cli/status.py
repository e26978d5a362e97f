"""`connector status`: print an account's state from its files, without API requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from connector.cli import alerts as alerting
from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Backlog, Terminal, UnreadCounts, describe_age
from connector.errors import ConnectorError, SettingsError, count_noun
from connector.ledger.erasures import Erasures
from connector.ledger.ledger import Lease, Ledger, LedgerStatus, allowance_of
from connector.ledger.quota import format_moment
from connector.ledger.receipts import RECEIPT_MISSING_ACTION, MissingReceipt
from connector.operations.alert_check import AlertCheck, current_alerts, open_alerts
from connector.operations.findings import Proof, proof_of
from connector.pulls.outcome import explain, explain_together
from connector.pulls.workspace import check_files
from connector.settings.layers import SEEDS_FOLDER
from connector.settings.model import ConfiguredAccount, Settings
from connector.settings.values import Age, parse_age
from connector.warehouse.runs import (
    Publication,
    Run,
    last_publications,
    last_runs,
    read_own_publication,
    resources_not_started,
)
from connector.warehouse.state import ResourceState
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "summary only", "deleted", "pending", "API total"),
    *("verified until", "age", "oldest read", "last result"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests", "rate limited")
ACCOUNT_COLUMNS = (
    *("account", "verified until", "last run", "outcome", "requests", "of", "forecast", "alerts"),
)
ACCOUNT_VALUES = ("proven_at", "last_run_at", "last_outcome", "requests", "limit", "forecast")
RUNS_SHOWN = 5
PUBLICATIONS_SHOWN = 5

RATE_REQUESTS_MIN = 50
"""Runs with fewer requests are too short to measure the requests per minute."""

_OWNER_SHOWN = frozenset(("run_id", "command", "pid", "host"))


@dataclass(frozen=True, slots=True)
class AccountStatus:
    """Status of one account at the time `now`.

    Args:
        published_at: Time of the published file; None if nothing is published.
        published: Description in the published file; None if it has none.
        publications: Latest attempts to publish, newest first.
        ledger_status: Requests and leases; None if no request was ever counted.
        not_started: Resources that the last run did not reach.
    """

    warehouse: Warehouse
    resources: tuple[ResourceState, ...]
    runs: tuple[Run, ...]
    published_at: datetime | None
    published: Publication | None
    publications: tuple[Publication, ...]
    ledger_status: LedgerStatus | None
    alerts: AlertCheck
    now: datetime
    not_started: frozenset[str]

    @classmethod
    def read(cls, settings: Settings, warehouse: Warehouse, now: datetime) -> AccountStatus:
        """Prepare the work file and read the account's state. Raises `WarehouseError`.

        Missing tables and columns are added.
        """
        # Raises if another program made the file, and changes nothing if it is up to date.
        with warehouse.keep_open():
            warehouse.prepare()
            resources = warehouse.status()
            runs = warehouse.read(last_runs, RUNS_SHOWN)
            publications = warehouse.read(last_publications, PUBLICATIONS_SHOWN)
            unreached = warehouse.read(resources_not_started)
        return cls(
            warehouse,
            resources,
            runs,
            _published_at(warehouse),
            read_own_publication(warehouse.published),
            publications,
            _ledger_status(settings, now),
            current_alerts(settings, now),
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

    @property
    def unchanged_at(self) -> datetime | None:
        """Time of the last pull if it found nothing to publish; else None."""
        newest = self.publications[0] if self.publications else None
        return newest.true_of if newest is not None and newest.outcome == "unchanged" else None

    @property
    def running_leases(self) -> tuple[Lease, ...]:
        """The leases of running runs."""
        leases = self.ledger_status.leases if self.ledger_status is not None else ()
        return tuple(each for each in leases if not each.can_be_taken(self.now))

    def outcome_of(self, run: Run) -> str:
        """Return the run's outcome, "running", or "interrupted" if it has no outcome and no
        process.
        """
        is_under_way = run.run_id in {each.owner.run_id for each in self.running_leases}
        return run.outcome or ("running" if is_under_way else "interrupted")

    @property
    def unread(self) -> Backlog | None:
        """The records still to be read; None if all are read."""
        waiting = [each for each in self.resources if each.pending or each.is_listing]
        return Backlog.of_resources(
            [UnreadCounts(each.pending, each.live, each.proven_at is not None) for each in waiting],
            month_limit=self.ledger_status.month.limit if self.ledger_status is not None else None,
            is_known=not any(each.is_listing for each in waiting),
            per_minute=self._requests_per_minute,
        )

    @property
    def _requests_per_minute(self) -> float | None:
        """Measured rate of the current or the latest long run, else the API's limit; None if
        unknown.
        """
        rates = [
            (each.requests, (self.now - each.since).total_seconds()) for each in self.running_leases
        ]
        rates += [(each.requests or 0, each.seconds or 0.0) for each in self.runs]
        for requests, seconds in rates:
            if requests >= RATE_REQUESTS_MIN and seconds > 0:
                return requests / seconds * 60
        return self.ledger_status.limit_per_minute if self.ledger_status is not None else None


def _parse_age(text: str) -> Age:
    """Parse for example 26h, 90min or 2d. Raises `click.BadParameter`."""
    try:
        return parse_age(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not {error}") from None


@click.command(
    cls=Command,
    examples=(
        "connector status",
        "connector status --account acme --json",
        "connector status --all --max-age 26h",
        "connector status --all --check",
    ),
)
@click.option(
    "--check",
    is_flag=True,
    help="Print one line per account, and exit with status 1 if a file is damaged or missing, or"
    " if the last verification is older than --max-age (default: alert_max_age).",
)
@click.option(
    "--max-age",
    type=_parse_age,
    metavar="AGE",
    help="Exit with status 1 if the last verification is older than AGE (26h, 90min, 2d), or if"
    " alerts cannot be delivered.",
)
@options.all_accounts
def status(session: Session, *, check: bool, max_age: Age | None, is_for_all: bool) -> int:
    """Show how recent the copy is, the last runs, and the requests of this month.

    Also shows the records still to be read, the time and requests that they need, a running pull,
    and open alerts. Makes no API requests, and works during a pull.

    Use --max-age as a watchdog in cron: it checks when the data was last verified, not whether a
    schedule ran. Use --check as the health check of a container: an account that was never pulled
    passes it.
    """
    if check:
        return _print_health(session, max_age, is_for_all=is_for_all)
    if is_for_all:
        return _print_summaries(session, max_age)
    settings, terminal, now = session.load(), session.terminal, datetime.now(UTC)
    warehouse = Warehouse(settings.folder)
    found = AccountStatus.read(settings, warehouse, now) if warehouse.exists else None
    watched = open_alerts(settings) if found is None else found.alerts
    proven_at = {} if found is None else {e.resource: e.proven_at for e in found.resources}
    proof = proof_of(proven_at, now, max_age) if max_age is not None else None
    nothing = {"folder": settings.folder, "resources": {}, "runs": [], "is_lost": warehouse.is_lost}
    values = nothing if found is None else _as_json(found)
    terminal.print_object(values | alerting.alerts_json(proof, watched))
    if found is None and warehouse.is_lost:
        terminal.warn(f"{LOST}. {LOST_ACTION}")
    elif found is None:
        terminal.say(f"{settings.folder} contains no records yet. {_first_step(settings)}")
    elif not terminal.is_json:
        _print_status(terminal, found)
    return alerting.print_alert_warnings(terminal, proof, watched)


def _ledger_status(settings: Settings, now: datetime) -> LedgerStatus | None:
    """Return the requests of the month and the leases; None without a ledger."""
    with Ledger(settings.folder) as ledger:
        return ledger.status(allowance_of(settings), now) if ledger.exists else None


def _first_step(settings: Settings) -> str:
    """Return a sentence with the command that loads the first records."""
    name = settings.account.value
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
    troubled = [
        each.last for each in found.resources if each.last is not None and each.last.message
    ]
    warnings = tuple(explain_together(troubled))
    for line in warnings:
        terminal.warn(line)
    terminal.print_line()
    runs = [_run_row(each, found.outcome_of(each)) for each in found.runs]
    terminal.print_table(RUN_COLUMNS, runs)
    terminal.print_line()
    _print_publications(terminal, found)
    for line in (*_quota_lines(found), *alerting.alert_lines(found.alerts)):
        terminal.print_line(line)
    for line in (*_first_load_lines(found.resources), *_next_steps(found)):
        terminal.say(line)
    for action in dict.fromkeys(each.action for each in found.alerts.open):
        if not any(action in line for line in warnings):
            terminal.say(f"What to do: {action}")


def _resource_row(state: ResourceState, found: AccountStatus) -> Sequence[object]:
    """Return the values of `RESOURCE_COLUMNS`."""
    proven_at, oldest, last, now = state.proven_at, state.oldest_read_at, state.last, found.now
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
        if found.unchanged_at is not None:
            text += f"; no changes found since, last pull at {format_moment(found.unchanged_at)}"
        terminal.print_line(f"Published {since} ago: {found.warehouse.published}{text}")
        if found.published is not None and found.published.unfilled_seeds:
            terminal.print_line(_describe_seeds(found.published, found.warehouse.folder))
    row = found.failed_publication
    if row is not None:
        terminal.warn(
            "the latest records are not published. The last attempt "
            f"({describe_age(found.now - (row.ended_at or row.started_at))} ago) was "
            f"{row.outcome}: {row.message or ''}. Correct the cause, then run 'connector "
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
    usage = found.ledger_status
    if usage is None:
        return
    for each in found.running_leases:
        owner = each.owner
        yield (
            f"Running: {each.name} since {format_moment(each.since)}, process {owner.pid} "
            f"({owner.command}) on {owner.host}, {count_noun(each.requests, 'request')} "
            "so far."
        )
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
        is_repeatable = not found.running_leases and broken < unread.records
        yield str(unread) + (" Run 'connector pull'." if is_repeatable else "")
        return
    if found.running_leases:
        return
    pulled = [each for each in found.resources if each.last is not None]
    proven = [each.proven_at for each in pulled if each.proven_at is not None]
    # Content items without a content type have no list, so they are verified without a time.
    unproven = [e for e in pulled if e.proven_at is None and e.last and not e.last.proven]
    if proven and not unproven and not found.alerts.open:
        since = describe_age(found.now - min(proven))
        yield f"Up to date: all records are loaded and were verified {since} ago."
    never = [each.resource for each in found.resources if each.last is None]
    if never and pulled:
        yield f"Never pulled: {', '.join(never)}."


def _as_json(found: AccountStatus) -> dict[str, object]:
    """Return the JSON object of `connector status --json` without alerts."""
    at, unread = found.published_at, found.unread
    values: dict[str, object] = {
        "folder": found.warehouse.folder,
        "published": {
            "path": found.warehouse.published,
            "published_at": at,
            "age_seconds": None if at is None else (found.now - at).total_seconds(),
            "unchanged_at": found.unchanged_at,
            **({} if found.published is None else asdict(found.published)),
        },
        "unpublished": found.failed_publication,
        "resources": {each.resource: each for each in found.resources},
        "runs": [{**asdict(run), "outcome": found.outcome_of(run)} for run in found.runs],
        "left": None if unread is None else {**asdict(unread), "minutes": unread.minutes},
    }
    usage = found.ledger_status
    return values if usage is None else values | _ledger_json(usage, found.now)


def _ledger_json(usage: LedgerStatus, now: datetime) -> dict[str, object]:
    """Return the JSON fields `month`, `limit_per_minute` and `leases`."""
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
        "leases": [
            {
                "name": each.name,
                **{n: v for n, v in asdict(each.owner).items() if n in _OWNER_SHOWN},
                "since": each.since,
                "expires_at": each.expires_at,
                "requests": each.requests,
                "is_under_way": not each.can_be_taken(now),
            }
            for each in usage.leases
        ],
    }


# -- All accounts ----------------------------------------------------------------------------------
# One line for each account, also for an account whose files cannot be read.


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """Last verification, last run, requests and alerts of one account."""

    proof: Proof
    last: Run | None
    ledger_status: LedgerStatus | None
    alerts: AlertCheck

    @classmethod
    def read(cls, settings: Settings, now: datetime, max_age: Age | None) -> AccountSummary:
        """Read the account's files. Raises `ConnectorError`."""
        warehouse = Warehouse(settings.folder)
        health = warehouse.health() if warehouse.exists else None
        proven_at = {} if health is None else health.proven_at
        return cls(
            proof_of(proven_at, now, max_age or settings.alert_max_age.value),
            health.runs[0] if health is not None and health.runs else None,
            _ledger_status(settings, now),
            open_alerts(settings),
        )

    def values(self) -> dict[str, Any]:
        """Return the values by the names in `ACCOUNT_VALUES`; unknown values are None."""
        last, month = self.last, None if self.ledger_status is None else self.ledger_status.month
        values = (
            self.proof.oldest,
            None if last is None else last.started_at,
            None if last is None else last.outcome,
            None if month is None else month.used,
            None if month is None else month.limit,
            None if self.ledger_status is None else self.ledger_status.forecast,
        )
        return dict(zip(ACCOUNT_VALUES, values, strict=True))


def _print_summaries(session: Session, max_age: Age | None) -> int:
    """Print one line per account and its problems, and return the highest exit status."""
    terminal, now, exit_status = session.terminal, datetime.now(UTC), 0
    read = partial(AccountSummary.read, now=now, max_age=max_age)
    found = list(session.for_each(read, is_for_all=True))
    rows = [(account.title, *_account_cells(line)) for account, line in found]
    terminal.print_table(ACCOUNT_COLUMNS, rows)
    for account, line in found:
        if isinstance(line, ConnectorError):
            terminal.warn(f"{account.title}: {explain(line)}")
            exit_status = max(exit_status, line.exit_status)
            continue
        failures = [f"{failure}." for failure in line.alerts.failures]
        if max_age is not None and line.proof.sentence is not None:
            failures.append(line.proof.sentence)
        for failure in failures:
            terminal.warn(f"{account.title}: {failure}")
        if max_age is not None and failures:
            exit_status = max(exit_status, 1)
    accounts = [{"account": account.name, **_account_json(line)} for account, line in found]
    terminal.print_object({"accounts": accounts})
    return exit_status


def _account_cells(summary: AccountSummary | ConnectorError) -> Sequence[object]:
    """Return the values of `ACCOUNT_COLUMNS` after the account's name."""
    if isinstance(summary, ConnectorError):
        return (None, None, f"error: {summary.code}", None, None, None, None)
    values = summary.values()
    moments = [at and format_moment(at) for at in (values["proven_at"], values["last_run_at"])]
    outcome = values["last_outcome"] or ("never pulled" if summary.last is None else "not finished")
    alerts = ", ".join(each.code for each in summary.alerts.open)
    return (*moments, outcome, values["requests"], values["limit"], values["forecast"], alerts)


def _account_json(summary: AccountSummary | ConnectorError) -> dict[str, object]:
    """Return the JSON object of one account of `connector status --all`."""
    if isinstance(summary, ConnectorError):
        return {**dict.fromkeys(ACCOUNT_VALUES), "error": summary.as_json()}
    return {
        **summary.values(),
        "error": None,
        **alerting.alerts_json(summary.proof, summary.alerts),
    }


# -- Check -----------------------------------------------------------------------------------------


def _print_health(session: Session, max_age: Age | None, *, is_for_all: bool) -> int:
    """Print "OK" or the problems of each account. Return 1 if an account has problems, else 0."""
    terminal, now = session.terminal, datetime.now(UTC)
    accounts = session.accounts(is_for_all=is_for_all)
    found = [(each, tuple(_problems(each, now, max_age))) for each in accounts]
    is_ok = not any(problems for _, problems in found)
    checked = [{"account": each.name, "ok": not e, "problems": e} for each, e in found]
    terminal.print_object({"ok": is_ok, "at": format_moment(now), "accounts": checked})
    for account, problems in found:
        terminal.print_line(f"{account.title}: {' '.join(problems) or 'OK'}")
    return 0 if is_ok else 1


def _problems(account: ConfiguredAccount, now: datetime, max_age: Age | None) -> Iterator[str]:
    """Yield sentences on damaged files, missing receipts, old data and undelivered alerts."""
    try:
        line = AccountSummary.read(account.require_settings(), now, max_age)
        check_files(account.require_settings())
        missing = _missing_receipts(account.require_settings())
    except ConnectorError as error:
        yield explain(error)
        return
    yield from (f"{each}. {RECEIPT_MISSING_ACTION}" for each in missing)
    if line.last is not None and line.proof.sentence is not None:
        yield line.proof.sentence
    yield from (f"{each}." for each in line.alerts.failures)


def _missing_receipts(settings: Settings) -> list[MissingReceipt]:
    """Return erasures whose receipt is missing. Raises `WarehouseError` if the key is lost."""
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return []
        erasures = Erasures(ledger)
        # Raises for a lost key and for a receipt that cannot be read.
        erasures.count_missing_hashes()
        return erasures.missing_receipts()

"""`connector pull` and `verify`: read the API, or estimate the requests."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from datetime import UTC, datetime
from subprocess import PIPE
from typing import Any

import click

from connector.cli import options
from connector.cli.session import Command, RunProgress, Session
from connector.cli.terminal import Backlog, Terminal, UnreadCounts, describe_cost
from connector.errors import ConnectorError, Misused, Stopped, count_noun, end_sentence
from connector.log import shorten_name
from connector.models.publish import load_account_project
from connector.operations.verify import StreamComparison, VerifyReport
from connector.operations.verify import verify as run_verify
from connector.pulls.account import WAIT_TOLD_SECONDS_MIN
from connector.pulls.plan import CostEstimate
from connector.pulls.plan import estimate_cost as run_plan
from connector.pulls.ports import PullOptions
from connector.pulls.report import (
    PullReport,
    describe_anomalies,
    describe_row_difference,
    explain,
    explain_together,
    next_action,
)
from connector.pulls.run import pull as run_pull
from connector.settings import ENVIRONMENT, ConfiguredAccount, Settings, refuse_shared_credentials
from connector.state.database import Database
from connector.state.quota import MonthUse
from connector.state.runs import Runs

COLUMNS = (
    *("resource", "outcome", "proven", "requests", "new", "changed", "unchanged", "deleted"),
    *("live", "total", "pending"),
)
"""Columns of a pull's table, named as in `sync.run_resources`."""

HEADINGS = tuple({"proven": "verified", "total": "API total"}.get(name, name) for name in COLUMNS)


# -- Pull ------------------------------------------------------------------------------------------


_ODD_ACTION = (
    "No action is needed: no data is lost. The table sync.events lists all these records, and"
    " docs/PULL.md explains each kind."
)


@click.command(
    cls=Command,
    has_create_option=True,
    examples=(
        "connector pull",
        "connector pull jobs candidates",
        "connector pull --max-requests 500",
        "connector pull --reverify 200",
        "connector pull candidates --full",
        "connector pull candidates --sweep",
        "connector pull --plan",
        "connector pull --json | jq .",
    ),
    if_interrupted="Loaded records are kept. Run the same command again to continue.",
)
@options.resources
@options.budget
@click.option(
    "--plan",
    "plans",
    is_flag=True,
    help="Only estimate the requests and minutes, with one request for each resource and as many "
    "changes as in the last pull. Loads nothing.",
)
@click.option("--full", "is_full", is_flag=True, help="Read every record again.")
@click.option(
    "--sweep",
    "sweeps",
    is_flag=True,
    help="Compare every list page with the local copy, with one request per hundred records, and "
    "read records that differ. Finds differences that cancel out in the number of records.",
)
@click.option(
    "--reverify",
    "verification_requests",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Number of records to read again. The ones with the oldest read time are first.",
)
@click.option(
    "--ids",
    type=options.comma_separated,
    default="",
    metavar="ID,...",
    help="Read only these records of one RESOURCE.",
)
@options.accept_deletes
@options.ignore_quota
@click.option(
    "--all",
    "is_for_all",
    is_flag=True,
    help="Pull all configured accounts, the least recently verified first.",
)
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of accounts to pull at the same time (with --all).",
)
def pull(
    session: Session,
    *,
    is_for_all: bool,
    parallel: int,
    resources: tuple[str, ...],
    ids: tuple[str, ...],
    budget: int | None,
    ignores_quota: bool,
    plans: bool,
    **pull_options: Any,
) -> int:
    """Update the local copy from the API and publish it.

    Reads records that changed since the last pull, detects deletions, and publishes
    recruitment.duckdb. A pull that changed nothing publishes nothing. Pulls all resources unless
    you name some. You can stop a pull at any time: loaded records are kept, and the next pull
    continues from there. Only one pull per account runs at a time.
    """
    if plans:
        if is_for_all or ids or budget or ignores_quota or any(pull_options.values()):
            raise Misused("--plan has other options", action="Give only --plan and resources.")
        return _plan(session, resources)
    if is_for_all:
        if ids or pull_options["accepts_deletes"]:
            raise Misused(
                "--all cannot be combined with --ids or --accept-deletes",
                action="Choose one account with --account.",
            )
        given = {"--max-requests": budget, "--reverify": pull_options["verification_requests"]}
        arguments = [*resources, *(f"{name}={value}" for name, value in given.items() if value)]
        arguments += ["--full"] * pull_options["is_full"] + ["--sweep"] * pull_options["sweeps"]
        arguments += ["--ignore-quota"] * ignores_quota
        arguments += ["--quiet"] * session.terminal.is_quiet
        return _pull_all(session, arguments, parallel)
    return _pull_and_print(
        session,
        resources,
        options=PullOptions(**pull_options),
        ids=ids,
        budget=budget,
        ignores_quota=ignores_quota,
    )


def _pull_and_print(session: Session, resources: tuple[str, ...], **run_options: Any) -> int:
    """Pull, print the result, resolve unconfirmed rows of pushes, and return the exit status."""
    settings = session.load()
    with session.terminal.progress("pull") as meter:
        watch = RunProgress(meter)
        pulling = run_pull(settings, resources, watch=watch, building=watch.on_build, **run_options)
        report = asyncio.run(pulling)
    _print_report(session.terminal, report)
    if report.published is not None:
        _warn_undeclared(session.terminal, settings)
    if report.outcome in ("done", "partial"):
        budget = run_options.get("budget")
        left = None if budget is None else budget - report.requests
        if left != 0:
            from connector.pushes.run import look_up_unconfirmed  # noqa: PLC0415

            if result := asyncio.run(look_up_unconfirmed(settings, budget=left)):
                session.terminal.say(end_sentence(result))
    return report.exit_status


def _print_report(terminal: Terminal, report: PullReport) -> None:
    """Print the table, a line for each resource with a problem, and a closing sentence."""
    terminal.print_object(report.as_json())
    terminal.fields["run_id"] = report.run_id
    started = [each for each in report.resources.values() if each.outcome != "not_started"]
    terminal.print_table(HEADINGS, [[getattr(each, name) for name in COLUMNS] for each in started])
    for line in failure_lines(report):
        terminal.warn(line)
    if terminal.form == "json":
        for done in started:
            text = f"{done.resource} {done.outcome}"
            terminal.say(text, resource=done.resource, requests=done.requests)
    # The closing sentence contains the reason of a stopped pull.
    terminal.print_errors(
        None if isinstance(report.error, Stopped) else report.error,
        publishing_error=report.unpublished,
    )
    terminal.say(_closing_sentence(report), requests=report.requests)


def _warn_undeclared(terminal: Terminal, settings: Settings) -> None:
    """Warn about own models and columns that no schema.yml declares."""
    if settings.models == "off" or settings.models_folder is None:
        return
    from connector.models.mask import find_undeclared  # noqa: PLC0415 # only for own models

    if missing := find_undeclared(load_account_project(settings)):
        what = count_noun(len(missing), "model or column", "models or columns")
        verb = "is" if len(missing) == 1 else "are"
        terminal.warn(
            f"{what} of your own {verb} not declared in a schema.yml:"
            " 'connector models test' lists them"
        )


def failure_lines(report: PullReport) -> Iterator[str]:
    """Yield a line for each resource with a problem.

    The error that ended the run is left out, because it is printed separately.
    """
    yield from explain_together(
        [
            each
            for each in report.resources.values()
            if each.outcome not in ("done", "not_started")
            if report.error is None
            or each.error_code != report.error.code
            or next_action(each) != report.error.action
        ]
    )
    for name, each in report.resources.items():
        if each.outcome == "done" and (differs := describe_row_difference(each)):
            yield differs
        if odd := report.anomalies.get(name):
            yield f"{describe_anomalies(name, odd)} {_ODD_ACTION}"
    not_started = [n for n, each in report.resources.items() if each.outcome == "not_started"]
    if not_started:
        yield f"not pulled, because the run ended before: {', '.join(not_started)}"


def _closing_sentence(report: PullReport) -> str:
    """Return a sentence with the outcome, the changes and the cost of the pull."""
    each = report.resources.values()
    new, changed, deleted = (
        sum(getattr(e, n) for e in each) for n in ("new", "changed", "deleted")
    )
    cost = describe_cost(report.requests, report.seconds)
    if report.waited_seconds >= WAIT_TOLD_SECONDS_MIN:
        cost += f", including {report.waited_seconds:,.0f} s waiting for the rate limit"
    brought = f"{new:,} new, {changed:,} changed, {deleted:,} deleted ({cost})."
    if isinstance(report.error, Stopped):
        why, left = explain(report.error), _backlog(report)
        return f"Stopped: {brought} {f'{left} ' if left else ''}{why[:1].upper()}{why[1:]}"
    if report.outcome == "failed":
        return f"Failed: {brought}"
    if report.outcome == "partial":
        done = sum(e.outcome == "done" for e in each)
        return f"Partly done ({done} of {count_noun(len(each), 'resource')}): {brought}"
    verified = count_noun(sum(e.scrubs for e in each), "record")
    is_verifying = any(e.scrubs for e in each)
    if not new + changed + deleted:
        if is_verifying:
            return f"No changes. {verified} re-verified, no differences ({cost})."
        return f"No changes since the last pull ({cost})."
    return f"Done: {verified} re-verified, {brought}" if is_verifying else f"Done: {brought}"


def _backlog(report: PullReport) -> Backlog | None:
    """Return the records that a stopped pull has not read yet; None if all are read."""
    begun = [each for each in report.resources.values() if each.outcome != "not_started"]
    return Backlog.of_resources(
        [UnreadCounts(e.pending, e.live, e.bookmark_after is not None) for e in begun if e.pending],
        month_limit=None if report.month is None else report.month.limit,
        # Lists that were not read to their end may contain more records.
        is_known=len(begun) == len(report.resources) and all(e.bookmark_after for e in begun),
    )


def _describe_quota_share(requests: int, month: MonthUse | None) -> str:
    """Return for example "1.5% of the month's quota"; empty if the quota is unknown."""
    limit = month.limit if month is not None else None
    return f"{requests / limit:.1%} of the month's quota" if limit else ""


# -- All accounts ----------------------------------------------------------------------------------

ACCOUNT_COLUMNS = (
    *("account", "outcome", "exit status", "requests", "new", "changed", "deleted", "seconds"),
)


def _pull_all(session: Session, arguments: Sequence[str], parallel: int) -> int:
    """Pull every account in a separate process, and return the highest exit status.

    A crash or an endless wait of one account does not affect the others. `arguments` are options of
    `connector pull`.
    """
    accounts = sorted(session.accounts(is_for_all=True), key=_least_recent_verification)
    for each in accounts:
        if each.settings is not None:
            refuse_shared_credentials(each.settings)
    running: set[subprocess.Popen[str]] = set()
    pulls: dict[str, dict[str, Any]] = {}
    progress = session.terminal.progress("pull", len(accounts))
    with progress as meter, ThreadPoolExecutor(parallel) as pool:
        waiting = {
            pool.submit(_pull_in_process, each, arguments, running): each for each in accounts
        }
        try:
            for done in as_completed(waiting):
                title = waiting[done].title
                pulls[title], lines = done.result()
                # With --json the error of a report is printed only in the report.
                error = pulls[title].get("error", {})
                if "outcome" in pulls[title] and "message" in error:
                    lines.insert(0, f"Error: {error['message']} [{error['code']}]")
                for line in lines:
                    session.terminal.print_child_line(title, line)
                meter.update(title, steps=1)
        except KeyboardInterrupt:
            # Started pulls keep their loaded records, and stop by themselves.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(running):
                process.send_signal(signal.SIGINT)
            raise
    worst = max((each["exit_status"] for each in pulls.values()), default=0)
    session.terminal.print_object({"accounts": pulls, "exit_status": worst})
    session.terminal.print_table(ACCOUNT_COLUMNS, [_account_cells(*each) for each in pulls.items()])
    well = sum(each["exit_status"] == 0 for each in pulls.values())
    session.terminal.say(f"{well} of {count_noun(len(accounts), 'account')} succeeded.")
    return worst


def _least_recent_verification(account: ConfiguredAccount) -> datetime:
    """Return the time up to which all resources are verified; the earliest time if unknown."""
    moments: list[datetime] = []
    # The account's own pull reports the error.
    with suppress(ConnectorError):
        with Database(account.require_settings().folder) as database:
            proven = Runs(database).health().proven_at if database.exists else {}
        moments = [at for at in proven.values() if at is not None]
    return min(moments, default=datetime.min.replace(tzinfo=UTC))


def _pull_in_process(
    account: ConfiguredAccount, arguments: Sequence[str], running: set[subprocess.Popen[str]]
) -> tuple[dict[str, Any], list[str]]:
    """Run `connector pull --json` for one account.

    Returns its JSON object with `exit_status`, and its lines on standard error. `running` contains
    the process until it ends.
    """
    chosen = [] if account.name is None else ["--account", account.name]
    environ = {n: value for n, value in os.environ.items() if n != ENVIRONMENT["account"]}
    program = (sys.executable, "-c", "from connector.cli import main; main()")
    command = (*program, "pull", "--json", *chosen, *arguments)
    with subprocess.Popen(  # noqa: S603 # our own program, with options that were parsed
        command, stdout=PIPE, stderr=PIPE, text=True, env=environ
    ) as process:
        running.add(process)
        out, messages = process.communicate()
        running.discard(process)
    if process.returncode < 0:
        # A signal killed the process, so the report may be incomplete.
        return {"error": {"code": "killed"}, "exit_status": 1}, messages.splitlines()
    return {**json.loads(out), "exit_status": process.returncode}, messages.splitlines()


def _account_cells(title: str, pull: Mapping[str, Any]) -> list[Any]:
    """Return the values of `ACCOUNT_COLUMNS` from the JSON object of a pull."""
    resources = pull.get("resources", {}).values()
    sums = [sum(each[name] for each in resources) for name in ("new", "changed", "deleted")]
    outcome = pull.get("outcome") or pull["error"]["code"]
    return [title, outcome, pull["exit_status"], pull.get("requests"), *sums, pull.get("seconds")]


# -- Plan ------------------------------------------------------------------------------------------

PLAN_COLUMNS = ("resource", "requests", "lists", "details", "changed", "deleted", "queued", "total")
PLAN_HEADINGS = (
    *("resource", "requests", "for lists", "for records", "changed", "deleted", "pending"),
    "API total",
)


def _plan(session: Session, resources: tuple[str, ...]) -> int:
    """Print the estimated cost of a pull of the resources, and return the exit status."""
    settings = session.load()
    with session.terminal.progress("plan"):
        report = asyncio.run(run_plan(settings, resources))
    _print_plan(session.terminal, report)
    return 0


def _print_plan(terminal: Terminal, report: CostEstimate) -> None:
    """Print the estimate by resource, the total cost and the cost of a schedule."""
    terminal.print_object(report.as_json())
    rows = [
        [name, *(getattr(each, column) for column in PLAN_COLUMNS[1:])]
        for name, each in report.by_resource.items()
    ]
    terminal.print_table(PLAN_HEADINGS, rows)
    for name in report.skipped:
        terminal.warn(f"{name}: skipped, because the API key does not have the scope")
    first = [name for name, each in report.by_resource.items() if each.is_first]
    if first:
        terminal.say(f"Never loaded before: {', '.join(first)}.")
    cost = _describe_requests(report.requests, report.month)
    if report.minutes is not None:
        minutes = f"{report.minutes:,.1f}" if report.minutes >= 1 else "less than 1"
        cost += f", {minutes} {'minutes' if report.minutes >= 1 else 'minute'}"
        if report.minutes >= 1:
            cost += f" at {report.limit_per_minute:,} requests a minute"
    terminal.say(
        f"The next pull needs {cost}. This plan took {count_noun(report.spent, 'request')}."
    )


def _describe_requests(requests: int, month: MonthUse | None) -> str:
    """Return for example "about 120 requests, 1.5% of the month's quota"."""
    share = _describe_quota_share(requests, month)
    return f"about {count_noun(requests, 'request')}{f', {share}' if share else ''}"


# -- Verify ----------------------------------------------------------------------------------------

VERIFY_COLUMNS = (
    *("resource", "equal", "compared", "missing", "extra", "stale", "unhydrated", "unread"),
)
VERIFY_HEADINGS = (
    *("resource", "equal", "compared", "missing", "extra", "different", "summary only"),
    "unreadable",
)
DIFFERENCES_SHOWN_MAX = 10
"""Differing records printed per resource; `--json` lists all."""


@click.command(
    cls=Command,
    examples=("connector verify", "connector verify candidates --json > differences.json"),
    if_interrupted="Nothing was changed. Run the command again to compare from the start.",
)
@options.resources
@options.budget
def verify(session: Session, *, resources: tuple[str, ...], budget: int | None) -> int:
    """Compare every record with the API without changing anything.

    Needs one request per record, and one per hundred records for the lists. Exits with status 0 if
    the local copy equals the API, and with 3 if it differs. Records edited during the comparison
    show up as differences; the next pull resolves them.
    """
    settings = session.load()
    with session.terminal.progress("verify") as meter:
        report = asyncio.run(
            run_verify(settings, resources, budget=budget, watch=RunProgress(meter))
        )
    _print_differences(session.terminal, report)
    return report.exit_status


def _print_differences(terminal: Terminal, report: VerifyReport) -> None:
    """Print the number of differences by resource, the first of each kind, and the result."""
    terminal.print_object(report.as_json())
    rows = [
        (
            name,
            report.is_stream_equal(name),
            each.compared,
            *(len(getattr(each, n)) for n in VERIFY_COLUMNS[3:]),
        )
        for name, each in report.streams.items()
    ]
    terminal.print_table(VERIFY_HEADINGS, rows)
    for name, each in report.streams.items():
        for line in _difference_lines(each):
            terminal.warn(f"{name}: {line}")
    terminal.print_errors(report.error)
    cost = describe_cost(report.requests, report.seconds)
    if report.is_equal:
        terminal.say(f"The local copy equals the API ({cost}).")
    elif report.error is None:
        terminal.say(
            f"The local copy differs from the API ({cost}). Run 'connector pull', then"
            " 'connector verify' again."
        )


def _difference_lines(comparison: StreamComparison) -> Iterator[str]:
    """Yield sentences on the first differing records of each kind."""
    for kind, ids in (("missing", comparison.missing), ("extra", comparison.extra)):
        if ids:
            more = len(ids) - DIFFERENCES_SHOWN_MAX
            shown = ", ".join(ids[:DIFFERENCES_SHOWN_MAX])
            yield f"{kind} in the local copy: {shown}{f' and {more:,} more' if more > 0 else ''}"
    for id, names in list(comparison.stale.items())[:DIFFERENCES_SHOWN_MAX]:
        yield f"{id} differs in {', '.join(names)}"
    if len(comparison.stale) > DIFFERENCES_SHOWN_MAX:
        yield f"and {len(comparison.stale) - DIFFERENCES_SHOWN_MAX:,} more records that differ"
    for id, reason in list(comparison.unread.items())[:DIFFERENCES_SHOWN_MAX]:
        yield f"{shorten_name(id)} could not be read: {reason}"
    if len(comparison.unread) > DIFFERENCES_SHOWN_MAX:
        more = len(comparison.unread) - DIFFERENCES_SHOWN_MAX
        yield f"and {more:,} more records that could not be read"

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
from itertools import islice
from subprocess import PIPE
from typing import Any

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal, describe_cost, describe_left
from connector.errors import DONE, FAILED, ConnectorError, Misused, Stopped, count_noun
from connector.log import shorten_name
from connector.operations.verify import KINDS
from connector.operations.verify import verify as run_verify
from connector.pulls.account import WAIT_TOLD_SECONDS_MIN
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
from connector.settings import ENVIRONMENT, ConfiguredAccount, refuse_shared_credentials
from connector.state.database import Database
from connector.state.runs import Runs

COLUMNS = (
    *("resource", "outcome", "proven", "requests", "new", "changed", "deleted", "live", "total"),
    "pending",
)
"""Columns of a pull's table, named as in `sync.run_resources`."""

HEADINGS = tuple({"proven": "verified", "total": "API total"}.get(name, name) for name in COLUMNS)


# -- Pull ------------------------------------------------------------------------------------------


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
    help="Only estimate the requests and minutes, with one request for each resource and as many"
    " changes as in the last pull. Loads nothing.",
)
@click.option("--full", "is_full", is_flag=True, help="Read every record again.")
@click.option(
    "--sweep",
    "sweeps",
    is_flag=True,
    help="Compare every list page with the local copy, with one request per hundred records, and"
    " read records that differ. Finds differences that cancel out in the number of records.",
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
@click.option(
    "--accept-deletes",
    "accepts_deletes",
    is_flag=True,
    help="Accept all deletions, even a suspiciously large number.",
)
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
    session: Session, *, is_for_all: bool, parallel: int, resources: tuple[str, ...],
    ids: tuple[str, ...], budget: int | None, ignores_quota: bool, plans: bool, **pull_options: Any,
) -> int:  # fmt: skip
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
        flags = {
            "--full": pull_options["is_full"],
            "--sweep": pull_options["sweeps"],
            "--ignore-quota": ignores_quota,
            "--quiet": session.terminal.is_quiet,
        }
        arguments = [*resources, *(f"{name}={value}" for name, value in given.items() if value)]
        return _pull_all(session, [*arguments, *(n for n, on in flags.items() if on)], parallel)
    settings, terminal = session.load(), session.terminal
    with terminal.progress("pull") as bar:
        report = asyncio.run(
            run_pull(
                settings, resources, options=PullOptions(**pull_options), ids=ids, budget=budget,
                ignores_quota=ignores_quota, watch=bar, building=bar.on_build,
            )
        )  # fmt: skip
    _print_report(terminal, report)
    return report.exit_status


def _print_report(terminal: Terminal, report: PullReport) -> None:
    """Print the table, a line for each resource with a problem, and a closing sentence."""
    terminal.print_object(report.as_json())
    terminal.fields["run_id"] = report.run_id
    started = [each for each in report.resources.values() if each.outcome != "not_started"]
    terminal.print_table(HEADINGS, [[getattr(each, name) for name in COLUMNS] for each in started])
    for line in _failure_lines(report):
        terminal.warn(line)
    for done in started if terminal.form == "json" else ():
        text = f"{done.resource} {done.outcome}"
        terminal.say(text, resource=done.resource, requests=done.requests)
    # The closing sentence contains the reason of a stopped pull.
    error = None if isinstance(report.error, Stopped) else report.error
    terminal.print_errors(error, report.unpublished)
    terminal.say(_closing_sentence(report), requests=report.requests)


def _failure_lines(report: PullReport) -> Iterator[str]:
    """Yield a line for each resource with a problem.

    The error that ended the run is left out, because it is printed separately.
    """
    shown = None if report.error is None else (report.error.code, report.error.action)
    results = report.resources.values()
    failed = [each for each in results if each.outcome not in ("done", "not_started")]
    yield from explain_together([e for e in failed if (e.error_code, next_action(e)) != shown])
    for name, each in report.resources.items():
        if each.outcome == "done" and (differs := describe_row_difference(each)):
            yield differs
        if odd := report.anomalies.get(name):
            yield (
                f"{describe_anomalies(name, odd)} No action is needed: no data is lost. The table"
                " sync.events lists all these records, and docs/PULL.md explains each kind."
            )
    if missed := [name for name, e in report.resources.items() if e.outcome == "not_started"]:
        yield f"not pulled, because the run ended before: {', '.join(missed)}"


def _closing_sentence(report: PullReport) -> str:
    """Return a sentence with the outcome, the changes and the cost of the pull."""
    results = report.resources.values()
    names = ("new", "changed", "deleted")
    sums = {name: sum(getattr(each, name) for each in results) for name in names}
    cost = describe_cost(report.requests, report.seconds)
    if report.waited_seconds >= WAIT_TOLD_SECONDS_MIN:
        cost += f", including {report.waited_seconds:,.0f} s waiting for the rate limit"
    brought = f"{', '.join(f'{count:,} {name}' for name, count in sums.items())} ({cost})."
    verified = sum(each.scrubs for each in results)
    reverified = f"{count_noun(verified, 'record')} re-verified, " if verified else ""
    if isinstance(report.error, Stopped):
        pending, why = sum(each.pending for each in results), explain(report.error)
        # Lists that were not read to their end may contain more records.
        left = describe_left(pending, is_known=all(each.bookmark_after for each in results))
        return f"Stopped: {brought} {left} {why[:1].upper()}{why[1:]}"
    if report.outcome == "failed":
        return f"Failed: {brought}"
    if report.outcome == "partial":
        done = sum(each.outcome == "done" for each in results)
        return f"Partly done ({done} of {count_noun(len(results), 'resource')}): {brought}"
    if any(sums.values()):
        return f"Done: {reverified}{brought}"
    if verified:
        return f"No changes. {reverified}no differences ({cost})."
    return f"No changes since the last pull ({cost})."


# -- All accounts ----------------------------------------------------------------------------------

ACCOUNT_COLUMNS = (
    *("account", "outcome", "exit status", "requests", "new", "changed", "deleted", "seconds"),
)


def _pull_all(session: Session, arguments: Sequence[str], parallel: int) -> int:
    """Pull every account in a separate process, and return the highest exit status.

    A crash or an endless wait of one account does not affect the others. `arguments` are options of
    `connector pull`.
    """
    terminal = session.terminal
    accounts = sorted(session.accounts(is_for_all=True), key=_least_recent_verification)
    for each in accounts:
        if each.settings is not None:
            refuse_shared_credentials(each.settings)
    running: set[subprocess.Popen[str]] = set()
    pulls: dict[str, dict[str, Any]] = {}
    progress = terminal.progress("pull", len(accounts))
    with progress as bar, ThreadPoolExecutor(parallel) as pool:
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
                    terminal.print_child_line(title, line)
                bar.update(title, steps=1)
        except KeyboardInterrupt:
            # Started pulls keep their loaded records, and stop by themselves.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(running):
                process.send_signal(signal.SIGINT)
            raise
    statuses = [each["exit_status"] for each in pulls.values()]
    terminal.print_object({"accounts": pulls, "exit_status": max(statuses, default=DONE)})
    terminal.print_table(ACCOUNT_COLUMNS, [_account_cells(*each) for each in pulls.items()])
    well = statuses.count(DONE)
    terminal.say(f"{well} of {count_noun(len(accounts), 'account')} succeeded.")
    return max(statuses, default=DONE)


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
        return {"error": {"code": "killed"}, "exit_status": FAILED}, messages.splitlines()
    return {**json.loads(out), "exit_status": process.returncode}, messages.splitlines()


def _account_cells(title: str, pull: Mapping[str, Any]) -> list[Any]:
    """Return the values of `ACCOUNT_COLUMNS` from the JSON object of a pull."""
    resources = pull.get("resources", {}).values()
    sums = [sum(each[name] for each in resources) for name in ("new", "changed", "deleted")]
    outcome = pull.get("outcome") or pull["error"]["code"]
    return [title, outcome, pull["exit_status"], pull.get("requests"), *sums, pull.get("seconds")]


# -- Plan ------------------------------------------------------------------------------------------

PLAN_COLUMNS = ("resource", "requests", "changed", "deleted", "pending", "API total")


def _plan(session: Session, resources: tuple[str, ...]) -> int:
    """Print the estimated cost of a pull of the resources."""
    settings, terminal = session.load(), session.terminal
    with terminal.progress("plan"):
        report = asyncio.run(run_plan(settings, resources))
    terminal.print_object(report.as_json())
    costs = report.by_resource
    rows = [(n, e.requests, e.changed, e.deleted, e.queued, e.total) for n, e in costs.items()]
    terminal.print_table(PLAN_COLUMNS, rows)
    for name in report.skipped:
        terminal.warn(f"{name}: skipped, because the API key does not have the scope")
    if first := [name for name, each in costs.items() if each.is_first]:
        terminal.say(f"Never loaded before: {', '.join(first)}.")
    cost = f"about {count_noun(report.requests, 'request')}"
    if report.month_share is not None:
        cost += f", {report.month_share:.1%} of the month's quota"
    if report.minutes is not None:
        time = f"{report.minutes:,.1f} minutes" if report.minutes >= 1 else "less than 1 minute"
        cost += f", {time} at {report.limit_per_minute:,} requests a minute"
    spent = count_noun(report.spent, "request")
    terminal.say(f"The next pull needs {cost}. This plan took {spent}.")
    return DONE


# -- Verify ----------------------------------------------------------------------------------------

VERIFY_COLUMNS = ("resource", "equal", "compared", *KINDS)
DIFFERENCES_SHOWN_MAX = 10
"""Differing records printed per resource and kind; `--json` lists all."""


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
    settings, terminal = session.load(), session.terminal
    with terminal.progress("verify") as bar:
        report = asyncio.run(run_verify(settings, resources, budget=budget, watch=bar))
    terminal.print_object(report.as_json())
    terminal.print_table(
        VERIFY_COLUMNS,
        [
            (name, each.is_equal, each.compared, *map(len, each.differences.values()))
            for name, each in report.streams.items()
        ],
    )
    for name, each in report.streams.items():
        for kind, records in each.differences.items():
            for id, text in islice(records.items(), DIFFERENCES_SHOWN_MAX):
                terminal.warn(f"{name}: {shorten_name(id)} is {kind}: {text}")
            if (more := len(records) - DIFFERENCES_SHOWN_MAX) > 0:
                terminal.warn(f"{name}: {more:,} more are {kind}; --json lists them all")
    terminal.print_errors(report.error)
    cost = describe_cost(report.requests, report.seconds)
    if report.is_equal:
        terminal.say(f"The local copy equals the API ({cost}).")
    elif report.error is None:
        terminal.say(
            f"The local copy differs from the API ({cost}). Run 'connector pull', then"
            " 'connector verify' again."
        )
    return report.exit_status

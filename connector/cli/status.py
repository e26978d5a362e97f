"""`connector status`: where the copy stands, from the files alone; no request is spent.

Parses, asks the warehouse, prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from connector.advice import explain
from connector.cli.ending import counted
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.warehouse import Run, StreamState, Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "listed only", "deleted", "pending", "total at last list"),
    *("proven up to", "age", "last outcome"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests", "rate limited")
RUNS_SHOWN = 5

UNDER_WAY = "under way"
"""The outcome shown for a run that has not ended; one that was cut off is named by the next."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the files say at the moment `now`; `published_at` is None where nothing is published."""

    warehouse: Warehouse
    resources: tuple[StreamState, ...]
    runs: tuple[Run, ...]
    published_at: datetime | None
    now: datetime


@click.command(cls=Command, examples=("connector status", "connector status --account acme --json"))
def status(session: Session) -> int:
    """Show what is landed, how far it is proven, and the last runs.

    It spends no request, and works while a pull runs.
    """
    warehouse = Warehouse(session.load().folder)
    if not warehouse.exists:
        _tell_empty(session.terminal, warehouse)
        return 0
    # Refuses a file that is somebody else's, and does nothing to one that is up to date.
    warehouse.prepare()
    found = Found(
        warehouse,
        warehouse.standing(),
        warehouse.runs(RUNS_SHOWN),
        _changed_at(warehouse),
        datetime.now(UTC),
    )
    if session.terminal.is_json:
        session.terminal.print_object(_as_json(found))
    else:
        _print(session.terminal, found)
    return 0


def _tell_empty(terminal: Terminal, warehouse: Warehouse) -> None:
    if terminal.is_json:
        terminal.print_object({"folder": str(warehouse.folder), "resources": {}, "runs": []})
    terminal.say(
        f"Nothing was ever landed in {warehouse.folder}. Set CONNECTOR_BASE_URL and"
        " CONNECTOR_API_KEY, then run 'connector pull'; or try 'connector demo' without an account."
    )


def _changed_at(warehouse: Warehouse) -> datetime | None:
    """When the published file was put in place; None where there is none."""
    try:
        return datetime.fromtimestamp(warehouse.published.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


def _print(terminal: Terminal, found: Found) -> None:
    rows = [_resource_row(each, found.now) for each in found.resources]
    terminal.print_table(RESOURCE_COLUMNS, rows)
    for each in found.resources:
        if each.last is not None and each.last.message is not None:
            terminal.warn(f"{each.resource}: {explain(each.last)}")
    terminal.print_line("")
    terminal.print_table(RUN_COLUMNS, [_run_row(each) for each in found.runs])
    terminal.print_line("")
    published = found.warehouse.published
    if found.published_at is None:
        terminal.say("Nothing is published yet: the first pull that succeeds will do it.")
    else:
        terminal.print_line(f"Published {age(found.now - found.published_at)} ago: {published}")
    pending = sum(each.pending for each in found.resources)
    if pending:
        terminal.say(f"Still to be read: {counted(pending, 'record')}. Run 'connector pull'.")


def _resource_row(each: StreamState, now: datetime) -> Sequence[object]:
    proven_at, last = each.proven_at, each.last
    return (
        *(each.resource, each.live, each.listed_only, each.deleted, each.pending),
        None if last is None else last.total,
        None if proven_at is None else shown(proven_at),
        None if proven_at is None else age(now - proven_at),
        None if last is None else last.outcome,
    )


def _run_row(run: Run) -> Sequence[object]:
    seconds = None if run.seconds is None else f"{run.seconds:.1f}"
    outcome = run.outcome or UNDER_WAY
    started = shown(run.started_at)
    return (run.run_id, run.command, started, outcome, seconds, run.requests, run.rate_limited)


def _as_json(found: Found) -> dict[str, object]:
    at = found.published_at
    published = {
        "path": str(found.warehouse.published),
        "published_at": at,
        "age_seconds": None if at is None else (found.now - at).total_seconds(),
    }
    return {
        "folder": str(found.warehouse.folder),
        "published": _plain(published),
        "resources": {each.resource: _plain(asdict(each)) for each in found.resources},
        "runs": [
            _plain({**asdict(run), "outcome": run.outcome or UNDER_WAY}) for run in found.runs
        ],
    }


def _plain(value: Any) -> Any:
    """The value with moments as ISO 8601."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def shown(moment: datetime) -> str:
    """A moment as people read it, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def age(time: timedelta) -> str:
    """A length of time in its largest unit, as in "3 h"."""
    seconds = max(0.0, time.total_seconds())
    for unit_seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"

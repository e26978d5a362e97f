"""`connector status`: where the copy stands, from the files alone; no request is spent.

Parses, asks the warehouse, prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import click

from connector.cli import account, status_all
from connector.cli import alerts as alerting
from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import SettingsError
from connector.ledger.ledger import Ledger, Standing, terms_of
from connector.operations.findings import proof_of
from connector.pulls.advice import explain
from connector.pulls.outcome import plain
from connector.settings.model import Settings
from connector.settings.values import Age
from connector.warehouse.runs import Publication, Run, SharedPublication, published_in
from connector.warehouse.state import StreamState
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

RESOURCE_COLUMNS = (
    *("resource", "live", "listed only", "deleted", "pending", "total at last list"),
    *("proven up to", "age", "oldest read", "last outcome"),
)
RUN_COLUMNS = ("run", "command", "started", "outcome", "seconds", "requests", "rate limited")
RUNS_SHOWN = 5
PUBLICATIONS_SHOWN = 5

UNDER_WAY = "under way"
"""The outcome shown for a run that has not ended."""

CUT_OFF = "cut off"
"""The outcome shown for a run whose process is gone; the next run names it `interrupted`."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the files say at the moment `now`; `published_at` is None where nothing is published,
    `published` where the published file does not say what it is true of, and `standing` where no
    request was ever counted. `publications` are the latest attempts to publish, and `shared` is the
    latest to bring what was published to the lakehouse; `watched` is how alerts stand.
    """

    warehouse: Warehouse
    resources: tuple[StreamState, ...]
    runs: tuple[Run, ...]
    published_at: datetime | None
    published: Publication | None
    publications: tuple[Publication, ...]
    shared: SharedPublication | None
    standing: Standing | None
    watched: alerting.Watched
    now: datetime

    @property
    def left(self) -> account.Left | None:
        """What is still to be read; None where nothing is."""
        return account.left(self.resources, self.runs, self.standing, self.now)

    @property
    def unpublished(self) -> Publication | None:
        """The latest attempt to publish, where it came to nothing."""
        for each in self.publications:
            if each.outcome in ("published", "refused", "failed"):
                return None if each.outcome == "published" else each
        return None

    def outcome_of(self, run: Run) -> str:
        """How the run ended, if it did."""
        if run.outcome is not None:
            return run.outcome
        turns = account.under_way(self.standing, self.now)
        return UNDER_WAY if run.run_id in {each.owner.run_id for each in turns} else CUT_OFF


@click.command(
    cls=Command,
    examples=(
        "connector status",
        "connector status --account acme --json",
        "connector status --all --max-age 26h",
    ),
)
@click.option(
    "--max-age",
    type=options.AgeText(),
    metavar="AGE",
    help="End with 1 if what is pulled was not proven for longer than AGE (26h, 90min, 2d), or if"
    " alerts do not arrive where they should.",
)
@options.all_accounts
def status(session: Session, *, max_age: Age | None, is_for_all: bool) -> int:
    """Show what is landed, how far it is proven, the last runs, and what the month has cost.

    It says what is still to be read, how long that takes and what it costs, who pulls at the
    moment, and which alerts stand. It spends no request, and works while a pull runs. With
    --max-age it is a watchdog for cron that needs no scheduler: it asks the files when what is
    pulled was proven, and not whether something ran.
    """
    if is_for_all:
        return status_all.tell(session, max_age)
    settings = session.load()
    warehouse = Warehouse(settings.folder)
    now = datetime.now(UTC)
    watched = alerting.watched(settings)
    if not warehouse.exists:
        proof = proof_of({}, now, max_age) if max_age is not None else None
        _tell_empty(session.terminal, settings, warehouse, alerting.as_json(proof, watched))
        return alerting.judge(session.terminal, proof, watched)
    # Refuses a file that is somebody else's, and does nothing to one that is up to date.
    warehouse.prepare()
    found = Found(
        warehouse,
        warehouse.standing(),
        warehouse.runs(RUNS_SHOWN),
        _changed_at(warehouse),
        published_in(warehouse.published),
        warehouse.publications(PUBLICATIONS_SHOWN),
        warehouse.shared() if settings.lakehouse.value is not None else None,
        _standing(settings, now),
        watched,
        now,
    )
    proven_at = {each.resource: each.proven_at for each in found.resources}
    proof = proof_of(proven_at, now, max_age) if max_age is not None else None
    if session.terminal.is_json:
        session.terminal.print_object({**_as_json(found), **alerting.as_json(proof, watched)})
    else:
        _print(session.terminal, found)
    return alerting.judge(session.terminal, proof, watched)


def _standing(settings: Settings, now: datetime) -> Standing | None:
    with Ledger(settings.folder) as ledger:
        return ledger.standing(terms_of(settings), now) if ledger.exists else None


def _tell_empty(
    terminal: Terminal, settings: Settings, warehouse: Warehouse, alerts: dict[str, object]
) -> None:
    is_lost = warehouse.is_lost
    if terminal.is_json:
        told = {"folder": str(settings.folder), "resources": {}, "runs": [], "is_lost": is_lost}
        terminal.print_object({**told, **alerts})
    if is_lost:
        terminal.warn(f"{LOST}. {LOST_ACTION}")
        return
    terminal.say(f"Nothing was ever landed in {settings.folder}. {_next_step(settings)}")


def _next_step(settings: Settings) -> str:
    """What to do where nothing was ever landed: first of all, what a pull would ask for."""
    name = settings.account.value
    command = "connector pull" if name is None else f"connector pull --account {name}"
    try:
        settings.connection()
    except SettingsError as error:
        return f"{error.action} Then run '{command}'; or try 'connector demo' without an account."
    return f"Run '{command}'."


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
    terminal.print_table(
        RUN_COLUMNS, [_run_row(each, found.outcome_of(each)) for each in found.runs]
    )
    terminal.print_line("")
    published = found.warehouse.published
    if found.published_at is None:
        terminal.say("Nothing is published yet: the first pull that succeeds will do it.")
    else:
        since = age(found.now - found.published_at)
        terminal.print_line(f"Published {since} ago: {published}{_said_of(found.published)}")
    if found.unpublished is not None:
        terminal.warn(_why_not(found.unpublished, found.now))
    if found.shared is not None:
        _print_shared(terminal, found.shared, found.now)
    if found.standing is not None:
        for line in account.lines(found.standing, found.now):
            terminal.print_line(line)
    for line in alerting.lines(found.watched):
        terminal.print_line(line)
    for line in (*account.first_loads(found.resources), *_next(found)):
        terminal.say(line)


def _said_of(row: Publication | None) -> str:
    """What the published file says of itself."""
    if row is None or row.true_of is None:
        return ""
    said = f", true of {shown(row.true_of)}"
    if row.models:
        failed = f", {len(row.failed_checks)} of them with a warning" if row.failed_checks else ""
        said += f", {row.models} models, {row.checks} checks{failed}"
    if row.personal != "keep":
        said += f", personal fields {'left out' if row.personal == 'drop' else 'hashed'}"
    return said


def _why_not(row: Publication, now: datetime) -> str:
    """Why analysts have an older file, or none."""
    since = age(now - (row.ended_at or row.started_at))
    reason = row.message or ""
    return (
        f"what has landed since is not published; it was {row.outcome} {since} ago: {reason}."
        " Run 'connector publish' once that is corrected."
    )


def _print_shared(terminal: Terminal, row: SharedPublication, now: datetime) -> None:
    """When what is published came to the lakehouse, or why it did not."""
    since = age(now - row.ended_at)
    if row.outcome == "failed":
        terminal.warn(
            f"what was published last is not in the lakehouse; {since} ago: {row.message}."
            " Run 'connector lakehouse publish' once that is over."
        )
    else:
        snapshot = "" if row.snapshot is None else f", snapshot {row.snapshot}"
        terminal.print_line(f"In the lakehouse since {since} ago{snapshot}.")


def _next(found: Found) -> Iterator[str]:
    """What is left to do, or that nothing is."""
    what = found.left
    is_at_work = any(account.under_way(found.standing, found.now))
    if what is not None:
        yield account.remaining(what) + ("" if is_at_work else " Run 'connector pull'.")
        return
    if is_at_work:
        return
    pulled = [each for each in found.resources if each.last is not None]
    proven = [each.proven_at for each in pulled if each.proven_at is not None]
    if proven and len(proven) == len(pulled):
        since = age(found.now - min(proven))
        yield f"Nothing to do: everything that was listed is read, and was proven {since} ago."
    never = [each.resource for each in found.resources if each.last is None]
    if never and pulled:
        yield f"Never pulled: {', '.join(never)}."


def _resource_row(each: StreamState, now: datetime) -> Sequence[object]:
    proven_at, oldest, last = each.proven_at, each.oldest_read_at, each.last
    return (
        *(each.resource, each.live, each.listed_only, each.deleted, each.pending),
        None if last is None else last.total,
        None if proven_at is None else shown(proven_at),
        None if proven_at is None else age(now - proven_at),
        None if oldest is None else age(now - oldest),
        None if last is None else last.outcome,
    )


def _run_row(run: Run, outcome: str) -> Sequence[object]:
    seconds = None if run.seconds is None else f"{run.seconds:.1f}"
    started = shown(run.started_at)
    return (run.run_id, run.command, started, outcome, seconds, run.requests, run.rate_limited)


def _as_json(found: Found) -> dict[str, object]:
    at = found.published_at
    published = {
        "path": str(found.warehouse.published),
        "published_at": at,
        "age_seconds": None if at is None else (found.now - at).total_seconds(),
        **_as_object(found.published),
    }
    what = found.left
    told: dict[str, object] = {
        "folder": str(found.warehouse.folder),
        "published": published,
        "unpublished": _as_object(found.unpublished) or None,
        "lakehouse": None if found.shared is None else asdict(found.shared),
        "resources": {each.resource: asdict(each) for each in found.resources},
        "runs": [{**asdict(run), "outcome": found.outcome_of(run)} for run in found.runs],
        "left": None if what is None else {**asdict(what), "minutes": what.minutes},
    }
    if found.standing is not None:
        told |= account.as_json(found.standing, found.now)
    return {name: plain(value) for name, value in told.items()}


def _as_object(row: Publication | None) -> dict[str, object]:
    return {} if row is None else asdict(row)


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

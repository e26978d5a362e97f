"""Rows, plans and a pusher with a simulated clock, and queries of the server's records."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from connector.client.client import Client, Limits
from connector.ledger.journal import Journal
from connector.ledger.journal_records import RowRecord
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import PushPlan, PushPolicy, RowResult
from connector.ledger.push_states import Task
from connector.pushes.batch import BatchReport, Decision, apply, look_up_unconfirmed_rows, resolve
from connector.pushes.undo_report import UndoReport
from connector.sandbox.seed import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import settings_of
from tests.support.clock import Time

CANDIDATES = "/api/v1/candidates"


def make_create(number: int, **fields: Any) -> Task:
    """Return a row that creates a candidate. A `status` in `fields` is set after the creation."""
    afterwards = {"status": fields.pop("status")} if "status" in fields else {}
    values = {
        "first_name": "Ann",
        "last_name": f"Lee {number}",
        "email": f"ann{number}@example.com",
        "employment_type": "permanent",
        "phone": f"+44 20 {number:04d}",
        **fields,
    }
    identity = {"email": values["email"]}
    return Task(number, "create", "candidates", values, afterwards=afterwards, identity=identity)


def make_creates(count: int) -> tuple[Task, ...]:
    """Return `count` rows, numbered from 2, that each create another candidate."""
    return tuple(make_create(number) for number in range(2, count + 2))


def make_update(number: int, id: str, base: Mapping[str, Any], **wanted: Any) -> Task:
    """Return a row that changes a candidate's `wanted` fields; its loaded record is `base`."""
    known = {name: base[name] for name in wanted}
    return Task(number, "update", "candidates", wanted, record_id=id, base=known)


def make_conversion(number: int, id: str) -> Task:
    """Return a row that converts a lead."""
    return Task(number, "convert", "leads", {}, record_id=id)


def create_lead(sandbox: Sandbox, name: str) -> str:
    """Create a lead on the server and return its id."""
    body = {"email": f"{name}@example.com", "lead_status_id": LEAD_STATUSES[0], "first_name": name}
    id: str = sandbox.store.create("leads", body).record["id"]
    return id


def make_plan(tasks: Iterable[Task], *results: RowResult, name: str = "people.csv") -> PushPlan:
    """Return a push plan of rows to send and of rows that already have a result. The digest depends
    on the name and the rows to send.
    """
    rows = tuple(tasks)
    resource = rows[0].resource if rows else "candidates"
    digest = hashlib.sha256(f"{name} {rows}".encode()).hexdigest()
    return PushPlan(resource, "upsert", name, digest, rows, results)


@cache
def make_template_folder() -> Path:
    """Return a data folder with an empty warehouse, created once per process. Callers copy it."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Warehouse(folder).prepare()
    return folder


class Pusher:
    """Pushes rows from one data folder to one sandbox, with a simulated clock of both."""

    def __init__(
        self, sandbox: Sandbox, folder: Path, time: Time | None = None, **flags: int
    ) -> None:
        self.sandbox, self.folder, self.time = sandbox, folder, time or Time()
        self.settings = settings_of(sandbox, folder, None, **flags)
        if not self.settings.folder.exists():
            shutil.copytree(make_template_folder(), self.settings.folder)
        limits = Limits(deadline_seconds=5.0)
        self._connect: Callable[..., Client] = partial(
            Client,
            clock=self.time.monotonic,
            sleep=self.time.wait,
            chance=lambda: 0.5,
            limits=limits,
        )

    def push(
        self, rows: PushPlan | Iterable[Task], policy: PushPolicy | None = None, **options: Any
    ) -> BatchReport:
        """Push and apply a plan, or a plan of the rows; `options` are those of `apply`."""
        plan = rows if isinstance(rows, PushPlan) else make_plan(rows)
        return asyncio.run(
            apply(
                options.pop("settings", self.settings),
                plan,
                policy,
                **self._add_clock_and_client(options),
            )
        )

    def resolve(
        self, batch: str, numbers: int | tuple[int, ...], decision: Decision
    ) -> BatchReport:
        """Apply the user's decision to one or several unconfirmed rows of a batch."""
        return asyncio.run(
            resolve(self.settings, batch, numbers, decision, **self._add_clock_and_client({}))
        )

    def look_up_unconfirmed_rows(self) -> str | None:
        """Look up the unconfirmed rows of all batches as a pull does. Returns a message about them,
        if any.
        """
        return asyncio.run(
            look_up_unconfirmed_rows(self.settings, now=self.wall_time, connect=self._connect)
        )

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal for reading."""
        with Ledger(self.settings.folder) as ledger:
            yield Journal(ledger)

    def wall_time(self) -> datetime:
        """Return the real time plus the simulated waits."""
        return datetime.now(UTC) + timedelta(seconds=self.time.seconds)

    def _add_clock_and_client(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a push with the simulated clock and the client."""
        return {
            "now": self.time.local_now,
            "sleep": self.time.wait,
            "connect": self._connect,
            **options,
        }


def list_rows(report: BatchReport) -> list[RowRecord]:
    """Return the rows of a report."""
    return [*report.rows]


def map_outcomes(report: BatchReport | UndoReport) -> dict[int, str]:
    """Return the outcome of each row by its number."""
    return {row.number: row.outcome for row in report.rows}


def map_codes(report: BatchReport) -> dict[int, str]:
    """Return the code of each row by its number."""
    return {row.number: row.code for row in report.rows}


def list_writes(sandbox: Sandbox) -> list[str]:
    """Return METHOD PATH of each write request that the server received."""
    return [f"{each.method} {each.path}" for each in sandbox.log if each.method != "GET"]


def list_emails(sandbox: Sandbox) -> list[str]:
    """Return the emails of all candidates on the server, sorted."""
    return sorted(each["email"] for each in sandbox.store.records("candidates").values())

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
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import settings_of
from tests.support.clock import Time

CANDIDATES = "/api/v1/candidates"


def make_create(number: int, **fields: Any) -> Task:
    """Return a row that creates a candidate; `afterwards` sets its status."""
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
    """Return so many rows, each creating another candidate."""
    return tuple(make_create(number) for number in range(2, count + 2))


def make_update(number: int, id: str, base: Mapping[str, Any], **wanted: Any) -> Task:
    """Return a row that updates a candidate whose loaded record is `base`."""
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


def make_plan(tasks: Iterable[Task], *verdicts: RowResult, name: str = "people.csv") -> PushPlan:
    """Return a push plan of the rows; the digest depends on their contents."""
    rows = tuple(tasks)
    resource = rows[0].resource if rows else "candidates"
    digest = hashlib.sha256(f"{name} {rows}".encode()).hexdigest()
    return PushPlan(resource, "upsert", name, digest, rows, verdicts)


@cache
def prepare_data_folder() -> Path:
    """Return a data folder with tables, cached because creating tables is slower than a push."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Warehouse(folder).prepare()
    return folder


class Pusher:
    """Pushes to one sandbox from one folder, with simulated waits and a shared clock."""

    def __init__(
        self, sandbox: Sandbox, folder: Path, time: Time | None = None, **flags: int
    ) -> None:
        self.sandbox, self.folder, self.time = sandbox, folder, time or Time()
        self.settings = settings_of(sandbox, folder, None, **flags)
        if not self.settings.folder.exists():
            shutil.copytree(prepare_data_folder(), self.settings.folder)
        limits = Limits(deadline_seconds=5.0)
        self._connect: Callable[..., Client] = partial(
            Client,
            clock=self.time.monotonic,
            sleep=self.time.wait,
            chance=lambda: 0.5,
            limits=limits,
        )

    def push(
        self, rows: PushPlan | Iterable[Task], terms: PushPolicy | None = None, **options: Any
    ) -> BatchReport:
        """Push a file."""
        plan = rows if isinstance(rows, PushPlan) else make_plan(rows)
        return asyncio.run(
            apply(options.pop("settings", self.settings), plan, terms, **self._terms(options))
        )

    def resolve(
        self, batch: str, numbers: int | tuple[int, ...], decision: Decision
    ) -> BatchReport:
        """Resolve one or several unconfirmed rows."""
        return asyncio.run(resolve(self.settings, batch, numbers, decision, **self._terms({})))

    def settle(self) -> str | None:
        """Check rows in doubt as a pull does."""
        return asyncio.run(
            look_up_unconfirmed_rows(self.settings, now=self.wall, connect=self._connect)
        )

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal for reading."""
        with Ledger(self.settings.folder) as ledger:
            yield Journal(ledger)

    def wall(self) -> datetime:
        """Return the wall-clock time plus the simulated waits."""
        return datetime.now(UTC) + timedelta(seconds=self.time.seconds)

    def _terms(self, options: dict[str, Any]) -> dict[str, Any]:
        return {
            "now": self.time.local_now,
            "sleep": self.time.wait,
            "connect": self._connect,
            **options,
        }


def list_rows(report: BatchReport) -> list[RowRecord]:
    """Return the rows of a report."""
    return [*report.rows]


def map_outcomes(report: BatchReport) -> dict[int, str]:
    """Return the outcome of each row by its number."""
    return {row.number: row.outcome for row in report.rows}


def map_codes(report: BatchReport) -> dict[int, str]:
    """Return the code of each row by its number."""
    return {row.number: row.code for row in report.rows}


def list_writes(sandbox: Sandbox) -> list[str]:
    """Return the writes that reached the server, as method and path."""
    return [f"{each.method} {each.path}" for each in sandbox.log if each.method != "GET"]


def list_emails(sandbox: Sandbox) -> list[str]:
    """Return the emails of all candidates on the server, sorted."""
    return sorted(each["email"] for each in sandbox.store.records("candidates").values())

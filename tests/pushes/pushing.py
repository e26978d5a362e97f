"""What the tests of the push share: files of rows, a push with time of the test's own, and the
server's records to hold the report against.
"""

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
from connector.pushes.batch import apply, resolve, settle
from connector.pushes.batch_report import BatchReport, Decision
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import settings_of
from tests.support.clock import Time

CANDIDATES = "/api/v1/candidates"


def create(number: int, **fields: Any) -> Task:
    """A row that creates a candidate; `afterwards` is its status."""
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


def creates(count: int) -> tuple[Task, ...]:
    """So many rows, each of another candidate."""
    return tuple(create(number) for number in range(2, count + 2))


def update(number: int, id: str, base: Mapping[str, Any], **wanted: Any) -> Task:
    """A row that changes a candidate, of which `base` is landed."""
    known = {name: base[name] for name in wanted}
    return Task(number, "update", "candidates", wanted, record_id=id, base=known)


def convert(number: int, id: str) -> Task:
    """A row that converts a lead."""
    return Task(number, "convert", "leads", {}, record_id=id)


def lead(sandbox: Sandbox, name: str) -> str:
    """A lead that is there; its id."""
    body = {"email": f"{name}@example.com", "lead_status_id": LEAD_STATUSES[0], "first_name": name}
    id: str = sandbox.store.create("leads", body).record["id"]
    return id


def file_of(tasks: Iterable[Task], *verdicts: RowResult, name: str = "people.csv") -> PushPlan:
    """The rows as a file, whose digest is of its contents."""
    rows = tuple(tasks)
    resource = rows[0].resource if rows else "candidates"
    digest = hashlib.sha256(f"{name} {rows}".encode()).hexdigest()
    return PushPlan(resource, "upsert", name, digest, rows, verdicts)


@cache
def prepared() -> Path:
    """A data folder with the tables in it, made once: making them takes longer than a push."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Warehouse(folder).prepare()
    return folder


class Pusher:
    """Pushes to one sandbox from one folder, with one time for both; no wait takes any."""

    def __init__(
        self, sandbox: Sandbox, folder: Path, time: Time | None = None, **flags: int
    ) -> None:
        self.sandbox, self.folder, self.time = sandbox, folder, time or Time()
        self.settings = settings_of(sandbox, folder, None, **flags)
        if not self.settings.folder.exists():
            shutil.copytree(prepared(), self.settings.folder)
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
        plan = rows if isinstance(rows, PushPlan) else file_of(rows)
        return asyncio.run(
            apply(options.pop("settings", self.settings), plan, terms, **self._terms(options))
        )

    def resolve(
        self, batch: str, numbers: int | tuple[int, ...], decision: Decision
    ) -> BatchReport:
        """Settle a row, or several."""
        return asyncio.run(resolve(self.settings, batch, numbers, decision, **self._terms({})))

    def settle(self) -> str | None:
        """What a pull does of rows in doubt."""
        return asyncio.run(settle(self.settings, now=self.wall, connect=self._connect))

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal, to be read."""
        with Ledger(self.settings.folder) as ledger:
            yield Journal(ledger)

    def wall(self) -> datetime:
        """The wall's time, which dates what a sandbox makes, and what was waited for on top."""
        return datetime.now(UTC) + timedelta(seconds=self.time.seconds)

    def _terms(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"now": self.time.ours, "sleep": self.time.wait, "connect": self._connect, **options}


def listed(report: BatchReport) -> list[RowRecord]:
    """The rows of a short report."""
    return [*report.rows]


def outcomes(report: BatchReport) -> dict[int, str]:
    """The outcome of each row, by its number."""
    return {row.number: row.outcome for row in report.rows}


def codes(report: BatchReport) -> dict[int, str]:
    """The code of each row, by its number."""
    return {row.number: row.code for row in report.rows}


def writes(sandbox: Sandbox) -> list[str]:
    """The writes that reached the server, as method and path."""
    return [f"{each.method} {each.path}" for each in sandbox.log if each.method != "GET"]


def emails(sandbox: Sandbox) -> list[str]:
    """The emails of all candidates, in order."""
    return sorted(each["email"] for each in sandbox.store.records("candidates").values())

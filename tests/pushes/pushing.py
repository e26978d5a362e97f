"""Rows, plans and a pusher with a simulated clock, and queries of the server's records."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from connector.client.client import Client
from connector.client.session import Limits
from connector.pushes.run import Decision, Report, resolve, send
from connector.sandbox.seed import LEAD_STATUSES
from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.state.journal import Journal, Plan
from connector.state.row import Policy, Row
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import settings_of
from tests.support.clock import Time

CANDIDATES = "/api/v1/candidates"


def make_create(number: int, **fields: Any) -> Row:
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
    return Row(number, "candidates", "create", None, values, afterwards, identity=identity)


def make_creates(count: int) -> tuple[Row, ...]:
    """Return `count` rows, numbered from 2, that each create another candidate."""
    return tuple(make_create(number) for number in range(2, count + 2))


def make_update(number: int, id: str, base: Mapping[str, Any], **wanted: Any) -> Row:
    """Return a row that changes a candidate's `wanted` fields; its loaded record is `base`."""
    known = {name: base[name] for name in wanted}
    return Row(number, "candidates", "update", fields=wanted, record_id=id, base=known)


def make_conversion(number: int, id: str) -> Row:
    """Return a row that converts a lead."""
    return Row(number, "leads", "convert", record_id=id)


def create_lead(sandbox: Sandbox, name: str) -> str:
    """Create a lead on the server and return its id."""
    body = {"email": f"{name}@example.com", "lead_status_id": LEAD_STATUSES[0], "first_name": name}
    id: str = sandbox.store.create("leads", body).record["id"]
    return id


def make_plan(rows: Iterable[Row], name: str = "people.csv") -> Plan:
    """Return a push plan of rows. The digest depends on the name and the rows to send."""
    made = list(rows)
    resource = made[0].resource if made else "candidates"
    sent = [row for row in made if row.state == "planned"]
    digest = hashlib.sha256(f"{name} {sent}".encode()).hexdigest()
    return Plan(resource, "upsert", name, digest, made)


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
        self, rows: Plan | Iterable[Row], policy: Policy | None = None, **options: Any
    ) -> Report:
        """Push and apply a plan, or a plan of the rows; `options` are those of `send`."""
        plan = deepcopy(rows if isinstance(rows, Plan) else make_plan(rows))
        return asyncio.run(
            send(
                options.pop("settings", self.settings),
                plan,
                policy,
                **self._add_clock_and_client(options),
            )
        )

    def resolve(self, batch: str, number: int, decision: Decision) -> Report:
        """Apply the user's decision to an unconfirmed row of a batch."""
        return asyncio.run(
            resolve(self.settings, batch, [number], decision, **self._add_clock_and_client({}))
        )

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal for reading."""
        with Database(self.settings.folder) as database:
            yield Journal(database)

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


def map_outcomes(report: Report) -> dict[int, str]:
    """Return the outcome of each row by its number."""
    return {row.number: row.outcome for row in report.rows}


def map_codes(report: Report) -> dict[int, str]:
    """Return the code of each row by its number."""
    return {row.number: row.code for row in report.rows}


def list_writes(sandbox: Sandbox) -> list[str]:
    """Return METHOD PATH of each write request that the server received."""
    return [f"{each.method} {each.path}" for each in sandbox.log if each.method != "GET"]


def list_emails(sandbox: Sandbox) -> list[str]:
    """Return the emails of all candidates on the server, sorted."""
    return sorted(each["email"] for each in sandbox.store.records("candidates").values())

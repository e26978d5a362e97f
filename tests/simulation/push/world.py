"""The API's side of a play: the sandbox's store with the play's own clock and faults.

Nothing takes real time, and every random decision is drawn from the seed. Every write that reaches
the server is in the log with its body and its effect, immediate or late.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from connector.catalog import declaration
from connector.catalog.field import parse_datetime
from connector.catalog.resource import Page, Resource
from connector.client.fit import misfit_of_id
from connector.client.messages import Request, Response
from connector.errors import InDoubt, Unreachable
from connector.ledger.journal_records import RowKey
from connector.sandbox.checks import Rejection
from connector.sandbox.seed import LEAD_STATUSES
from connector.sandbox.store import Store
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, UnreadableDetail
from tests.simulation.harness import LateWrite, WorldClock
from tests.simulation.push.chance import Chance
from tests.simulation.push.scenario import (
    FAR_SECONDS_MAX,
    LATE_SECONDS_MAX,
    PushScenario,
    WriteFault,
)

DEADLINE_SECONDS = 60.0
CONTENT_TYPE = "ct-1"
CONTENT_SLUG = "news"


@dataclass
class Write:
    """A write that reached the server. `record_id` is None until it has an effect."""

    key: RowKey
    attempt: int
    operation: str
    path: str
    body: bytes | None
    received_at: datetime
    committed_at: datetime | None = None
    record_id: str | None = None
    status: int | None = None


class PushWorld(WorldClock):
    """The server of one play. Faults happen and other users act while `is_faulty`."""

    def __init__(self, seed: int, scenario: PushScenario, chance: Chance) -> None:
        super().__init__(scenario.own_clock_ahead)
        self.scenario, self.chance = scenario, chance
        self.resource = declaration(scenario.resource)
        self.is_faulty = False
        self.log: list[Write] = []
        self.reads = 0
        # The row that created each record, for the checks; None is another user.
        self.made_by: dict[str, RowKey | None] = {}
        self.edited: dict[str, list[tuple[str, datetime]]] = {}
        self.bodies: list[Mapping[str, Any]] = []
        self.trace: Callable[[str], None] | None = None
        self._late: list[LateWrite] = []
        self._others_at: datetime | None = None
        self._names = 0
        self._others_left = scenario.others_max
        self.store = Store(
            clock=self.server_now, random=random.Random(seed), behaviours=scenario.behaviours
        )
        if scenario.resource == "content_items":
            self.store.insert(
                "content_types",
                {"id": CONTENT_TYPE, "slug": CONTENT_SLUG, "name": "News", "fields": _FIELDS},
            )

    @property
    def parent(self) -> str | None:
        """The slug of the content type, if the resource has one."""
        return CONTENT_SLUG if self.resource.parent else None

    # -- time -------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let time pass. Late writes and actions of other users happen when due."""
        end = self.now + timedelta(seconds=seconds)
        while (at := self._next_event()) is not None and at <= end:
            self.now = max(self.now, at)
            due = [each for each in self._late if each.due <= at]
            for each in due:
                self._late.remove(each)
                each.commit()
            if self._others_at is not None and self._others_at <= at:
                self._others_at = None
                self._others_left -= 1
                self._act_as_other_user()
        self.now = end

    def _next_event(self) -> datetime | None:
        """Return the time of the next late write or action of another user, or None."""
        if (
            self.is_faulty
            and self._others_left
            and self._others_at is None
            and self.scenario.others_per_minute
        ):
            pause = self.chance.pause(120 / self.scenario.others_per_minute)
            self._others_at = self.now + timedelta(seconds=pause)
        if not self.is_faulty:
            self._others_at = None
        moments = [each.due for each in self._late]
        return min([*moments, *([self._others_at] if self._others_at else [])], default=None)

    def apply_late_writes(self) -> None:
        """Stop all faults, and let time pass until every late write is applied."""
        self.is_faulty = False
        self.pass_time(FAR_SECONDS_MAX * 2)
        assert not self._late

    # -- others -----------------------------------------------------------------------------------

    def _act_as_other_user(self) -> None:
        """Create, edit or delete a random record as another user, or imitate one of ours."""
        act = self.scenario.others[self.chance.pick(len(self.scenario.others))]
        ids = sorted(self.store.records(self.scenario.resource))
        self._names += 1
        if act == "create":
            self.insert_as_other_user({"email": f"other{self._names}@example.com"})
        elif act == "delete":
            strangers = [id for id in ids if self.made_by.get(id, ()) is None]
            if strangers:
                gone = strangers[self.chance.pick(len(strangers))]
                self.store.remove(self.scenario.resource, gone)
        elif act == "edit" and ids:
            self.edit_as_other_user(ids[self.chance.pick(len(ids))])
        elif act == "alike" and self.bodies:
            body = dict(self.bodies[self.chance.pick(len(self.bodies))])
            # A field that every row sends, so that the record matches no row.
            body["last_name"] = f"Elsewhere {self._names}"
            self.insert_as_other_user(body)
        self._trace(f"others: {act}")

    def insert_as_other_user(self, fields: Mapping[str, Any]) -> str:
        """Create a record as another user, and return its id."""
        record = {**self.minimal_fields(), **fields}
        parent = CONTENT_TYPE if self.resource.parent else None
        id = self.store.insert(self.scenario.resource, record, type=parent)
        self.made_by[id] = None
        return id

    def minimal_fields(self) -> dict[str, Any]:
        """Return the required fields of a record of the resource."""
        return dict(_BARE[self.scenario.resource])

    def edit_as_other_user(self, id: str) -> None:
        """Change a field of the record to a value that no row has."""
        self._names += 1
        name = "title" if self.resource.parent else "phone"
        self.store.touch(self.scenario.resource, id, {name: f"edited {self._names}"})
        self.edited.setdefault(id, []).append((name, self.now))

    # -- requests ---------------------------------------------------------------------------------

    def send(self, key: RowKey, attempt: int, request: Request) -> Response:
        """Receive a write and return the response.

        Raises:
            Unreachable: The request did not reach the server.
            InDoubt: No complete response arrived in time.
        """
        self.pass_time(0.05 + self.chance.pause(0.2))
        fault = self._draw_fault()
        if fault == "unreachable":
            raise Unreachable("The server cannot be reached.")
        write = Write(key, attempt, request.operation, request.path, request.body, self.now)
        self.log.append(write)
        if fault == "limited":
            write.status = 429
            return self._make_response(429, {"message": "Too many requests."})
        if fault in ("late", "late far"):
            most = LATE_SECONDS_MAX if fault == "late" else FAR_SECONDS_MAX
            due = self.now + timedelta(seconds=1 + self.chance.commit_delay(most))
            self._late.append(LateWrite(due, "", lambda: self._apply_write(write)))
        elif fault == "merged" and write.operation == "create":
            return self._merged_response(write)
        elif fault != "dropped":
            answer = self._apply_write(write)
        if fault in ("dropped", "applied", "late", "late far"):
            self.pass_time(DEADLINE_SECONDS)
            raise InDoubt(request.method_and_path, "no whole answer in time")
        self.pass_time(0.02)
        if fault == "error":
            return self._make_response(
                500, {"error": "server_error", "message": "Something went wrong."}
            )
        if fault in ("crossed", "merged"):
            return self._crossed_response(write, answer)
        if fault == "truncated":
            return Response(answer.status, answer.headers, answer.body[: len(answer.body) // 2])
        return answer

    def _draw_fault(self) -> WriteFault | None:
        """Return the random fault of the next write; None if it succeeds."""
        if not self.is_faulty:
            return None
        for fault, share in self.scenario.faults.items():
            if self.chance.happens(share):
                self._trace(f"fault: {fault}")
                return fault
        return None

    def _apply_write(self, write: Write) -> Response:
        """Apply the write to the store now, and return the store's response."""
        name, id = self.scenario.resource, write.path.split("/")[-1]
        body = json.loads(write.body) if write.body is not None else {}
        try:
            if write.operation == "create":
                answer = self.store.create(name, body, type=self.parent)
            elif write.operation == "update":
                answer = self.store.update(name, id, body, type=self.parent)
            else:
                answer = self.store.convert(name, write.path.split("/")[-2])
        except Rejection as rejection:
            write.status = rejection.status
            return self._make_response(rejection.status, rejection.error_body())
        assert answer.body is not None
        write.status, write.committed_at = answer.status, self.now
        write.record_id = answer.record["id"]
        if write.operation == "create":
            self.made_by[answer.record["id"]] = write.key
        self._trace(f"server: {write.operation} of row {write.key[1]} has its effect")
        return self._make_response(answer.status, answer.body)

    def _crossed_response(self, write: Write, answer: Response) -> Response:
        """Return the response with another record, as from a faulty cache."""
        other = self._draw_other_record(write.record_id or "")
        if other is None or answer.status >= 400:
            return answer
        return self._make_response(answer.status, {"data": other, "message": "Done."})

    def _merged_response(self, write: Write) -> Response:
        """Return the response to a create that the server merged into an existing record."""
        sent, name = json.loads(write.body or b"{}"), self.scenario.resource
        records = self.store.records(name).values()
        alike = [each for each in records if each.get("email", "") == sent.get("email")]
        other = alike[0] if alike else self._draw_other_record("")
        self.pass_time(0.02)
        if other is None:
            return self._make_response(500, {"message": "Nothing to merge with."})
        write.status = 200
        return self._make_response(200, {"data": other, "message": "Merged."})

    def _draw_other_record(self, id: str) -> Mapping[str, Any] | None:
        """Return a random record with another id; None if there is no other."""
        records = self.store.records(self.scenario.resource)
        ids = sorted(records.keys() - {id})
        return records[ids[self.chance.pick(len(ids))]] if ids else None

    def _make_response(self, status: int, document: Mapping[str, Any]) -> Response:
        """Return a response with this JSON body, and a `Date` header if the scenario has one."""
        headers = {}
        if self.scenario.has_date:
            headers["date"] = format_datetime(self.server_now(), usegmt=True)
        return Response(status, headers, json.dumps(document).encode())

    def list_newest(self, page: int) -> Page[Resource] | UnreadableDetail:
        """Return a list page, the last created first if the scenario sorts; or a failed read."""
        if not self._start_read():
            return UnreadableDetail("no_answer")
        items = [
            item
            for item in self._list_all()
            if not self._is_hidden(item["id"], parse_datetime(item["created_at"]))
        ]
        if not self.scenario.is_sorted:
            items.sort(key=lambda item: item["id"])
        size = self.scenario.per_page
        shown = items[(page - 1) * size : page * size]
        served_at = self._served_at()
        self.pass_time(0.02)
        return Page(
            items=tuple(
                self.resource.record(item, is_item=True, served_at=served_at) for item in shown
            ),
            page=page,
            per_page=size,
            total=len(items),
            total_pages=-(-len(items) // size),
            served_at=served_at,
            round_trip_seconds=0.5,
            received_at=self.connector_now(),
        )

    def _list_all(self) -> list[dict[str, Any]]:
        """Return the list items of all records."""
        items: list[dict[str, Any]] = []
        while True:
            query = {"per_page": "100", "page": str(len(items) // 100 + 1)}
            found = self.store.list(self.scenario.resource, query, type=self.parent).items
            items += found
            if len(found) < 100:
                return items

    def _is_hidden(self, id: str, created_at: datetime) -> bool:
        """Return True while lists omit a new record, for a time that depends on its id."""
        lag = self.scenario.lag_seconds_max
        if not lag or not self.is_faulty:
            return False
        # The delay depends on the id, so that a listed record remains listed.
        return self.server_now() - created_at < timedelta(seconds=lag * (int(id[:2], 16) / 255))

    def read_detail(self, id: str) -> Outcome:
        """Return the record's detail, proof of its deletion, or a failed read."""
        if not self._start_read():
            return UnreadableDetail("server_failed")
        served_at = self._served_at()
        try:
            raw = self.store.get(self.scenario.resource, id, type=self.parent).record
        except Rejection:
            return DeletionProof(served_at or self.connector_now())
        self.pass_time(0.02)
        if self.is_faulty and self.chance.happens(self.scenario.crossed_reads):
            raw = dict(self._draw_other_record(id) or raw)
        if misfit_of_id(id, raw) is not None:
            return UnreadableDetail("unreadable_answer")
        record: Resource = self.resource.record(raw, served_at=served_at)
        return FoundDetail(record, served_at or self.connector_now())

    def _start_read(self) -> bool:
        """Count a read and let its time pass. Return False if it fails by chance."""
        self.reads += 1
        self.pass_time(0.05 + self.chance.pause(0.2))
        if self.is_faulty and self.chance.happens(self.scenario.server_steps):
            self._step = timedelta(0) if self._step else timedelta(minutes=10)
        return not (self.is_faulty and self.chance.happens(self.scenario.read_faults))

    def _served_at(self) -> datetime | None:
        """Return the time of the `Date` header; None if the scenario has no such header."""
        return self.server_now().replace(microsecond=0) if self.scenario.has_date else None

    def _trace(self, what: str) -> None:
        """Pass a line with the time to `trace`, if there is one."""
        if self.trace is not None:
            self.trace(f"{self.now:%H:%M:%S} {what}")


_BARE: Mapping[str, Mapping[str, Any]] = {
    "candidates": {
        "first_name": "Ann",
        "last_name": "Other",
        "employment_type": "permanent",
        "status": "new_lead",
    },
    "leads": {"company_name": "Other & Co", "lead_status_id": LEAD_STATUSES[0], "status": "lead"},
    "content_items": {"title": "Other", "slug": "other", "status": "draft", "fields": {}},
}
_FIELDS = [
    {"id": "f1", "name": "Body", "field_key": "body", "field_type": "text", "is_required": False},
    {"id": "f2", "name": "Kind", "field_key": "kind", "field_type": "text", "is_required": False},
]

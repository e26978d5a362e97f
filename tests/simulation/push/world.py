"""The API's side of one play: the sandbox's store with a clock and faults of the play's own.

Nothing here takes time or is left to chance but by the seed. Every write that reaches the server is
in the log, with what it carried and what came of it, late or soon.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import cache
from typing import Any

from connector.catalog import declaration
from connector.catalog.field import read_datetime
from connector.catalog.resource import Page, Resource
from connector.client.answer_fit import misfit_of_id
from connector.client.request import Request
from connector.client.response import Response
from connector.errors_api import InDoubt, Unreachable
from connector.sandbox.api_answer import Rejection
from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.store import Store
from connector.warehouse.pull_commands import DeletionProof, FoundDetail, Outcome, UnreadableDetail
from tests.simulation.harness import START, LateWrite, WorldClock
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

Key = tuple[str, int]


@dataclass
class Write:
    """One write as it reached the server. `record_id` is set once it has had its effect."""

    key: Key
    attempt: int
    operation: str
    path: str
    body: bytes | None
    received_at: datetime
    committed_at: datetime | None = None
    record_id: str | None = None
    status: int | None = None


@dataclass
class _Store:
    """One store for each set of behaviours, emptied for each play: making one takes longer."""

    store: Store
    random: random.Random
    clock: list[datetime]


@cache
def _store(behaviours: tuple[tuple[str, str], ...]) -> _Store:
    chance, clock = random.Random(), [START]
    store = Store(clock=lambda: clock[0], random=chance, behaviours=dict(behaviours))
    return _Store(store, chance, clock)


class PushWorld(WorldClock):
    """The server of one play. `is_faulty`: things go wrong as the scenario says."""

    def __init__(self, seed: int, scenario: PushScenario, chance: Chance) -> None:
        super().__init__(scenario.own_clock_ahead)
        self.scenario, self.chance = scenario, chance
        self.resource = declaration(scenario.resource)
        self.is_faulty = False
        self.log: list[Write] = []
        self.reads = 0
        # Who made which record, for the checkers: None is somebody else.
        self.made_by: dict[str, Key | None] = {}
        self.edited: dict[str, list[tuple[str, datetime]]] = {}
        self.bodies: list[Mapping[str, Any]] = []
        self.told: Callable[[str], None] | None = None
        self._late: list[LateWrite] = []
        self._others_at: datetime | None = None
        self._names = 0
        self._others_left = scenario.others_max
        held = _store(tuple(sorted(scenario.behaviours.items())))
        self._clock, self.store = held.clock, held.store
        held.random.seed(seed)
        for name in ("candidates", "leads", "content_items", "content_types"):
            for id in self.store.records(name):
                self.store.remove(name, id)
        self._tick()
        if scenario.resource == "content_items":
            self.store.insert(
                "content_types",
                {"id": CONTENT_TYPE, "slug": CONTENT_SLUG, "name": "News", "fields": _FIELDS},
            )

    @property
    def parent(self) -> str | None:
        """The slug of the content type, where the resource has one."""
        return CONTENT_SLUG if self.resource.parent else None

    # -- time -------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._clock[0] = self.server_now()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with what others do in it and what commits late in it."""
        end = self.now + timedelta(seconds=seconds)
        while (at := self._next_event()) is not None and at <= end:
            self.now = max(self.now, at)
            self._tick()
            due = [each for each in self._late if each.due <= at]
            for each in due:
                self._late.remove(each)
                each.commit()
            if self._others_at is not None and self._others_at <= at:
                self._others_at = None
                self._others_left -= 1
                self._somebody_acts()
        self.now = end
        self._tick()

    def _next_event(self) -> datetime | None:
        if self.is_faulty and self._others_left and self._others_at is None and self._is_peopled:
            pause = self.chance.within(120 / self.scenario.others_per_minute)
            self._others_at = self.now + timedelta(seconds=pause)
        if not self.is_faulty:
            self._others_at = None
        moments = [each.due for each in self._late]
        return min([*moments, *([self._others_at] if self._others_at else [])], default=None)

    @property
    def _is_peopled(self) -> bool:
        return self.scenario.others_per_minute > 0

    def finish(self) -> None:
        """Let everything become visible that is still on its way."""
        self.is_faulty = False
        self.pass_time(FAR_SECONDS_MAX * 2)
        assert not self._late

    # -- others -----------------------------------------------------------------------------------

    def _somebody_acts(self) -> None:
        act = self.scenario.others[self.chance.pick(len(self.scenario.others))]
        ids = sorted(self.store.records(self.scenario.resource))
        self._names += 1
        if act == "create":
            self.insert({"email": f"other{self._names}@example.com"})
        elif act == "delete":
            strangers = [id for id in ids if self.made_by.get(id, ()) is None]
            if strangers:
                gone = strangers[self.chance.pick(len(strangers))]
                self.store.remove(self.scenario.resource, gone)
        elif act == "edit" and ids:
            self.edit(ids[self.chance.pick(len(ids))])
        elif act in ("alike", "twin") and self.bodies:
            body = dict(self.bodies[self.chance.pick(len(self.bodies))])
            # Nobody else writes our mark.
            body.pop(self.scenario.marker_field or "", None)
            if act == "alike":
                # Of what every row sends: else it would be a twin of a row that sends less.
                body["last_name"] = f"Elsewhere {self._names}"
            self.insert(body)
        self._tell(f"others: {act}")

    def insert(self, fields: Mapping[str, Any]) -> str:
        """A record that somebody else has made."""
        record = {**self.bare(), **fields}
        parent = CONTENT_TYPE if self.resource.parent else None
        id = self.store.insert(self.scenario.resource, record, type=parent)
        self.made_by[id] = None
        return id

    def bare(self) -> dict[str, Any]:
        """The least that a record of the resource has."""
        return dict(_BARE[self.scenario.resource])

    def edit(self, id: str) -> None:
        """Change a field of a record, as another user, to a value that no row has."""
        self._names += 1
        name = "title" if self.resource.parent else "phone"
        self.store.touch(self.scenario.resource, id, {name: f"edited {self._names}"})
        self.edited.setdefault(id, []).append((name, self.now))

    # -- requests ---------------------------------------------------------------------------------

    def send(self, key: Key, attempt: int, request: Request) -> Response:
        """One write. Raises what the client raises where no whole answer comes."""
        self.pass_time(0.05 + self.chance.within(0.2))
        fault = self._fault()
        if fault == "unreachable":
            raise Unreachable("The server cannot be reached.")
        write = Write(key, attempt, request.operation, request.path, request.body, self.now)
        self.log.append(write)
        if fault == "limited":
            write.status = 429
            return self._answer(429, {"message": "Too many requests."})
        if fault in ("late", "late far"):
            most = LATE_SECONDS_MAX if fault == "late" else FAR_SECONDS_MAX
            due = self.now + timedelta(seconds=1 + self.chance.delay(most))
            self._late.append(LateWrite(due, "", lambda: self._commit(write)))
        elif fault == "merged" and write.operation == "create":
            return self._merged(write)
        elif fault != "dropped":
            answer = self._commit(write)
        if fault in ("dropped", "applied", "late", "late far"):
            self.pass_time(DEADLINE_SECONDS)
            raise InDoubt(request.method_and_path, "no whole answer in time")
        self.pass_time(0.02)
        if fault == "error":
            return self._answer(500, {"error": "server_error", "message": "Something went wrong."})
        if fault in ("crossed", "merged"):
            return self._crossed(write, answer)
        if fault == "truncated":
            return Response(answer.status, answer.headers, answer.body[: len(answer.body) // 2])
        return answer

    def _fault(self) -> WriteFault | None:
        if not self.is_faulty:
            return None
        for fault, share in self.scenario.faults.items():
            if self.chance.yes(share):
                self._tell(f"fault: {fault}")
                return fault
        return None

    def _commit(self, write: Write) -> Response:
        """The write has its effect, now."""
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
            return self._answer(rejection.status, rejection.error_body(self.store.behaviours))
        assert answer.body is not None
        write.status, write.committed_at = answer.status, self.now
        write.record_id = answer.record["id"]
        if write.operation == "create":
            self.made_by[answer.record["id"]] = write.key
        self._tell(f"server: {write.operation} of row {write.key[1]} has its effect")
        return self._answer(answer.status, answer.body)

    def _crossed(self, write: Write, answer: Response) -> Response:
        """The answer with another record, as of a cache that mixes up answers."""
        other = self._other(write.record_id or "")
        if other is None or answer.status >= 400:
            return answer
        return self._answer(answer.status, {"data": other, "message": "Done."})

    def _merged(self, write: Write) -> Response:
        """The answer to a create that the server merges into an existing record."""
        sent, name = json.loads(write.body or b"{}"), self.scenario.resource
        records = self.store.records(name).values()
        alike = [each for each in records if each.get("email", "") == sent.get("email")]
        other = alike[0] if alike else self._other("")
        self.pass_time(0.02)
        if other is None:
            return self._answer(500, {"message": "Nothing to merge with."})
        write.status = 200
        return self._answer(200, {"data": other, "message": "Merged."})

    def _other(self, id: str) -> Mapping[str, Any] | None:
        """Any record but that of the id; None if there is no other."""
        records = self.store.records(self.scenario.resource)
        ids = sorted(records.keys() - {id})
        return records[ids[self.chance.pick(len(ids))]] if ids else None

    def _answer(self, status: int, document: Mapping[str, Any]) -> Response:
        headers = {}
        if self.scenario.has_date:
            headers["date"] = format_datetime(self.server_now(), usegmt=True)
        return Response(status, headers, json.dumps(document).encode())

    def newest(self, page: int) -> Page[Resource] | UnreadableDetail:
        """One page, last created first, unless the scenario has it otherwise."""
        if not self._reads():
            return UnreadableDetail("no_answer")
        items = [
            item
            for item in self._items()
            if not self._is_hidden(item["id"], read_datetime(item["created_at"]))
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
            received_at=self.own_now(),
        )

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        while True:
            query = {"per_page": "100", "page": str(len(items) // 100 + 1)}
            found = self.store.list(self.scenario.resource, query, type=self.parent).items
            items += found
            if len(found) < 100:
                return items

    def _is_hidden(self, id: str, created_at: datetime) -> bool:
        lag = self.scenario.lag_seconds_max
        if not lag or not self.is_faulty:
            return False
        # Of each record's own, so that it does not come and go.
        return self.server_now() - created_at < timedelta(seconds=lag * (int(id[:2], 16) / 255))

    def read(self, id: str) -> Outcome:
        """One record's detail."""
        if not self._reads():
            return UnreadableDetail("server_failed")
        served_at = self._served_at()
        try:
            raw = self.store.get(self.scenario.resource, id, type=self.parent).record
        except Rejection:
            return DeletionProof(served_at or self.own_now())
        self.pass_time(0.02)
        if self.is_faulty and self.chance.yes(self.scenario.crossed_reads):
            raw = dict(self._other(id) or raw)
        if misfit_of_id(id, raw) is not None:
            return UnreadableDetail("unreadable_answer")
        record: Resource = self.resource.record(raw, served_at=served_at)
        return FoundDetail(record, served_at or self.own_now())

    def _reads(self) -> bool:
        self.reads += 1
        self.pass_time(0.05 + self.chance.within(0.2))
        if self.is_faulty and self.chance.yes(self.scenario.server_steps):
            self._step = timedelta(0) if self._step else timedelta(minutes=10)
            self._tick()
        return not (self.is_faulty and self.chance.yes(self.scenario.read_faults))

    def _served_at(self) -> datetime | None:
        return self.server_now().replace(microsecond=0) if self.scenario.has_date else None

    def _tell(self, what: str) -> None:
        if self.told is not None:
            self.told(f"{self.now:%H:%M:%S} {what}")


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

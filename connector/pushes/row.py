"""Push of one row. The API, the journal and the clock are injected.

    create   on the disk before a byte is sent. Without an answer: look for the record, wait until
             it can no longer appear, look again; then hold the row. A create is never sent twice.
    update   read, send only what differs, refuse what another user changed. Without an answer: read
             again, and send what is still missing: a PUT may be repeated.
    convert  read, send once. Without an answer: read; never sent again.

Fields that a create does not accept are sent as an update after it. A row that cannot be finished
now keeps a state from which a later push continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol

from connector.catalog import declaration
from connector.catalog.field import Kind
from connector.catalog.field_comparison import (
    differing_content_keys,
    differing_fields,
    is_same_value,
    unapplied_fields,
    values_by_key,
)
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Declaration, Page, Resource
from connector.client.messages import Request, build_request
from connector.errors import (
    ConnectorError,
    Forbidden,
    InDoubt,
    Misused,
    RateLimited,
    Refused,
    Stopped,
    Unauthorized,
    Unreachable,
    ValidationFailed,
    WarehouseError,
)
from connector.state.journal import Journal
from connector.state.row import (
    Attempt,
    Fate,
    Operation,
    Outcome,
    Policy,
    Problem,
    Row,
    State,
    fold,
    shorten,
)
from connector.warehouse.stream import DeletionProof, FoundDetail

ATTEMPTS_MAX = 3
"""Maximum number of lost attempts of one step. After them a person has to decide."""

PAGES_MAX, DETAILS_MAX = 20, 10
"""Maximum number of pages and of details of one look for a record."""

_RESOLVE = "Search for the record on the platform. Then resolve the row with 'connector resolve'."

DOUBTS: Mapping[str, str] = {
    "not_found": "the row was sent and {answered}, but its record is not found",
    "not_converted": "the conversion was sent and {answered}, but the lead is unchanged",
    "attempts_spent": "the row was sent several times, the last time {answered}",
    "look_incomplete": "the row was sent and {answered}, and the list in which its record would be "
    "could not be read completely",
    "several_matches": "the row was sent and {answered}, and several records match it",
    "look_alike": "the row was sent and {answered}, and a record with similar but different values "
    "exists",
}
"""Message for a row that a person has to decide, by code."""


# -- What a row needs ------------------------------------------------------------------------------


Answer = Resource | ConnectorError
"""Record of a write, which may have fewer fields than a complete one (API 4.7), or its error."""


class Port(Protocol):
    """The API, the journal and the clock. A read raises `PushStopped` if it fails."""

    stored: Journal

    def times(self) -> tuple[datetime, datetime]:
        """Return the time of our own clock, and the estimated time of the server's."""

    def check_can_send(self) -> None:
        """Raise `PushStopped` if the run sends nothing more."""

    async def send(self, row: Row, request: Request) -> Answer:
        """Send a request that the journal has, once."""

    async def read(self, row: Row, id: str) -> FoundDetail | DeletionProof:
        """Return the complete record, or a proof that it is deleted."""

    async def newest(self, row: Row, page: int) -> Page[Resource]:
        """Return a page of the list, the last created first."""

    async def newest_before(self, row: Row) -> Page[Resource]:
        """Return the first page as it was before the run's first create, read once for all rows."""

    async def wait_until(self, row: Row, moment: datetime) -> None:
        """Continue the row no earlier than a time of our own clock."""

    async def save(self, row: Row, shown: Resource | None = None) -> None:
        """Save the row on the disk. `shown` is a record that the API showed."""


class PushStopped(Exception):
    """The row cannot continue in this run. It keeps its state in the journal."""


async def push_row(row: Row, port: Port, policy: Policy) -> None:
    """Carry out a row as far as possible now."""
    for attempt in row.attempts:
        if attempt.fate is None:
            attempt.fate, attempt.reason = "lost", "the push ended before an answer was recorded"
    work = _Work(row, port, policy)
    with suppress(PushStopped):
        while row.state in ("planned", "sent"):
            if row.operation == "create" and not row.is_created:
                await (work.create() if row.state == "planned" else work.look_up())
            elif row.operation == "convert":
                await (work.convert() if row.state == "planned" else work.check_conversion())
            else:
                await work.update()


class _Work:
    """A row that is being pushed. Each step changes its state, or raises `PushStopped`."""

    def __init__(self, row: Row, port: Port, policy: Policy) -> None:
        self.row, self.port, self.policy = row, port, policy
        self.resource = declaration(row.resource)
        # A record that was just read or answered, so that it is not read again.
        self.fresh: FoundDetail | None = None

    @property
    def id(self) -> str:
        assert self.row.record_id is not None, "an update or a conversion names no record"
        return self.row.record_id

    @property
    def settled_at(self) -> datetime:
        """Time of our own clock after which no attempt can take effect any more."""
        last = max(each.at for each in self.row.current)
        return last + timedelta(seconds=self.policy.settle_seconds)

    @property
    def altered(self) -> list[Problem]:
        """Problems of fields that the API has shown with another value."""
        return [each for each in self.row.problems if each.code == "values_differ"]

    # -- changes of the row -----------------------------------------------------------------------

    async def end(
        self,
        state: State,
        outcome: Outcome,
        code: str = "",
        problems: Sequence[Problem] = (),
        shown: Resource | None = None,
    ) -> None:
        """Change state and outcome, and save the row with a record that the API showed."""
        row = self.row
        row.end(state, outcome, code, *problems)
        if shown is not None:
            if row.operation == "create" and not row.is_created:
                # An answer proves nothing about the record that an update names.
                row.record_id = shown.id
            at = shown.raw.get("updated_at")
            row.updated_at = at if isinstance(at, str) else row.updated_at
        await self.port.save(row, shown)

    async def refuse(self, outcome: Outcome, code: str, problems: Sequence[Problem]) -> None:
        """End a row that is not applied, or not completely if its record is created."""
        if self.row.is_created:
            await self.applied("not_applied", code, problems)
        else:
            await self.end("refused", outcome, code, problems)

    async def applied(
        self,
        outcome: Outcome,
        code: str = "",
        problems: Sequence[Problem] = (),
        shown: Resource | None = None,
    ) -> None:
        """End the row: applied or, if the API has shown other values, not applied as sent."""
        # Problems of the create are kept if an update follows it.
        problems = [*(each for each in self.altered if each not in problems), *problems]
        if any(each.code == "values_differ" for each in problems):
            outcome, code = "not_applied", "values_differ"
        await self.end("done", outcome, code, problems, shown)

    async def hold(self, code: str, ids: Sequence[str] = ()) -> None:
        """Leave the row to a person. `ids` are records that may be its own."""
        answers = [each.answer for each in self.row.current if each.is_lost]
        message = DOUBTS[code].format(answered=(answers or [None])[-1] or "not answered")
        problem = Problem(code, message, found=", ".join(ids) or None, fix=_RESOLVE)
        await self.end("held", "held", code, (*self.altered, problem))

    # -- requests ---------------------------------------------------------------------------------

    async def send(
        self,
        operation: Operation,
        fields: Mapping[str, Any],
        before: Mapping[str, Any] | None = None,
    ) -> Answer | None:
        """Save an attempt, send it, and return the answer; None if the row has ended.

        The caller saves an accepted or declined attempt. Raises `PushStopped` if it was not sent.
        """
        row = self.row
        self.port.check_can_send()
        id = None if operation == "create" else row.record_id
        body = None if operation == "convert" else fields
        try:
            request = build_request(self.resource, operation, id, body, parent=row.parent)
        except Misused as error:
            problem = Problem("unfit", str(error), fix="Correct the values of the row.")
            await self.refuse("invalid", "unfit", (problem,))
            return None
        at, server_at = self.port.times()
        text = None if request.body is None else request.body.decode()
        attempt = Attempt(row.is_created, request.method, request.path, text, at, server_at)
        row.attempts.append(attempt)
        row.before = before if row.before is None else row.before
        row.state, row.outcome, row.code = "sent", "held", "in_doubt"
        await self.port.save(row)
        answer = await self.port.send(row, request)
        attempt.fate = fate_of(answer)
        attempt.reason = str(answer) if isinstance(answer, ConnectorError) else None
        if attempt.fate == "lost":
            attempt.answer = answer.answer if isinstance(answer, InDoubt) else None
            await self.port.save(row)
        elif attempt.fate in ("limited", "unsent"):
            left: Outcome = "held" if row.is_in_doubt else "not_sent"
            row.state, row.code = "planned", ""
            row.outcome = "not_applied" if row.is_created else left
            await self.port.save(row)
            raise PushStopped
        return answer

    # -- create -----------------------------------------------------------------------------------

    async def create(self) -> None:
        """Send the create once."""
        row = self.row
        if not row.is_in_doubt and not await self.is_new(row.identity):
            return
        answer = await self.send("create", row.fields)
        if isinstance(answer, Resource):
            if reason := self.not_ours(answer):
                attempt = row.attempts[-1]
                attempt.fate, attempt.reason, attempt.answer = "lost", reason, reason
                await self.port.save(row)
                return
            await self.created(answer, "", altered_problems(self.resource, row.fields, answer))
        elif isinstance(answer, Refused):
            problems = declined_problems(self.resource, answer, row.fields)
            if row.is_in_doubt:
                # The record of an earlier attempt may be the reason of the refusal.
                row.code, row.problems = "refused_in_doubt", problems
                await self.port.save(row)
            else:
                await self.refuse("rejected", answer.code, problems)

    async def is_new(self, identity: Mapping[str, Any]) -> bool:
        """Return True unless another record with this identity is among the newest records.

        Then the row ends as a duplicate.
        """
        if not identity:
            return True
        row, page = self.row, await self.port.newest_before(self.row)
        ids: list[str] = [e.id for e in page.items if _has_identity(self.resource, identity, e)]
        if row.operation == "create":
            ids = self.not_taken(ids)
        ids = [id for id in ids if id != row.record_id]
        if not ids:
            return True
        problem = Problem(
            "already_there",
            "someone else has created the same record since the last pull",
            found=", ".join(ids),
            fix="Check the record. Then remove the row, or push it with --mode upsert.",
        )
        if row.operation == "create" and len(ids) == 1:
            row.record_id = ids[0]
        await self.end("refused", "duplicate", "already_there", (problem,))
        return False

    def not_ours(self, record: Resource) -> str | None:
        """Return why the answered record cannot be the row's; None if it can be.

        The client has compared its values. It does not know which records exist, and without the
        server's clock it could not compare the record's age.
        """
        row = self.row
        if self.port.stored.taken(row.key, [record.id]):
            return f"answered with {record.id}, which existed before the request"
        earliest = row.attempts[-1].sent_after - timedelta(seconds=LATENESS_UNTIMED_SECONDS)
        if record.served_at is None and record.created_at < earliest:
            return f"answered with {record.id}, which was created before the request"
        if not row.identity and self.is_contested(record):
            return f"answered with {record.id}, which may belong to another row"
        return None

    def is_contested(self, record: Resource) -> bool:
        """Return True if another open row sent values that the record has all of."""
        return any(
            not unapplied_fields(self.resource, other.fields, record.raw)
            for other in self.port.stored.rivals(self.row)
        )

    async def created(self, record: Resource, code: str, problems: Sequence[Problem] = ()) -> None:
        """Record that the record exists: the row has ended, or the update after it is next."""
        row = self.row
        if not row.then:
            await self.applied("created", code, problems, record)
            return
        row.record_id = record.id
        row.before, row.is_created = dict(record.raw), True
        await self.end("planned", "not_applied", code, problems, record)
        if all(name in record.raw for name in row.then):
            at, _ = self.port.times()
            self.fresh = FoundDetail(record, record.served_at or at)

    async def look_up(self) -> None:
        """Look for the record of a lost create, twice if it may appear after the first look."""
        while True:
            seen = await self.look()
            if len(seen.matches) == 1:
                await self.created(seen.matches[0], "found_after_doubt")
                return
            if seen.matches:
                await self.hold("several_matches", [each.id for each in seen.matches])
                return
            if seen.started_at >= self.settled_at:
                break
            await self.port.wait_until(self.row, self.settled_at)
        if seen.alike:
            await self.hold("look_alike", seen.alike)
        elif self.row.current[-1].fate == "refused":
            # The API's own messages stay.
            await self.end("held", "held", "refused_in_doubt", self.row.problems)
        else:
            await self.hold("not_found" if seen.is_complete else "look_incomplete")

    async def look(self) -> _Seen:
        """Read the newest records down to the first attempt, and compare those that may match.

        Records that were loaded before, or that belong to another row, do not match. A match that
        another open row may have made counts as alike.
        """
        row = self.row
        seen = await self.list_late_enough(next(each for each in row.current if each.is_lost))
        ids = self.not_taken(seen.alike)
        matches, seen.alike = list[Resource](), ids[DETAILS_MAX:]
        for id in ids[:DETAILS_MAX]:
            found = await self.port.read(self.row, id)
            if isinstance(found, DeletionProof):
                # It existed, and was deleted: nobody can tell whose it was.
                seen.alike.append(id)
            elif not unapplied_fields(self.resource, row.fields, found.record.raw):
                matches.append(found.record)
            elif row.identity and not unapplied_fields(
                self.resource, row.identity, found.record.raw
            ):
                seen.alike.append(id)
        contested = [each.id for each in matches if self.is_contested(each)]
        # Asked again: an open row may have found its record since, which must not be taken.
        free = self.not_taken([each.id for each in matches])
        seen.alike += [id for id in free if id in contested]
        seen.matches = [e for e in matches if e.id in free and e.id not in contested]
        return seen

    def not_taken(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that may be the row's record."""
        taken = self.port.stored.taken(self.row.key, ids) if ids else frozenset()
        return [id for id in ids if id not in taken]

    async def list_late_enough(self, first: Attempt) -> _Seen:
        """Return the records created late enough that may match.

        A list that shrinks meanwhile is not complete: a record may be missed between two pages.
        """
        alike: dict[str, None] = {}
        pages: list[Page[Resource]] = []
        is_last = has_shrunk = False
        while not (is_last or has_shrunk) and len(pages) < PAGES_MAX:
            page = await self.port.newest(self.row, len(pages) + 1)
            has_shrunk = bool(pages) and page.total < pages[-1].total
            pages.append(page)
            floor = _earliest_creation(first, page, self.policy.lateness_seconds)
            for each in page.items:
                is_late = each.created_at is None or each.created_at >= floor
                if is_late and self.may_match(each):
                    alike[each.id] = None
            dates = [e.created_at for p in pages for e in p.items if e.created_at is not None]
            is_sorted = all(earlier >= later for earlier, later in pairwise(dates))
            is_last = page.is_last or (is_sorted and bool(dates) and dates[-1] < floor)
        assert pages[0].received_at is not None
        started_at = pages[0].received_at - timedelta(seconds=pages[0].round_trip_seconds)
        return _Seen([], list(alike), is_last and not has_shrunk, started_at)

    def may_match(self, item: Resource) -> bool:
        """Return True unless the list item contradicts the row's identity or else its body."""
        known = self.row.identity or self.row.fields
        return all(
            is_same_value(field, known[field.name], item.raw[field.name])
            for field in self.resource.item_fields
            if field.create.accepted and field.name in known and field.name in item.raw
        )

    # -- update -----------------------------------------------------------------------------------

    async def update(self) -> None:
        """Read the record, and send the values that differ.

        After a lost attempt the same comparison tells if it was applied.
        """
        row = self.row
        found = self.fresh or await self.port.read(row, self.id)
        self.fresh = None
        if isinstance(found, DeletionProof):
            await self.gone()
            return
        record, wanted = found.record, row.then if row.is_created else row.fields
        base = row.base if row.before is None else row.before
        body, conflicts = differences(self.resource, wanted, base, record.raw)
        lost = sum(each.is_lost for each in row.current)
        if conflicts and not self.policy.overwrite:
            problems = conflict_problems(conflicts, wanted, base, record.raw)
            state: State = "done" if row.is_created else "refused"
            outcome: Outcome = "not_applied" if row.is_created else "conflict"
            await self.end(state, outcome, "changed_elsewhere", problems, record)
        elif not body and (row.is_created or lost):
            code = "found_after_doubt" if lost else ""
            await self.applied(done_outcome(row), code, (), record)
        elif not body:
            await self.end("done", "unchanged", "up_to_date", (), record)
        elif row.state == "planned":
            await self.send_update(wanted, body, dict(record.raw))
        elif lost >= ATTEMPTS_MAX:
            await self.hold("attempts_spent")
        else:
            row.state, row.code = "planned", ""
            await self.port.save(row)
            self.fresh = found

    async def send_update(
        self, wanted: Mapping[str, Any], body: Mapping[str, Any], now: Mapping[str, Any]
    ) -> None:
        """Send an update with this body."""
        row = self.row
        key = natural_key_change(self.resource, row, body, now)
        if not row.is_created and not await self.is_new(key):
            return
        answer = await self.send("update", body, now)
        if isinstance(answer, Resource):
            problems = altered_problems(self.resource, wanted, answer)
            await self.applied(done_outcome(row), "", problems, answer)
        elif isinstance(answer, Refused):
            problems = declined_problems(self.resource, answer, body)
            code = "afterwards_refused" if row.is_created else answer.code
            await self.refuse("rejected", code, problems)

    async def gone(self) -> None:
        """End a row whose record does not exist any more."""
        problem = Problem(
            "record_gone",
            "the record no longer exists",
            received=self.row.record_id,
            fix="Run 'connector pull'. Then create the record again, or remove the row.",
        )
        # A lost update may have been applied before the record was deleted.
        is_planned = self.row.state == "planned"
        await self.refuse("rejected" if is_planned else "conflict", "record_gone", (problem,))

    # -- convert ----------------------------------------------------------------------------------
    # After a conversion, the lead may be gone, active or unchanged (API 3.5). An unchanged lead
    # proves nothing, so that a person has to decide.

    async def convert(self) -> None:
        """Read the lead and, unless it is converted, convert it once."""
        row, found = self.row, await self.port.read(self.row, self.id)
        if isinstance(found, FoundDetail) and not _is_converted(found.record):
            answer = await self.send("convert", {}, dict(found.record.raw))
            if isinstance(answer, Resource):
                # The answer may lack fields, so that the record is not loaded from it.
                await self.end("done", "converted")
            elif isinstance(answer, Refused) and row.is_in_doubt and answer.status in (404, 422):
                # The lead is not as it was: an earlier attempt has converted it.
                await self.end("done", "converted", "found_after_doubt")
            elif isinstance(answer, Refused):
                problems = declined_problems(self.resource, answer, {})
                await self.refuse("rejected", answer.code, problems)
        elif row.is_in_doubt:
            await self.end("done", "converted", "found_after_doubt")
        elif isinstance(found, DeletionProof):
            await self.gone()
        else:
            await self.end("done", "unchanged", "already_converted", (), found.record)

    async def check_conversion(self) -> None:
        """Read the lead after a lost conversion, twice if it may still take effect."""
        while True:
            at, _ = self.port.times()
            found = await self.port.read(self.row, self.id)
            if isinstance(found, DeletionProof) or _is_converted(found.record):
                await self.end("done", "converted", "found_after_doubt")
                return
            if at >= self.settled_at:
                await self.hold("not_converted")
                return
            await self.port.wait_until(self.row, self.settled_at)


@dataclass(slots=True)
class _Seen:
    """Result of a look: records with all sent values, ids of similar ones, and if all was seen.

    `started_at` is the time of our own clock before the first page was requested.
    """

    matches: list[Resource]
    alike: list[str]
    is_complete: bool
    started_at: datetime


def done_outcome(row: Row) -> Outcome:
    """Return the outcome of a row that was applied."""
    outcomes: dict[str | None, Outcome] = {"create": "created", "update": "updated"}
    return outcomes.get(row.operation, "converted")


# -- Requests and answers --------------------------------------------------------------------------


_UNSENT = (Unauthorized, Forbidden, Unreachable, RateLimited, Stopped, Misused, WarehouseError)
"""Errors of a write that prove that nothing was applied, and that are not caused by the row."""


def fate_of(answer: Answer) -> Fate:
    """Return what an answer says about the effect of a write.

    Unless an error proves that nothing was applied, the write is lost.
    """
    if isinstance(answer, Resource):
        return "accepted"
    if isinstance(answer, _UNSENT):
        return "limited" if isinstance(answer, RateLimited) else "unsent"
    return "refused" if isinstance(answer, Refused) else "lost"


# -- Comparison ------------------------------------------------------------------------------------


def differences(
    resource: Declaration,
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    now: Mapping[str, Any],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values left to send, and the fields that another user changed since `base`.

    A field that has the wanted value is not sent. Content values are compared by key and sent
    together, since the API does not say whether it merges them (API 4.7).
    """
    body: dict[str, Any] = {}
    conflicts: list[str] = []
    for name, value in wanted.items():
        field = resource.field(name)
        if field.write_only:
            body[name] = value
        elif field.kind is Kind.OBJECT:
            keys = differing_content_keys(value, now.get(name))
            if not keys:
                continue
            body[name] = {**values_by_key(now.get(name)), **value}
            former = values_by_key(base.get(name))
            changed = (
                differing_content_keys({key: former.get(key)}, now.get(name)) for key in keys
            )
            if name in base and any(changed):
                conflicts.append(name)
        elif not is_same_value(field, value, now.get(name)):
            body[name] = value
            if name in base and not is_same_value(field, base[name], now.get(name)):
                conflicts.append(name)
    return body, tuple(conflicts)


def natural_key_change(
    resource: Declaration, row: Row, body: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the natural key that an update gives to its record; empty if it changes none."""
    for names in resource.natural_keys:
        if all(name in row.identity for name in names) and any(name in body for name in names):
            return {name: body.get(name, now.get(name)) for name in names}
    return {}


def _has_identity(resource: Declaration, identity: Mapping[str, Any], item: Resource) -> bool:
    """Return True if the list item has all values, except for letter case and outer blanks."""
    return all(
        fold(value) == fold(item.raw.get(name))
        or (
            # Different texts differ. Parsing each would take most of the time.
            resource.field(name).kind is not Kind.STRING
            and is_same_value(resource.field(name), value, item.raw.get(name))
        )
        for name, value in identity.items()
    )


def _earliest_creation(first: Attempt, page: Page[Resource], lateness: float) -> datetime:
    """Return the earliest time at which the record can have been created, by the server's clock."""
    if page.served_at is None or page.received_at is None:
        slack = timedelta(seconds=max(lateness, LATENESS_UNTIMED_SECONDS))
        return min(first.at, first.sent_after) - slack
    # The server's clock now, less the time that has passed by ours: right even where the clock was
    # not known when the attempt was made.
    passed = max(page.received_at - first.at, timedelta(0))
    return min(first.sent_after, page.served_at - passed) - timedelta(seconds=lateness)


def _is_converted(lead: Resource) -> bool:
    """Return True if the lead has the time or the status of a conversion (API 3.5)."""
    return bool(lead.raw.get("converted_at")) or lead.raw.get("status") == "active"


# -- Problems --------------------------------------------------------------------------------------


def declined_problems(
    resource: Declaration, declined: Refused, sent: Mapping[str, Any]
) -> tuple[Problem, ...]:
    """Return the API's messages as problems of the fields or, without such messages, of the row."""
    problems = []
    errors = declined.errors if isinstance(declined, ValidationFailed) else {}
    for name, messages in errors.items():
        is_field, said = name in resource.fields, "; ".join(messages)
        problems.append(
            Problem(
                declined.code,
                said if is_field or not name else f"{name}: {said}",
                field=name if is_field else None,
                received=shorten(sent[name]) if name in sent else None,
                fix="Correct the value and push the row again.",
            )
        )
    if not problems:
        message = declined.api_message or f"the API answered {declined.status}"
        fix = "Correct the row and push it again."
        problems.append(Problem(declined.code, message, fix=fix))
    return tuple(problems)


def conflict_problems(
    names: Sequence[str], wanted: Mapping[str, Any], base: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[Problem, ...]:
    """Return a problem for each of the fields that another user has changed since `base`."""
    return tuple(
        Problem(
            "changed_elsewhere",
            f"{name} was changed by someone else; the last pull read {shorten(base[name])!r}",
            field=name,
            received=shorten(wanted[name]),
            found=shorten(now.get(name)),
            fix="Check which value is right. To send the value of the file, add --overwrite.",
        )
        for name in names
    )


def altered_problems(
    resource: Declaration, sent: Mapping[str, Any], record: Resource
) -> tuple[Problem, ...]:
    """Return the problems of fields that the API accepted and showed with another value."""
    return tuple(
        Problem(
            "values_differ",
            f"{name} was accepted, but the API now shows another value",
            field=name,
            received=shorten(sent[name]),
            found=shorten(record.raw[name]),
            fix="Check the record on the platform. The API may change this value when saving.",
        )
        for name in differing_fields(resource, sent, record.raw)
    )

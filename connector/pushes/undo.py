"""Undo of a batch, except for records that changed since.

Each record is read once, and its rows are undone in the reverse order: a field is restored if it
still has the row's value, and a record that the row created is deleted if it has not changed since.
Changes of other users are kept and reported. The journal records only that a row is undone, so that
an interrupted undo is run again and finds the remaining rows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from connector.catalog import declaration
from connector.catalog.field import Field, Kind
from connector.catalog.field_comparison import is_same_value, unapplied_fields
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Resource
from connector.client.client import Client
from connector.client.fit import EARLIER_SECONDS, contradicting_fields
from connector.errors import ConnectorError, InDoubt, Misused, NotFound, Stopped
from connector.pulls.account import check_files, open_run
from connector.pulls.report import Watch
from connector.pushes.row import (
    Accepted,
    Answer,
    Declined,
    altered_problems,
    answer_from_error,
    declined_problems,
)
from connector.pushes.run import Queue, publish_results, run_all
from connector.pushes.session import Session
from connector.settings import Settings
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import SHOWN_CHARACTERS_MAX, Problem, Row, shorten
from connector.warehouse.stream import DeletionProof, FoundDetail, UnreadableDetail

TRIES_MAX = 3
"""How often a row is read and written if its write is not answered. A retry does no harm, since a
field is restored, or a record deleted, only if it still is as the push left it.
"""

LAST = "last"
"""Name of the batch that was started last."""

UndoOutcome = Literal[
    "delete",
    "restore",
    "deleted",
    "restored",
    "undone",
    "nothing",
    "partly",
    "conflict",
    "irreversible",
    "refused",
    "held",
    "unread",
    "not_reached",
]
"""Outcome of a row; `delete` and `restore` are those of a preview.

`undone`: it was undone before, or nothing is left of it. `nothing`: the row had changed nothing.
`partly`: some fields are restored, and others cannot be. `conflict`: another user has changed the
values. `irreversible`: a conversion. `held`: the row is unconfirmed. `unread`: the record could not
be read, or the write was not answered. `not_reached`: the undo ended before its turn.
"""

GOOD: frozenset[UndoOutcome] = frozenset(
    ("delete", "restore", "deleted", "restored", "undone", "nothing")
)
"""Outcomes that need no attention."""

_BY_HAND = "Check the record on the platform, and change it there if necessary."

_WITHOUT_READ: Mapping[str, tuple[UndoOutcome, str, str]] = {
    "not_settled": (
        "held",
        "the row is unconfirmed",
        "Resolve it with 'connector resolve' or push the file again, then undo the batch again.",
    ),
    "never_known": (
        "held",
        "the row was sent, but its result is unknown",
        "Check the record on the platform.",
    ),
    "written_elsewhere": (
        "nothing",
        "a row of another batch wrote the same values before",
        "To undo the values, undo that batch.",
    ),
    "irreversible": (
        "irreversible",
        "a conversion cannot be undone",
        "Change the record on the platform.",
    ),
    "declared": (
        "conflict",
        "'connector resolve --record' assigned the record to the row, so the undo does not delete "
        "it",
        "Delete the record on the platform if necessary.",
    ),
}
"""Outcome, message and advice for rows whose records are not read, by code."""


# -- Report ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UndoneRow:
    """Outcome of one row. `changes` has the present and the restored value of each field."""

    number: int
    operation: str | None
    outcome: UndoOutcome
    record_id: str | None = None
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        names = {"code", "field", "message", "found", "fix"}
        return {
            "row": self.number,
            "operation": self.operation,
            "outcome": self.outcome,
            "id": self.record_id,
            "changes": {name: {"now": a, "then": b} for name, (a, b) in self.changes.items()},
            "problems": [
                {n: v for n, v in asdict(each).items() if n in names} | {"written": each.received}
                for each in self.problems
            ],
        }


@dataclass(frozen=True, slots=True)
class UndoReport:
    """Result of an undo or of its preview, with every row of the batch.

    Attributes:
        error: Error that ended the undo early.
        unpublished: Error that prevented the publication of the result.
    """

    batch: str
    is_applied: bool
    rows: tuple[UndoneRow, ...]
    requests: int
    seconds: float
    error: ConnectorError | None = None
    unpublished: ConnectorError | None = None

    @property
    def counts(self) -> Mapping[UndoOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return Counter(each.outcome for each in self.rows)

    @property
    def outcome(self) -> Literal["previewed", "done", "partial", "stopped", "failed"]:
        """How the undo ended; "partial" if some rows need attention."""
        if self.error is not None:
            return "stopped" if isinstance(self.error, Stopped) else "failed"
        if not self.is_applied:
            return "previewed"
        return "done" if self.counts.keys() <= GOOD else "partial"

    @property
    def exit_status(self) -> int:
        """0 if all rows are undone, or would be; 3 if some are not; else that of the error."""
        if self.error is not None:
            return self.error.exit_status
        if self.unpublished is not None:
            return 1
        return 0 if self.counts.keys() <= GOOD else 3

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, with all rows."""
        return {
            "outcome": self.outcome,
            "batch": self.batch,
            "applied": self.is_applied,
            "rows": [each.as_json() for each in self.rows],
            "counts": {str(name): count for name, count in self.counts.items()},
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "error": None if self.error is None else self.error.as_json(),
            "unpublished": None if self.unpublished is None else self.unpublished.as_json(),
        }


# -- Run -------------------------------------------------------------------------------------------


async def undo(
    settings: Settings,
    batch: str,
    *,
    applies: bool = False,
    budget: int | None = None,
    ignores_quota: bool = False,
    person: str | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> UndoReport:
    """Undo a batch if `applies`; otherwise report what an undo would do.

    `batch` is the name of a batch, or `LAST`. `budget` is the maximum number of requests. `person`
    is the user of the import page, for the journal.

    Raises:
        UnknownName: The batch is not in the journal.
        Misused: The budget is 0, or nothing was pushed.
        SettingsError: The address or the key is missing.
        AccountBusy: Another process uses the account.
        WarehouseError: A file of the data folder cannot be read or written.
    """
    started = time.monotonic()
    await asyncio.to_thread(check_files, settings)
    batch = _batch_to_undo(settings, batch)
    async with open_run(
        settings, "undo", budget=budget, ignores_quota=ignores_quota, watch=watch, now=now,
        connect=connect,
    ) as context:  # fmt: skip
        session = Session(context, None)
        report = await _Undo(session, applies=applies, by=person).run(batch)
        unpublished = await publish_results(settings) if applies else None
    return replace(report, seconds=time.monotonic() - started, unpublished=unpublished)


def _batch_to_undo(settings: Settings, batch: str) -> str:
    """Return the name of the batch, or of the latest one for `LAST`.

    Raises `UnknownName`, or `Misused` if nothing was pushed.
    """
    with Database(settings.folder) as database:
        journal = Journal(database)
        pushed = journal.batches() if database.exists else ()
        if not pushed:
            raise Misused(
                "nothing was pushed from this data folder", action="Check CONNECTOR_DATA_DIR."
            )
        return pushed[0].batch if batch == LAST else journal.batch(batch).batch


class _Undo:
    """Undo of one batch, within an open session."""

    def __init__(self, session: Session, *, applies: bool, by: str | None) -> None:
        self._session, self._applies, self._by = session, applies, by
        self._ended: dict[int, UndoneRow] = {}
        # In a preview: records as they would be after the undo of later rows.
        self._expected: dict[str, FoundDetail] = {}

    async def run(self, batch: str) -> UndoReport:
        """Undo the batch's rows, several records at the same time, or only preview it."""
        session, journal = self._session, self._session.stored
        rows = journal.rows(batch)
        left = []
        for row in rows:
            ended = _without_read(row)
            if ended is None:
                left.append(row)
            else:
                self._ended[row.number] = ended
        # The last write first, and later rows may refer to records that earlier ones have created.
        left.sort(key=lambda row: (row.attempts[-1].at, row.number), reverse=True)
        session.begin_batch(journal.batch(batch).resource, batch, len(left))
        try:
            await run_all(session, Queue(left, {}, lambda row: row.record_id), self._undo)
        finally:
            await session.load_rest()
        for row in left:
            self._ended.setdefault(row.number, _undone(row, "not_reached"))
        return UndoReport(
            batch=batch,
            is_applied=self._applies,
            rows=tuple(self._ended[number] for number in sorted(self._ended)),
            requests=session.context.tally.requests,
            seconds=0.0,
            error=session.error,
        )

    async def _undo(self, row: Row) -> None:
        """Undo one row. Its record is read again even if a later row of the batch wrote it."""
        assert row.record_id is not None
        undone = self._session.stored.undone_updates(row.record_id)
        for _ in range(TRIES_MAX):
            known = self._expected.get(row.record_id)
            seen = known or await self._session.read(row, row.record_id)
            if not isinstance(seen, FoundDetail):
                await self._end_unread(row, seen)
                return
            plan = plan_undo(
                row, seen.record.raw, undone, is_timed=seen.record.served_at is not None
            )
            if not self._applies or not (plan.deletes or plan.body):
                self._end_without_write(row, plan)
                if not self._applies:
                    raw = {**seen.record.raw, **plan.body}
                    record = type(seen.record)(raw, served_at=seen.record.served_at)
                    self._expected[row.record_id] = FoundDetail(record, seen.served_at)
                return
            answer = await self._send(row, plan)
            match answer:
                case DeletionProof():
                    await self._end_deleted(row, answer, "deleted")
                    return
                case Accepted(record):
                    await self._end_restored(row, plan, record, seen, undone)
                    return
                case Declined(is_missing=False):
                    problems = declined_problems(declaration(row.resource), answer, plan.body)
                    self._ended[row.number] = _undone(row, "refused", (*plan.problems, *problems))
                    return
        await self._end_unread(row, UnreadableDetail(InDoubt.code))

    async def _send(self, row: Row, plan: UndoPlan) -> Answer | DeletionProof:
        """Delete the record, or restore its fields, and return the answer."""
        session, id = self._session, row.record_id or ""
        session.check_can_write()
        client = session.context.client
        try:
            if plan.deletes:
                await client.delete(row.resource, id, row.parent)
                session.record_write(None)
                return DeletionProof(session.times()[1])
            record = await client.update(row.resource, id, plan.body, row.parent)
        except ConnectorError as error:
            session.record_write(error)
            if plan.deletes and isinstance(error, NotFound) and error.is_api_error:
                return DeletionProof(session.times()[1])
            return answer_from_error(error)
        session.record_write(None)
        return Accepted(record)

    # -- ends of rows -----------------------------------------------------------------------------

    def _mark(self, row: Row, updated_at: str | None = None) -> None:
        """Mark a row as undone. `updated_at` is the record's own after it; None if not ours."""
        if self._applies:
            self._session.stored.mark_undone(row.key, updated_at, self._by)

    def _end_without_write(self, row: Row, plan: UndoPlan) -> None:
        """End a row for which nothing is sent: a preview, or nothing to undo."""
        outcome: UndoOutcome = "undone"
        if plan.deletes:
            outcome = "delete"
        elif plan.problems:
            outcome = "partly" if plan.restores_any else "conflict"
        elif plan.body:
            outcome = "restore"
        self._ended[row.number] = _undone(row, outcome, plan.problems, plan)
        if outcome in ("undone", "partly"):
            self._mark(row)

    async def _end_unread(self, row: Row, seen: DeletionProof | UnreadableDetail) -> None:
        """End a row whose record is deleted or unreadable. A deleted create is undone."""
        if isinstance(seen, UnreadableDetail):
            message = f"the API answered with an error ({seen.reason})"
            problem = Problem(seen.reason, message, fix="Run the same command again.")
            self._ended[row.number] = _undone(row, "unread", (problem,))
        elif row.operation == "create":
            await self._end_deleted(row, seen, "undone")
        else:
            problem = Problem("record_gone", "the record was deleted after the push")
            self._ended[row.number] = _undone(row, "conflict", (problem,))

    async def _end_deleted(self, row: Row, gone: DeletionProof, outcome: UndoOutcome) -> None:
        """End a row whose record is deleted, and mark the record in the local copy."""
        if self._applies:
            await self._session.load(row, None, gone=gone)
        self._ended[row.number] = _undone(row, outcome)
        self._mark(row)

    async def _end_restored(
        self,
        row: Row,
        plan: UndoPlan,
        record: Resource,
        seen: FoundDetail,
        undone: Sequence[tuple[str, str]],
    ) -> None:
        """End a row whose fields were restored, with problems of values that differ."""
        await self._session.load(row, record)
        resource = declaration(row.resource)
        problems = (*plan.problems, *altered_problems(resource, plan.body, record))
        before, after = seen.record.raw, record.raw
        others = [n for n in after if n not in {*plan.body, "updated_at"}]
        is_ours = not problems and all(after[name] == before.get(name) for name in others)
        is_ours = is_ours and is_unchanged_by_others(row, before, undone)
        shown = after.get("updated_at")
        outcome: UndoOutcome = "partly" if problems else "restored"
        self._ended[row.number] = _undone(row, outcome, problems, plan)
        self._mark(row, shown if is_ours and isinstance(shown, str) else None)


def _undone(
    row: Row, outcome: UndoOutcome, problems: tuple[Problem, ...] = (), plan: UndoPlan | None = None
) -> UndoneRow:
    """Return the outcome of a row for the report, with the changes of its plan."""
    changes = {name: (plan.now[name], then) for name, then in plan.body.items()} if plan else {}
    return UndoneRow(row.number, row.operation, outcome, row.record_id, changes, problems)


def _without_read(row: Row) -> UndoneRow | None:
    """Return the outcome of a row if its record need not be read; None if it has to be read."""
    sent = [each for each in row.attempts if each.fate == "accepted" or each.is_lost]
    code = ""
    outcome: UndoOutcome = "nothing"
    if row.undone_at is not None:
        outcome = "undone"
    elif row.is_open:
        code = "not_settled"
    elif row.is_followed:
        code = "written_elsewhere"
    elif row.state == "refused" and any(each.is_lost for each in sent):
        code = "never_known"
    elif row.outcome in ("created", "updated", "converted", "not_applied"):
        if row.operation == "convert":
            code = "irreversible"
        elif row.operation == "create" and row.code == "declared":
            code = "declared"
        elif sent:
            return None
    problems: tuple[Problem, ...] = ()
    if code:
        outcome, message, fix = _WITHOUT_READ[code]
        found = f"row {row.same[1]} of the batch {row.same[0]}" if row.same else None
        problems = (Problem(code, message, found=found, fix=fix),)
    return UndoneRow(row.number, row.operation, outcome, row.record_id, problems=problems)


# -- Plan of one row -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What undoes a row: delete its record, send a body, or nothing.

    Attributes:
        problems: Fields that cannot be undone.
        restores_any: Whether a field has its former value, or will have it by the body.
        now: Present values of the fields of the body.
    """

    deletes: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    restores_any: bool = False
    now: Mapping[str, Any] = field(default_factory=dict)


def plan_undo(
    row: Row,
    now: Mapping[str, Any],
    undone: Sequence[tuple[str, str]] = (),
    *,
    is_timed: bool = True,
) -> UndoPlan:
    """Return what undoes a row, by comparing it with its record as it is now.

    If the row cannot have written to that record, nothing is changed. `undone` are later updates
    that were undone: `updated_at` before each, and after its undo. Unless `is_timed`, the API does
    not send its time, and times of the journal may be those of our own clock.
    """
    if (reason := _mismatch(row, now, is_timed=is_timed)) is not None:
        return UndoPlan(problems=(Problem("not_ours", reason, fix=_BY_HAND),))
    if row.operation == "create":
        return _plan_deletion(row, now, undone)
    return _plan_restoration(row, now)


def written(row: Row) -> dict[str, Any]:
    """Return the values that the row sent, by field."""
    values: dict[str, Any] = {}
    for each in row.attempts:
        if each.fate == "accepted" or each.is_lost:
            values |= json.loads(each.body or "{}")
    return values


def _mismatch(row: Row, now: Mapping[str, Any], *, is_timed: bool) -> str | None:
    """Return why the row cannot have written to the record; None if it can."""
    before_id = (row.before or {}).get("id", row.record_id)
    if now.get("id") != row.record_id or before_id != row.record_id:
        return "the journal contains another record id than the changed record"
    if row.operation == "update":
        return None
    slack = timedelta(seconds=EARLIER_SECONDS if is_timed else LATENESS_UNTIMED_SECONDS)
    earliest = min(each.sent_after for each in row.attempts) - slack
    resource = declaration(row.resource)
    created_at, _ = resource.field("created_at").parse(now.get("created_at"))
    if not isinstance(created_at, datetime) or created_at < earliest:
        return "the record is older than this push, so the row did not create it"
    return None


def is_unchanged_by_others(
    row: Row, now: Mapping[str, Any], undone: Sequence[tuple[str, str]]
) -> bool:
    """Return True if the record is unchanged since the row, except for undone updates."""
    stamp, moment = declaration(row.resource).field("updated_at"), now.get("updated_at")
    # A record that was never updated may show its creation as the last change.
    left = row.updated_at or (now.get("created_at") if row.operation == "create" else None)
    if left is None or moment is None:
        return row.operation == "create" and left is moment
    ours, others = [left], list(undone)
    while found := [e for e in others if any(is_same_value(stamp, at, e[0]) for at in ours)]:
        ours += [after for _, after in found]
        others = [each for each in others if each not in found]
    return any(is_same_value(stamp, at, moment) for at in ours)


def _plan_deletion(row: Row, now: Mapping[str, Any], undone: Sequence[tuple[str, str]]) -> UndoPlan:
    """Delete the record of a create if it is unchanged; otherwise return the problems."""
    resource, values = declaration(row.resource), written(row)
    others = contradicting_fields(resource, values, now)
    changed = [
        name
        for name in unapplied_fields(resource, values, now)
        if name in others or not _is_as_shown(row, name, now.get(name))
    ]
    if changed:
        reason = "so the record is not deleted"
        return UndoPlan(problems=tuple(_changed(n, values[n], now.get(n), reason) for n in changed))
    if not is_unchanged_by_others(row, now, undone):
        problem = Problem(
            "changed_since",
            "another field of the record was changed after the push",
            field="updated_at",
            received=shorten(row.updated_at or now.get("created_at")),
            found=shorten(now.get("updated_at")),
            fix="Check the record on the platform, and delete it there if necessary.",
        )
        return UndoPlan(problems=(problem,))
    return UndoPlan(deletes=True)


def _plan_restoration(row: Row, now: Mapping[str, Any]) -> UndoPlan:
    """Restore each field that still has the row's value, and return problems of the others."""
    body: dict[str, Any] = {}
    problems: list[Problem] = []
    is_any_back, before = False, row.before or {}
    for name, value in written(row).items():
        declared = declaration(row.resource).field(name)
        former, present = before.get(name), now.get(name)
        if declared.write_only or name not in before:
            message = f"the former value of {name} is unknown"
            if declared.write_only:
                message = f"the API never returns {name}, so its former value is unknown"
            problems.append(Problem("never_shown", message, field=name, fix=_BY_HAND))
        elif declared.kind is Kind.OBJECT:
            back, taken = _content_values(declared, value, former, present)
            problems += taken
            if back:
                body[name] = {**_mapping(present), **back}
            is_any_back |= bool(back) or not taken
        elif is_same_value(declared, former, present):
            is_any_back = True
        elif not (is_same_value(declared, value, present) or _is_as_shown(row, name, present)):
            problems.append(_changed(name, value, present, "so it is not restored"))
        elif not _is_accepted(declared, former):
            problems.append(
                Problem(
                    "not_accepted",
                    f"{name} cannot be restored: an update does not accept its former value",
                    received=shorten(former),
                    allowed=", ".join(declared.update.values or ()) or None,
                    fix=_BY_HAND,
                    field=name,
                )
            )
        else:
            body[name] = former
    present_values = {name: now.get(name) for name in body}
    return UndoPlan(False, body, tuple(problems), is_any_back or bool(body), present_values)


def _content_values(
    declared: Field, value: Any, former: Any, present: Any
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the content values to restore by key, and the problems of the other keys."""
    back: dict[str, Any] = {}
    taken: list[Problem] = []
    for key, each in _mapping(value).items():
        before = _mapping(former).get(key)
        if is_same_value(declared, {key: before}, present):
            continue
        if is_same_value(declared, {key: each}, present):
            back[key] = before
        else:
            now = _mapping(present).get(key)
            taken.append(_changed(f"{declared.name}.{key}", each, now, "so it is not restored"))
    return back, taken


def _changed(name: str, value: Any, present: Any, consequence: str) -> Problem:
    """Return the problem of a field that was changed after the push."""
    return Problem(
        "changed_since",
        f"{name} was changed after the push, {consequence}",
        field=name,
        received=shorten(value),
        found=shorten(present),
        fix=_BY_HAND,
    )


def _is_as_shown(row: Row, name: str, present: Any) -> bool:
    """Return True if the field has the value that the API returned. False if that text was cut."""
    found = [e.found for e in row.problems if e.code == "values_differ" and e.field == name]
    return any(
        each is not None and len(each) < SHOWN_CHARACTERS_MAX and shorten(present) == each
        for each in found
    )


def _is_accepted(declared: Field, value: Any) -> bool:
    """Return True if an update of the field accepts the value."""
    allowed = declared.update.values
    return declared.update.accepted and (value is None or allowed is None or value in allowed)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}

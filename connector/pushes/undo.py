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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.catalog import declaration
from connector.catalog.field import Kind
from connector.catalog.field_comparison import is_same_value, unapplied_fields, values_by_key
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Resource
from connector.client.client import Client
from connector.client.fit import EARLIER_SECONDS, contradicting_fields
from connector.client.messages import build_request
from connector.errors import InDoubt, Misused, Refused
from connector.pulls.account import check_files, open_run
from connector.pulls.report import Watch
from connector.pushes.row import PushStopped, altered_problems, declined_problems
from connector.pushes.run import Queue, Report, publish_results, run_all
from connector.pushes.session import Session
from connector.settings import Settings
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import SHOWN_CHARACTERS_MAX, Outcome, Problem, Row, shorten
from connector.warehouse.stream import DeletionProof, FoundDetail

TRIES_MAX = 3
"""How often a row is read and written if its write is not answered. A retry does no harm, since a
field is restored, or a record deleted, only if it still is as the push left it.
"""

LAST = "last"
"""Name of the batch that was started last."""

_BY_HAND = "Check the record on the platform, and change it there if necessary."


@dataclass(frozen=True, slots=True)
class UndoReport(Report):
    """Result of an undo or of its preview, with every row of the batch.

    `changes` of a row has the present and the restored value of each field.
    """

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, with all rows."""
        rows = [
            {
                "row": row.number,
                "operation": row.operation,
                "outcome": row.outcome,
                "id": row.record_id,
                "changes": {name: {"now": now, "then": then} for name, now, then in row.changes},
                "problems": [asdict(each) for each in row.problems],
            }
            for row in self.rows
        ]
        return {**super(UndoReport, self).as_json(), "applied": self.is_applied, "rows": rows}


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
    with Database(settings.folder) as database:
        journal = Journal(database)
        pushed = journal.batches() if database.exists else ()
        if not pushed:
            action = "Check CONNECTOR_DATA_DIR."
            raise Misused("nothing was pushed from this data folder", action=action)
        batch = pushed[0].batch if batch == LAST else journal.batch(batch).batch
    async with open_run(
        settings, "undo", budget=budget, ignores_quota=ignores_quota, watch=watch, now=now,
        connect=connect,
    ) as context:  # fmt: skip
        session = Session(context, None)
        rows = await _Undo(session, applies=applies, by=person).run(batch)
        return UndoReport(
            batch,
            rows,
            requests=context.tally.requests,
            error=session.error,
            unpublished=await publish_results(settings) if applies else None,
            seconds=time.monotonic() - started,
            is_applied=applies,
        )


class _Undo:
    """Undo of one batch, within an open session."""

    def __init__(self, session: Session, *, applies: bool, by: str | None) -> None:
        self.session, self.applies, self.by = session, applies, by
        # In a preview: records as they would be after the undo of later rows.
        self.expected: dict[str, FoundDetail] = {}

    async def run(self, batch: str) -> list[Row]:
        """Undo the batch's rows, several records at the same time, or only preview it."""
        journal = self.session.stored
        rows = {row.number: row for row in journal.rows(batch)}
        ended = {number: _without_read(row) for number, row in rows.items()}
        left = [row for number, row in rows.items() if ended[number] is None]
        # The last write first, and later rows may refer to records that earlier ones have created.
        left.sort(key=lambda row: (row.attempts[-1].at, row.number), reverse=True)

        async def undo_row(row: Row) -> None:
            ended[row.number] = await self.undo_row(row)

        queue = Queue(left, {}, lambda row: row.record_id)
        await run_all(self.session, journal.batch(batch), queue, undo_row)
        return [ended[number] or _undone(row, "not_reached") for number, row in rows.items()]

    async def undo_row(self, row: Row) -> Row:
        """Undo one row, and return its outcome.

        Its record is read again even if a later row of the batch wrote it, and after every write
        without an answer.
        """
        id = row.record_id
        assert id is not None
        for _ in range(TRIES_MAX):
            try:
                found = self.expected.get(id) or await self.session.read(row, id)
            except PushStopped:
                if self.session.error is not None:
                    raise
                break
            if isinstance(found, DeletionProof) and row.operation == "create":
                return await self.deleted(row, found, "undone")
            if isinstance(found, DeletionProof):
                problem = Problem("record_gone", "the record was deleted after the push")
                return _undone(row, "conflict", problem)
            if row.operation == "create":
                plan = _plan_deletion(row, found, self.session.stored.undone_updates(id))
            else:
                plan = _plan_restoration(row, found.record.raw)
            if not self.applies:
                raw = {**found.record.raw, **plan.fields}
                record = type(found.record)(raw, served_at=found.record.served_at)
                self.expected[id] = FoundDetail(record, found.served_at)
                return plan
            if plan.outcome in ("undone", "partly") and not plan.fields:
                self.mark(row)
            if plan.outcome != "delete" and not plan.fields:
                return plan
            if (ended := await self.write(row, id, found, plan)) is not None:
                return ended
        message = "the API did not answer, or its answer could not be read"
        return _undone(
            row, "unread", Problem(InDoubt.code, message, fix="Run the same command again.")
        )

    async def write(self, row: Row, id: str, found: FoundDetail, plan: Row) -> Row | None:
        """Delete the record, or restore its fields; None if the write has to be tried again."""
        self.session.check_can_send()
        resource, deletes = declaration(row.resource), plan.outcome == "delete"
        if deletes:
            request = build_request(resource, "delete", id, parent=row.parent)
        else:
            request = build_request(resource, "update", id, plan.fields, parent=row.parent)
        match await self.session.send(row, request):
            case Resource() if deletes:
                return await self.deleted(row, DeletionProof(self.session.times()[1]), "deleted")
            case Resource() as record:
                return await self.restored(row, plan, found, record)
            case Refused() as answer if answer.status != 404:
                problems = declined_problems(resource, answer, plan.fields)
                return _undone(row, "refused", *plan.problems, *problems)
        return None

    def mark(self, row: Row, updated_at: str | None = None) -> None:
        """Mark a row as undone. `updated_at` is the record's own after it; None if not ours."""
        self.session.stored.mark_undone(row.key, updated_at, self.by)

    async def deleted(self, row: Row, gone: DeletionProof, outcome: Outcome) -> Row:
        """End a row whose record is deleted, and mark the record in the local copy."""
        if self.applies:
            await self.session.load(row, gone)
            self.mark(row)
        return _undone(row, outcome)

    async def restored(self, row: Row, plan: Row, found: FoundDetail, record: Resource) -> Row:
        """End a row whose fields were restored, with problems of values that differ."""
        await self.session.load(row, record)
        before, after = found.record.raw, record.raw
        altered = altered_problems(declaration(row.resource), plan.fields, record)
        problems = (*plan.problems, *altered)
        undone = self.session.stored.undone_updates(record.id)
        others = [name for name in after if name not in {*plan.fields, "updated_at"}]
        is_ours = (
            not problems
            and all(after[name] == before.get(name) for name in others)
            and is_unchanged_by_others(row, before, undone)
        )
        shown = after.get("updated_at")
        self.mark(row, shown if is_ours and isinstance(shown, str) else None)
        return replace(plan, outcome="partly" if problems else "restored", problems=problems)


def _undone(row: Row, outcome: Outcome, *problems: Problem) -> Row:
    """Return the outcome of a row for the report."""
    ended = Row(row.number, row.resource, row.operation, record_id=row.record_id)
    ended.outcome, ended.problems = outcome, problems
    return ended


def _without_read(row: Row) -> Row | None:
    """Return the outcome of a row if its record need not be read; None if it has to be read."""
    sent = [each for each in row.attempts if each.fate == "accepted" or each.is_lost]
    is_applied = row.outcome in ("created", "updated", "converted", "not_applied") and sent
    ended: tuple[Outcome, str, str]
    fix = _BY_HAND
    if row.undone_at is not None:
        return _undone(row, "undone")
    if row.is_open:
        ended = "held", "not_settled", "the row is unconfirmed"
        fix = "Resolve it with 'connector resolve' or push the file again. Then undo the batch."
    elif row.is_followed:
        ended = "nothing", "written_elsewhere", "a row of another batch wrote the same values"
        fix = "To undo the values, undo that batch."
    elif row.state == "refused" and any(each.is_lost for each in sent):
        ended = "held", "never_known", "the row was sent, but its result is unknown"
    elif is_applied and row.operation == "convert":
        ended = "irreversible", "irreversible", "a conversion cannot be undone"
    elif is_applied and row.operation == "create" and row.code == "declared":
        message = "the undo does not delete a record that 'connector resolve --record' assigned"
        ended = "conflict", "declared", message
    else:
        return None if is_applied else _undone(row, "nothing")
    outcome, code, message = ended
    found = f"row {row.same[1]} of the batch {row.same[0]}" if row.same else None
    return _undone(row, outcome, Problem(code, message, found=found, fix=fix))


# -- Plan of one row -------------------------------------------------------------------------------


def _sent(row: Row) -> dict[str, Any]:
    """Return the values that the row sent, by field; {} for a conversion."""
    values: dict[str, Any] = {}
    for each in row.attempts:
        if each.fate == "accepted" or each.is_lost:
            values |= json.loads(each.body or "{}")
    return values


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


def _plan_deletion(row: Row, found: FoundDetail, undone: Sequence[tuple[str, str]]) -> Row:
    """Delete the record of a create if it is unchanged; otherwise return the problems.

    `undone` are later updates that were undone: `updated_at` before each, and after its undo.
    """
    resource, values, now = declaration(row.resource), _sent(row), found.record.raw
    # Without the API's time, times of the journal may be those of our own clock.
    slack = EARLIER_SECONDS if found.record.served_at is not None else LATENESS_UNTIMED_SECONDS
    earliest = min(each.sent_after for each in row.attempts) - timedelta(seconds=slack)
    created_at, _ = resource.field("created_at").parse(now.get("created_at"))
    if not isinstance(created_at, datetime) or created_at < earliest:
        message = "the record is older than this push, so the row did not create it"
        return _undone(row, "conflict", Problem("not_ours", message, fix=_BY_HAND))
    others = contradicting_fields(resource, values, now)
    changed = [
        name
        for name in unapplied_fields(resource, values, now)
        if name in others or not _is_as_shown(row, name, now.get(name))
    ]
    if not changed and not is_unchanged_by_others(row, now, undone):
        changed = ["updated_at"]
        values["updated_at"] = row.updated_at or now.get("created_at")
    reason = "so the record is not deleted"
    problems = [_changed(name, values[name], now.get(name), reason) for name in changed]
    return _undone(row, "conflict" if problems else "delete", *problems)


def _plan_restoration(row: Row, now: Mapping[str, Any]) -> Row:
    """Restore each field that still has the row's value, and return problems of the others."""
    changes: dict[str, tuple[Any, Any]] = {}
    problems: list[Problem] = []
    is_any_back, before = False, row.before or {}
    for name, sent in _sent(row).items():
        declared = declaration(row.resource).field(name)
        value, former, present = sent, before.get(name), now.get(name)
        if declared.kind is Kind.OBJECT:  # Other keys of a content item are left as they are.
            keys = values_by_key(row.fields.get(name))
            former = {key: values_by_key(former).get(key) for key in keys}
            value = {key: values_by_key(sent).get(key) for key in keys}
        allowed = declared.update.values
        if declared.write_only or name not in before:
            message = f"the former value of {name} is unknown"
            problems.append(Problem("never_shown", message, field=name, fix=_BY_HAND))
        elif is_same_value(declared, former, present):
            is_any_back = True
        elif not (is_same_value(declared, value, present) or _is_as_shown(row, name, present)):
            problems.append(_changed(name, value, present, "so it is not restored"))
        elif former is not None and allowed is not None and former not in allowed:
            message = f"{name} cannot be restored: an update does not accept its former value"
            shown = {"received": shorten(former), "allowed": ", ".join(allowed), "field": name}
            problems.append(Problem("not_accepted", message, fix=_BY_HAND, **shown))
        elif declared.kind is Kind.OBJECT:
            changes[name] = present, {**values_by_key(present), **values_by_key(former)}
        else:
            changes[name] = present, former
    outcome: Outcome = "restore" if changes else "undone"
    if problems:
        outcome = "partly" if changes or is_any_back else "conflict"
    plan = _undone(row, outcome, *problems)
    plan.base = {name: present for name, (present, _) in changes.items()}
    plan.fields = {name: former for name, (_, former) in changes.items()}
    return plan


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

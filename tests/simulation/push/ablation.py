"""The push with a planted fault: a part is missing, or one of its lines is changed.

Each function plants one fault for as long as the patch lasts. `SHOWN_IN` names the scenario in
which it is found. The patch raises if the push no longer contains the part, so that no fault is
planted in name only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from connector.client import messages
from connector.pushes import row as steps
from connector.pushes.row import Answer, fate_of
from connector.pushes.run import Queue
from connector.state import journal as journals
from connector.state import row as rows
from connector.state.journal import Journal
from connector.state.row import Row
from tests.simulation.push import pusher


def lost_answers_count_as_failures(patch: pytest.MonkeyPatch) -> None:
    """A request without an answer is sent again, as in most tools."""

    def told(answer: Answer) -> rows.Fate:
        fate = fate_of(answer)
        return "unsent" if fate == "lost" else fate

    patch.setattr(steps, "fate_of", told)


def missing_records_are_created_again(patch: pytest.MonkeyPatch) -> None:
    """A row whose record is not found is sent again, as if a person had decided so."""

    async def send_again(work: Any, code: str, ids: Sequence[str] = ()) -> None:
        work.row.state, work.row.problems = "planned", ()
        await work.port.save(work.row)

    patch.setattr(steps._Work, "hold", send_again)


def attempts_are_saved_after_their_answer(patch: pytest.MonkeyPatch) -> None:
    """The attempt is saved only after its answer."""
    whole = pusher.PushProcess.save

    def save(process: pusher.PushProcess, row: Row) -> None:
        if not (row.state == "sent" and row.attempts[-1].fate is None):
            whole(process, row)

    patch.setattr(pusher.PushProcess, "save", save)


def interrupted_rows_start_again(patch: pytest.MonkeyPatch) -> None:
    """After a crash, rows that were under way start again."""
    whole = steps.push_row

    async def start_again(row: Row, *more: Any) -> None:
        for attempt in row.attempts:
            if attempt.fate is None:
                attempt.fate, row.state = "unsent", "planned"
        await whole(row, *more)

    patch.setattr(steps, "push_row", start_again)


def records_of_other_rows_are_accepted(patch: pytest.MonkeyPatch) -> None:
    """A record that was found is not compared with other rows."""
    patch.setattr(Journal, "taken", lambda *_: frozenset())


def other_open_creates_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A record is accepted, although another unconfirmed row may have created it."""
    patch.setattr(Journal, "rivals", lambda *_: [])


def only_the_identity_is_compared(patch: pytest.MonkeyPatch) -> None:
    """A record with the same identity is accepted without comparing the other fields."""
    whole = steps._Work.look

    async def look(work: Any) -> Any:
        every = work.row.fields
        work.row.fields = work.row.identity or every
        try:
            return await whole(work)
        finally:
            work.row.fields = every

    patch.setattr(steps._Work, "look", look)


def writes_of_other_batches_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Writes of other batches are ignored."""
    patch.setattr(Journal, "earlier", lambda *_, **__: {})


def equal_rows_are_all_sent(patch: pytest.MonkeyPatch) -> None:
    """Equal rows of one file are all sent."""
    patch.setattr(Journal, "_end_repeated", lambda *_: None)


def rows_of_one_record_run_in_parallel(patch: pytest.MonkeyPatch) -> None:
    """A row does not wait for other rows or for open writes of an earlier push."""
    patch.setattr(Queue, "blocked_by", lambda *_: None)
    patch.setattr(Queue, "next_row", lambda self: self._rows.popleft() if self._rows else None)
    patch.setattr(Queue, "end_row", lambda *_: None)
    other_open_creates_are_ignored(patch)


def changes_by_others_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """An update is sent without a comparison with the record."""
    whole = steps.differences

    def compare(*given: Any) -> Any:
        body, _ = whole(*given)
        return body, ()

    patch.setattr(steps, "differences", compare)


def every_row_has_another_fingerprint(patch: pytest.MonkeyPatch) -> None:
    """Every row has a different fingerprint, so equal rows are not recognized."""
    whole = rows.fingerprint

    def differ(row: Row) -> str | None:
        found = whole(row)
        return found and f"{found}{row.batch}{row.number}"

    patch.setattr(journals, "fingerprint", differ)
    patch.setattr(rows, "fingerprint", differ)


def the_sent_body_differs(patch: pytest.MonkeyPatch) -> None:
    """The bytes that are sent differ from the bytes in the journal."""
    whole = pusher.PushProcess.send

    def send(process: pusher.PushProcess, row: Row, request: messages.Request) -> Answer:
        body = None if request.body is None else request.body + b" "
        return whole(process, row, replace(request, body=body))

    patch.setattr(pusher.PushProcess, "send", send)


def any_response_is_accepted(patch: pytest.MonkeyPatch) -> None:
    """The record of a response is accepted without a check."""
    assert vars(messages)["create_mismatch"] is not None
    assert vars(messages)["misfit_of_id"] is not None
    patch.setattr(messages, "create_mismatch", lambda *_: None)
    patch.setattr(messages, "misfit_of_id", lambda *_: None)
    known_records_are_accepted(patch)


def known_records_are_accepted(patch: pytest.MonkeyPatch) -> None:
    """A created record may be a known record or the record of another row."""
    patch.setattr(steps._Work, "not_ours", lambda *_: None)


SHOWN_IN: Mapping[str, tuple[str, str]] = {
    "lost_answers_count_as_failures": ("losses", "P5"),
    "missing_records_are_created_again": ("losses", "P5"),
    "attempts_are_saved_after_their_answer": ("crashes", "P1"),
    "interrupted_rows_start_again": ("crashes", "report"),
    "records_of_other_rows_are_accepted": ("siblings", "report"),
    "other_open_creates_are_ignored": ("nameless-files", "report"),
    "only_the_identity_is_compared": ("alike", "report"),
    "writes_of_other_batches_are_ignored": ("other-file", "P2"),
    "equal_rows_are_all_sent": ("crashes", "P6"),
    "every_row_has_another_fingerprint": ("other-file", "P5"),
    "rows_of_one_record_run_in_parallel": ("nameless", "report"),
    "changes_by_others_are_overwritten": ("edited", "conflict"),
    "the_sent_body_differs": ("quiet", "P8"),
    "any_response_is_accepted": ("crossed", "report"),
    "known_records_are_accepted": ("crossed-siblings", "report"),
}
"""The faults planted in the push, each with its scenario and the obligation that it breaks."""

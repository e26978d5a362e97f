"""The push with a planted fault: a part is missing, or one of its lines is changed.

Each function plants one fault for as long as the patch lasts. `SHOWN_IN` names the scenario in
which it is found. The patch raises if the push no longer contains the part, so that no fault is
planted in name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from connector.catalog.field_comparison import unapplied_fields
from connector.catalog.resource import Resource
from connector.client import messages
from connector.errors import ConnectorError
from connector.ledger import journal_writer, push_plan
from connector.ledger.journal_records import Transition
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.push_plan import RowQueue
from connector.ledger.push_states import TRANSITIONS, RowEvent, State
from connector.pushes import create_lookup
from connector.pushes import row_steps as push_create
from connector.pushes import row_steps as push_update
from connector.pushes.push_row import Answer, Lost, PushRow, Unsent, answer_from_error
from connector.pushes.row_steps import plan_update as compare_values
from tests.simulation.push import pusher


def lost_answers_count_as_failures(patch: pytest.MonkeyPatch) -> None:
    """A request without an answer is sent again, as in most tools."""

    def told(error: ConnectorError) -> Answer:
        answer = answer_from_error(error)
        return Unsent(answer.reason) if isinstance(answer, Lost) else answer

    patch.setattr(pusher, "answer_from_error", told)


def missing_records_are_created_again(patch: pytest.MonkeyPatch) -> None:
    """A row whose record is not found is sent again, as if a person had decided so."""
    patch.setitem(cast("dict[RowEvent, State]", TRANSITIONS["settling"]), "unapplied", "planned")
    patch.setattr(push_create, "_transition_if_not_found", lambda *_: Transition("unapplied"))


def attempts_are_saved_after_their_answer(patch: pytest.MonkeyPatch) -> None:
    """The attempt is saved only after its answer."""
    whole = JournalWriter.record_attempt

    def intend(journal: JournalWriter, *arguments: Any, **options: Any) -> Any:
        with journal.writing() as change:
            change.connection.execute("SAVEPOINT ahead")
            attempt = whole(journal, *arguments, **options)
            change.connection.execute("ROLLBACK TO ahead")
            return attempt

    patch.setattr(JournalWriter, "record_attempt", intend)


def interrupted_rows_start_again(patch: pytest.MonkeyPatch) -> None:
    """After a crash, rows that were under way start again."""

    def recover(journal: JournalWriter) -> int:
        with journal.writing() as change:
            rows = change.connection.execute(
                "SELECT batch, number FROM push_rows WHERE state = 'intent'"
            )
            for key in rows.fetchall():
                journal.record_transition(key, Transition("unsent", fate="unsent"))
        return 0

    patch.setattr(JournalWriter, "mark_interrupted_rows", recover)


def records_of_other_rows_are_accepted(patch: pytest.MonkeyPatch) -> None:
    """A record that was found is not compared with other rows."""
    patch.setattr(JournalWriter, "records_of_others", lambda *_: frozenset())


def other_open_creates_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A record is accepted, although another unconfirmed row may have created it."""
    patch.setattr(JournalWriter, "other_open_creates", lambda *_: ())


def only_the_identity_is_compared(patch: pytest.MonkeyPatch) -> None:
    """A record with the same identity is accepted without comparing the other fields."""

    def is_match(sought: create_lookup.SoughtRecord, detail: Mapping[str, Any]) -> bool:
        return not unapplied_fields(sought.resource, sought.identity or sought.body, detail)

    patch.setattr(create_lookup, "_is_match", is_match)


def writes_of_other_batches_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Writes of other batches are ignored."""
    patch.setattr(journal_writer, "_transition_for_duplicate", lambda *_: None)


def equal_rows_are_all_sent(patch: pytest.MonkeyPatch) -> None:
    """Equal rows of one file are all sent."""
    patch.setattr(JournalWriter, "_end_duplicate_rows", lambda *_: None)


def rows_of_one_record_run_in_parallel(patch: pytest.MonkeyPatch) -> None:
    """A row does not wait for other rows or for open writes of an earlier push."""
    whole = RowQueue.__init__

    def init(self: RowQueue[Any], rows: Iterable[Any], *_: Any) -> None:
        whole(self, rows, {}, ())

    class Alone(dict[str, Any]):
        def setdefault(self, key: str, default: Any = None) -> Any:
            self[key] = default
            return default

        def pop(self, key: str, *_: Any) -> Any:
            return super().pop(key, None)

    def init_alone(self: RowQueue[Any], rows: Iterable[Any], *_: Any) -> None:
        init(self, rows)
        self._under_way = Alone()

    patch.setattr(RowQueue, "__init__", init_alone)
    patch.setattr(RowQueue, "end_row", lambda *_, **__: None)
    other_open_creates_are_ignored(patch)


def changes_by_others_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """An update is sent without a comparison with the record."""
    whole = compare_values
    assert vars(push_update)["plan_update"] is whole

    def compare(*arguments: Any, **named: Any) -> Any:
        return whole(*arguments, **{**named, "overwrite": True})

    patch.setattr(push_update, "plan_update", compare)


def every_row_has_another_fingerprint(patch: pytest.MonkeyPatch) -> None:
    """Every row has a different fingerprint, so equal rows are not recognized."""
    whole = push_plan.fingerprint
    count = iter(range(10**9))
    patch.setattr(journal_writer, "fingerprint", lambda task: f"{whole(task)}{next(count)}")


def the_sent_body_differs(patch: pytest.MonkeyPatch) -> None:
    """The bytes that are sent differ from the bytes in the journal."""
    whole = pusher.PushProcess._record_attempt

    def record_attempt(self: Any, progress: Any, wanted: Any) -> Any:
        attempt = whole(self, progress, wanted)
        if progress.request is not None and progress.request.body is not None:
            progress.request = replace(progress.request, body=progress.request.body + b" ")
        return attempt

    patch.setattr(pusher.PushProcess, "_record_attempt", record_attempt)


def any_response_is_accepted(patch: pytest.MonkeyPatch) -> None:
    """The record of a response is accepted without a check."""
    patch.setattr(messages, "misfit_of_id", lambda *_: None)
    patch.setattr(messages, "create_mismatch", lambda *_: None)
    known_records_are_accepted(patch)


def known_records_are_accepted(patch: pytest.MonkeyPatch) -> None:
    """A created record may be a known record or the record of another row."""

    def misfit(row: PushRow, record: Resource) -> Any:
        yield from ()

    patch.setattr(push_create, "_reason_not_ours", misfit)


SHOWN_IN: Mapping[str, tuple[str, str]] = {
    "lost_answers_count_as_failures": ("losses", "P5"),
    "missing_records_are_created_again": ("losses", "P5"),
    "attempts_are_saved_after_their_answer": ("crashes", "P1"),
    "interrupted_rows_start_again": ("crashes", "P5"),
    "records_of_other_rows_are_accepted": ("siblings", "report"),
    "other_open_creates_are_ignored": ("nameless", "report"),
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

"""The push with a planted fault: one of its parts is missing, or one of its lines is changed.

Each function plants one for as long as the patch lasts, and `SHOWN_IN` says where it is seen. Where
the part is no longer there, the patch raises, so that no planted fault is one in name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from connector.catalog.field_comparison import missing_fields
from connector.catalog.resource import Resource
from connector.client import response_parsing
from connector.errors import ConnectorError
from connector.ledger import journal_writer, push_plan
from connector.ledger.journal_records import Transition
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.push_plan import RowQueue
from connector.pushes import create_lookup
from connector.pushes import row_steps as push_create
from connector.pushes import row_steps as push_update
from connector.pushes.push_row import Answer, Lost, PushRow, Unsent, answer_from_error
from connector.pushes.row_steps import plan_update as compare_values
from tests.simulation.ablation import changed
from tests.simulation.push import pusher


def silence_is_taken_for_failure(patch: pytest.MonkeyPatch) -> None:
    """A request without an answer is sent again, as in most tools."""

    def told(error: ConnectorError) -> Answer:
        answer = answer_from_error(error)
        return Unsent(answer.reason) if isinstance(answer, Lost) else answer

    patch.setattr(pusher, "answer_from_error", told)


def absence_is_believed_at_once(patch: pytest.MonkeyPatch) -> None:
    """With `--unconfirmed retry`, a row is sent again without waiting."""
    patch.setattr(PushRow, "settled_at", property(lambda row: row.attempts[0].intended_at))


def nothing_is_written_ahead(patch: pytest.MonkeyPatch) -> None:
    """The attempt is saved only after its answer."""
    whole = JournalWriter.record_attempt

    def intend(journal: JournalWriter, *arguments: Any, **options: Any) -> Any:
        with journal.writing() as change:
            change.connection.execute("SAVEPOINT ahead")
            attempt = whole(journal, *arguments, **options)
            change.connection.execute("ROLLBACK TO ahead")
            return attempt

    patch.setattr(JournalWriter, "record_attempt", intend)


def what_was_cut_off_is_planned_again(patch: pytest.MonkeyPatch) -> None:
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


def an_incomplete_look_is_believed(patch: pytest.MonkeyPatch) -> None:
    """A record counts as absent after a search that did not read the whole list."""
    changed(patch, push_create, "_transition_if_not_found", ("not sighting.is_complete", "False"))


def other_rows_records_are_adopted(patch: pytest.MonkeyPatch) -> None:
    """A record that was found is not compared with other rows."""
    patch.setattr(JournalWriter, "records_of_others", lambda *_: frozenset())


def rivals_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A record is accepted, although another unconfirmed row may have created it."""
    patch.setattr(JournalWriter, "other_open_creates", lambda *_: ())


def likeness_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A record with the same identity is accepted without comparing the other fields."""

    def is_match(sought: create_lookup.SoughtRecord, detail: Mapping[str, Any]) -> bool:
        return not missing_fields(sought.resource, sought.identity or sought.body, detail)

    patch.setattr(create_lookup, "_is_match", is_match)


def files_are_strangers(patch: pytest.MonkeyPatch) -> None:
    """Writes of other batches are ignored."""
    patch.setattr(journal_writer, "_transition_for_duplicate", lambda *_: None)


def rows_are_strangers(patch: pytest.MonkeyPatch) -> None:
    """Equal rows of one file are all sent."""
    patch.setattr(JournalWriter, "_end_duplicate_rows", lambda *_: None)


def rows_about_one_thing_go_at_once(patch: pytest.MonkeyPatch) -> None:
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
    rivals_are_not_asked(patch)


def others_changes_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """An update is sent without a comparison with the record."""
    whole = compare_values
    assert vars(push_update)["plan_update"] is whole

    def compare(*arguments: Any, **named: Any) -> Any:
        return whole(*arguments, **{**named, "overwrite": True})

    patch.setattr(push_update, "plan_update", compare)


def a_refusal_is_final(patch: pytest.MonkeyPatch) -> None:
    """A rejected second attempt is final, although the first may have created the record."""
    whole = push_create.create

    def create(row: PushRow) -> Any:
        was, row.is_in_doubt = row.is_in_doubt, False
        ended = yield from whole(row)
        row.is_in_doubt = row.is_in_doubt or was
        return ended

    from connector.pushes import row_steps  # noqa: PLC0415

    patch.setattr(row_steps, "_CARRIES_OUT", {**row_steps._CARRIES_OUT, "create": create})


def every_row_is_another(patch: pytest.MonkeyPatch) -> None:
    """Every row has a different fingerprint, so equal rows are not recognized."""
    whole = push_plan.fingerprint
    count = iter(range(10**9))
    patch.setattr(journal_writer, "fingerprint", lambda task: f"{whole(task)}{next(count)}")


def the_body_is_written_anew(patch: pytest.MonkeyPatch) -> None:
    """The bytes that are sent differ from the bytes in the journal."""
    whole = pusher.PushProcess._intend

    def intend(self: Any, course: Any, wanted: Any) -> Any:
        attempt = whole(self, course, wanted)
        if course.request is not None and course.request.body is not None:
            course.request = replace(course.request, body=course.request.body + b" ")
        return attempt

    patch.setattr(pusher.PushProcess, "_intend", intend)


def any_answer_fits(patch: pytest.MonkeyPatch) -> None:
    """The record of a response is accepted without a check."""
    patch.setattr(response_parsing, "_describe_mismatch", lambda *_: None)
    known_records_fit(patch)


def known_records_fit(patch: pytest.MonkeyPatch) -> None:
    """A created record may be a known record or the record of another row."""

    def misfit(row: PushRow, record: Resource) -> Any:
        yield from ()

    patch.setattr(push_create, "_reason_not_ours", misfit)


SHOWN_IN: Mapping[str, tuple[str, str]] = {
    "silence_is_taken_for_failure": ("losses", "P5"),
    "absence_is_believed_at_once": ("retry", "P5"),
    "an_incomplete_look_is_believed": ("retry-crowded", "P5"),
    "nothing_is_written_ahead": ("crashes", "P1"),
    "what_was_cut_off_is_planned_again": ("crashes", "P5"),
    "other_rows_records_are_adopted": ("siblings", "report"),
    "rivals_are_not_asked": ("nameless", "report"),
    "likeness_is_enough": ("alike", "report"),
    "files_are_strangers": ("other-file", "P2"),
    "rows_are_strangers": ("crashes", "P6"),
    "every_row_is_another": ("other-file", "P5"),
    "rows_about_one_thing_go_at_once": ("nameless", "report"),
    "others_changes_are_overwritten": ("edited", "conflict"),
    "a_refusal_is_final": ("retry-hidden-unique", "report"),
    "the_body_is_written_anew": ("quiet", "P8"),
    "any_answer_fits": ("crossed", "report"),
    "known_records_fit": ("crossed-siblings", "report"),
}
"""The faults planted in the push, each with its scenario and the obligation that it breaks."""

"""Whatever the API says of a row reaches the row, and its field
where it names one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse

from connector.ledger.push_plan import Problem
from connector.sandbox.exchange import HttpExchange
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import CANDIDATES, Pusher, create, creates, listed, outcomes


@dataclass(frozen=True, slots=True)
class Refuses:
    """The row is refused with that status, and exactly this document."""

    status: int
    document: dict[str, Any]

    async def perform(self, exchange: HttpExchange) -> None:
        """Refuse."""
        await exchange.send(JSONResponse(self.document, self.status))


def told(folder: Path, *faults: Refuses) -> list[list[tuple[str, str | None, str]]]:
    """The problems of rows that were refused so, as code, field and message."""
    with Sandbox() as sandbox:
        for each in faults:
            sandbox.faults.add(each, method="POST", path=CANDIDATES)
        report = Pusher(sandbox, folder, connections=1).push(creates(len(faults)))
        assert ("partial", 3) == (report.outcome, report.exit_status)
        assert {"rejected"} == {*outcomes(report).values()}
        # Refused is refused: no second attempt, and nothing to look for.
        assert 1 + len(faults) == len(sandbox.log)
    return [[(p.code, p.field, p.message) for p in row.problems] for row in report.rows]


def test_messages_reach_their_fields(tmp_path: Path) -> None:
    code = "validation_failed"
    found = told(
        tmp_path,
        Refuses(422, {"message": "Invalid.", "errors": {"email": ["is taken", "is odd"]}}),
        Refuses(422, {"message": "Invalid.", "errors": {"email": "is taken", "phone": ["bad"]}}),
        Refuses(422, {"message": "Invalid.", "errors": {"mail_address": ["is odd"]}}),
        Refuses(422, {"message": "Two of a kind.", "errors": {}}),
        Refuses(422, {"message": "Two of a kind."}),
        Refuses(422, {"message": "Invalid.", "errors": ["the row is odd"]}),
        Refuses(422, {"message": "Invalid.", "errors": {"email": {"code": 7}}}),
        Refuses(400, {"error": "bad_request", "message": "Not like this."}),
        Refuses(404, {}),
    )

    assert [
        [(code, "email", "is taken; is odd")],
        [(code, "email", "is taken"), (code, "phone", "bad")],
        [(code, None, "mail_address: is odd")],
        [(code, None, "Two of a kind.")],
        [(code, None, "Two of a kind.")],
        [(code, None, "the row is odd")],
        [(code, "email", '{"code": 7}')],
        [("invalid_request", None, "Not like this.")],
        [("not_found", None, "the API answered 404")],
    ] == found


def test_the_value_that_was_refused_is_shown(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        report = Pusher(sandbox, tmp_path).push(
            [create(2, email="no email"), create(3, employment_type="freelance")]
        )
        made = sandbox.store.records("candidates")

    first, second = (row.problems for row in report.rows)
    assert {} == made
    assert (
        Problem(
            "validation_failed",
            "must be a valid email address",
            field="email",
            received="no email",
            fix="Correct the value and push the row again.",
        ),
    ) == first
    assert [("employment_type", "freelance")] == [(p.field, p.received) for p in second]


def test_a_corrected_row_is_sent(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        rows = [create(2), create(3, email="no email")]
        first = pusher.push(rows)
        again = pusher.push(rows)
        corrected = pusher.push([create(2), create(3)])

    assert {2: "created", 3: "rejected"} == outcomes(first)
    assert {2: "unchanged", 3: "rejected"} == outcomes(again)
    assert {2: "unchanged", 3: "created"} == outcomes(corrected)


def test_a_status_that_is_refused_leaves_the_record(tmp_path: Path) -> None:
    with Sandbox(behaviours={"update_choices": "declared"}) as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        rows = [create(2, status="withdrawn")]
        first, second = pusher.push(rows), pusher.push(rows)
        made = sandbox.store.records("candidates")

    assert {2: "not_applied"} == outcomes(first) == outcomes(second)
    assert "afterwards_refused" == listed(first)[0].code
    assert [*made] == [listed(first)[0].record_id] == [listed(second)[0].record_id]
    assert ["status"] == [p.field for p in listed(first)[0].problems]
    assert listed(first)[0].problems == listed(second)[0].problems


def test_a_value_that_no_request_can_hold_is_invalid(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        report = Pusher(sandbox, tmp_path).push([create(2, last_name="half \ud83d"), create(3)])
        sent = len(sandbox.log)

    # The look at the newest records, and the create of the other row.
    assert ({2: "invalid", 3: "created"}, 2) == (outcomes(report), sent)
    assert ["unfit"] == [p.code for p in listed(report)[0].problems]

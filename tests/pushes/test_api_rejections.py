"""Rejections by the API reach the row and, if named, its field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse

from connector.sandbox.app import HttpExchange
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import CANDIDATES, Pusher, make_create, make_creates, map_outcomes


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """Fault that rejects a request with this status and JSON document."""

    status: int
    document: dict[str, Any]

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the rejection."""
        await exchange.send(JSONResponse(self.document, self.status))


def push_rejected_rows(
    folder: Path, *faults: ApiRefusal
) -> list[list[tuple[str, str | None, str]]]:
    """Push one row per fault, each of which is rejected. Returns code, field and message of the
    problems of each row.
    """
    with Sandbox() as sandbox:
        for each in faults:
            sandbox.faults.add(each, method="POST", path=CANDIDATES)
        report = Pusher(sandbox, folder, connections=1).push(make_creates(len(faults)))
        assert ("partial", 3) == (report.outcome, report.exit_status)
        assert {"rejected"} == {*map_outcomes(report).values()}
        # A rejected row is not sent again, and its record is not searched.
        assert 1 + len(faults) == len(sandbox.log)
    return [[(p.code, p.field, p.message) for p in row.problems] for row in report.rows]


def test_api_messages_are_assigned_to_their_fields(tmp_path: Path) -> None:
    code = "validation_failed"
    found = push_rejected_rows(
        tmp_path,
        ApiRefusal(422, {"message": "Invalid.", "errors": {"email": ["is taken", "is odd"]}}),
        ApiRefusal(422, {"message": "Invalid.", "errors": {"email": "is taken", "phone": ["bad"]}}),
        ApiRefusal(422, {"message": "Invalid.", "errors": {"mail_address": ["is odd"]}}),
        ApiRefusal(422, {"message": "Two of a kind.", "errors": {}}),
        ApiRefusal(422, {"message": "Two of a kind."}),
        ApiRefusal(422, {"message": "Invalid.", "errors": ["the row is odd"]}),
        ApiRefusal(422, {"message": "Invalid.", "errors": {"email": {"code": 7}}}),
        ApiRefusal(400, {"error": "bad_request", "message": "Not like this."}),
        ApiRefusal(404, {}),
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


def test_a_rejected_status_keeps_the_created_record_as_not_applied(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        rows = [make_create(2, status="withdrawn")]
        first, second = pusher.push(rows), pusher.push(rows)
        made = sandbox.store.records("candidates")

    assert {2: "not_applied"} == map_outcomes(first) == map_outcomes(second)
    assert "afterwards_refused" == first.rows[0].code
    assert [*made] == [first.rows[0].record_id] == [second.rows[0].record_id]
    assert ["status"] == [p.field for p in first.rows[0].problems]
    assert first.rows[0].problems == second.rows[0].problems


def test_a_value_that_cannot_be_encoded_makes_its_row_invalid(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        report = Pusher(sandbox, tmp_path).push(
            [make_create(2, last_name="half \ud83d"), make_create(3)]
        )
        sent = len(sandbox.log)

    # The search of the newest records, and the create of the other row.
    assert ({2: "invalid", 3: "created"}, 2) == (map_outcomes(report), sent)
    assert ["unfit"] == [p.code for p in report.rows[0].problems]

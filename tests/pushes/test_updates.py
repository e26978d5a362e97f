"""Updates send only differences and keep other users' changes; conversions are sent once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from connector.sandbox.app import HttpExchange
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.state.row import Row
from tests.pushes.pushing import (
    Pusher,
    create_lead,
    list_rows,
    list_writes,
    make_conversion,
    make_create,
    make_update,
    map_codes,
    map_outcomes,
)


def list_request_bodies(pusher: Pusher, batch: str) -> list[dict[str, Any]]:
    """Return the JSON body of each attempt of the batch, in order."""
    with pusher.journal() as journal:
        attempts = [each for row in journal.rows(batch) for each in row.attempts]
    return [json.loads(each.body or "{}") for each in attempts]


def read_candidates(sandbox: Sandbox, count: int) -> dict[str, dict[str, Any]]:
    """Return the first `count` candidates of the server by id, as a pull loads them."""
    return dict(sorted(sandbox.store.records("candidates").items())[:count])


def test_an_update_of_a_deleted_record_is_rejected(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        ((id, base),) = read_candidates(sandbox, 1).items()
        sandbox.store.delete("candidates", id)
        report = Pusher(sandbox, tmp_path).push([make_update(2, id, base, phone="1")])
        sent = list_writes(sandbox)

    assert ({2: "rejected"}, {2: "record_gone"}, []) == (
        map_outcomes(report),
        map_codes(report),
        sent,
    )


@dataclass(frozen=True, slots=True)
class AlteredField:
    """Fault that serves a request after it replaced one field of the body."""

    name: str
    value: Any

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve the request with the altered body."""
        document = json.loads(exchange.body)
        exchange.body = json.dumps({**document, self.name: self.value}).encode()
        await exchange.send(await exchange.call_application())


def test_fields_that_the_api_saved_differently_are_reported(tmp_path: Path) -> None:
    with Sandbox(
        counts={"candidates": 1},
        behaviours={"timestamp_precision": "seconds", "whitespace": "trimmed"},
    ) as sandbox:
        ((id, base),) = read_candidates(sandbox, 1).items()
        sandbox.faults.add(AlteredField("phone", None), method="POST")
        sandbox.faults.add(AlteredField("city", "LEEDS"), method="PUT")
        pusher = Pusher(sandbox, tmp_path, connections=1)
        rows = [
            make_create(2),
            make_update(3, id, base, city="Leeds", expected_salary=50000),
            make_create(
                4, last_name=" Lee ", expected_salary=1, available_from="2026-03-01", city=""
            ),
        ]
        report = pusher.push(rows)

    assert {2: "not_applied", 3: "not_applied", 4: "created"} == map_outcomes(report)
    results = [[(p.field, p.received, p.found) for p in row.problems] for row in report.rows]
    assert [[("phone", "+44 20 0002", "")], [("city", "Leeds", "LEEDS")], []] == results
    assert all(row.record_id for row in report.rows)


def test_an_update_of_content_keeps_its_other_values(tmp_path: Path) -> None:
    with Sandbox(
        counts={"content_types": 1, "content_items": 1}, behaviours={"content_update": "replaced"}
    ) as sandbox:
        ((type_id, _),) = sandbox.store.records("content_types").items()
        ((id, base),) = sandbox.store.records("content_items").items()
        key = next(name for name, value in base["fields"].items() if isinstance(value, str))
        task = Row(
            2,
            "content_items",
            "update",
            type_id,
            {"fields": {key: "2026-01-02" if "date" in key else "changed"}},
            record_id=id,
            base={"fields": base["fields"]},
        )
        report = Pusher(sandbox, tmp_path).push([task])
        now = sandbox.store.records("content_items")[id]

    if list_rows(report)[0].outcome == "updated":
        assert {**base["fields"], **task.fields["fields"]} == now["fields"]
    else:
        # The generated content type may require another value: nothing is lost either.
        assert ("rejected", base["fields"]) == (list_rows(report)[0].outcome, now["fields"])


def test_a_conversion_without_a_response_is_checked_and_not_repeated(tmp_path: Path) -> None:
    results = []
    for kept in ("active", "deleted", "kept"):
        with Sandbox(behaviours={"converted_lead": kept}) as sandbox:
            id = create_lead(sandbox, "ada")
            pusher = Pusher(sandbox, tmp_path / kept)
            sandbox.faults.add(Drop("applied"), method="POST", path="*/convert")
            report = pusher.push([make_conversion(2, id)])
            results.append(
                (
                    kept,
                    list_rows(report)[0].outcome,
                    list_rows(report)[0].code,
                    len(list_writes(sandbox)),
                )
            )
            if kept == "kept":
                again = pusher.push([make_conversion(2, id)])
                assert ("held", 1) == (list_rows(again)[0].outcome, len(list_writes(sandbox)))
                resent = pusher.resolve(report.batch, 2, "resend")
                results.append(
                    (
                        "resent",
                        list_rows(resent)[0].outcome,
                        list_rows(resent)[0].code,
                        len(list_writes(sandbox)),
                    )
                )

    assert [
        ("active", "converted", "found_after_doubt", 1),
        ("deleted", "converted", "found_after_doubt", 1),
        ("kept", "held", "not_converted", 1),
        ("resent", "converted", "found_after_doubt", 2),
    ] == results


def test_updates_of_the_same_record_are_sent_in_order(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        ((id, base),) = read_candidates(sandbox, 1).items()
        rows = [make_update(n, id, base, phone=f"+44 {n}") for n in range(2, 6)]
        chained = [
            replace(task, base={"phone": before.fields["phone"]}) for before, task in pairwise(rows)
        ]
        pusher = Pusher(sandbox, tmp_path, connections=4)
        report = pusher.push([rows[0], *chained])
        sent = [each["phone"] for each in list_request_bodies(pusher, report.batch)]

    assert {"updated": 4} == dict(report.counts)
    assert [f"+44 {n}" for n in range(2, 6)] == sent

"""Updates send what differs and nothing more, and lose nobody else's change; conversions are sent
once; what the API did not take as it was sent is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from connector.ledger.push_plan import PushPolicy
from connector.ledger.push_states import Task
from connector.sandbox.exchange import HttpExchange
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    codes,
    convert,
    create,
    lead,
    listed,
    outcomes,
    update,
    writes,
)


def bodies(pusher: Pusher, batch: str) -> list[dict[str, Any]]:
    """What was sent, attempt by attempt."""
    with pusher.journal() as journal:
        return [json.loads(each.body or b"{}") for each in journal.attempts(batch)]


def landed(sandbox: Sandbox, count: int) -> dict[str, dict[str, Any]]:
    """The first records by id, as a pull has just landed them."""
    return dict(sorted(sandbox.store.records("candidates").items())[:count])


def test_an_update_sends_the_fields_that_differ(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 12}) as sandbox:
        records = landed(sandbox, 12)
        rows = [
            update(n, id, base, phone=f"+44 {n}", last_name=base["last_name"])
            for n, (id, base) in enumerate(records.items(), 2)
        ]
        for task in rows[3:]:
            # Somebody has written the very value since.
            sandbox.store.update(
                "candidates", task.record_id or "", {"phone": task.fields["phone"]}
            )
        pusher = Pusher(sandbox, tmp_path)
        report = pusher.push(rows)
        sent = bodies(pusher, report.batch)

    assert {"updated": 3, "unchanged": 9} == dict(report.counts)
    assert (0, 12 + 3) == (report.exit_status, report.requests)
    assert [{"phone": f"+44 {n}"} for n in (2, 3, 4)] == sent
    assert {"up_to_date"} == {row.code for row in report.rows if row.outcome == "unchanged"}


def test_a_field_that_others_changed_is_a_conflict(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 2}) as sandbox:
        (one, first), (two, second) = landed(sandbox, 2).items()
        rows = [update(2, one, first, phone="+44 1"), update(3, two, second, phone="+44 1")]
        sandbox.store.update("candidates", one, {"phone": "+49 7"})
        sandbox.store.update("candidates", two, {"city": "York"})
        pusher = Pusher(sandbox, tmp_path)
        refused = pusher.push(rows)
        sent = len(writes(sandbox))
        forced = pusher.push(rows, PushPolicy(overwrite=True))
        now = sandbox.store.records("candidates")

    assert {2: "conflict", 3: "updated"} == outcomes(refused)
    (problem,) = listed(refused)[0].problems
    assert ("changed_elsewhere", "phone", "+44 1", "+49 7") == (
        problem.code,
        problem.field,
        problem.received,
        problem.found,
    )
    assert 1 == sent
    assert {2: "updated", 3: "unchanged"} == outcomes(forced)
    assert ("+44 1", "+44 1", "York") == (now[one]["phone"], now[two]["phone"], now[two]["city"])


def test_the_record_before_an_update_is_kept(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        ((id, base),) = landed(sandbox, 1).items()
        pusher = Pusher(sandbox, tmp_path)
        report = pusher.push([update(2, id, base, phone="+44 1")])
        with pusher.journal() as journal:
            (image,) = journal.before_images(report.batch)
        now = sandbox.store.records("candidates")[id]

    assert ("first", base) == (image.step, image.record)
    assert now["updated_at"] == listed(report)[0].updated_at


def test_a_lost_update_is_settled_by_comparing(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 3}) as sandbox:
        records = landed(sandbox, 3)
        rows = [
            update(n, id, base, phone="+44 1") for n, (id, base) in enumerate(records.items(), 2)
        ]
        ids = list(records)

        def between(_: Any) -> None:
            if writes(sandbox)[-1:] == [f"PUT {CANDIDATES}/{ids[2]}"]:
                sandbox.store.update("candidates", ids[2], {"phone": "+49 7"})

        for id, drop in zip(ids, (Drop("applied"), Drop("none"), Drop("none")), strict=True):
            sandbox.faults.add(drop, method="PUT", path=f"{CANDIDATES}/{id}")
        sandbox.between = between
        report = Pusher(sandbox, tmp_path, connections=1).push(rows)
        now = {id: each["phone"] for id, each in sandbox.store.records("candidates").items()}

    assert {2: "updated", 3: "updated", 4: "conflict"} == outcomes(report)
    assert {2: "found_after_doubt", 3: "", 4: "changed_elsewhere"} == codes(report)
    assert ["+44 1", "+44 1", "+49 7"] == [now[id] for id in ids]


def test_a_record_that_is_gone_rejects_its_row(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        ((id, base),) = landed(sandbox, 1).items()
        sandbox.store.delete("candidates", id)
        report = Pusher(sandbox, tmp_path).push([update(2, id, base, phone="1")])
        sent = writes(sandbox)

    assert ({2: "rejected"}, {2: "record_gone"}, []) == (outcomes(report), codes(report), sent)


@dataclass(frozen=True, slots=True)
class Alters:
    """The server takes the row, and makes another value of one field."""

    name: str
    value: Any

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve another body."""
        document = json.loads(exchange.body)
        exchange.body = json.dumps({**document, self.name: self.value}).encode()
        await exchange.send(await exchange.serve())


def test_what_was_accepted_and_not_applied_is_told(tmp_path: Path) -> None:
    with Sandbox(
        counts={"candidates": 1},
        behaviours={"timestamp_precision": "seconds", "whitespace": "trimmed"},
    ) as sandbox:
        ((id, base),) = landed(sandbox, 1).items()
        sandbox.faults.add(Alters("phone", None), method="POST")
        sandbox.faults.add(Alters("city", "LEEDS"), method="PUT")
        pusher = Pusher(sandbox, tmp_path, connections=1)
        rows = [
            create(2),
            update(3, id, base, city="Leeds", expected_salary=50000),
            create(4, last_name=" Lee ", expected_salary=1, available_from="2026-03-01", city=""),
        ]
        report = pusher.push(rows)

    assert {2: "not_applied", 3: "not_applied", 4: "created"} == outcomes(report)
    told = [[(p.field, p.received, p.found) for p in row.problems] for row in report.rows]
    assert [[("phone", "+44 20 0002", "")], [("city", "Leeds", "LEEDS")], []] == told
    assert all(row.record_id for row in report.rows)


def test_content_is_merged_and_never_wiped(tmp_path: Path) -> None:
    with Sandbox(
        counts={"content_types": 1, "content_items": 1}, behaviours={"content_update": "replaced"}
    ) as sandbox:
        ((type_id, _),) = sandbox.store.records("content_types").items()
        ((id, base),) = sandbox.store.records("content_items").items()
        key = next(name for name, value in base["fields"].items() if isinstance(value, str))
        task = Task(
            2,
            "update",
            "content_items",
            {"fields": {key: "2026-01-02" if "date" in key else "changed"}},
            parent=type_id,
            record_id=id,
            base={"fields": base["fields"]},
        )
        report = Pusher(sandbox, tmp_path).push([task])
        now = sandbox.store.records("content_items")[id]

    if listed(report)[0].outcome == "updated":
        assert {**base["fields"], **task.fields["fields"]} == now["fields"]
    else:
        # The made-up type may want another kind of value: then nothing is lost either.
        assert ("rejected", base["fields"]) == (listed(report)[0].outcome, now["fields"])


def test_a_conversion_in_doubt_is_read_and_not_repeated(tmp_path: Path) -> None:
    told = []
    for kept in ("active", "deleted", "kept"):
        with Sandbox(behaviours={"converted_lead": kept}) as sandbox:
            id = lead(sandbox, "ada")
            pusher = Pusher(sandbox, tmp_path / kept)
            sandbox.faults.add(Drop("applied"), method="POST", path="*/convert")
            report = pusher.push([convert(2, id)])
            told.append(
                (kept, listed(report)[0].outcome, listed(report)[0].code, len(writes(sandbox)))
            )
            if kept == "kept":
                again = pusher.push([convert(2, id)])
                assert ("held", 1) == (listed(again)[0].outcome, len(writes(sandbox)))
                resent = pusher.resolve(report.batch, 2, "resend")
                told.append(
                    (
                        "resent",
                        listed(resent)[0].outcome,
                        listed(resent)[0].code,
                        len(writes(sandbox)),
                    )
                )

    assert [
        ("active", "converted", "found_after_doubt", 1),
        ("deleted", "converted", "found_after_doubt", 1),
        ("kept", "held", "not_converted", 1),
        ("resent", "converted", "found_after_doubt", 2),
    ] == told


def test_rows_about_one_record_follow_each_other(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 1}) as sandbox:
        ((id, base),) = landed(sandbox, 1).items()
        rows = [update(n, id, base, phone=f"+44 {n}") for n in range(2, 6)]
        chained = [
            replace(task, base={"phone": before.fields["phone"]}) for before, task in pairwise(rows)
        ]
        pusher = Pusher(sandbox, tmp_path, connections=4)
        report = pusher.push([rows[0], *chained])
        sent = [each["phone"] for each in bodies(pusher, report.batch)]

    assert {"updated": 4} == dict(report.counts)
    assert [f"+44 {n}" for n in range(2, 6)] == sent

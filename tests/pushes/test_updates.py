"""Updates of content keep its other values; conversions are sent once."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.state.row import Row
from tests.pushes.pushing import Pusher, create_lead, list_writes, make_conversion


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

    if report.rows[0].outcome == "updated":
        assert {**base["fields"], **task.fields["fields"]} == now["fields"]
    else:
        # The generated content type may require another value: nothing is lost either.
        assert ("rejected", base["fields"]) == (report.rows[0].outcome, now["fields"])


def test_a_conversion_without_a_response_is_checked_and_not_repeated(tmp_path: Path) -> None:
    results = []
    for kept in ("active", "deleted", "kept"):
        with Sandbox(behaviours={"converted_lead": kept}) as sandbox:
            id = create_lead(sandbox, "ada")
            pusher = Pusher(sandbox, tmp_path / kept)
            sandbox.faults.add(Drop("applied"), method="POST", path="*/convert")
            report = pusher.push([make_conversion(2, id)])
            results.append(
                (kept, report.rows[0].outcome, report.rows[0].code, len(list_writes(sandbox)))
            )
            if kept == "kept":
                again = pusher.push([make_conversion(2, id)])
                assert ("held", 1) == (again.rows[0].outcome, len(list_writes(sandbox)))
                resent = pusher.resolve(report.batch, 2, "resend")
                results.append(
                    (
                        "resent",
                        resent.rows[0].outcome,
                        resent.rows[0].code,
                        len(list_writes(sandbox)),
                    )
                )

    assert [
        ("active", "converted", "found_after_doubt", 1),
        ("deleted", "converted", "found_after_doubt", 1),
        ("kept", "held", "not_converted", 1),
        ("resent", "converted", "found_after_doubt", 2),
    ] == results

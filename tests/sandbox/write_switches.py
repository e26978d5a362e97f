"""Checks of the sandbox's behaviours of writes and conversions.

Each check opens sandboxes in which the behaviour of its name has this setting, and asserts the
effect of that setting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sandbox.world import Open, ServedSandbox

Check = Callable[[Open, str], None]


def create_record(world: ServedSandbox, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create a record and return its detail."""
    answer = world.call("POST", path, json=body)
    assert 201 == answer.status_code, answer.text
    record: dict[str, Any] = world.get(f"{path}/{answer.json()['data']['id']}").json()["data"]
    return record


def request_error_fields(
    world: ServedSandbox, method: str, path: str, body: dict[str, Any]
) -> list[str]:
    """Return the fields named by a 422, or an empty list if the request succeeds."""
    answer = world.call(method, path, json=body)
    if answer.status_code in (200, 201):
        return []
    assert 422 == answer.status_code
    return list(answer.json()["errors"])


def check_empty_strings(open_world: Open, setting: str) -> None:
    """Check if an empty string is kept in an optional field; a required field rejects it."""
    world = open_world()
    record = create_record(world, "/jobs", {**world.minimal_body("jobs"), "department": ""})
    assert {"kept": "", "null": None}[setting] == record["department"]
    assert ["title"] == request_error_fields(
        world, "POST", "/jobs", {**world.minimal_body("jobs"), "title": ""}
    )


def check_whitespace(open_world: Open, setting: str) -> None:
    """Check if white space around a title is kept, and if a blank title is rejected."""
    world = open_world()
    record = create_record(world, "/jobs", {**world.minimal_body("jobs"), "title": " A\n"})
    assert {"kept": " A\n", "trimmed": "A"}[setting] == record["title"]
    blank = request_error_fields(
        world, "POST", "/jobs", {**world.minimal_body("jobs"), "title": "  "}
    )
    assert {"kept": [], "trimmed": ["title"]}[setting] == blank


def check_counters(open_world: Open, setting: str) -> None:
    """Check if creating, moving and deleting a job changes the `updated_at` of its company."""
    world = open_world()
    first, second = (
        create_record(world, "/companies", world.minimal_body("companies")) for _ in range(2)
    )

    def dates() -> tuple[str, ...]:
        records = world.store.records("companies")
        return tuple(records[each["id"]]["updated_at"] for each in (first, second))

    before = dates()
    job = create_record(world, "/jobs", {**world.minimal_body("jobs"), "company_id": first["id"]})
    made = dates()
    assert (setting == "moving", False) == tuple(a != b for a, b in zip(before, made, strict=True))
    world.call("PUT", f"/jobs/{job['id']}", json={"company_id": second["id"]})
    moved = dates()
    assert (setting == "moving",) * 2 == tuple(a != b for a, b in zip(made, moved, strict=True))
    world.call("DELETE", f"/jobs/{job['id']}")
    assert (setting == "moving") == (moved[1] != dates()[1])


def check_duplicate_emails(open_world: Open, setting: str) -> None:
    """Check if a second record with the same email is rejected, on create and on update.

    A record can be updated without changing its own email.
    """
    world = open_world()
    body = world.minimal_body("candidates")
    first = create_record(world, "/candidates", body)
    expected = ["email"] if setting == "refused" else []
    again = {**body, "email": body["email"].upper()}
    assert expected == request_error_fields(world, "POST", "/candidates", again)
    other = create_record(world, "/candidates", {**body, "email": "other@example.com"})
    path = f"/candidates/{other['id']}"
    assert expected == request_error_fields(world, "PUT", path, {"email": body["email"]})
    assert [] == request_error_fields(
        world, "PUT", f"/candidates/{first['id']}", {"first_name": "Z"}
    )
    assert [] == request_error_fields(
        world, "POST", "/leads", {**world.minimal_body("leads"), "email": body["email"]}
    )


def check_content_update(open_world: Open, setting: str) -> None:
    """Check if an update of one content value keeps or removes the others."""
    world = open_world(counts={"content_types": 1})
    path = world.list_path("content_items")
    fields = {"text_value": "a", "number_value": 1}
    id = create_record(world, path, {"title": "T", "fields": fields})["id"]
    sent = {"text_value": "b"}
    world.call("PUT", f"{path}/{id}", json={"fields": sent})
    shown = world.get(f"{path}/{id}").json()["data"]["fields"]
    assert {"merged": {**fields, **sent}, "replaced": sent}[setting] == shown
    without = request_error_fields(world, "PUT", f"{path}/{id}", {"fields": {"number_value": 2}})
    assert {"merged": [], "replaced": ["fields.text_value"]}[setting] == without


def check_delete(open_world: Open, setting: str) -> None:
    """Check status and body of the response to a delete."""
    world = open_world()
    id = create_record(world, "/jobs", world.minimal_body("jobs"))["id"]
    answer = world.call("DELETE", f"/jobs/{id}")
    if setting == "204":
        assert (204, b"") == (answer.status_code, answer.content)
        assert "content-length" not in answer.headers
    else:
        assert (200, ["message"]) == (answer.status_code, list(answer.json()))
    assert {} == world.store.records("jobs")
    assert 404 == world.call("DELETE", f"/jobs/{id}").status_code


def create_lead(world: ServedSandbox, **values: Any) -> dict[str, Any]:
    """Create a lead with these values, and return its detail."""
    return create_record(world, "/leads", {**world.minimal_body("leads"), **values})


def check_converted_lead(open_world: Open, setting: str) -> None:
    """Check the lead after its conversion: deleted, active or unchanged."""
    world = open_world()
    lead = create_lead(world)
    answer = world.call("POST", f"/leads/{lead['id']}/convert").json()["data"]
    assert "active" == answer["status"]
    after = world.get(f"/leads/{lead['id']}")
    if setting == "deleted":
        assert 404 == after.status_code
        assert {} == world.store.records("leads")
        return
    shown = after.json()["data"]
    assert {"kept": "lead", "active": "active"}[setting] == shown["status"]
    converted_at = answer["converted_at"] if setting == "active" else None
    assert converted_at == shown.get("converted_at")
    assert answer["converted_at"] == shown["updated_at"]


def check_convert_fields(open_world: Open, setting: str) -> None:
    """Check the fields in the response to a conversion."""
    world = open_world()
    lead = create_lead(world)
    shown = set(world.call("POST", f"/leads/{lead['id']}/convert").json()["data"])
    expected = {"id", "status", "converted_at"}
    assert (expected if setting == "minimal" else expected | set(lead)) == shown


CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): each
    for name, each in globals().items()
    if name.startswith("check_")
}

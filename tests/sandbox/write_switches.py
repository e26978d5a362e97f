"""Checks of the sandbox's behaviours of writes and conversions.

Each check opens sandboxes in which the behaviour of its name has this setting, and asserts the
effect of that setting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sandbox.world import ABSENT_ID, Open, ServedSandbox

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


def check_unknown_fields(open_world: Open, setting: str) -> None:
    """Check if undocumented fields in a body and in content values are rejected."""
    world = open_world(counts={"content_types": 1})
    body = {**world.minimal_body("candidates"), "status": "placed", "nonsense": 1, "id": ABSENT_ID}
    expected = ["status", "nonsense", "id"] if setting == "refused" else []
    assert expected == request_error_fields(world, "POST", "/candidates", body)
    if setting == "ignored":
        record = next(iter(world.store.records("candidates").values()))
        assert record["id"] != ABSENT_ID
        assert "new_lead" == record["status"]
        assert "nonsense" not in record
    item = {"title": "T", "fields": {"text_value": "Hello", "nonsense": 1}}
    expected = ["fields.nonsense"] if setting == "refused" else []
    assert expected == request_error_fields(world, "POST", world.list_path("content_items"), item)


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


def check_duplicate_slugs(open_world: Open, setting: str) -> None:
    """Check if a second item with the same slug is rejected; another content type accepts it."""
    world = open_world(counts={"content_types": 2})
    first, second = world.store.records("content_types")
    body = {**world.minimal_body("content_items"), "slug": "same"}
    create_record(world, f"/content/{first}", body)
    expected = ["slug"] if setting == "refused" else []
    assert expected == request_error_fields(world, "POST", f"/content/{first}", body)
    assert [] == request_error_fields(world, "POST", f"/content/{second}", body)


def check_references(open_world: Open, setting: str) -> None:
    """Check if the id of a company that does not exist is rejected."""
    world = open_world()
    body = {**world.minimal_body("jobs"), "company_id": ABSENT_ID}
    assert {"checked": ["company_id"], "unchecked": []}[setting] == request_error_fields(
        world, "POST", "/jobs", body
    )


def check_formats(open_world: Open, setting: str) -> None:
    """Check if malformed URLs, currencies and UUIDs are rejected; malformed emails always are."""
    world = open_world()
    wrong = {"network_url": "me", "salary_currency": "gold", "assigned_to": "Zoë", "email": "me"}
    expected = set(wrong) if setting == "enforced" else {"email"}
    body = {**world.minimal_body("candidates"), **wrong}
    assert expected == set(request_error_fields(world, "POST", "/candidates", body))


def check_text_length(open_world: Open, setting: str) -> None:
    """Check if a title of 256 characters is rejected; 255 and a long note are accepted."""
    world = open_world()
    body = world.minimal_body("jobs")
    assert [] == request_error_fields(world, "POST", "/jobs", {**body, "title": "é" * 255})
    assert [] == request_error_fields(
        world, "POST", "/jobs", {**body, "requirements": "é" * 70_000}
    )
    expected = {"unlimited": [], "255": ["title"]}[setting]
    assert expected == request_error_fields(world, "POST", "/jobs", {**body, "title": "é" * 256})


def check_update_choices(open_world: Open, setting: str) -> None:
    """Check if an update accepts values that are documented only for responses or for creates."""
    world = open_world()
    job = create_record(world, "/jobs", world.minimal_body("jobs"))["id"]
    person = create_record(world, "/candidates", world.minimal_body("candidates"))["id"]

    def accepts(path: str, name: str, choice: str) -> bool:
        return [] == request_error_fields(world, "PUT", path, {name: choice})

    assert accepts(f"/jobs/{job}", "employment_type", "interim")
    assert (setting != "create") == accepts(f"/jobs/{job}", "employment_type", "freelance")
    # A status may be updated to values that a create does not accept (API 3).
    assert accepts(f"/jobs/{job}", "status", "filled")
    assert accepts(f"/candidates/{person}", "status", "placed")
    assert (setting == "responses") == accepts(f"/candidates/{person}", "status", "withdrawn")


def check_transitions(open_world: Open, setting: str) -> None:
    """Check if a job can leave a final status."""
    world = open_world()
    path = f"/jobs/{create_record(world, '/jobs', world.minimal_body('jobs'))['id']}"
    assert [] == request_error_fields(world, "PUT", path, {"status": "on_hold"})
    assert [] == request_error_fields(world, "PUT", path, {"status": "filled"})
    expected = ["status"] if setting == "restricted" else []
    assert expected == request_error_fields(world, "PUT", path, {"status": "published"})
    final = {"status": "filled"} if setting == "restricted" else {}
    assert [] == request_error_fields(world, "PUT", path, {"title": "Filled", **final})


def check_reason_alone(open_world: Open, setting: str) -> None:
    """Check if a cancellation reason is rejected for a booking that is not cancelled."""
    world = open_world()
    id = create_record(world, "/bookings", world.minimal_body("bookings"))["id"]
    expected = ["cancellation_reason"] if setting == "refused" else []
    reason = {"cancellation_reason": "Ill"}
    assert expected == request_error_fields(world, "PUT", f"/bookings/{id}", reason)
    both = {**reason, "status": "confirmed"}
    assert expected == request_error_fields(world, "PUT", f"/bookings/{id}", both)
    assert [] == request_error_fields(
        world, "PUT", f"/bookings/{id}", {**reason, "status": "cancelled"}
    )


def update_and_compare_dates(world: ServedSandbox, body: dict[str, Any]) -> bool:
    """Create a job and update it with the body. Return True if `updated_at` changed."""
    record = create_record(world, "/jobs", world.minimal_body("jobs"))
    answer = world.call("PUT", f"/jobs/{record['id']}", json=body)
    changed: str = answer.json()["data"]["updated_at"]
    return changed != str(record["updated_at"])


def check_empty_update(open_world: Open, setting: str) -> None:
    """Check if a PUT with `{}` changes `updated_at`."""
    world = open_world()
    assert (setting == "moves") == update_and_compare_dates(world, {})
    assert update_and_compare_dates(world, {"title": "Another"})


def check_unchanged_update(open_world: Open, setting: str) -> None:
    """Check if a PUT with the record's present values changes `updated_at`."""
    world = open_world()
    assert (setting == "moves") == update_and_compare_dates(
        world, {**world.minimal_body("jobs"), "department": None}
    )
    assert update_and_compare_dates(world, {"title": "Another"})


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


def check_convertible(open_world: Open, setting: str) -> None:
    """Check if a lead in status "lead" can be converted; one in status "prospect" always can."""
    world = open_world()
    lead, prospect = create_lead(world, status="lead"), create_lead(world, status="prospect")
    expected = ["status"] if setting == "prospect" else []
    assert expected == request_error_fields(world, "POST", f"/leads/{lead['id']}/convert", {})
    assert [] == request_error_fields(world, "POST", f"/leads/{prospect['id']}/convert", {})


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


def check_second_convert(open_world: Open, setting: str) -> None:
    """Check if a second conversion is rejected or returns the same response."""
    world = open_world()
    path = f"/leads/{create_lead(world)['id']}/convert"
    first = world.call("POST", path)
    second = world.call("POST", path)
    if setting == "refused":
        assert (422, ["status"]) == (second.status_code, list(second.json()["errors"]))
    else:
        assert (200, first.json()) == (second.status_code, second.json())


def check_convert_status(open_world: Open, setting: str) -> None:
    """Check the HTTP status of the response to a conversion."""
    world = open_world()
    answer = world.call("POST", f"/leads/{create_lead(world)['id']}/convert")
    assert int(setting) == answer.status_code


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

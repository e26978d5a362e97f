"""Request bodies that the API rejects, and the error messages (API 2, 7.1)."""

from __future__ import annotations

from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from tests.sandbox.world import ABSENT_ID, CREATABLE, FEW, Open, ServedSandbox

OPERATIONS = ["create", pytest.param("update", marks=pytest.mark.slow)]
WRONG: dict[Kind, list[Any]] = {
    Kind.STRING: [5, True, ["a"], {"a": 1}],
    Kind.UUID: [5, "not a uuid", []],
    Kind.NUMBER: ["12", True, [1], 10**400, 2**63, -(2**63) - 1, 1e19],
    Kind.INTEGER: ["12", 1.5, True, 2**63, -(2**63) - 1],
    Kind.BOOL: ["true", 1, 0],
    Kind.DATE: ["2026-02-30", "28/02/2026", 20260228, "2026-02-28T00:00:00Z", ""],
    Kind.DATETIME: ["soon", 1, "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00", ""],
    Kind.OBJECT: ["text", [1], 5],
}


def request_errors(world: ServedSandbox, method: str, path: str, body: Any) -> dict[str, list[str]]:
    """Return the messages of a 422, after asserting its documented form."""
    answer = world.call(method, path, json=body)
    assert 422 == answer.status_code, answer.text
    assert ["error", "message", "errors"] == list(answer.json())
    assert "validation_error" == answer.json()["error"]
    found: dict[str, list[str]] = answer.json()["errors"]
    assert all(isinstance(each, list) and all(each) for each in found.values())
    return found


@pytest.mark.parametrize("resource", CREATABLE)
def test_all_missing_required_fields_are_named_together(
    world: ServedSandbox, resource: str
) -> None:
    path = world.list_path(resource)
    required = {f.name for f, terms in CATALOG[resource].body_fields("create") if terms.required}
    found = set(request_errors(world, "POST", path, {}))

    assert required <= found
    assert found - required in (
        set(),
        {"first_name", "last_name", "company_name"},
        {"fields.text_value"},
    )
    for empty in (None, ""):
        assert required <= set(request_errors(world, "POST", path, dict.fromkeys(required, empty)))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("resource", CREATABLE)
def test_values_of_other_types_are_rejected(
    world: ServedSandbox, resource: str, operation: Any
) -> None:
    path = world.list_path(resource)
    target = f"{path}/{world.list_ids(path)[0]}"
    before = world.store.records(resource)
    for declared, _ in CATALOG[resource].body_fields(operation):
        for value in WRONG[declared.kind]:
            body = {declared.name: value}
            if operation == "create":
                full = {**world.minimal_body(resource), **body}
                assert declared.name in request_errors(world, "POST", path, full)
            else:
                assert [declared.name] == list(request_errors(world, "PUT", target, body))
    assert before == world.store.records(resource)


@pytest.mark.parametrize("operation", ["create", "update"])
@pytest.mark.parametrize("resource", CREATABLE)
def test_each_operation_accepts_exactly_its_allowed_values(
    open_world: Open, resource: str, operation: Any
) -> None:
    world = open_world(counts=FEW)
    path = world.list_path(resource)
    full = world.full_body(resource)
    target = f"{path}/{world.list_ids(path)[0]}"
    for declared, terms in CATALOG[resource].body_fields(operation):
        allowed = terms.values or declared.values
        for value in (*declared.values, "no such value", "") if allowed else ():
            body = {declared.name: value}
            method, where = "PUT", target
            if operation == "create":
                method, where, body = "POST", path, {**full, **body}
            if value in allowed:
                assert world.call(method, where, json=body).status_code in (200, 201)
            else:
                message = request_errors(world, method, where, body)[declared.name][0]
                assert value == "" or all(each in message for each in allowed)


def test_related_records_must_exist(world: ServedSandbox) -> None:
    related = ("candidate_id", "job_id", "company_id", "lead_id")
    body = {**world.minimal_body("bookings"), **dict.fromkeys(related, ABSENT_ID)}

    assert set(related) == set(request_errors(world, "POST", "/bookings", body))
    job = {**world.minimal_body("jobs"), "company_id": ABSENT_ID}
    assert ["company_id"] == list(request_errors(world, "POST", "/jobs", job))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email", "nobody"),
        ("email", "a@b"),
        ("email", "a b@example.com"),
        ("network_url", "example.com"),
        ("portfolio_url", "ftp://example.com"),
        ("salary_currency", "pounds"),
        ("rate_currency", "gbp"),
        ("assigned_to", "Zoë"),
    ],
)
def test_malformed_values_are_rejected(world: ServedSandbox, name: str, value: str) -> None:
    body = {**world.minimal_body("candidates"), name: value}

    assert [name] == list(request_errors(world, "POST", "/candidates", body))


@pytest.mark.parametrize(
    ("key", "wrong", "right"),
    [
        ("text", 5, "Hello"),
        ("textarea", ["a"], "Line\nline"),
        ("rich_text", {"a": 1}, "<p>x</p>"),
        ("number", "5", 5.5),
        ("select", "Pink", "Red"),
        ("multi_select", "Red", ["Red", "Green"]),
        ("multi_select", ["Pink"], []),
        ("date", "28/02/2026", "2026-02-28"),
        ("datetime", "soon", "2026-02-28T10:00:00Z"),
        ("boolean", "yes", False),
        ("image", "me.png", "https://example.com/me.png"),
        ("file", 5, "https://example.com/cv.pdf"),
        ("url", "example", "https://example.com"),
        ("email", "nobody", "a@example.com"),
        ("phone", 44, "+44 7700 900123"),
    ],
)
def test_content_values_that_do_not_fit_their_field_are_rejected(
    open_world: Open, key: str, wrong: Any, right: Any
) -> None:
    world = open_world(counts={"content_types": 1})
    path = world.list_path("content_items")

    def make_body(value: Any) -> dict[str, Any]:
        return {"title": "T", "fields": {"text_value": "Hello", f"{key}_value": value}}

    assert [f"fields.{key}_value"] == list(request_errors(world, "POST", path, make_body(wrong)))
    cleared = {"title": "T", "fields": {"text_value": ""}}
    assert {"fields.text_value": ["is required"]} == request_errors(world, "POST", path, cleared)
    id = world.call("POST", path, json=make_body(right)).json()["data"]["id"]
    assert right == world.get(f"{path}/{id}").json()["data"]["fields"][f"{key}_value"]

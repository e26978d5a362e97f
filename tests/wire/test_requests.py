"""Requests: built from the declarations, and refused if ambiguous."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Operation
from connector.client.messages import Request, build_list_request, build_request
from connector.errors import Misused, UnknownName

ID, SLUG = "5d1c-02", "news_items"


def build(resource: Declaration, operation: Operation) -> Request:
    """Return a request of the operation."""
    parent = None if resource.parent is None else SLUG
    if operation == "list":
        return build_list_request(resource, parent)
    name = next((field.name for field, _ in resource.body_fields("create")), "title")
    fields = {name: "A"} if operation in ("create", "update") else None
    id = None if operation == "create" else ID
    return build_request(resource, operation, id, fields, parent=parent)


ENDPOINTS: dict[Operation, str] = {
    "list": "GET {path} read",
    "get": "GET {path}/{{id}} read",
    "create": "POST {path} write",
    "update": "PUT {path}/{{id}} write",
    "delete": "DELETE {path}/{{id}} write",
    "convert": "POST {path}/{{id}}/convert write",
}
"""Method, path and scope of each operation (API 4)."""

PATHS = {
    **{
        name: f"/api/v1/{name}" for name in ("jobs", "candidates", "companies", "bookings", "leads")
    },
    "content_types": "/api/v1/content-types",
    "content_items": "/api/v1/content/{type}",
}


@pytest.mark.parametrize("name", CATALOG)
def test_every_endpoint_is_requested_as_documented_and_no_other(name: str) -> None:
    resource, scope = CATALOG[name], "content" if name.startswith("content") else name
    for operation, endpoint in ENDPOINTS.items():
        if operation not in resource.operations:
            with pytest.raises(UnknownName) as caught:
                build(resource, operation)
            assert tuple(sorted(resource.operations)) == caught.value.allowed
            continue
        request = build(resource, operation)
        requested = request.path.replace(ID, "{id}").replace(SLUG, "{type}")
        shown = f"{request.method} {requested} {request.scope.removeprefix(scope + '.')}"

        assert endpoint.format(path=PATHS[name]) == shown


@pytest.mark.parametrize(("operation", "id"), [("create", None), ("update", ID)])
def test_an_unknown_body_field_is_refused_with_the_most_similar_name(
    operation: Operation, id: str | None
) -> None:
    with pytest.raises(UnknownName, match=rf"{operation} of jobs takes\. Did you mean 'title'"):
        build_request(CATALOG["jobs"], operation, id, {"titel": "A"})


def test_a_list_request_contains_every_given_parameter() -> None:
    given: Any = {"sort": "start_datetime", "order": "asc", "search": "x & y"}
    request = build_list_request(CATALOG["bookings"], page=3, per_page=50, **given)

    assert {"page": "3", "per_page": "50", **given} == request.query


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("jobs", {"sort": "titel"}, "Did you mean 'title'"),
        ("jobs", {"sort": "updated_at", "order": "up"}, "'up' is not a order of jobs"),
        ("content_types", {"sort": "created_at"}, "'sort' is not a parameter of content_types"),
        ("content_types", {"order": "asc"}, "'order' is not a parameter of content_types"),
        ("content_types", {"search": "a"}, "parameter of content_types"),
        ("jobs", {"page": 0}, "page 0"),
        ("jobs", {"per_page": 0}, "of 0"),
        ("jobs", {"per_page": 101}, "of 101"),
    ],
)
def test_invalid_list_parameters_are_refused(name: str, options: Any, named: str) -> None:
    with pytest.raises(Misused, match=named):
        build_list_request(CATALOG[name], **options)


@pytest.mark.parametrize(
    "segment",
    [
        *("../x", "..", ".", "a/../b", "%2e%2e", "?a=b", "", "a/b", "a b", "a\n", "a#b", "a\\b"),
        *("anna@example.com", "\u00e9", "a" * 201, None, 7, ".hidden"),
    ],
)
def test_ids_that_would_change_the_path_are_refused(segment: Any) -> None:
    cases: list[tuple[str, Operation, Any, str | None]] = [
        ("jobs", "get", segment, None),
        ("content_items", "delete", segment, SLUG),
        ("content_items", "list", None, segment),
        ("leads", "convert", segment, None),
    ]
    for name, operation, id, parent in cases:
        with pytest.raises(Misused) as caught:
            build_request(CATALOG[name], operation, id, parent=parent)
        shown = str(caught.value) + caught.value.action
        assert not [word for word in ("anna", "example") if word in shown]


@given(st.text(max_size=30))
def test_any_text_stays_within_its_path_segment(text: str) -> None:
    try:
        path = build_request(CATALOG["jobs"], "get", text).path
    except Misused:
        return

    assert 4 == path.count("/")
    assert set("?#%\\ ").isdisjoint(path)
    assert ".." not in path


def test_body_fields_are_sent_unchanged() -> None:
    paris = timezone(timedelta(hours=1))
    fields = {
        "title": 'Zoë "\n🙂',
        "salary_min": 1234.5,
        "department": None,
        "show_salary": True,
        "start_date": date(2026, 3, 4),
        "published_at": datetime(2026, 3, 4, 13, 5, 6, 789, paris),
    }
    body = build_request(CATALOG["jobs"], "create", None, fields).body

    assert {
        **fields,
        "start_date": "2026-03-04",
        "published_at": "2026-03-04T12:05:06.000789Z",
    } == json.loads(body or b"")


CIRCLE: dict[str, Any] = {}
CIRCLE["value"] = CIRCLE


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (float("nan"), "not JSON compliant"),
        (float("inf"), "not JSON compliant"),
        ("\ud800", "surrogates not allowed"),
        (b"x", "a bytes"),
        ({"x"}, "a set"),
        (datetime(2026, 3, 4), "without a time zone"),
        (CIRCLE, "Circular reference"),
    ],
)
def test_values_that_json_cannot_represent_are_refused(value: Any, named: str) -> None:
    with pytest.raises(Misused, match=named):
        build_request(CATALOG["jobs"], "update", ID, {"title": value})


def test_the_repr_of_a_request_shows_neither_query_nor_body() -> None:
    searching = build_list_request(CATALOG["leads"], search="anna@example.com")
    creating = build_request(CATALOG["leads"], "create", None, {"email": "anna@example.com"})

    assert "GET /api/v1/leads" == searching.method_and_path
    assert "anna" not in repr(searching) + repr(creating)

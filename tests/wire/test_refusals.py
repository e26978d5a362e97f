"""Refusals: each status becomes the error whose name says what to do, in the API's own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.client.request import (
    Request,
    build_convert_request,
    build_create_request,
    build_delete_request,
    build_get_request,
    build_list_request,
    build_update_request,
)
from connector.client.response import Response
from connector.client.response_parsing import error_of
from connector.errors import ConnectorError
from connector.errors_api import (
    Forbidden,
    InDoubt,
    InvalidRequest,
    NotFound,
    RateLimited,
    Redirected,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    ValidationFailed,
)

GET = build_get_request(CATALOG["jobs"], "5d1c")
WRITES = (
    build_create_request(CATALOG["jobs"], {"title": "A"}),
    build_update_request(CATALOG["jobs"], "5d1c", {"title": "A"}),
    build_delete_request(CATALOG["jobs"], "5d1c"),
    build_convert_request(CATALOG["leads"], "5d1c"),
)
HTML = b"<!doctype html><h1>Error</h1>"
SAID = {"error": "not_so", "message": "That cannot be."}

DOCUMENTED: dict[int, type[ConnectorError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    422: ValidationFailed,
}


def answer(status: int, document: Any, **headers: str) -> Response:
    return Response(status, headers, json.dumps(document).encode())


def refusal_of(request: Request, status: int, document: Any) -> ConnectorError:
    return error_of(request, answer(status, document))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *DOCUMENTED.items(),
        (429, RateLimited),
        *((status, ServerFailed) for status in (500, 501, 502, 503, 504, 599)),
        *((status, UnexpectedStatus) for status in (402, 405, 408, 409, 418, 451)),
        *((status, Redirected) for status in (300, 301, 302, 303, 304, 307, 308)),
    ],
)
def test_each_status_is_an_error_for_a_read(status: int, expected: type[ConnectorError]) -> None:
    assert expected is type(refusal_of(GET, status, SAID))
    assert expected is type(error_of(GET, Response(status, {}, HTML)))


@pytest.mark.parametrize("asked", WRITES, ids=lambda each: each.operation)
def test_only_a_refusal_of_the_api_says_that_nothing_was_written(asked: Request) -> None:
    for status in range(300, 600):
        by_a_page = RateLimited if status == 429 else InDoubt
        by_the_api = DOCUMENTED.get(status, by_a_page)

        assert by_the_api is type(refusal_of(asked, status, SAID)), status
        assert by_a_page is type(error_of(asked, Response(status, {}, HTML))), status


@pytest.mark.parametrize("status", [*DOCUMENTED, 500, 418])
def test_the_apis_own_words_are_carried(status: int) -> None:
    error = refusal_of(GET, status, SAID)

    assert ("not_so", "That cannot be.") == (
        getattr(error, "api_code", None),
        getattr(error, "api_message", None),
    )
    assert f"GET /api/v1/jobs/5d1c was answered {status}: That cannot be." == str(error)


def test_a_code_alone_is_said() -> None:
    assert str(refusal_of(GET, 404, {"error": "gone"})).endswith("404: gone")


def test_a_missing_scope_is_named() -> None:
    error = refusal_of(WRITES[0], 403, SAID)

    assert isinstance(error, Forbidden)
    assert "jobs.write" == error.scope
    assert "jobs.write" in error.action


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (json.dumps(SAID).encode(), True),
        (b'{"message": "There is none."}', True),
        (b'{"error": "not_found"}', True),
        (b"{}", False),
        (b'{"message": null}', False),
        (b'{"message": ""}', False),
        (b'{"status": 404}', False),
        (b'["not found"]', False),
        (b'"not found"', False),
        (b"", False),
        (HTML, False),
    ],
)
def test_a_404_is_evidence_only_in_the_apis_words(body: bytes, expected: bool) -> None:
    error = error_of(GET, Response(404, {}, body))

    assert isinstance(error, NotFound)
    assert expected == error.is_api_error


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"email": ["is taken", "is long"]}, {"email": ("is taken", "is long")}),
        ({"email": "is taken"}, {"email": ("is taken",)}),
        ({"shoe_size": ["is unknown"]}, {"shoe_size": ("is unknown",)}),
        ({"fields.a": [{"min": 3}]}, {"fields.a": ('{"min": 3}',)}),
        ({"email": []}, {}),
        ({"email": None}, {}),
        ({}, {}),
        (None, {}),
        ([], {}),
        (["is wrong"], {"": ("is wrong",)}),
        ("is wrong", {"": ("is wrong",)}),
        ([{"field": "email"}], {"": ('{"field": "email"}',)}),
    ],
)
@pytest.mark.parametrize("summary", [{}, {"error": "validation_error", "message": "No."}])
def test_messages_by_field_lose_nothing(
    errors: Any, expected: dict[str, tuple[str, ...]], summary: dict[str, str]
) -> None:
    error = refusal_of(WRITES[0], 422, {**summary, "errors": errors})

    assert isinstance(error, ValidationFailed)
    assert expected == error.errors
    assert all(name in error.action for name in expected)


@pytest.mark.parametrize("document", [{}, {"message": 5}, {"errors": 5}])
def test_a_422_of_any_shape_is_a_refusal(document: Any) -> None:
    assert isinstance(refusal_of(WRITES[0], 422, document), ValidationFailed)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://other.example/a/b?c=d#e", "https://other.example/a/b"),
        ("https://anna:secret@other.example:8443/", "https://other.example:8443/"),
        ("/login?next=x", "/login"),
        ("//other.example/x", "//other.example/x"),
        ("http://[", "an address that cannot be read"),
        ("", "nowhere"),
        ("/a\x1b[31mb", "/a?[31mb"),
        ("https://o.example/" + "a" * 5000, "https://o.example/" + "a" * 182),
    ],
)
def test_a_redirect_names_its_target(location: str, shown: str) -> None:
    error = error_of(GET, Response(302, {"location": location}, b""))

    assert isinstance(error, Redirected)
    assert shown == error.target


def test_errors_hold_no_query_and_no_email() -> None:
    searching = build_list_request(CATALOG["leads"], search="anna@example.com")
    said = {"message": "Nobody is called 'anna@example.com' <bob.b+c@mail.example.co.uk>."}
    for status in (400, 401, 403, 404, 422, 429, 500):
        error = refusal_of(searching, status, said)
        shown = f"{error} {error!r} {error.action}"
        assert "anna" not in shown
        assert "bob" not in shown
        assert "search" not in shown


def test_doubt_says_where_once() -> None:
    error = refusal_of(WRITES[0], 502, SAID)

    assert (
        "POST /api/v1/jobs was sent, but its result is unknown: answered 502: That cannot be."
        == str(error)
    )


def test_long_words_are_cut() -> None:
    error = refusal_of(GET, 404, {"message": "x" * 100_000})

    assert len(str(error)) < 1000

"""Error responses: each status has an error class with the API's code and message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.client.messages import (
    Request,
    Response,
    build_list_request,
    build_request,
    response_error,
)
from connector.errors import (
    ConnectorError,
    Forbidden,
    InDoubt,
    NotFound,
    NotTheApi,
    RateLimited,
    Refused,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    ValidationFailed,
)

GET = build_request(CATALOG["jobs"], "get", "5d1c")
WRITES = (
    build_request(CATALOG["jobs"], "create", None, {"title": "A"}),
    build_request(CATALOG["jobs"], "update", "5d1c", {"title": "A"}),
    build_request(CATALOG["jobs"], "delete", "5d1c"),
    build_request(CATALOG["leads"], "convert", "5d1c"),
)
HTML = b"<!doctype html><h1>Error</h1>"
SAID = {"error": "not_so", "message": "That cannot be."}

DOCUMENTED: dict[int, type[ConnectorError]] = {
    400: Refused,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    422: ValidationFailed,
}


def make_error(request: Request, status: int, document: Any) -> ConnectorError:
    """Return the client's error for a response with this JSON document to the request."""
    return response_error(request, Response(status, {}, json.dumps(document).encode()))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *DOCUMENTED.items(),
        (429, RateLimited),
        *((status, ServerFailed) for status in (500, 501, 502, 503, 504, 599)),
        *((status, UnexpectedStatus) for status in (402, 405, 408, 409, 418, 451)),
        *((status, NotTheApi) for status in (300, 301, 302, 303, 304, 307, 308)),
    ],
)
def test_every_error_status_of_a_read_has_its_error_class(
    status: int, expected: type[ConnectorError]
) -> None:
    assert expected is type(make_error(GET, status, SAID))
    assert expected is type(response_error(GET, Response(status, {}, HTML)))


@pytest.mark.parametrize("api_request", WRITES, ids=lambda each: each.operation)
def test_only_a_rejection_by_the_api_proves_that_nothing_was_written(api_request: Request) -> None:
    for status in range(300, 600):
        by_a_page = RateLimited if status == 429 else InDoubt
        by_the_api = DOCUMENTED.get(status, by_a_page)

        assert by_the_api is type(make_error(api_request, status, SAID)), status
        assert by_a_page is type(response_error(api_request, Response(status, {}, HTML))), status


@pytest.mark.parametrize("status", [*DOCUMENTED, 500, 418])
def test_errors_contain_the_code_and_message_of_the_api(status: int) -> None:
    for message, shown in ((None, "not_so"), ("No.", "No."), ("x" * 10**5, "x" * 500)):
        error = make_error(GET, status, {"error": "not_so", "message": message})

        assert "not_so" == getattr(error, "api_code", None)
        assert f"GET /api/v1/jobs/5d1c was answered {status}: {shown}" == str(error)


def test_a_403_names_the_missing_scope() -> None:
    error = make_error(WRITES[0], 403, SAID)

    assert isinstance(error, Forbidden)
    assert "jobs.write" == error.scope
    assert "jobs.write" in error.action


BY_THE_API = (json.dumps(SAID).encode(), b'{"message": "None."}', b'{"error": "not_found"}')
BY_A_PROXY = (b"{}", b'{"message": null}', b'{"message": ""}', b'{"status": 404}', b'["not found"]',
              b'"not found"', b"", HTML)  # fmt: skip


@pytest.mark.parametrize("body", [*BY_THE_API, *BY_A_PROXY])
def test_a_404_counts_as_a_missing_record_only_if_the_api_sent_it(body: bytes) -> None:
    error = response_error(GET, Response(404, {}, body))

    assert isinstance(error, NotFound)
    assert (body in BY_THE_API) == error.is_api_error


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
def test_messages_by_field_of_a_422_are_complete(
    errors: Any, expected: dict[str, tuple[str, ...]], summary: dict[str, str]
) -> None:
    error = make_error(WRITES[0], 422, {**summary, "errors": errors})

    assert isinstance(error, ValidationFailed)
    assert expected == error.errors
    assert all(name in error.action for name in expected)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://other.example/a/b?c=d#e", "https://other.example/a/b"),
        ("https://anna:secret@other.example:8443/", "https://other.example:8443/"),
        ("/login?next=x", "/login"),
        ("//other.example/x", "//other.example/x"),
        ("http://[", "an address that cannot be read"),
        ("", "nowhere"),
        ("/a\x1b[31mb", "/a\\x1b[31mb"),
        ("https://o.example/" + "a" * 5000, "https://o.example/" + "a" * 482),
    ],
)
def test_a_redirect_error_names_its_target_without_query(location: str, shown: str) -> None:
    error = response_error(GET, Response(302, {"location": location}, b""))

    assert error.code == "redirected"
    assert f" with a redirect to {shown}, which is not followed" in str(error)


def test_errors_contain_no_query_and_no_email_address() -> None:
    searching = build_list_request(CATALOG["leads"], search="anna@example.com")
    document = {"message": "Nobody is called 'anna@example.com' <bob.b+c@mail.example.co.uk>."}
    for status in (400, 401, 403, 404, 422, 429, 500):
        error = make_error(searching, status, document)
        shown = f"{error} {error!r} {error.action}"
        assert not [word for word in ("anna", "bob", "search") if word in shown]

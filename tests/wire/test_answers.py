"""Responses: parsed strictly, kept completely, and rejected by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.catalog import CATALOG
from connector.client.limiter import RateHeaders
from connector.client.messages import (
    Request,
    Response,
    build_create_request,
    build_delete_request,
    build_get_request,
    build_list_request,
    check_deleted,
    rate_headers,
    read_list,
    read_record,
    served_at,
)
from connector.errors import ConnectorError, InDoubt, UnreadableAnswer

JOBS = CATALOG["jobs"]
LIST = build_list_request(JOBS, page=2)
GET = build_get_request(JOBS, "5d1c")
CREATE = build_create_request(JOBS, {"title": "A"})
DELETE = build_delete_request(JOBS, "5d1c")
RECORD = {
    "id": "5d1c",
    "title": "A",
    "is_new": [1, {"b": None}],
    "status": "paused",
    "created_at": "2026-01-05T08:00:00Z",
}
NO_NUMBERS: tuple[Any, ...] = (None, -1, 1.5, "many", True, [], 10**400, "1_0")
PAGES = {"page": 2, "per_page": 100, "total": 101, "total_pages": 2}


def make_json_response(document: Any, status: int = 200, **headers: str) -> Response:
    """Return a response with this JSON document and these headers."""
    return Response(status, headers, json.dumps(document).encode())


def test_a_list_keeps_its_items_as_received() -> None:
    listed = read_list(
        LIST, make_json_response({"data": [RECORD, {"id": "6"}], "pagination": PAGES})
    )

    assert (RECORD, {"id": "6"}) == listed.items
    assert (2, 100, 101, 2) == (listed.page, listed.per_page, listed.total, listed.total_pages)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"data": None, "pagination": PAGES},
        {"data": {}, "pagination": PAGES},
        {"data": [None], "pagination": PAGES},
        {"data": [{"title": "A"}], "pagination": PAGES},
        {"data": [{"id": 5}], "pagination": PAGES},
        {"data": [{"id": ""}], "pagination": PAGES},
        {"data": []},
        {"data": [], "pagination": []},
        *(
            {"data": [], "pagination": {**PAGES, name: value}}
            for name in PAGES
            for value in NO_NUMBERS
        ),
        {"data": [], "pagination": {**PAGES, "per_page": 0}},
    ],
)
def test_a_list_with_an_unexpected_document_is_rejected(document: Any) -> None:
    with pytest.raises(UnreadableAnswer, match="GET /api/v1/jobs"):
        read_list(LIST, make_json_response(document))


@pytest.mark.parametrize(("page", "pages"), [(1, 2), (3, 3), (1, 1000), (3, 2)])
def test_a_list_with_another_page_number_is_rejected(page: int, pages: int) -> None:
    pagination = {**PAGES, "page": page, "total_pages": pages}
    message = f"answered with page {page} .* page 2 was requested"
    with pytest.raises(UnreadableAnswer, match=message):
        read_list(LIST, make_json_response({"data": [RECORD], "pagination": pagination}))


@pytest.mark.parametrize("pages", [0, 1])
def test_the_last_page_returned_again_is_read_as_an_empty_page(pages: int) -> None:
    pagination = {"page": 1, "per_page": 100, "total": pages, "total_pages": pages}
    listed = read_list(
        LIST, make_json_response({"data": [RECORD] * pages, "pagination": pagination})
    )

    assert ((), 2, pages) == (listed.items, listed.page, listed.total)


@pytest.mark.parametrize("data", [None, [], "x", {}, {"id": None}, {"title": "A"}])
def test_a_record_without_an_id_is_rejected(data: Any) -> None:
    with pytest.raises(UnreadableAnswer, match="without a record in 'data'"):
        read_record(GET, make_json_response({"data": data}))


@pytest.mark.parametrize("status", [200, 201])
def test_a_write_returns_the_record(status: int) -> None:
    for message in ({"message": "The job was created."}, {"message": 5}, {}):
        written = make_json_response({"data": RECORD, **message}, status)
        assert RECORD == read_record(CREATE, written)


def test_a_delete_accepts_a_204_or_a_message() -> None:
    check_deleted(DELETE, Response(204, {}, b""))
    check_deleted(DELETE, make_json_response({"message": "Gone."}))
    check_deleted(DELETE, make_json_response({"data": None}))


NOT_THE_APIS = (
    Response(200, {}, b""),
    Response(200, {}, b"<html>Welcome</html>"),
    Response(200, {}, b'{"data": {"id": "5'),
    Response(200, {}, b'{"data": NaN}'),
    Response(200, {}, b"[" * 100_000),
    Response(200, {}, b"[]"),
    Response(202, {}, b'{"data": {"id": "5d1c"}, "message": "Later."}'),
)
READERS: Mapping[str, Callable[[Request, Response], Any]] = {
    "list": read_list,
    "get": read_record,
    "create": read_record,
    "delete": check_deleted,
}
REQUESTS = (LIST, GET, CREATE, DELETE)


@pytest.mark.parametrize("found", NOT_THE_APIS, ids=lambda each: repr(each.body[:20]))
@pytest.mark.parametrize("api_request", REQUESTS, ids=lambda each: each.operation)
def test_an_unreadable_success_fails_a_read_and_leaves_a_write_in_doubt(
    api_request: Request, found: Response
) -> None:
    expected = UnreadableAnswer if api_request.is_read else InDoubt
    with pytest.raises(expected) as caught:
        READERS[api_request.operation](api_request, found)

    assert 1 == str(caught.value).count(api_request.method_and_path)


@pytest.mark.parametrize(
    ("text", "limit", "reset"),
    [
        ("60", 60, 60.0),
        (" 60 ", 60, 60.0),
        ("0", 0, 0.0),
        ("60.0", 60, 60.0),
        ("1.5", None, 1.5),
        *((garbage, None, None) for garbage in ("", "-1", "many", "nan", "inf", "1e3", "1_0")),
        *((garbage, None, None) for garbage in ("60, 60", "0x10", "9" * 400, "\u0663", "60 a")),
    ],
)
def test_valid_rate_headers_are_parsed_and_others_are_none(
    text: str, limit: int | None, reset: float | None
) -> None:
    headers = {f"x-ratelimit-{name}": text for name in ("limit", "remaining", "reset")}

    assert RateHeaders(limit, limit, reset) == rate_headers(Response(200, headers, b""))
    assert RateHeaders(None, None, None) == rate_headers(Response(200, {}, b""))


@pytest.mark.parametrize(
    "text",
    [
        "Wed, 04 Mar 2026 05:06:07 GMT",
        "Wed, 04 Mar 2026 05:06:07 -0000",
        "Wed, 04 Mar 2026 07:06:07 +0200",
        "Wednesday, 04-Mar-26 05:06:07 GMT",
    ],
)
def test_the_date_header_is_parsed_in_every_http_format(text: str) -> None:
    moment = served_at(Response(200, {"date": text}, b""))

    assert datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC) == moment
    assert moment is not None
    assert UTC == moment.tzinfo


@pytest.mark.parametrize(
    "text", ["", "now", "2026", "Sat, 99 Mar 2026 05:06:07 GMT", "Fri, 31 Dec 9999 23:59:59 -2359"]
)
def test_an_invalid_date_header_is_none(text: str) -> None:
    assert None is served_at(Response(200, {"date": text}, b""))


@given(st.text())
def test_any_header_text_is_parsed_without_an_exception(text: str) -> None:
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date")
    found = Response(200, dict.fromkeys(names, text), b"")
    rate = rate_headers(found)

    assert rate.limit is None or rate.limit >= 0
    assert (served_at(found) or datetime.now(UTC)).tzinfo is not None


@given(st.binary(), st.sampled_from(range(200, 600)))
def test_any_response_body_raises_only_connector_errors(body: bytes, status: int) -> None:
    for request in REQUESTS:
        try:
            READERS[request.operation](request, Response(status, {}, body))
        except ConnectorError:
            continue


def test_the_repr_of_a_response_shows_no_personal_data() -> None:
    found = make_json_response(
        {"data": [{"id": "5", "email": "anna@example.com"}], "pagination": PAGES}
    )

    assert "anna" not in repr(found) + repr(read_list(LIST, found))


def test_page_numbers_as_text_are_accepted() -> None:
    loose = {"page": "2", "per_page": 100.0, "total": "101", "total_pages": 2, "next": None}
    listed = read_list(LIST, make_json_response({"data": [], "pagination": loose}))

    assert (2, 100, 101, 2) == (listed.page, listed.per_page, listed.total, listed.total_pages)

"""Answers: unpacked within limits, parsed strictly, fitting their request, and rejected by name."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.catalog import CATALOG
from connector.catalog.field import parse_datetime
from connector.client.limiter import RateHeaders
from connector.client.messages import (
    DEPTH_MAX,
    Response,
    build_list_request,
    build_request,
    check_deleted,
    encode_body,
    parse_json,
    rate_headers,
    read_list,
    read_record,
    served_at,
)
from connector.client.session import read_body
from connector.errors import AnswerTooLarge, ConnectorError, InDoubt, UnreadableAnswer

JOBS = CATALOG["jobs"]
LIST = build_list_request(JOBS, page=2)
GET = build_request(JOBS, "get", "5d1c")
CREATE = build_request(JOBS, "create", None, {"title": "A"})
DELETE = build_request(JOBS, "delete", "5d1c")
RECORD = {
    "id": "5d1c",
    "title": "A",
    "is_new": [1, {"b": None}],
    "status": "paused",
    "created_at": "2026-01-05T08:00:00Z",
}
PAGES = {"page": 2, "per_page": 100, "total": 101, "total_pages": 2}
NO_COUNTS: tuple[Any, ...] = (-1, 1.5, "many", True, [], 10**400, "1_0")


def make_response(document: Any, status: int = 200) -> Response:
    """Return a response with this JSON document."""
    return Response(status, {}, json.dumps(document).encode())


# -- Lists and records -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pagination", [PAGES, {"page": "2", "per_page": 100.0, "total": "101", "total_pages": 2}]
)
def test_a_list_keeps_its_items_as_received(pagination: dict[str, Any]) -> None:
    listed = read_list(
        LIST, make_response({"data": [RECORD, {"id": "6"}], "pagination": pagination})
    )

    assert [RECORD, {"id": "6"}] == [each.raw for each in listed.items]
    assert (2, 100, 101, 2) == (listed.page, listed.per_page, listed.total, listed.total_pages)
    assert "5d1c" not in repr(listed)


def page_of(data: Any, **pagination: Any) -> dict[str, Any]:
    """Return a document of page 2 with another pagination."""
    return {"data": data, "pagination": {**PAGES, **pagination}}


@pytest.mark.parametrize(
    "document",
    [
        *([], {}, {"data": []}, {"data": [], "pagination": []}),
        *map(page_of, (None, {}, [None], [{"title": "A"}], [{"id": 5}], [{"id": ""}])),
        *(page_of([], **{name: None}) for name in PAGES),
        *(page_of([], total=value) for value in NO_COUNTS),
        page_of([], per_page=0),
        page_of([RECORD] * 3, per_page=2),
        *(page_of([RECORD], page=n, total_pages=m) for n, m in ((1, 2), (3, 3), (1, 9), (3, 2))),
    ],
)
def test_a_list_with_an_unexpected_document_is_rejected(document: Any) -> None:
    with pytest.raises(UnreadableAnswer, match="GET /api/v1/jobs"):
        read_list(LIST, make_response(document))


@pytest.mark.parametrize("pages", [0, 1])
def test_the_last_page_returned_again_is_read_as_an_empty_page(pages: int) -> None:
    document = page_of([RECORD] * pages, page=1, total=pages, total_pages=pages)
    listed = read_list(LIST, make_response(document))

    assert ((), 2, pages) == (listed.items, listed.page, listed.total)


@pytest.mark.parametrize("data", [None, [], "x", {}, {"id": None}, {"title": "A"}])
def test_a_record_without_an_id_is_rejected(data: Any) -> None:
    with pytest.raises(UnreadableAnswer, match="no record in 'data'"):
        read_record(GET, make_response({"data": data}))


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("message", [{"message": "The job was created."}, {"message": 5}, {}])
def test_a_write_returns_the_record(status: int, message: dict[str, Any]) -> None:
    assert RECORD == read_record(CREATE, make_response({"data": RECORD, **message}, status)).raw


def test_a_delete_accepts_a_204_or_a_message() -> None:
    check_deleted(DELETE, Response(204, {}, b""))
    check_deleted(DELETE, make_response({"message": "Gone."}))
    check_deleted(DELETE, make_response({"data": None}))


@given(st.binary(), st.sampled_from(range(200, 600)))
def test_any_answer_raises_only_connector_errors(body: bytes, status: int) -> None:
    readers = (
        (read_list, LIST),
        (read_record, GET),
        (read_record, CREATE),
        (check_deleted, DELETE),
    )
    for read, request in readers:
        try:
            read(request, Response(status, {}, body))
        except ConnectorError:
            continue


# -- Headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "reset"),
    [
        ("60", 60, 60.0),
        (" 60 ", 60, 60.0),
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


WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wed, 04 Mar 2026 05:06:07 GMT", WHEN),
        ("Wed, 04 Mar 2026 05:06:07 -0000", WHEN),
        ("Wed, 04 Mar 2026 07:06:07 +0200", WHEN),
        ("Wednesday, 04-Mar-26 05:06:07 GMT", WHEN),
        *((text, None) for text in ("", "now", "2026", "Sat, 99 Mar 2026 05:06:07 GMT")),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
    ],
)
def test_the_date_header_is_parsed_in_every_http_format(
    text: str, expected: datetime | None
) -> None:
    assert expected == served_at(Response(200, {"date": text}, b""))


@given(st.text())
def test_any_header_text_is_parsed_without_an_exception(text: str) -> None:
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date")
    found = Response(200, dict.fromkeys(names, text), b"")
    rate = rate_headers(found)

    assert rate.limit is None or rate.limit >= 0
    assert (served_at(found) or datetime.now(UTC)).tzinfo is not None


# -- Bodies ----------------------------------------------------------------------------------------


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON))
def test_every_encoded_body_can_be_parsed(fields: dict[str, Any]) -> None:
    assert fields == parse_json(encode_body(fields))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, None),
        (json.dumps({"a": "[" * 1000}).encode(), None),
        (b'\xef\xbb\xbf{"a": 1}', None),
        (b"", "an empty body"),
        (b" <!doctype html><h1>Hello</h1>", "a page of HTML"),
        (b'\n<?xml version="1.0"?>', "HTML or XML"),
        (b'{"data": ', "not JSON"),
        (b'{"data": NaN}', "the number NaN, which no column can hold"),
        (b'{"data": -Infinity}', "the number -Infinity"),
        (b'{"data": 1e999}', "the number 1e999"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), "nested deeper"),
        (b'"' + b'\\"' * 100_000, "not JSON"),
    ],
    ids=lambda each: str(each)[:16],
)
def test_a_body_is_parsed_or_rejected_with_its_kind(body: bytes, expected: str | None) -> None:
    if expected is None:
        assert json.loads(body) == parse_json(body)
    else:
        with pytest.raises(ValueError, match=expected):
            parse_json(body)


def unpack(encoding: str, bytes_max: int, *parts: bytes) -> bytes:
    """Read a body that arrives in these parts."""

    async def arrive() -> AsyncIterator[bytes]:
        for each in parts:
            yield each

    return asyncio.run(read_body("GET /jobs", arrive(), encoding, bytes_max))


@given(st.binary(max_size=2000), st.integers(1, 100))
def test_gzip_bodies_in_any_parts_are_unpacked_completely(body: bytes, size: int) -> None:
    packed = gzip.compress(body)
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]

    assert body == unpack("gzip", len(body), *parts)


PACKED = gzip.compress(b"x" * 1000)


@pytest.mark.parametrize(
    ("encoding", "parts", "expected"),
    [
        ("", [b"ab", b"cd"], b"abcd"),
        ("identity", [b"ab", b"cd"], b"abcd"),
        ("gzip", [], b""),
        ("gzip", [PACKED], b"x" * 1000),
        ("", [b"x" * 1001], AnswerTooLarge),
        ("gzip", [gzip.compress(b"x" * 1001)], AnswerTooLarge),
        ("gzip", [PACKED[:-9]], UnreadableAnswer),
        ("gzip", [b"no gzip"], UnreadableAnswer),
        ("br", [b"{}"], UnreadableAnswer),
        ("gzip, gzip", [gzip.compress(PACKED)], UnreadableAnswer),
    ],
)
def test_bodies_are_unpacked_within_limits(
    encoding: str, parts: list[bytes], expected: bytes | type[Exception]
) -> None:
    if isinstance(expected, bytes):
        assert expected == unpack(encoding, 1000, *parts)
    else:
        with pytest.raises(expected):
            unpack(encoding, 1000, *parts)


CANDIDATES, LEADS = CATALOG["candidates"], CATALOG["leads"]
SENT = {
    "first_name": "Zoë",
    "last_name": "O'Neil",
    "email": "zoe.oneil.of.london@people.example.com",
    "employment_type": "permanent",
    "phone": "020 7946 0001",
    "current_job_title": "Chief officer of everything that matters",
    "notes": "<p>Long</p> " * 20,
    "expected_salary": 50_000.4,
    "available_from": "2026-03-01",
}
ASKED_AT = "2026-03-02T09:00:00Z"


def answer_with(
    record: dict[str, Any], *, date: str | None = ASKED_AT, seconds: float = 0.5
) -> Response:
    """Return a response with that record, dated `date`."""
    headers = {} if date is None else {"date": format_datetime(parse_datetime(date), usegmt=True)}
    return Response(200, headers, json.dumps({"data": record}).encode(), seconds)


def read_created_id(**shown: Any) -> str:
    """Return the id of the record in the response to a create of `SENT`."""
    record = {"id": "a1", "created_at": ASKED_AT, **SENT, **shown}
    request = build_request(CANDIDATES, "create", None, SENT)
    return read_record(request, answer_with(record)).id


@pytest.mark.parametrize("id", ["b2", "A1", "a1 "])
def test_a_response_with_another_id_fails_a_read_and_leaves_a_write_in_doubt(id: str) -> None:
    with pytest.raises(UnreadableAnswer, match="was answered with a record with another id"):
        read_record(build_request(CANDIDATES, "get", "a1"), answer_with({"id": id}))
    for request in (
        build_request(CANDIDATES, "update", "a1", {}),
        build_request(LEADS, "convert", "a1"),
    ):
        with pytest.raises(InDoubt, match="a record with another id"):
            read_record(request, answer_with({"id": id}))
    with pytest.raises(InDoubt, match="a record with another id"):
        check_deleted(build_request(CANDIDATES, "delete", "a1"), answer_with({"id": id}))


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"email": "Zoe.ONeil.of.London@People.Example.com"},
        {"first_name": " Zoe\u0308 ", "last_name": "O\u2019NEIL"},
        {"phone": "+442079460001"},
        {"phone": None, "city": "London"},
        {"employment_type": "contractor"},
        {"current_job_title": "Chief officer of everything"},
        {"notes": "Long"},
        {"expected_salary": 50_000},
        {"created_at": "2026-03-02T08:59:55Z"},
    ],
    ids=str,
)
def test_a_create_response_with_reformatted_values_is_accepted(shown: dict[str, Any]) -> None:
    assert "a1" == read_created_id(**shown)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        ({"email": "zoe1@example.com"}, "another email"),
        # Cut off, a text may be the same, and an identifying one is not.
        ({"email": "zoe.oneil.of.london@people.example"}, "another email"),
        ({"first_name": "Zo"}, "another first_name"),
        ({"phone": "020 7946 0002"}, "another phone"),
        ({"current_job_title": "Chief"}, "another current_job_title"),
        ({"expected_salary": 50_002}, "another expected_salary"),
        ({"available_from": "2026-03-02"}, "another available_from"),
        ({"created_at": "2026-03-02T08:59:53Z"}, "a record that was created before the request"),
        ({"created_at": None}, "without a readable created_at"),
    ],
    ids=str,
)
def test_a_create_response_with_other_values_is_in_doubt(
    shown: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InDoubt, match=reason) as caught:
        read_created_id(**shown)

    assert not [value for value in SENT.values() if str(value) in str(caught.value)]


@pytest.mark.parametrize(
    ("created_at", "date", "seconds", "is_accepted"),
    [
        ("2026-03-02T08:59:30Z", ASKED_AT, 30, True),
        ("2026-03-02T08:59:30Z", ASKED_AT, 20, False),
        ("2020-01-01T00:00:00Z", None, 0.5, True),  # The server's time is not known.
    ],
)
def test_a_create_response_may_be_as_old_as_its_request(
    created_at: str, date: str | None, seconds: float, is_accepted: bool
) -> None:
    record = {"id": "a1", **SENT, "created_at": created_at}
    request = build_request(CANDIDATES, "create", None, SENT)
    if is_accepted:
        answer = answer_with(record, date=date, seconds=seconds)
        assert record == read_record(request, answer).raw
    else:
        with pytest.raises(InDoubt, match="a record that was created before the request"):
            read_record(request, answer_with(record, date=date, seconds=seconds))

"""Responses that do not match their request: another record, or an existing one for a create."""

from __future__ import annotations

import json
from email.utils import format_datetime
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.field import parse_datetime
from connector.client.messages import Response, build_request, check_deleted, read_record
from connector.errors import InDoubt, UnreadableAnswer

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
NOW = "2026-03-02T09:00:00Z"


def make_response(
    record: dict[str, Any], *, date: str | None = NOW, seconds: float = 0.5
) -> Response:
    """Return a response with that record, dated `date`."""
    headers = {} if date is None else {"date": format_datetime(parse_datetime(date), usegmt=True)}
    return Response(200, headers, json.dumps({"data": record}).encode(), seconds)


def read_created_id(**shown: Any) -> str:
    """Return the id of the record in the response to a create of `SENT`."""
    record = {"id": "a1", "created_at": NOW, **SENT, **shown}
    request = build_request(CANDIDATES, "create", None, SENT)
    return read_record(request, make_response(record)).id


@pytest.mark.parametrize("id", ["b2", "A1", "a1 "])
def test_a_response_with_another_id_fails_a_read_and_leaves_a_write_in_doubt(id: str) -> None:
    with pytest.raises(UnreadableAnswer, match="was answered with a record with another id"):
        read_record(build_request(CANDIDATES, "get", "a1"), make_response({"id": id}))
    for request in (
        build_request(CANDIDATES, "update", "a1", {}),
        build_request(LEADS, "convert", "a1"),
    ):
        with pytest.raises(InDoubt, match="a record with another id"):
            read_record(request, make_response({"id": id}))
    with pytest.raises(InDoubt, match="a record with another id"):
        check_deleted(build_request(CANDIDATES, "delete", "a1"), make_response({"id": id}))


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
        ("2026-03-02T08:59:30Z", NOW, 30, True),
        ("2026-03-02T08:59:30Z", NOW, 20, False),
        ("2020-01-01T00:00:00Z", None, 0.5, True),  # The server's time is not known.
    ],
)
def test_a_create_response_may_be_as_old_as_its_request(
    created_at: str, date: str | None, seconds: float, is_accepted: bool
) -> None:
    record = {"id": "a1", **SENT, "created_at": created_at}
    request = build_request(CANDIDATES, "create", None, SENT)
    if is_accepted:
        answer = make_response(record, date=date, seconds=seconds)
        assert record == read_record(request, answer).raw
    else:
        with pytest.raises(InDoubt, match="a record that was created before the request"):
            read_record(request, make_response(record, date=date, seconds=seconds))

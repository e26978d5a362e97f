"""A push sends the rows that are right, what differs, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.contract.kit import Account, candidate, edited, plain, status

CREATE = ("--mode", "create")
UPDATE = ("--mode", "update")
BY_EMAIL = ("--mode", "upsert", "--match", "email")


def newest(account: Account, number: int = 0) -> dict[str, Any]:
    """Return a candidate of the server."""
    id = account.server.ids("candidates")[number]
    found = account.server.api("GET", f"/candidates/{id}")
    assert isinstance(found, dict)
    return found


NEW: dict[str, dict[str, Any]] = {
    "candidates": candidate(1, city="Leeds"),
    "companies": {"name": "Firm", "email": "firm@firms.example", "industry": "Brewing"},
    "jobs": {
        "title": "Bricklayer", "location": "Leeds", "employment_type": "permanent",
        "description": "Lays bricks.",
    },
}  # fmt: skip


@pytest.mark.parametrize("resource", NEW)
def test_a_preview_sends_nothing(account: Account, resource: str) -> None:
    file = account.csv("new.csv", [NEW[resource]])
    preview = account.preview(resource, file, *CREATE)
    assert NEW[resource] == preview.changes
    assert ["create"] == preview.outcomes
    assert [] == account.server.sent()


@pytest.mark.parametrize("resource", NEW)
def test_a_create_sends_the_row_once(account: Account, resource: str) -> None:
    done = account.push(resource, account.csv("new.csv", [NEW[resource]]), *CREATE)
    (request,) = account.server.sent()
    assert ("POST", NEW[resource]) == (request.method, request.fields)
    (row,) = done.rows
    assert "created" == row["_outcome"]
    made = account.server.api("GET", f"/{resource}/{row['_id']}")
    assert NEW[resource] == {name: made[name] for name in NEW[resource]}
    assert [] == account.differences(resource)


def test_a_file_that_is_pushed_twice_creates_once(account: Account) -> None:
    file = account.csv("new.csv", [candidate(1), candidate(2)])
    account.push("candidates", file, *CREATE)
    again = account.push("candidates", file, *CREATE)
    assert ["unchanged", "unchanged"] == again.outcomes
    assert 2 == len(account.server.sent())


@pytest.mark.parametrize("columns", [{}, {"source": "fair"}], ids=["copy", "more columns"])
def test_a_record_that_exists_is_not_created_again(
    account: Account, columns: dict[str, str]
) -> None:
    email = newest(account)["email"]
    done = account.push(
        "candidates", account.csv("a.csv", [candidate(1, email=email, **columns)]), *CREATE,
        status=3,
    )  # fmt: skip
    assert ["duplicate"] == done.outcomes
    assert [] == account.server.sent()


def test_a_record_that_was_created_since_the_pull_is_not_created_again(account: Account) -> None:
    account.server.api("POST", "/candidates", **candidate(1))
    account.push("candidates", account.csv("a.csv", [candidate(1)]), *CREATE, status=3)
    assert 1 == account.server.emails().count("ann1@people.example")
    assert [] == account.server.sent()


def test_two_equal_rows_create_one_record(account: Account) -> None:
    file = account.csv("a.csv", [candidate(1), candidate(1)])
    account.push("candidates", file, *CREATE, status=3)
    assert 1 == account.server.emails().count("ann1@people.example")


BAD = [
    ("email", "two@a.example three@a.example"), ("email", ""), ("employment_type", "sometimes"),
    ("first_name", ""), ("rating", "four and a half"), ("date_of_birth", "31.02.1980"),
    ("expected_salary", "a lot"), ("willing_to_relocate", "perhaps"),
]  # fmt: skip


def test_one_bad_cell_costs_one_row(account: Account) -> None:
    rows = [
        candidate(1),
        *(candidate(n, **{f: v}) for n, (f, v) in enumerate(BAD, 3)),
        candidate(2),
    ]
    preview = account.preview("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    assert ["create", *["invalid"] * len(BAD), "create"] == preview.outcomes
    assert [True, *[False] * len(BAD), True] == [not codes for codes in preview.codes]
    done = account.push("candidates", account.csv("b.csv", rows), *CREATE, status=3)
    assert ["created", *["invalid"] * len(BAD), "created"] == done.outcomes
    sent = [each.fields["email"] for each in account.server.sent()]
    assert ["ann1@people.example", "ann2@people.example"] == sorted(sent)


def test_every_problem_of_a_row_is_shown(account: Account) -> None:
    row = candidate(1, email="x", employment_type="sometimes", rating="many")
    preview = account.preview("candidates", account.csv("a.csv", [row]), *CREATE, status=3)
    assert 3 <= len(preview.rows[0]["_problem"].splitlines())


def test_a_row_with_a_warning_is_held_back_and_the_others_are_sent(account: Account) -> None:
    rows = [candidate(1), candidate(2, first_name="Ren?e")]
    file = account.csv("a.csv", rows)
    done = account.push("candidates", file, *CREATE, status=3)
    assert ["created", "not_sent"] == done.outcomes
    accepted = account.push("candidates", file, *CREATE, "--accept-warnings")
    assert ["unchanged", "created"] == accepted.outcomes


def test_rows_with_accepted_kinds_of_warnings_are_sent(account: Account) -> None:
    rows = [candidate(1, first_name="Ren?e"), candidate(2, date_of_birth="Mon 1.2.1995")]
    file = account.csv("a.csv", rows)
    codes = account.preview("candidates", file, *CREATE, status=3).codes
    assert [{"odd_letters"}, {"weekday_differs"}] == codes
    done = account.push("candidates", file, *CREATE, "--accept", "odd_letters", status=3)
    assert ["created", "not_sent"] == done.outcomes
    again = account.push("candidates", file, *CREATE, "--accept", "odd_letters,weekday_differs")
    assert ["unchanged", "created"] == again.outcomes
    unknown = account.run("push", "candidates", file, *CREATE, "--accept", "odd_leters")
    assert (2, True) == (unknown.status, "odd_letters" in unknown.err)


@pytest.mark.parametrize(
    ("contact", "shown"),
    [("mobile", "07700 900 123"), ("network_url", "http://www.network.example/in/ann")],
)
def test_a_row_that_resembles_another_person_is_held_back(
    account: Account, contact: str, shown: str
) -> None:
    known = {"mobile": "+447700900123", "network_url": "https://network.example/in/ann/"}
    account.server.api("POST", "/candidates", **candidate(1, **{contact: known[contact]}))
    account.pull("candidates")
    account.server.forget()
    twin = candidate(1, email="ann@home.example", **{contact: shown})
    others = [candidate(2, **{contact: shown}), candidate(1, email="a@home.example")]
    file = account.csv("a.csv", [twin, *others])
    done = account.push("candidates", file, *CREATE, status=3)
    assert ["not_sent", "created", "created"] == done.outcomes
    assert "possible_twin" in done.codes[0]
    accepted = account.push("candidates", file, *CREATE, "--accept", "possible_twin")
    assert ["created", "unchanged", "unchanged"] == accepted.outcomes


def test_two_rows_that_may_be_one_person_are_not_both_sent(account: Account) -> None:
    rows = [candidate(1, mobile="07700 900123"), candidate(1, email="x@a.example",
            mobile="07700900123")]  # fmt: skip
    done = account.push("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    assert ["created", "not_sent"] == done.outcomes


def test_an_update_sends_what_differs(account: Account) -> None:
    found = newest(account)
    row = {"id": found["id"], "last_name": found["last_name"], "city": "Leeds"}
    done = account.push("candidates", account.csv("a.csv", [row]), *UPDATE)
    (request,) = account.server.sent()
    assert ("PUT", {"city": "Leeds"}) == (request.method, request.fields)
    assert ["updated"] == done.outcomes
    assert [] == account.differences("candidates")


def test_a_row_that_equals_the_record_is_unchanged(account: Account) -> None:
    found = newest(account)
    row = {name: found[name] for name in ("id", "first_name", "last_name", "email", "city")}
    done = account.push("candidates", account.csv("a.csv", [row]), *UPDATE)
    assert ["unchanged"] == done.outcomes
    assert [] == account.server.sent()


ODD = [
    ("notes", "First line\nSecond line"), ("notes", "  indented"), ("phone", "020 7946 0123"),
    ("industry", "Line\nBreak"), ("city", "Two  spaces"), ("skills", "a;b ; c"),
    ("current_company", "O'Neil & \"Sons\""),
]  # fmt: skip


def test_a_cell_that_equals_an_odd_value_of_the_platform_is_unchanged(account: Account) -> None:
    ids = account.server.ids("candidates")
    for id, (field, value) in zip(ids, ODD, strict=False):
        account.server.api("PUT", f"/candidates/{id}", **{field: value})
    account.pull("candidates")
    account.server.forget()
    rows = [{"id": id, field: value} for id, (field, value) in zip(ids, ODD, strict=False)]
    done = account.push("candidates", account.csv("a.csv", rows), *UPDATE)
    assert ["unchanged"] * len(ODD) == done.outcomes
    assert [] == account.server.sent()
    for id, (field, value) in zip(ids, ODD, strict=False):
        assert value == account.server.api("GET", f"/candidates/{id}")[field]


def test_blank_cells_change_nothing(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    before = account.server.api("GET", f"/candidates/{id}")
    row = {"id": id, "phone": "", "city": "Leeds", "notes": ""}
    account.push("candidates", account.csv("a.csv", [row]), *UPDATE)
    after = account.server.api("GET", f"/candidates/{id}")
    assert {**before, "city": "Leeds", "updated_at": after["updated_at"]} == after


def test_a_token_clears_a_field(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.pull("candidates")
    file = account.csv("a.csv", [{"id": id, "city": "CLEAR"}])
    account.push("candidates", file, *UPDATE, "--clear", "CLEAR")
    assert account.server.api("GET", f"/candidates/{id}")["city"] in (None, "")


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_later_edit_is_overwritten_only_on_request(account: Account, *, overwrites: bool) -> None:
    id = account.server.ids("candidates")[0]
    account.server.api("PUT", f"/candidates/{id}", city="York")
    file = account.csv("a.csv", [{"id": id, "city": "Leeds"}])
    words = (*UPDATE, "--overwrite") if overwrites else UPDATE
    done = account.push("candidates", file, *words, status=0 if overwrites else 3)
    assert ["updated" if overwrites else "conflict"] == done.outcomes
    city = account.server.api("GET", f"/candidates/{id}")["city"]
    assert ("Leeds" if overwrites else "York") == city


def test_a_later_edit_of_another_field_is_kept(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    account.server.api("PUT", f"/candidates/{id}", phone="020 7946 0999")
    account.push("candidates", account.csv("a.csv", [{"id": id, "city": "Leeds"}]), *UPDATE)
    found = account.server.api("GET", f"/candidates/{id}")
    assert ("Leeds", "020 7946 0999") == (found["city"], found["phone"])


def test_match_updates_the_record_with_this_email(account: Account) -> None:
    found = newest(account)
    rows = [{"email": found["email"].upper(), "city": "Leeds"}]
    file = account.csv("a.csv", rows)
    account.run("push", "candidates", file, *UPDATE, "--match", "email", "--apply", "--no-pull")
    (request,) = account.server.sent()
    assert f"/api/v1/candidates/{found['id']}" == request.path


@pytest.mark.parametrize("row", [
    {"id": "5d1c0000-0000-4000-8000-000000000000", "city": "Leeds"},
    {"id": "", "city": "Leeds"}, {"id": "../jobs", "city": "Leeds"},
])  # fmt: skip
def test_an_update_of_no_record_is_invalid(account: Account, row: dict[str, str]) -> None:
    done = account.push("candidates", account.csv("a.csv", [row]), *UPDATE, status=3)
    assert ["invalid"] == done.outcomes
    assert [] == account.server.sent()


def test_an_email_of_two_records_matches_neither(account: Account) -> None:
    first, second = account.server.ids("candidates")[:2]
    email = account.server.api("GET", f"/candidates/{first}")["email"]
    account.server.api("PUT", f"/candidates/{second}", email=email)
    account.pull("candidates")
    account.server.forget()
    file = account.csv("a.csv", [{"email": email, "city": "Leeds"}])
    account.push("candidates", file, *UPDATE, "--match", "email", status=3)
    assert [] == account.server.sent()


def test_an_upsert_updates_or_creates(account: Account) -> None:
    found = newest(account)
    rows = [
        candidate(1), {**candidate(2), "email": found["email"], "city": "Leeds",
        "first_name": found["first_name"], "last_name": found["last_name"],
        "employment_type": found["employment_type"]},
    ]  # fmt: skip
    account.push("candidates", account.csv("a.csv", rows), *BY_EMAIL)
    methods = sorted(each.method for each in account.server.sent())
    assert ["POST", "PUT"] == methods
    assert 25 == len(account.server.ids("candidates"))


@pytest.mark.parametrize("resource", ["candidates", "companies"])
def test_an_update_does_not_take_the_email_of_another_record(
    account: Account, resource: str
) -> None:
    first, second = account.server.ids(resource)[:2]
    email = account.server.api("GET", f"/{resource}/{first}")["email"]
    file = account.csv("a.csv", [{"id": second, "email": email}])
    account.push(resource, file, *UPDATE, status=3)
    assert [] == account.server.sent()


def test_an_update_does_not_take_the_email_of_a_record_created_since_the_pull(
    account: Account,
) -> None:
    account.server.api("POST", "/candidates", **candidate(1))
    row = {"id": account.server.ids("candidates")[0], "email": "ann1@people.example"}
    account.push("candidates", account.csv("a.csv", [row]), *UPDATE, status=3)
    assert [] == account.server.sent()


@pytest.mark.parametrize("code", [200, 201])
def test_a_conversion_is_sent_once(account: Account, code: int) -> None:
    account.server.rule("POST */convert", lambda forward: replace(forward(), status=code))
    id = account.server.ids("leads")[0]
    file = account.csv("a.csv", [{"id": id}])
    done = account.push("leads", file, "--mode", "convert")
    assert ["converted"] == done.outcomes
    again = account.push("leads", file, "--mode", "convert")
    assert ["unchanged"] == again.outcomes
    (request,) = account.server.sent()
    assert ("POST", f"/api/v1/leads/{id}/convert") == (request.method, request.path)


def test_an_api_rejection_is_the_rows_alone(account: Account) -> None:
    body = b'{"error": "validation_error", "message": "No.", "errors": {"city": ["is unknown"]}}'
    account.server.rule("POST *", plain(422, body), times=1)
    file = account.csv("a.csv", [candidate(1), candidate(2)])
    done = account.push("candidates", file, *CREATE, status=3, )  # fmt: skip
    assert ["created", "rejected"] == sorted(done.outcomes)
    assert "is unknown" in done.report.read_text()


def test_a_rejected_key_ends_the_push_before_it_writes(account: Account) -> None:
    file = account.csv("a.csv", [candidate(n) for n in range(5)])
    account.server.rule("*", status(401))
    result = account.run("push", "candidates", file, *CREATE, "--apply", "--json")
    assert result.status in (1, 2)
    assert len(account.server.sent()) <= 4
    account.server.forget()
    account.push("candidates", account.csv("b.csv", [candidate(9)]), *CREATE)


def test_a_429_is_waited_out_and_creates_once(account: Account) -> None:
    account.server.rule("POST *", status(429, retry_after=0), times=2)
    file = account.csv("a.csv", [candidate(1), candidate(2)])
    account.push("candidates", file, *CREATE)
    for number in (1, 2):
        assert 1 == account.server.emails().count(f"ann{number}@people.example")


def test_a_value_that_the_server_changes_is_reported(account: Account) -> None:
    def change(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "data": {**document["data"], "city": "LEEDS"}}

    account.server.rule("POST *", edited(change))
    account.server.rule("GET /api/v1/candidates/*", edited(change))
    rows = [candidate(1, city="Leeds")]
    done = account.push("candidates", account.csv("a.csv", rows), *CREATE, status=3)
    (row,) = done.rows
    assert ("not_applied", "values_differ") == (row["_outcome"], row["_code"])
    assert row["_problem"].startswith("city")
    assert "LEEDS" in row["_problem"]
    assert row["_id"], "the record exists"


def test_max_requests_stops_a_push_that_is_continued(account: Account) -> None:
    file = account.csv("a.csv", [candidate(n) for n in range(6)])
    account.push("candidates", file, *CREATE, "--max-requests", "4", status=4)
    assert len(account.server.log) <= 4
    account.push("candidates", file, *CREATE)
    for number in range(6):
        assert 1 == account.server.emails().count(f"ann{number}@people.example")

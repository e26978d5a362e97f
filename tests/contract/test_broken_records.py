"""One record that cannot be read concerns that record alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.kit import Account, Answer, Forward, edited, html, plain, status

Fault = Callable[[Forward], Answer | None]


def without_id(document: dict[str, dict[str, object]]) -> dict[str, object]:
    """Return the detail without its id."""
    return {**document, "data": {k: v for k, v in document["data"].items() if k != "id"}}


FAULTS: dict[str, Fault] = {
    "forbidden": status(403),
    "gone": status(410),
    "failing": status(500),
    "unreadable": plain(200, b'{"data": {"id": 1'),
    "null": plain(200, b'{"data": null}'),
    "without an id": edited(without_id),
}


@pytest.mark.parametrize("name", ["forbidden", "gone", "failing", "unreadable"])
def test_the_other_records_are_loaded_and_the_record_is_named(account: Account, name: str) -> None:
    ids = account.server.ids("candidates")
    bad = ids[5]
    for id in ids[3:8]:
        account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.rule(f"GET /api/v1/candidates/{bad}*", FAULTS[name])
    result = account.run("pull", "candidates", "--json")
    assert 3 == result.status, result.text
    found = result.json["resources"]["candidates"]
    assert not found["proven"]
    assert bad in result.text
    loaded = account.rows("SELECT id FROM landing.candidates WHERE city = 'Leeds'")
    assert {*ids[3:8]} - {bad} <= {row["id"] for row in loaded}
    account.server.forget()
    account.pull("candidates")
    assert [] == account.differences("candidates")


@pytest.mark.parametrize("name", ["null", "without an id"])
def test_the_others_of_a_first_load_are_loaded(empty: Account, name: str) -> None:
    made = [
        empty.server.api(
            "POST", "/candidates", first_name=f"Ann{n}", last_name="Lee",
            email=f"ann{n}@people.example", employment_type="permanent",
        )["id"]
        for n in range(5)
    ]  # fmt: skip
    empty.server.rule(f"GET /api/v1/candidates/{made[2]}*", FAULTS[name])
    result = empty.run("pull", "candidates", "--json")
    assert 3 == result.status, result.text
    details = empty.rows("SELECT id FROM landing.candidates WHERE _record IS NOT NULL")
    assert {*made} - {made[2]} <= {row["id"] for row in details}
    empty.server.forget()
    empty.pull("candidates")
    assert [] == empty.differences("candidates")


def test_a_proxy_in_the_way_of_all_details_is_no_verified_pull(account: Account) -> None:
    for id in account.server.ids("candidates")[:4]:
        account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.rule("GET /api/v1/candidates/*", html(200))
    result = account.run("pull", "candidates", "--json")
    assert result.status in (1, 3)
    assert not result.json["resources"]["candidates"]["proven"]
    account.server.forget()
    account.pull("candidates")
    assert [] == account.differences("candidates")

"""A create is never sent twice: a lost answer is looked up, and held if nothing is found."""

from __future__ import annotations

import pytest

from tests.contract.kit import (
    Account,
    Fault,
    Forward,
    candidate,
    html,
    lost,
    plain,
    status,
    truncated,
    unsent,
)

CREATE = ("--mode", "create", "--no-wait")
APPLIED: dict[str, Fault] = {
    "hang-up": lost,
    "truncated": truncated,
    "500": status(500, after=True),
    "502 page": html(502, after=True),
    "409": status(409, after=True),
}
NOT_APPLIED: dict[str, Fault] = {
    "hang-up": unsent,
    "500": status(500),
    "502 page": html(502),
    "no JSON": plain(201, b"OK"),
}


def count(account: Account, number: int) -> int:
    """Return the number of records with this row's email."""
    return account.server.emails().count(f"ann{number}@people.example")


def posts(account: Account) -> int:
    """Return the number of creates that were sent."""
    return len(account.server.sent("POST"))


@pytest.mark.parametrize("name", APPLIED)
def test_a_record_whose_answer_was_lost_is_found(account: Account, name: str) -> None:
    account.server.rule("POST *", APPLIED[name], times=1)
    done = account.push("candidates", account.csv("a.csv", [candidate(1)]), *CREATE)
    assert (["created"], 1, 1) == (done.outcomes, posts(account), count(account, 1))
    (row,) = done.rows
    assert "ann1@people.example" == account.server.api("GET", f"/candidates/{row['_id']}")["email"]


@pytest.mark.parametrize("name", NOT_APPLIED)
def test_a_create_that_is_not_found_is_held_and_not_sent_again(account: Account, name: str) -> None:
    account.server.rule("POST *", NOT_APPLIED[name], times=1)
    file = account.csv("a.csv", [candidate(1)])
    for _ in range(2):
        done = account.push("candidates", file, *CREATE, status=3)
        assert (["held"], 1, 0) == (done.outcomes, posts(account), count(account, 1))


def test_the_same_row_in_another_file_is_held_and_not_sent(account: Account) -> None:
    account.server.rule("POST *", unsent, times=1)
    account.push("candidates", account.csv("a.csv", [candidate(1)]), *CREATE, status=3)
    again = account.push("candidates", account.csv("b.csv", [candidate(1)]), *CREATE, status=3)
    assert (["held"], 1, 0) == (again.outcomes, posts(account), count(account, 1))


def test_a_record_that_appears_later_is_found_by_the_next_push(account: Account) -> None:
    account.server.rule("POST *", unsent, times=1)
    file = account.csv("a.csv", [candidate(1)])
    account.push("candidates", file, *CREATE, status=3)
    account.server.api("POST", "/candidates", **candidate(1))
    account.run("push", "candidates", file, *CREATE, "--apply")
    assert (1, 1) == (posts(account), count(account, 1))


def test_an_equal_record_that_existed_before_is_not_taken_for_the_rows(account: Account) -> None:
    """Jobs have no identity; the old one is no proof that the create was applied."""
    old = account.server.api("GET", f"/jobs/{account.server.ids('jobs')[0]}")
    row = {name: old[name] for name in ("title", "location", "description")}
    account.server.rule("POST *", unsent, times=1)
    file = account.csv("a.csv", [{**row, "employment_type": "permanent"}])
    done = account.push("jobs", file, *CREATE, "--accept-warnings", status=3)
    assert (["held"], 1) == (done.outcomes, posts(account))
    assert old["id"] != done.rows[0]["_id"]


def test_the_other_rows_are_sent(account: Account) -> None:
    account.server.rule("POST *", unsent, times=1)
    file = account.csv("a.csv", [candidate(n) for n in range(4)])
    done = account.push("candidates", file, *CREATE, status=3)
    assert ["created", "created", "created", "held"] == sorted(done.outcomes)
    assert 4 == posts(account)


@pytest.mark.parametrize("name", ["hang-up", "502 page"])
def test_an_update_whose_answer_was_lost_is_read_again(account: Account, name: str) -> None:
    id = account.server.ids("candidates")[0]
    account.server.rule("PUT *", APPLIED[name], times=1)
    file = account.csv("a.csv", [{"id": id, "city": "Leeds"}])
    done = account.push("candidates", file, "--mode", "update")
    assert ["updated"] == done.outcomes
    assert "Leeds" == account.server.api("GET", f"/candidates/{id}")["city"]


@pytest.mark.parametrize("name", ["hang-up", "502 page"])
def test_a_conversion_whose_answer_was_lost_is_not_sent_again(account: Account, name: str) -> None:
    id = account.server.ids("leads")[0]
    account.server.rule("POST *", APPLIED[name], times=1)
    file = account.csv("a.csv", [{"id": id}])
    account.run("push", "leads", file, "--mode", "convert", "--apply", "--no-wait", "--no-pull")
    account.run("push", "leads", file, "--mode", "convert", "--apply", "--no-wait", "--no-pull")
    assert 1 == posts(account)


@pytest.mark.parametrize(("skip", "applies"), [(0, False), (2, True)], ids=["before", "after"])
def test_a_killed_push_sends_no_create_twice(account: Account, skip: int, *, applies: bool) -> None:
    """A row is marked as sent on the disk before the first byte, so no kill loses it."""
    file = account.csv("a.csv", [candidate(n) for n in range(4)])
    given = ("push", "candidates", file, *CREATE, "--apply", "--no-pull", "--quiet")
    process = account.start(*given, CONNECTOR_CONNECTIONS="1")

    def kill(forward: Forward) -> None:
        if applies:
            forward()
        process.kill()
        process.wait(60)

    account.server.rule("POST *", kill, times=1, skip=skip)
    process.communicate(timeout=60)
    assert -9 == process.returncode
    account.run("push", "candidates", file, *CREATE, "--apply")
    account.run("push", "candidates", file, *CREATE, "--apply")
    bodies = [each.fields["email"] for each in account.server.sent("POST")]
    assert len({*bodies}) == len(bodies)
    for number in range(4):
        is_lost = number == skip and not applies
        assert (0 if is_lost else 1) == count(account, number)

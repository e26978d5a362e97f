"""Undo restores what a push changed, and keeps later edits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kit import Account, Forward, candidate, lost


def read(account: Account, id: str) -> dict[str, Any]:
    """Return the candidate without the time of its last change."""
    found = account.server.api("GET", f"/candidates/{id}")
    return {name: value for name, value in found.items() if name != "updated_at"}


def test_a_preview_of_an_undo_writes_nothing(account: Account) -> None:
    account.push("candidates", account.csv("a.csv", [candidate(1)]), "--mode", "create")
    account.server.forget()
    assert 0 == account.run("undo", "last").status
    assert [] == account.server.sent()


@pytest.mark.parametrize("name", ["last", "batch"])
def test_created_records_are_deleted(account: Account, name: str) -> None:
    before = account.server.emails()
    rows = [candidate(1), candidate(2)]
    done = account.push("candidates", account.csv("a.csv", rows), "--mode", "create")
    result = account.run("undo", done.batch if name == "batch" else name, "--apply", "--json")
    assert 0 == result.status, result.text
    assert before == account.server.emails()


def test_updated_fields_get_their_earlier_values(account: Account) -> None:
    ids = account.server.ids("candidates")[:3]
    before = [read(account, id) for id in ids]
    rows = [{"id": id, "city": "Leeds", "notes": f"Note {id}"} for id in ids]
    account.push("candidates", account.csv("a.csv", rows), "--mode", "update")
    assert 0 == account.run("undo", "last", "--apply").status
    assert before == [read(account, id) for id in ids]


def test_a_later_edit_of_a_pushed_field_is_kept(account: Account) -> None:
    first, second = account.server.ids("candidates")[:2]
    before = read(account, second)
    rows = [{"id": id, "city": "Leeds"} for id in (first, second)]
    account.push("candidates", account.csv("a.csv", rows), "--mode", "update")
    account.server.api("PUT", f"/candidates/{first}", city="York")
    assert 3 == account.run("undo", "last", "--apply").status
    assert "York" == read(account, first)["city"]
    assert before == read(account, second)


def test_a_later_edit_of_another_field_is_kept_and_the_field_is_restored(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    before = read(account, id)
    file = account.csv("a.csv", [{"id": id, "city": "Leeds"}])
    account.push("candidates", file, "--mode", "update")
    account.server.api("PUT", f"/candidates/{id}", notes="Later")
    account.run("undo", "last", "--apply")
    assert {**before, "notes": "Later"} == read(account, id)


def test_a_created_record_that_changed_since_is_kept(account: Account) -> None:
    done = account.push("candidates", account.csv("a.csv", [candidate(1)]), "--mode", "create")
    id = done.rows[0]["_id"]
    account.server.api("PUT", f"/candidates/{id}", city="York")
    assert 3 == account.run("undo", "last", "--apply").status
    assert "York" == read(account, id)["city"]


def test_an_undo_that_was_done_does_nothing(account: Account) -> None:
    id = account.server.ids("candidates")[0]
    file = account.csv("a.csv", [{"id": id, "city": "Leeds"}])
    done = account.push("candidates", file, "--mode", "update")
    account.run("undo", done.batch, "--apply")
    account.server.forget()
    account.run("undo", done.batch, "--apply")
    assert [] == account.server.sent()


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_an_undo_whose_answer_was_lost_is_completed(account: Account, method: str) -> None:
    before = account.server.emails()
    id = account.server.ids("candidates")[0]
    city = read(account, id)["city"]
    row, mode = (candidate(1), "create") if method == "DELETE" else (
        {"id": id, "city": "Leeds"}, "update")  # fmt: skip
    done = account.push("candidates", account.csv("a.csv", [row]), "--mode", mode)
    account.server.rule(f"{method} *", lost, times=1)
    account.run("undo", done.batch, "--apply")
    account.run("undo", done.batch, "--apply")
    assert before == account.server.emails()
    assert city == read(account, id)["city"]


@pytest.mark.parametrize("applies", [False, True])
def test_a_killed_undo_is_finished_by_the_next(account: Account, *, applies: bool) -> None:
    before = account.server.emails()
    file = account.csv("a.csv", [candidate(n) for n in range(4)])
    done = account.push("candidates", file, "--mode", "create")
    process = account.start("undo", done.batch, "--apply", CONNECTOR_CONNECTIONS="1")

    def kill(forward: Forward) -> None:
        if applies:
            forward()
        process.kill()
        process.wait(60)

    account.server.rule("DELETE *", kill, times=1, skip=1)
    process.communicate(timeout=60)
    assert -9 == process.returncode
    assert 0 == account.run("undo", done.batch, "--apply").status
    assert before == account.server.emails()
    paths = [each.path for each in account.server.sent("DELETE")]
    assert len(paths) == len({*paths}) + (0 if applies else 1)


def test_the_undone_file_can_be_pushed_again(account: Account) -> None:
    file = account.csv("a.csv", [candidate(1)])
    account.push("candidates", file, "--mode", "create")
    account.run("undo", "last", "--apply")
    account.run("push", "candidates", file, "--mode", "create", "--apply", "--resend", "--json")
    assert 1 == account.server.emails().count("ann1@people.example")


def test_an_undo_names_the_other_batch_of_the_same_import(account: Account) -> None:
    names = ("a.csv", "a.report.csv", "b.csv")
    files = [account.csv(name, [candidate(number)]) for number, name in enumerate(names, 71)]
    first, second, third = (
        account.push("candidates", file, "--mode", "create").batch for file in files
    )
    assert f"connector undo {first}" in account.run("undo", second).text
    assert "another batch" not in account.run("undo", third).text
    account.run("undo", first, "--apply")
    assert "another batch" not in account.run("undo", second).text


@pytest.mark.parametrize("batch", ["last", "20260101T000000Z-000000", "../x"])
def test_an_unknown_batch_is_wrong_usage(account: Account, batch: str) -> None:
    assert account.run("undo", batch, "--apply").status in (1, 2)
    assert [] == account.server.log

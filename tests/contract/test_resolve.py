"""A person decides about the rows whose record was not found."""

from __future__ import annotations

import pytest

from tests.contract.kit import Account, candidate, unsent


class Held:
    """An account with one held row."""

    def __init__(self, account: Account) -> None:
        self.account = account
        account.server.rule("POST *", unsent, times=1)
        self.file = account.csv("a.csv", [candidate(1)])
        words = ("--mode", "create", "--no-wait")
        self.batch = account.push("candidates", self.file, *words, status=3).batch

    def resolve(self, *words: str) -> int:
        """Resolve the row, and return the exit status."""
        return self.account.run("resolve", self.batch, "2", *words, "--json").status

    @property
    def waiting(self) -> int:
        """Number of rows that are shown."""
        return len(self.account.run("resolve", "--json").json["rows"])


@pytest.fixture
def held(account: Account) -> Held:
    """A held row."""
    return Held(account)


def test_the_row_is_listed_with_its_person(held: Held) -> None:
    assert 1 == held.waiting
    result = held.account.run("resolve")
    assert "ann1@people.example" in result.text
    assert held.batch in result.text


@pytest.mark.parametrize("word", ["--drop", "--resend"])
def test_nobody_decides_while_the_api_may_still_apply_the_row(held: Held, word: str) -> None:
    assert 2 == held.resolve(word)
    assert 1 == held.waiting
    assert 1 == len(held.account.server.sent("POST"))


def test_a_search_finds_the_record_that_appeared(held: Held) -> None:
    held.account.server.api("POST", "/candidates", **candidate(1))
    assert 0 == held.resolve("--look")
    assert 0 == held.waiting
    assert 1 == len(held.account.server.sent("POST"))


@pytest.mark.parametrize(("words", "reason"), [
    ((), "no action is given"), (("--drop", "--look"), "several actions"),
    (("--record", "7"), "exactly one row"),
], ids=["none", "two", "record"])  # fmt: skip
def test_a_batch_needs_one_action(held: Held, words: tuple[str, ...], reason: str) -> None:
    result = held.account.run("resolve", held.batch, *words)
    assert 2 == result.status
    assert reason in result.err
    assert 1 == held.waiting


def test_a_search_without_a_result_keeps_the_row(held: Held) -> None:
    held.resolve("--look")
    assert 1 == held.waiting


def test_another_persons_record_is_refused(held: Held) -> None:
    other = held.account.server.ids("candidates")[0]
    assert 0 != held.resolve("--record", other)
    assert 1 == held.waiting


@pytest.mark.parametrize("id", ["", "candidates/7", "7?page=2"])
def test_an_id_that_is_no_id_is_not_requested(held: Held, id: str) -> None:
    before = len(held.account.server.log)
    assert 2 == held.resolve("--record", id)
    assert before == len(held.account.server.log)


@pytest.mark.parametrize("words", [("nothing", "2", "--drop"), ("{batch}", "99", "--drop")])
def test_an_unknown_row_is_wrong_usage(held: Held, words: tuple[str, ...]) -> None:
    given = [word.format(batch=held.batch) for word in words]
    assert 2 == held.account.run("resolve", *given).status
    assert 1 == held.waiting

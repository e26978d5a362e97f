"""A record is marked as deleted by the API's own 404 only, and never in suspicious numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.kit import KEY, Account, Server, World, edited, hide, html, plain, status

NOT_THE_APIS = {
    "html": html(404),
    "list": plain(404, b"[]"),
    "null": plain(404, b"null"),
    "another object": plain(404, b'{"fault": {"code": "route"}}'),
    "problem details": plain(404, b'{"status": 404, "title": "Not Found", "detail": "No route"}'),
    "no code": plain(404, b'{"error": {"code": 404}, "message": null}'),
}
PATHS = {"lists": "GET /api/v1/candidates[?]*", "details": "GET /api/v1/candidates/*"}


@pytest.mark.parametrize("form", ["html", "list", "no code"])
@pytest.mark.parametrize("place", PATHS)
def test_a_404_that_is_not_the_apis_deletes_nothing(
    account: Account, place: str, form: str
) -> None:
    before = account.live_ids("candidates")
    account.server.api("PUT", f"/candidates/{account.server.ids('candidates')[3]}", city="Leeds")
    account.server.rule(PATHS[place], NOT_THE_APIS[form])
    result = account.run("pull", "candidates", "--json")
    assert result.status in (1, 3), result.text
    assert not result.json["resources"]["candidates"]["proven"]
    assert before == account.live_ids("candidates")


@pytest.mark.parametrize("form", ["html", "null", "another object", "problem details", "no code"])
def test_a_hidden_record_whose_detail_is_a_404_of_another_program_is_kept(
    account: Account, form: str
) -> None:
    """Lists and totals agree that the record is gone, but the API's own 404 is missing."""
    before = account.live_ids("candidates")
    hidden = account.server.ids("candidates")[3]
    account.server.rule(PATHS["lists"], hide(hidden))
    account.server.rule(f"GET /api/v1/candidates/{hidden}*", NOT_THE_APIS[form])
    result = account.run("pull", "candidates", "--json")
    assert result.status in (1, 3), result.text
    assert not result.json["resources"]["candidates"]["proven"]
    assert before == account.live_ids("candidates")
    account.server.forget()
    account.server.rule(PATHS["lists"], hide(hidden))
    account.server.rule(f"GET /api/v1/candidates/{hidden}*", status(404))
    assert 1 == account.pull("candidates")["resources"]["candidates"]["deleted"]


def test_a_404_of_the_api_to_a_list_deletes_nothing(account: Account) -> None:
    before = account.live_ids("candidates")
    account.server.rule(PATHS["lists"], status(404))
    assert account.run("pull", "candidates").status in (1, 3)
    assert before == account.live_ids("candidates")


@pytest.mark.parametrize("code", [401, 403, 410])
def test_no_other_status_of_a_detail_deletes_a_record(account: Account, code: int) -> None:
    before = account.live_ids("candidates")
    id = account.server.ids("candidates")[3]
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.rule(f"GET /api/v1/candidates/{id}*", status(code, retry_after=0))
    assert account.run("pull", "candidates").status in (1, 3, 4)
    assert before == account.live_ids("candidates")


def test_records_that_lists_hide_but_details_show_are_kept(account: Account) -> None:
    hidden = account.server.ids("candidates")
    account.server.rule(PATHS["lists"], hide(*hidden))
    result = account.run("pull", "candidates", "--json")
    assert {*hidden} <= account.live_ids("candidates"), result.text


def test_an_empty_list_with_a_total_deletes_nothing(account: Account) -> None:
    before = account.live_ids("candidates")
    account.server.rule(PATHS["lists"], edited(lambda document: {**document, "data": []}))
    result = account.run("pull", "candidates", "--json")
    assert not result.json["resources"]["candidates"]["proven"]
    assert before == account.live_ids("candidates")


def delete(account: Account, number: int) -> None:
    """Delete the newest candidates on the server."""
    ids = account.server.ids("candidates")
    for id in ids[len(ids) - number :]:
        account.server.api("DELETE", f"/candidates/{id}")


@pytest.fixture(scope="module")
def large(server: Server, tmp_path_factory: pytest.TempPathFactory) -> World:
    """An agency with 60 candidates, pulled once."""
    folder = tmp_path_factory.mktemp("large")
    with server.serve(data=folder / "records.sqlite", counts={"candidates": 60}):
        account = Account(server, folder)
        account.pull("candidates")
    return World(server, folder / "records.sqlite", account.data)


@pytest.mark.parametrize(("number", "is_held"), [(20, False), (21, True), (60, True)])
def test_many_deletions_are_held_until_they_are_accepted(
    large: World, tmp_path: Path, number: int, is_held: bool
) -> None:
    with large.copy(tmp_path) as account:
        before = account.live_ids("candidates")
        delete(account, number)
        if is_held:
            for _ in range(2):
                report = account.pull("candidates", status=3)
                assert "deletions_held" == report["resources"]["candidates"]["error_code"]
                assert before == account.live_ids("candidates")
        account.pull("candidates", *(["--accept-deletes"] if is_held else []))
        assert [] == account.differences("candidates")
        assert 60 - number == len(account.live_ids("candidates"))


@pytest.mark.slow
def test_deletions_are_counted_since_the_last_verified_pull(large: World, tmp_path: Path) -> None:
    with large.copy(tmp_path) as account:
        for number, left in ((20, 40), (10, 30)):
            delete(account, number)
            account.pull("candidates")
            assert left == len(account.live_ids("candidates"))
        delete(account, 21)
        for _ in range(2):
            account.pull("candidates", status=3)
            assert 30 == len(account.live_ids("candidates"))
        account.pull("candidates", "--accept-deletes")
        delete(account, 5)
        account.pull("candidates")
        assert [] == account.differences("candidates")


def test_all_records_of_a_small_resource_are_held(account: Account) -> None:
    before = account.live_ids("companies")
    for id in account.server.ids("companies"):
        account.server.api("DELETE", f"/companies/{id}")
    for _ in range(2):
        account.pull("companies", status=3)
        assert before == account.live_ids("companies")
    account.pull("companies", "--accept-deletes")
    assert set() == account.live_ids("companies")


def test_a_refused_list_lands_nothing_new(large: World, tmp_path: Path) -> None:
    with large.copy(tmp_path) as account:
        delete(account, 30)
        created = account.server.api(
            "POST", "/candidates", first_name="New", last_name="Lee",
            email="new@people.example", employment_type="permanent",
        )  # fmt: skip
        account.pull("candidates", status=3)
        assert created["id"] not in account.live_ids("candidates")
        account.pull("candidates", "--accept-deletes")
        assert created["id"] in account.live_ids("candidates")


def test_a_deletion_is_found_by_halving(large: World, tmp_path: Path) -> None:
    with large.copy(tmp_path) as account:
        delete(account, 1)
        assert account.pull("candidates")["resources"]["candidates"]["requests"] < 12


def test_a_rejected_key_deletes_nothing(account: Account) -> None:
    before = account.live_ids("candidates")
    result = account.run("pull", CONNECTOR_API_KEY=KEY + "x")
    assert result.status in (1, 2)
    assert before == account.live_ids("candidates")

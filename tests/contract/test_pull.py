"""A pull makes the copy equal to the API, with few requests, whatever happens during it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path

import pytest

from tests.contract.kit import (
    Account,
    Answer,
    Forward,
    Server,
    World,
    edited,
    path_of,
    plain,
    status,
    truncated,
)

FIELD = {
    "jobs": {"title": "Bricklayer"},
    "candidates": {"city": "Leeds"},
    "companies": {"industry": "Brewing"},
    "bookings": {"title": "Moved"},
    "leads": {"city": "Leeds"},
}


def test_a_first_load_equals_the_api(account: Account) -> None:
    assert [] == account.differences()


def test_a_quiet_resource_needs_two_requests(account: Account) -> None:
    report = account.pull(*FIELD)
    assert dict.fromkeys(FIELD, 2) == {
        name: each["requests"] for name, each in report["resources"].items()
    }
    assert 2 * len(FIELD) == len(account.server.log) == report["requests"]


def test_an_edit_is_loaded_with_its_page_and_its_detail(account: Account) -> None:
    for resource, fields in FIELD.items():
        id = account.server.ids(resource)[0]
        account.server.api("PUT", f"/{resource}/{id}", **fields)
    for name, found in account.pull(*FIELD)["resources"].items():
        assert (1, 0) == (found["changed"], found["new"]), name
        assert found["requests"] <= 3, name
    assert [] == account.differences(*FIELD)


def test_a_deletion_is_loaded(account: Account) -> None:
    ids = {resource: account.server.ids(resource)[1] for resource in FIELD}
    for resource, id in ids.items():
        account.server.api("DELETE", f"/{resource}/{id}")
    found = account.pull(*FIELD)["resources"]
    assert dict.fromkeys(FIELD, 1) == {name: each["deleted"] for name, each in found.items()}
    assert [] == account.differences(*FIELD)
    for resource, id in ids.items():
        (row,) = account.rows(f"SELECT * FROM landing.{resource} WHERE id = ?", id)
        assert row["_deleted_at"] is not None


def test_a_created_record_is_loaded(account: Account) -> None:
    kept = {
        "jobs": ("title", "location", "description", "employment_type"),
        "candidates": ("first_name", "last_name", "employment_type"),
        "companies": ("name",),
        "leads": ("first_name", "last_name", "lead_status_id"),
    }
    for resource, names in kept.items():
        first = account.server.api("GET", f"/{resource}/{account.server.ids(resource)[0]}")
        fields = {name: first[name] for name in names}
        if "employment_type" in names:
            fields["employment_type"] = "permanent"
        if resource != "jobs":
            fields["email"] = "created@people.example"
        account.server.api("POST", f"/{resource}", **fields)
    found = account.pull(*kept)["resources"]
    assert dict.fromkeys(kept, 1) == {name: each["new"] for name, each in found.items()}
    assert [] == account.differences(*kept)


def test_several_edits_and_a_deletion_together_are_exact(account: Account) -> None:
    ids = account.server.ids("candidates")
    for number, id in enumerate(ids[2:9]):
        account.server.api("PUT", f"/candidates/{id}", city=f"City {number}")
    account.server.api("DELETE", f"/candidates/{ids[0]}")
    account.server.api("DELETE", f"/candidates/{ids[12]}")
    found = account.pull("candidates")["resources"]["candidates"]
    assert (7, 2, 0) == (found["changed"], found["deleted"], found["new"])
    assert [] == account.differences("candidates")


def test_a_content_item_is_edited_and_deleted(account: Account) -> None:
    slug = account.server.pages("/content-types")[0]["slug"]
    first, second = (each["id"] for each in account.server.pages(f"/content/{slug}"))
    account.server.api("PUT", f"/content/{slug}/{first}", title="Edited")
    account.server.api("DELETE", f"/content/{slug}/{second}")
    account.pull("content_types", "content_items")
    assert [] == account.differences("content_types", "content_items")


@pytest.mark.parametrize("behaviour", [
    {"sorting": "ignored"}, {"nulls": "absent"}, {"counters": "moving"},
    {"page_past_end": "last"}, {"page_past_end": "404"},
    {"date_header": "missing"}, {"rate_window": "sliding"},
], ids=lambda each: "-".join(*each.items()))  # fmt: skip
def test_other_servers_are_copied_exactly(
    world: World, tmp_path: Path, behaviour: dict[str, str]
) -> None:
    with world.copy(tmp_path, behaviours=behaviour) as account:
        ids = account.server.ids("candidates")
        account.server.api("PUT", f"/candidates/{ids[5]}", city="Leeds")
        account.server.api("DELETE", f"/candidates/{ids[7]}")
        account.run("pull", "candidates")
        account.server.api("PUT", f"/candidates/{ids[20]}", city="York")
        assert account.run("pull", "candidates").status in (0, 3)
        if "nulls" in behaviour:  # The other form of a null is no difference of the record.
            assert {*account.server.ids("candidates")} == account.live_ids("candidates")
        else:
            assert [] == account.differences("candidates")


@pytest.mark.parametrize(("fault", "path"), [
    (truncated, "GET /api/v1/candidates[?]*"), (status(502), "GET /api/v1/candidates/*"),
    (status(429, retry_after=0), "GET /api/v1/candidates[?]*"),
], ids=["truncated", "502", "429"])  # fmt: skip
def test_an_answer_that_fails_once_is_requested_again(
    account: Account, fault: Callable[[Forward], Answer | None], path: str
) -> None:
    account.server.api("PUT", f"/candidates/{account.server.ids('candidates')[3]}", city="Leeds")
    rule = account.server.rule(path, fault, times=1)
    assert account.pull("candidates")["resources"]["candidates"]["proven"]
    assert 1 == rule.used
    assert [] == account.differences("candidates")


def test_edits_and_deletions_during_the_read_are_exact(server: Server, tmp_path: Path) -> None:
    with server.serve(counts={"candidates": 40}):
        account = Account(server, tmp_path)
        ids = server.ids("candidates")

        def change_then_answer(forward: Forward) -> Answer:
            id = ids.pop()
            server.api("PUT", f"/candidates/{id}", city="Leeds")
            server.api("DELETE", f"/candidates/{ids.pop(0)}")
            return forward()

        server.rule("GET /api/v1/candidates/*", change_then_answer, times=4, skip=2)
        account.run("pull", "candidates")
        server.forget()
        account.pull("candidates")
        assert [] == account.differences("candidates")


@pytest.mark.parametrize("stop", [2, 25])
def test_a_pull_that_dies_is_continued(server: Server, tmp_path: Path, stop: int) -> None:
    with server.serve(counts={"candidates": 30}):
        account = Account(server, tmp_path)
        process = account.start("pull", "candidates", "--quiet")

        def kill(forward: Forward) -> None:
            process.kill()

        server.rule("GET /api/v1/candidates*", kill, times=1, skip=stop)
        process.communicate(timeout=60)
        assert -9 == process.returncode
        server.forget()
        account.pull("candidates")
        assert [] == account.differences("candidates")


def test_a_pull_that_is_stopped_by_sigterm_is_no_problem(world: World, tmp_path: Path) -> None:
    with world.copy(tmp_path) as account:
        for id in account.server.ids("candidates")[:9]:
            account.server.api("PUT", f"/candidates/{id}", city="Leeds")
        process = account.start("pull", "candidates", "--quiet")

        def stop(forward: Forward) -> Answer:
            process.terminate()
            process.wait(60)
            return forward()

        account.server.rule("GET /api/v1/candidates/*", stop, times=1, skip=2)
        process.communicate(timeout=60)
        assert 4 == process.returncode
        found = account.run("status", "--json").json
        assert ([], "stopped") == (found["problems"], found["runs"][0]["outcome"])


@pytest.mark.parametrize("stop", [1, 15])
def test_no_edit_is_lost_when_a_pull_dies(world: World, tmp_path: Path, stop: int) -> None:
    """A bookmark is never ahead of the records that it covers.

    The edits are some hours old, because each pull reads the last hour again, and on two pages,
    because a pull compares all of the first one.
    """
    now = [datetime.now(UTC)]
    pages = {"per_page_max": "10"}
    with world.copy(tmp_path, clock=lambda: now[0], behaviours=pages) as account:
        records = account.server.records("candidates").values()
        for number, each in enumerate(sorted(records, key=itemgetter("updated_at"))[:16]):
            account.server.api("PUT", f"/candidates/{each['id']}", city=f"City {number}")
        now[0] += timedelta(hours=5)
        process = account.start("pull", "candidates", "--quiet", CONNECTOR_CONNECTIONS="1")

        def kill(forward: Forward) -> Answer:
            answer = forward()
            process.kill()
            process.wait(60)
            return answer

        account.server.rule("GET /api/v1/candidates*", kill, times=1, skip=stop)
        process.communicate(timeout=60)
        assert -9 == process.returncode
        account.server.forget()
        now[0] += timedelta(minutes=1)
        account.pull("candidates")
        assert [] == account.differences("candidates")


def test_an_unreadable_detail_does_not_move_the_bookmark_past_it(account: Account) -> None:
    ids = account.server.ids("candidates")
    for id in ids[4:8]:
        account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.rule("GET /api/v1/candidates/*", plain(200, b"{"), skip=1)
    result = account.run("pull", "candidates", "--json")
    assert result.status in (1, 3)
    account.server.forget()
    account.pull("candidates")
    assert [] == account.differences("candidates")


@pytest.mark.parametrize("total", [0, 4000])
def test_a_wrong_total_is_never_reported_as_verified_when_the_copy_differs(
    account: Account, total: int
) -> None:
    id = account.server.ids("candidates")[2]
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.api("DELETE", f"/candidates/{account.server.ids('candidates')[9]}")

    def misreport(document: dict[str, object]) -> dict[str, object]:
        pages = -(-total // 100)
        page = {"page": 1, "per_page": 100, "total": total, "total_pages": pages}
        return {**document, "pagination": page}

    account.server.rule("GET /api/v1/candidates[?]*", edited(misreport))
    result = account.run("pull", "candidates", "--json")
    found = result.json["resources"]["candidates"]
    assert not (found["proven"] and account.differences("candidates")), result.text


@pytest.mark.parametrize("body", [b"", b'{"data": {}}'])
def test_an_answer_of_another_form_is_no_record(account: Account, body: bytes) -> None:
    id = account.server.ids("candidates")[2]
    account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.server.rule(f"GET /api/v1/candidates/{id}*", plain(200, body))
    result = account.run("pull", "candidates", "--json")
    assert result.status in (1, 3)
    assert not result.json["resources"]["candidates"]["proven"]
    account.server.forget()
    account.pull("candidates")
    assert [] == account.differences("candidates")


def test_the_named_resources_are_pulled_alone(account: Account) -> None:
    account.pull("jobs")
    assert {"/api/v1/jobs"} == {each.path[:12] for each in account.server.log}


def test_an_unknown_resource_is_wrong_usage(account: Account) -> None:
    result = account.run("pull", "canddates")
    assert 2 == result.status
    assert "candidates" in result.err
    assert [] == account.server.log


@pytest.mark.parametrize("resource", ["jobs", "content_types"])
def test_full_reads_every_record_again(account: Account, resource: str) -> None:
    before = len(account.server.ids(resource))
    account.pull(resource, "--full")
    prefix = f"/api/v1/{path_of(resource)}/"
    read = {each.path for each in account.server.log if each.path.startswith(prefix)}
    assert before == len(read)


def test_ids_reads_only_the_named_records(account: Account) -> None:
    ids = account.server.ids("candidates")
    for id in ids[:3]:
        account.server.api("PUT", f"/candidates/{id}", city="Leeds")
    account.pull("candidates", "--ids", ",".join(ids[:2]))
    assert {f"/api/v1/candidates/{id}" for id in ids[:2]} == {e.path for e in account.server.log}
    found = account.rows("SELECT id FROM landing.candidates WHERE city = 'Leeds'")
    assert {*ids[:2]} <= {row["id"] for row in found}
    account.pull("candidates")
    assert [] == account.differences("candidates")


def test_reverify_finds_a_change_that_the_server_hides(account: Account) -> None:
    """A server that edits a record without updating `updated_at`."""
    ids = account.server.ids("candidates")

    def hide(document: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        return {**document, "data": {**document["data"], "city": "Hidden"}}

    account.server.rule(f"GET /api/v1/candidates/{ids[0]}*", edited(hide))
    account.pull("candidates", "--reverify", "30")
    found = account.rows("SELECT id FROM landing.candidates WHERE city = 'Hidden'")
    assert [ids[0]] == [row["id"] for row in found]

"""Every endpoint of API 4, over a socket: statuses, envelopes, shapes."""

from __future__ import annotations

import pytest

from connector.catalog import CATALOG
from tests.sandbox.world import ABSENT_ID, CHANGEABLE, CREATABLE, FEW, Open, ServedSandbox


@pytest.mark.parametrize("resource", CATALOG)
def test_a_list_has_its_envelope_and_exactly_the_declared_fields(
    world: ServedSandbox, resource: str
) -> None:
    answer = world.get(world.list_path(resource))

    assert 200 == answer.status_code
    assert {"data", "pagination"} == set(answer.json())
    shape = [each.name for each in CATALOG[resource].item_fields]
    assert answer.json()["data"]
    assert all(shape == list(item) for item in answer.json()["data"])


@pytest.mark.parametrize("resource", CATALOG)
def test_a_list_contains_every_record_once(world: ServedSandbox, resource: str) -> None:
    path = world.list_path(resource)
    type = path.rsplit("/", 1)[-1] if resource == "content_items" else None

    assert sorted(world.store.records(resource, type=type)) == sorted(world.list_ids(path))


@pytest.mark.parametrize("resource", CATALOG)
def test_items_and_details_equal_the_stored_records(world: ServedSandbox, resource: str) -> None:
    path, records = world.list_path(resource), world.store.records(resource)
    for item in world.get(path).json()["data"]:
        detail = records[item["id"]]
        assert item == {name: detail[name] for name in item}
    for id in world.list_ids(path)[:10]:
        answer = world.get(f"{path}/{id}")
        assert (200, ["data"]) == (answer.status_code, list(answer.json()))
        assert records[id] == answer.json()["data"]
        assert [f.name for f in CATALOG[resource].detail_fields] == list(records[id])


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("resource", CHANGEABLE)
def test_an_unknown_id_gives_404(world: ServedSandbox, resource: str, method: str) -> None:
    answer = world.call(method, f"{world.list_path(resource)}/{ABSENT_ID}", json={})

    assert 404 == answer.status_code
    assert "not_found" == answer.json()["error"]
    assert {"error", "message"} == set(answer.json())


@pytest.mark.parametrize("resource", CHANGEABLE)
def test_a_record_can_be_created_read_updated_and_deleted(open_world: Open, resource: str) -> None:
    world = open_world(counts=FEW)
    path = world.list_path(resource)
    declaration = CATALOG[resource]
    full = [each.name for each in declaration.detail_fields]

    created = world.call("POST", path, json=world.minimal_body(resource))
    assert 201 == created.status_code
    assert {"data", "message"} == set(created.json())
    assert set(declaration.echoes.get("create") or full) == set(created.json()["data"])
    id = created.json()["data"]["id"]

    before = world.get(f"{path}/{id}").json()["data"]
    assert before["created_at"] == before["updated_at"]
    changed = world.call("PUT", f"{path}/{id}", json={})
    assert 200 == changed.status_code
    assert {"data", "message"} == set(changed.json())
    assert set(declaration.echoes.get("update") or full) == set(changed.json()["data"])
    assert before["updated_at"] < changed.json()["data"]["updated_at"]

    deleted = world.call("DELETE", f"{path}/{id}")
    assert (204, b"") == (deleted.status_code, deleted.content)
    assert 404 == world.get(f"{path}/{id}").status_code


@pytest.mark.parametrize("resource", CREATABLE)
def test_every_accepted_field_is_stored(open_world: Open, resource: str) -> None:
    world = open_world(counts=FEW)
    path = world.list_path(resource)
    sent = world.full_body(resource)
    id = world.call("POST", path, json=sent).json()["data"]["id"]
    assert_stored(world, resource, id, sent)

    if resource not in CHANGEABLE:
        return
    sent = world.full_body(resource, "update")
    answer = world.call("PUT", f"{path}/{id}", json=sent)
    assert 200 == answer.status_code, answer.text
    assert_stored(world, resource, id, sent)


def assert_stored(world: ServedSandbox, resource: str, id: str, sent: dict[str, object]) -> None:
    """Assert that the record has every sent value in the store and in its detail."""
    shown = world.get(f"{world.list_path(resource)}/{id}").json()["data"]
    write_only = {n for n, f in CATALOG[resource].fields.items() if f.write_only}

    assert {n: v for n, v in sent.items() if n not in write_only} == {
        n: shown[n] for n in sent if n not in write_only
    }
    assert {n: v for n, v in sent.items() if n in write_only} == world.store.write_only_fields(
        resource, id
    )
    assert not write_only & set(shown)


@pytest.mark.parametrize("resource", CHANGEABLE)
def test_an_update_keeps_the_fields_it_does_not_contain(open_world: Open, resource: str) -> None:
    world = open_world(counts=FEW)
    path = world.list_path(resource)
    id = world.list_ids(path)[3]
    before = world.store.records(resource)[id]
    name = next(f.name for f, t in CATALOG[resource].body_fields("update") if f.kind == "string")
    value = "new@example.com" if name == "email" else "interview"
    if name not in ("email", "booking_type"):
        value = "A new text"

    world.call("PUT", f"{path}/{id}", json={name: value})

    after = world.store.records(resource)[id]
    assert {**before, name: value, "updated_at": after["updated_at"]} == after
    assert before["updated_at"] < after["updated_at"]


def test_content_items_are_found_by_slug_and_id_of_their_type(open_world: Open) -> None:
    world = open_world(counts=FEW)
    type = next(iter(world.store.records("content_types").values()))

    assert world.list_ids(f"/content/{type['id']}") == world.list_ids(f"/content/{type['slug']}")
    created = world.call(
        "POST", f"/content/{type['slug']}", json=world.minimal_body("content_items")
    )
    id = created.json()["data"]["id"]
    assert 200 == world.get(f"/content/{type['id']}/{id}").status_code
    assert 200 == world.get(f"/content/{type['slug']}/{id}").status_code


def test_a_content_item_is_not_found_under_another_type(world: ServedSandbox) -> None:
    first, second, *_ = world.store.records("content_types")
    id = world.list_ids(f"/content/{first}")[0]

    assert 404 == world.get(f"/content/{second}/{id}").status_code
    assert 404 == world.get(f"/content/{ABSENT_ID}").status_code
    assert 404 == world.get(f"/content/{ABSENT_ID}/{id}").status_code
    assert not set(world.list_ids(f"/content/{first}")) & set(world.list_ids(f"/content/{second}"))


def test_content_types_are_read_only(world: ServedSandbox) -> None:
    id = next(iter(world.store.records("content_types")))

    assert 405 == world.call("POST", "/content-types", json={}).status_code
    assert 405 == world.call("PUT", f"/content-types/{id}", json={}).status_code
    assert 405 == world.call("DELETE", f"/content-types/{id}").status_code
    assert 404 == world.call("POST", f"/jobs/{id}/convert").status_code


def test_the_server_fills_in_fields_that_clients_do_not_send(open_world: Open) -> None:
    world = open_world(counts=FEW)

    def create_record(path: str, body: dict[str, object]) -> dict[str, object]:
        id = world.call("POST", path, json=body).json()["data"]["id"]
        shown: dict[str, object] = world.get(f"{path}/{id}").json()["data"]
        return shown

    job = create_record(
        "/jobs", {**world.minimal_body("jobs"), "title": "Été & Co", "status": "published"}
    )
    assert f"ete-co-{str(job['id'])[:8]}" == job["slug"]
    assert job["created_at"] == job["published_at"]
    assert "draft" == create_record("/jobs", world.minimal_body("jobs"))["status"]
    assert "new_lead" == create_record("/candidates", world.minimal_body("candidates"))["status"]
    assert "prospect" == create_record("/companies", world.minimal_body("companies"))["status"]
    assert "lead" == create_record("/leads", world.minimal_body("leads"))["status"]
    item = create_record(world.list_path("content_items"), world.minimal_body("content_items"))
    assert ("draft", "hello", None) == (item["status"], item["slug"], item["published_at"])
    meeting = {**world.minimal_body("bookings"), "meeting_platform": "<meeting_platform_2>"}
    booking = create_record("/bookings", meeting)
    assert "draft" == booking["status"]
    assert str(booking["meeting_join_url"]).endswith(str(booking["meeting_id"]))
    assert booking["meeting_password"]


def test_publishing_a_job_later_sets_its_publication_date(open_world: Open) -> None:
    world = open_world(counts=FEW)
    id = world.call("POST", "/jobs", json=world.minimal_body("jobs")).json()["data"]["id"]

    published = world.call("PUT", f"/jobs/{id}", json={"status": "published"}).json()["data"]
    assert published["updated_at"] == published["published_at"]
    closed = world.call("PUT", f"/jobs/{id}", json={"status": "closed"}).json()["data"]
    assert published["published_at"] == closed["published_at"]


def test_company_counters_change_without_a_new_updated_at(open_world: Open) -> None:
    world = open_world(counts=FEW)
    id = world.call("POST", "/companies", json=world.minimal_body("companies")).json()["data"]["id"]

    def read_counters() -> tuple[int, int, int]:
        shown = world.get(f"/companies/{id}").json()["data"]
        assert created["updated_at"] == shown["updated_at"]
        item = next(i for i in world.get("/companies").json()["data"] if i["id"] == id)
        assert item["jobs_count"] == shown["jobs_count"]
        assert world.store.records("companies")[id] == shown
        return shown["jobs_count"], shown["active_jobs_count"], shown["placements_count"]

    created = world.get(f"/companies/{id}").json()["data"]
    assert (0, 0, 0) == read_counters()
    job = {**world.minimal_body("jobs"), "company_id": id}
    first = world.call("POST", "/jobs", json=job).json()["data"]["id"]
    assert (1, 0, 0) == read_counters()
    world.call("PUT", f"/jobs/{first}", json={"status": "published"})
    assert (1, 1, 0) == read_counters()
    placement = {
        "booking_type": "permanent",
        "start_datetime": "2026-05-04T09:30:00Z",
        "status": "confirmed",
        "candidate_id": next(iter(world.store.records("candidates"))),
        "job_id": first,
        "company_id": id,
    }
    world.call("POST", "/bookings", json=placement)
    assert (1, 1, 1) == read_counters()
    world.call("DELETE", f"/jobs/{first}")
    assert (0, 0, 1) == read_counters()

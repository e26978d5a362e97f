"""Every endpoint of API 4, over a socket: statuses, envelopes, shapes."""

from __future__ import annotations

import pytest

from connector.catalog import CATALOG
from tests.sandbox.world import ABSENT_ID, CHANGEABLE, FEW, Open, ServedSandbox


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

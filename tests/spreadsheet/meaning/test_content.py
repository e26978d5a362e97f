"""Content items: the fields of their type are columns, which are checked by type."""

from __future__ import annotations

import json
from typing import Any

from connector.catalog.content import ContentTypeField
from connector.sandbox.seed import FIELD_TYPES
from connector.spreadsheet.mapping import map_headings
from tests.spreadsheet.meaning.sheet import (
    check_table,
    get_changes,
    list_mappings,
    list_problems,
    make_landing,
    make_table,
    make_target,
)

OPTIONS = ("Red", "Green", "Blue, light")


def make_content_field(
    key: str, kind: str, *, required: bool = False, name: str | None = None
) -> Any:
    """Return a field of a content type, built from the API's JSON."""
    config = json.dumps({"options": OPTIONS}) if kind.endswith("select") else None
    return ContentTypeField(
        {
            "id": key,
            "name": name or f"The {key}",
            "field_key": key,
            "field_type": kind,
            "is_required": required,
            "config": config,
        }
    )


FIELDS = (
    make_content_field("summary", "text", required=True, name="Short summary"),
    make_content_field("status", "text"),
    *(make_content_field(f"{kind}_value", kind) for kind in FIELD_TYPES),
)
ITEM = {"id": "i1", "title": "Hello", "slug": "hello", "fields": {"summary": "S", "text_value": ""}}
LANDING = make_landing(FIELDS, content_items=[ITEM])


def test_fields_of_the_content_type_are_columns() -> None:
    wanted = make_target("content_items", landing=LANDING, parent="posts")
    headings = ("Title", "Status", "short SUMMARY", "number_value", "fields.status")

    assert {
        "Title": ("title", "name"),
        "Status": ("status", "name"),
        "short SUMMARY": ("summary", "name"),
        "number_value": ("number_value", "name"),
        "fields.status": ("fields.status", "name"),
    } == list_mappings(map_headings(headings, wanted))


def test_content_values_are_read_by_type_and_nested() -> None:
    wanted = make_target("content_items", landing=LANDING, parent="posts")
    row = {
        "title": "News",
        "summary": "00123",
        "number_value": "3.5",
        "select_value": "green",
        "multi_select_value": "red; Blue, Light",
        "date_value": "2025-04-03",
        "datetime_value": "2025-04-03T09:30Z",
        "boolean_value": "yes",
        "email_value": "a@b.example",
        "phone_value": "+44 1",
    }
    (found,) = check_table(make_table(row), wanted, LANDING)

    assert found.task is not None
    assert "posts" == found.task.parent
    assert {
        "title": "News",
        "fields": {
            "summary": "00123",
            "number_value": 3.5,
            "select_value": "Green",
            "multi_select_value": ["Red", "Blue, light"],
            "date_value": "2025-04-03",
            "datetime_value": "2025-04-03T09:30:00Z",
            "boolean_value": True,
            "email_value": "a@b.example",
            "phone_value": "+44 1",
        },
    } == found.task.fields


def test_invalid_content_values_are_reported_by_column() -> None:
    wanted = make_target("content_items", landing=LANDING, parent="posts")
    row = {
        "title": "News",
        "number_value": "many",
        "select_value": "Pink",
        "multi_select_value": "Red; Pink",
        "image_value": "logo.png",
        "phone_value": "4.479E+11",
    }
    found = check_table(make_table(row), wanted, LANDING)

    assert [
        (2, "number_value", "not_a_number"),
        (2, "select_value", "unknown_value"),
        (2, "multi_select_value", "unknown_value"),
        (2, "image_value", "url_format"),
        (2, "phone_value", "scientific"),
        (2, None, "column_missing"),
    ] == list_problems(found)
    assert "Red, Green, Blue, light" == found[0].problems[1].allowed


def test_an_update_of_content_has_only_the_values_that_differ() -> None:
    wanted = make_target("content_items", "update", landing=LANDING, parent="posts")
    row = {"id": "i1", "title": "Hello", "text_value": "New", "summary": "S"}
    (found,) = check_table(make_table(row), wanted, LANDING)

    assert found.task is not None
    assert {"fields": {"text_value": "New"}} == found.task.fields
    assert {"fields": {"text_value": ""}} == found.task.base
    assert {"fields.text_value": ("", "New")} == get_changes(found)


def test_an_item_with_an_existing_slug_or_title_is_a_duplicate() -> None:
    wanted = make_target("content_items", landing=LANDING, parent="posts")
    rows = make_table(
        {"title": "Other", "slug": "HELLO", "summary": "S"},
        {"title": "hello", "summary": "S"},
        {"title": "Hello", "slug": "hello-2", "summary": "S"},
    )
    found = check_table(rows, wanted, LANDING)

    assert [(2, "slug", "duplicate_in_warehouse"), (3, "title", "duplicate_in_warehouse")] == (
        list_problems(found)
    )


def test_an_invalid_field_config_has_no_options() -> None:
    for config in ("", "{", "[]", '{"options": "Red"}', '{"options": [1]}'):
        odd = ContentTypeField({**make_content_field("s", "select").raw, "config": config})
        (slot,) = (
            each
            for each in make_target(
                "content_items", landing=make_landing([odd]), parent="posts"
            ).columns
            if each.key == "fields.s"
        )
        assert () == slot.field.values

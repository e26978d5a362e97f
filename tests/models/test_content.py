"""A typed view for each content type, for any slugs, fields and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.models.project import load_project
from connector.models.runner import CheckResult
from connector.warehouse.file import open_file, quoted
from connector.warehouse.warehouse import Warehouse
from tests.models.account import build_file

SELECTED = ("+content_views", "content_values", "+dim_days")

KINDS = ("text", "number", "date", "datetime", "boolean", "multi_select", "image", "new_kind")

MISFITS: tuple[tuple[str, Any], ...] = (
    ("number", "twelve"),
    ("number", "nan"),
    ("date", "2024-02-30"),
    ("datetime", "yesterday"),
    ("boolean", "perhaps"),
    ("text", ["a", "b"]),
    ("text", {"a": 1}),
    ("multi_select", {"a": 1}),
)
"""Field types with values that do not belong to them."""

KEYS = ("a/b", "c~d", 'e"f', "g'h", "$.i", "*", "0", "")
"""Keys that have a meaning in a path, in SQL or in JSON."""

Field = tuple[str, str]
"""A field's key and its type."""


class ContentWarehouse:
    """A work file with content types and items in its landing, without a pull."""

    checks: Mapping[str, CheckResult]

    def __init__(self, folder: Path) -> None:
        self.file = Warehouse(folder).work
        Warehouse(folder).prepare()

    def add_type(self, id: str, slug: str | None, *fields: Field) -> None:
        """Insert a content type with these fields, in this order."""
        with open_file(self.file) as connection:
            connection.execute(
                "INSERT INTO landing.content_types (id, name, slug) VALUES (?, ?, ?)",
                [id, f"Type {id}", slug],
            )
            for place, (key, kind) in enumerate(fields):
                connection.execute(
                    "INSERT INTO landing.content_type_fields (id, _content_type_id, name, "
                    "field_key, field_type, display_order) VALUES (?, ?, ?, ?, ?, ?)",
                    [f"{id}-{place}", id, f"Field {place}", key, kind, place],
                )

    def add_item(self, id: str, type: str, **fields: Any) -> None:
        """Insert an item of the type with these values, by key of the field."""
        with open_file(self.file) as connection:
            connection.execute(
                "INSERT INTO landing.content_items (id, title, fields, _content_type_id) "
                "VALUES (?, ?, ?, ?)",
                [id, f"Item {id}", json.dumps(fields), type],
            )

    def build_views(self) -> None:
        """Build the view of each content type, and keep the results of the checks."""
        built = build_file(self.file, load_project(), SELECTED)
        self.checks = {each.check.name: each for each in built.checks}

    def query(self, sql: str, zone: str = "UTC") -> list[tuple[Any, ...]]:
        """Run a query in a session with this time zone."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            connection.execute(f"SET TimeZone = '{zone}'")
            return connection.execute(sql).fetchall()

    def read_field_columns(self) -> dict[str, list[str]]:
        """Return for each content view the columns that show fields of its type."""
        found = self.query(
            "SELECT table_name, list(column_name ORDER BY column_index)[8:] "
            "FROM duckdb_columns() WHERE table_name LIKE 'content_%' AND schema_name = 'marts' "
            "GROUP BY 1 ORDER BY 1"
        )
        return dict(found)

    def read_column(self, view: str, column: str, zone: str = "UTC") -> list[Any]:
        """Return the values of a view's column, ordered by the items' ids."""
        sql = f"SELECT {quoted(column)} FROM marts.{quoted(view)} ORDER BY id"
        return [value for (value,) in self.query(sql, zone)]


@pytest.fixture(scope="module")
def content_warehouse(tmp_path_factory: pytest.TempPathFactory) -> ContentWarehouse:
    """A work file with content of every kind, and its views."""
    it = ContentWarehouse(tmp_path_factory.mktemp("content"))
    it.add_type("a", 'x"; drop schema landing cascade; --', ("Title", "text"), ("id", "text"))
    it.add_type("b's", "Blog Posts", ("a-b", "text"), ("a_b", "text"), ("a_b_2", "text"))
    it.add_type("c", "blog_posts", ("1st", "text"), ("'", "text"), ("ÄÖ", "text"))
    it.add_type("d", None)
    it.add_type("e", "日本")
    it.add_type("k", "kinds", *((kind, kind) for kind in KINDS))
    values = (
        "Zoë",
        1.5,
        "2024-02-29",
        "2024-02-29T23:30:00Z",
        False,
        ["a", "b,c"],
        "x.png",
        "kept",
    )
    it.add_item("kinds", "k", **dict(zip(KINDS, values, strict=True)))
    it.add_type("m", "misfits", *((f"f{n}", kind) for n, (kind, _) in enumerate(MISFITS)))
    it.add_item("misfit", "m", **{f"f{n}": value for n, (_, value) in enumerate(MISFITS)})
    it.add_item("null", "m", **{f"f{n}": None for n in range(len(MISFITS))})
    it.add_item("empty", "m", **{f"f{n}": "" for n in range(len(MISFITS))})
    it.add_item("without", "m")
    it.add_type("y", "keys", *((key, "text") for key in KEYS))
    it.add_item("keys", "y", **{key: f"value of {key}" for key in KEYS})
    it.add_type("z", "times", ("at", "datetime"))
    it.add_item("plain", "z", at="2024-01-01T10:00:00")
    it.add_item("zoned", "z", at="2024-01-01T12:00:00+02:00")
    it.build_views()
    return it


def test_names_of_content_views_and_columns_are_safe_and_unique(
    content_warehouse: ContentWarehouse,
) -> None:
    expected = {
        "content_blog_posts": ["a_b", "a_b__2", "a_b_2"],
        "content_blog_posts__2": ["field_1st", "field", "field__2"],
        "content_type": [],
        "content_type__2": [],
        "content_x_drop_schema_landing_cascade": ["field_title", "field_id"],
    }

    assert expected == {
        name: each
        for name, each in content_warehouse.read_field_columns().items()
        if name in expected
    }


def test_content_values_have_the_type_of_their_field(content_warehouse: ContentWarehouse) -> None:
    row = content_warehouse.query(
        f"SELECT {', '.join(f'{k}::VARCHAR' for k in KINDS)} FROM marts.content_kinds"
    )
    types = content_warehouse.query(
        f"SELECT {', '.join(f'typeof({k})' for k in KINDS)} FROM marts.content_kinds"
    )

    assert [
        (
            *("Zoë", "1.5", "2024-02-29", "2024-02-29 23:30:00+00", "false", "[a, 'b,c']"),
            *("x.png", "kept"),
        )
    ] == row
    assert [
        (
            *("VARCHAR", "DOUBLE", "DATE", "TIMESTAMP WITH TIME ZONE", "BOOLEAN", "VARCHAR[]"),
            *("VARCHAR", "VARCHAR"),
        )
    ] == types


def test_content_values_of_another_type_are_null_and_counted(
    content_warehouse: ContentWarehouse,
) -> None:
    audit = content_warehouse.checks["content_values"]

    assert [[None] * 4] * len(MISFITS) == [
        content_warehouse.read_column("content_misfits", column)
        for column in content_warehouse.read_field_columns()["content_misfits"]
    ]
    assert (len(MISFITS), ("misfit",), "warn") == (
        audit.failing,
        audit.examples,
        audit.check.severity,
    )


def test_content_values_are_read_for_keys_with_any_characters(
    content_warehouse: ContentWarehouse,
) -> None:
    assert [[f"value of {key}"] for key in KEYS] == [
        content_warehouse.read_column("content_keys", column)
        for column in content_warehouse.read_field_columns()["content_keys"]
    ]


def test_comments_of_content_views_are_the_labels_given_in_the_api(
    content_warehouse: ContentWarehouse,
) -> None:
    comments = dict(
        content_warehouse.query(
            "SELECT column_name, comment FROM duckdb_columns() "
            "WHERE table_name = 'content_blog_posts'"
        )
    )
    ((about,),) = content_warehouse.query(
        "SELECT comment FROM duckdb_views() WHERE view_name = 'content_blog_posts'"
    )

    assert "Field 0" == comments["a_b"]
    assert "The item's title." == comments["title"]
    assert "of the type Type b's," in about


def test_a_deleted_content_type_has_no_view_and_a_deleted_item_no_row(tmp_path: Path) -> None:
    content_warehouse = ContentWarehouse(tmp_path)
    content_warehouse.add_type("a", "old")
    content_warehouse.add_type("b", "kept")
    content_warehouse.add_item("i", "b")
    content_warehouse.add_item("j", "b")
    with open_file(content_warehouse.file) as connection:
        connection.execute("UPDATE landing.content_types SET _deleted_at = now() WHERE id = 'a'")
        connection.execute("UPDATE landing.content_items SET _deleted_at = now() WHERE id = 'i'")
    content_warehouse.build_views()

    assert ["content_kept"] == list(content_warehouse.read_field_columns())
    assert ["j"] == content_warehouse.read_column("content_kept", "id")


def test_a_timestamp_without_an_offset_is_utc(content_warehouse: ContentWarehouse) -> None:
    plain, zoned = content_warehouse.read_column("content_times", "at", "Asia/Tokyo")

    assert plain == zoned == content_warehouse.read_column("content_times", "at")[0]

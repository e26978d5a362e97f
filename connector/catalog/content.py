"""Content types with their fields, and content items (API 2.6, 2.7, 3.6, 4.7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from connector.catalog.field import REFUSED, REQUIRED, FieldValue, Uuid, field, read_only
from connector.catalog.resource import Record, Resource

ContentFieldType = Literal[
    "text",
    "textarea",
    "rich_text",
    "number",
    "select",
    "multi_select",
    "date",
    "datetime",
    "boolean",
    "image",
    "file",
    "url",
    "email",
    "phone",
]
ContentStatus = Literal["draft", "published"]


class ContentTypeField(Record):
    """Field of a content type, as in the detail of the type."""

    __slots__ = ()

    id: Uuid = read_only("Id of the field.")
    name: str | None = read_only("Name of the field, as users see it.")
    field_key: str | None = read_only("Key of the field's value in an item.")
    field_type: ContentFieldType | None = read_only("Type of the field.")
    is_required: bool | None = read_only("True if every item must have a value.")
    is_title_field: bool | None = read_only("True if the value is the item's title.")
    placeholder: str | None = read_only("Example text that an empty form shows.")
    help_text: str | None = read_only("Help text next to the field.")
    config: str | None = field(
        "Settings of the field, as a JSON object in a string.",
        create=REFUSED,
        update=REFUSED,
        format="json",
    )
    display_order: int | None = read_only("Position in the form.")


class ContentType(
    Resource,
    name="content_types",
    section="2.6",
    singular="content type",
    path="/content-types",
    scope="content",
    operations=("list", "get"),
    sorted_lists=False,
    searchable=False,
    sandbox_count=4,
):
    """A kind of content, with the fields that its items have; read-only."""

    updated_at: datetime = read_only("When the type was last changed.", listed=True)
    name: str | None = read_only("The type's name.", listed=True)
    slug: str | None = read_only("Name of the type in web addresses.", listed=True)
    description: str | None = read_only("Purpose of the type.", listed=True, prose=True)
    icon: str | None = read_only("The type's icon.", listed=True)
    is_system: bool | None = read_only("True if the type is built into the platform.", listed=True)
    is_active: bool | None = read_only("True if the type is in use.", listed=True)
    fields: tuple[ContentTypeField, ...] = read_only("The fields that items of the type have.")


class ContentItem(
    Resource,
    name="content_items",
    section="2.7",
    singular="content item",
    path="/content/{type}",
    scope="content",
    parent="content_types",
    echoes={
        "create": ("id", "title", "slug", "status", "created_at"),
        "update": ("id", "title", "slug", "status", "updated_at"),
    },
    natural_keys=(("slug",), ("title",)),
    sandbox_count=80,
    aliases={"title": ("Headline", "Item title")},
):
    """One piece of content of a content type."""

    updated_at: datetime = read_only(
        "When the record was last changed.", listed=True, sortable=True
    )
    title: str = field("The item's title.", create=REQUIRED, listed=True, sortable=True)
    slug: str | None = field("Name of the item in web addresses.", listed=True, sortable=True)
    status: ContentStatus | None = field(
        "Status of the item.", listed=True, sortable=True, filterable=True
    )
    published_at: datetime | None = read_only(
        "When the item was published.", listed=True, sortable=True
    )
    fields: Mapping[str, FieldValue] = field("The item's values by `field_key`.", personal="text")

"""The shapes of content_items for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.content import ContentStatus
from connector.catalog.value import FieldValue, Uuid
from connector.client.shapes.item import ListItem

ContentItemSort = Literal["created_at", "updated_at", "title", "slug", "status", "published_at"]


class ContentItemItem(ListItem, Protocol):
    """A content item as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def updated_at(self) -> datetime:
        """When the record was last changed."""

    @property
    def title(self) -> str:
        """The item's title."""

    @property
    def slug(self) -> str | None:
        """The item's name in addresses."""

    @property
    def status(self) -> ContentStatus | None:
        """The item's state."""

    @property
    def published_at(self) -> datetime | None:
        """When the item was published."""


class ContentItemCreate(TypedDict, total=False):
    """What the create of a content item may be given."""

    title: Required[str]
    slug: str
    status: ContentStatus
    fields: Mapping[str, FieldValue]


class ContentItemUpdate(TypedDict, total=False):
    """What the update of a content item may be given."""

    title: str
    slug: str | None
    status: ContentStatus | None
    fields: Mapping[str, FieldValue]


class ContentItemFilters(TypedDict, total=False):
    """What narrows a list of content_items."""

    status: ContentStatus

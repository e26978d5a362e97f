"""The shapes of content_types for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import datetime
from typing import Protocol, TypedDict

from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem


class ContentTypeItem(ListItem, Protocol):
    """A content type as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def updated_at(self) -> datetime:
        """When the type was last changed."""

    @property
    def name(self) -> str | None:
        """The type's name."""

    @property
    def slug(self) -> str | None:
        """The type's name in addresses."""

    @property
    def description(self) -> str | None:
        """What the type is for."""

    @property
    def icon(self) -> str | None:
        """The type's icon."""

    @property
    def is_system(self) -> bool | None:
        """Whether the platform made the type."""

    @property
    def is_active(self) -> bool | None:
        """Whether the type is in use."""


class ContentTypeFilters(TypedDict, total=False):
    """What narrows a list of content_types."""

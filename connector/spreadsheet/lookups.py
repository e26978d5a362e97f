"""What the checks ask of the landing, as a protocol: the warehouse answers it.

Questions come in bulk, one for a batch of rows, since each costs a look into the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from connector.catalog import ContentTypeField


class LandedRecord(Protocol):
    """What is landed of one record."""

    @property
    def record(self) -> Mapping[str, Any]:
        """The answer that showed it last, as received."""

    @property
    def is_whole(self) -> bool:
        """Whether that was a detail; a list item shows fewer fields (API 2)."""

    @property
    def is_deleted(self) -> bool:
        """Whether the record is known to be gone."""


class Lookups(Protocol):
    """Answers from the landing. Every method raises a `WarehouseError` where it cannot be read."""

    def ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """For each tuple of values, the ids of the live records whose `fields` have them, some at
        least where they are very many.

        Values are as a body has them, and texts are compared as `identity.folded` gives them.
        `parent` is the slug or id of a content type.
        """

    def landed(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """What is landed under these ids, deleted records among them."""

    def holds(self, resource: str) -> bool:
        """Whether any record of the resource was ever landed."""

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """The fields of the content type of that slug or id; None where none is landed."""

"""What every list item has beside the fields of its resource, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol


class ListItem(Protocol):
    """Record as a list shows it; `connector.catalog.resource.Record` is what it is."""

    @property
    def raw(self) -> Mapping[str, Any]:
        """The item as received, whole."""

    @property
    def unknown(self) -> dict[str, Any]:
        """What the item held under names that are not declared."""

    @property
    def served_at(self) -> datetime | None:
        """The server's own clock when it answered, where it said so."""

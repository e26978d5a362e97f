"""What answers do to the versions of a stream's records: the rules, and nothing that acts.

-   For each id, versions are numbered from 1 without a gap, each begins where the one before ended
    (later, if the record was deleted in between), and the last one is open while the record lives.
-   An unchanged answer makes no version: it moves `observed_to`.
-   A list item that differs from the open version in what lists show begins a version that shows
    what the list showed, and nothing else: what lists do not show may have changed as well. The
    first detail that agrees with it completes it. One that shows other values there, or says that
    it was changed after that list, begins another version.
-   A list item is believed only if it is newer by a second than the answer that it disagrees
    with, since the server's clock shows whole seconds and pages are committed after they were
    read. One that shows a deleted record is left to the detail.
-   A deletion ends the last version. A record that is there again continues with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from connector.resource import Declaration, Resource
from connector.warehouse.difference import can_list, differing, listed_differing, meaning
from connector.warehouse.rows import as_json
from connector.warehouse.version import (
    SECOND,
    Ending,
    Sighting,
    Version,
    again,
    completed,
    deleted,
    ended_by,
    first,
    following,
)

_DATE = "updated_at"


@dataclass(frozen=True, slots=True)
class Standing:
    """A record as it stands before an answer: its last version, what its landed row shows, whether
    a detail showed that, and when a list or a detail last showed the record.
    """

    last: Version
    landed: Mapping[str, Any]
    is_hydrated: bool
    seen_at: datetime | None

    @property
    def shown(self) -> dict[str, Any]:
        """The last known value of each field: a list's, and else the last detail's."""
        return {**self.landed, **(self.last.shown or {})}


@dataclass(slots=True)
class Edits:
    """What a batch does to the history: versions to begin and complete with what they show,
    versions to end, earlier ends to move, versions that a list confirmed, and ids whose list items
    are too old to count. All by id; one answer of each record.
    """

    declaration: Declaration
    begun: dict[str, tuple[Version, Resource]] = field(default_factory=dict)
    completed: dict[str, tuple[Version, Resource]] = field(default_factory=dict)
    endings: dict[str, Ending] = field(default_factory=dict)
    moved: dict[str, Version] = field(default_factory=dict)
    confirmed: dict[str, datetime] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)

    def list(self, item: Resource, at: datetime, before: Standing | None) -> None:
        """A list showed the record at that moment; `before` is None if nothing had."""
        updated_at = item.updated_at if self.declaration.lists_cursor else None
        sighting = Sighting(at, updated_at, False)
        if before is None:
            self.begun[item.id] = first(sighting, item.created_at), item
            return
        last, shown, raw = before.last, before.shown, _stored(item)
        names = listed_differing(self.declaration, raw, shown)
        if not names:
            if not last.is_whole:
                self.confirmed[item.id] = at
        elif at < last.observed_to + SECOND:
            self.stale.add(item.id)
        else:
            version = following(last, sighting, names, before.seen_at)
            self.endings[item.id] = ended_by(version)
            if before.is_hydrated:
                raw = {name: raw[name] for name in raw if not self._hides(name, raw, shown)}
            self.begun[item.id] = version, self.declaration.record(raw)

    def _hides(self, name: str, raw: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
        """Whether a list may show this value in place of one that it cannot show."""
        field = self.declaration.fields.get(name)
        if field is None or name not in shown or can_list(field, shown[name]):
            return False
        return bool(meaning(field, raw[name]) != meaning(field, shown[name]))

    def read(self, record: Resource, at: datetime, before: Standing | None) -> None:
        """A detail showed the record at that moment, otherwise than it stands."""
        sighting = Sighting(at, record.updated_at, True)
        if before is None:
            self.begun[record.id] = first(sighting, record.created_at), record
            return
        last, shown, raw = before.last, before.shown, _stored(record)
        names, listable = self._changed(shown, raw, before)
        if last.ended_at is not None:
            self.begun[record.id] = again(last, sighting, names), record
        elif last.is_whole or self._contradicts(names, shown, raw, last, sighting):
            # Of a record that no detail had shown, a later date may be all that tells of a change.
            seen_at = before.seen_at if listable else None
            version = following(last, sighting, names or (_DATE,), seen_at)
            self.begun[record.id] = version, record
            self.endings[record.id] = ended_by(version)
        else:
            version = completed(last, sighting, names)
            self.completed[record.id] = version, record
            if version.valid_from != last.valid_from:
                self.moved[record.id] = version

    def _changed(
        self, shown: Mapping[str, Any], raw: Mapping[str, Any], before: Standing
    ) -> tuple[tuple[str, ...], bool]:
        """The fields in which a detail differs from what was last known, and whether a list would
        have shown one of them.
        """
        names = differing(shown, raw)
        if not before.last.is_whole:
            # Values that came from a list are compared by what they say, whatever their form.
            fields = {f.name: f for f in self.declaration.item_fields}
            names = tuple(
                name
                for name in names
                if (before.is_hydrated or name in shown)
                and (
                    name not in fields
                    or name not in shown
                    or meaning(fields[name], shown[name]) != meaning(fields[name], raw.get(name))
                )
            )
        return names, any(self._can_list(name, shown) for name in names)

    def _can_list(self, name: str, shown: Mapping[str, Any]) -> bool:
        field = self.declaration.fields.get(name)
        return field is not None and name in shown and can_list(field, shown[name])

    def _contradicts(
        self,
        names: tuple[str, ...],
        shown: Mapping[str, Any],
        raw: Mapping[str, Any],
        last: Version,
        sighting: Sighting,
    ) -> bool:
        """Whether a detail shows another version than the last one, which lists alone had shown.

        Where a list cannot show the detail's value, what it showed instead says little.
        """
        if last.is_before(sighting):
            return True
        from_list = set(names) if last.changed is None else set(last.changed)
        listed = [(n, f) for n in names if (f := self.declaration.fields.get(n)) and f.listed]
        return any(
            can_list(field, raw.get(name))
            and (name in from_list or can_list(field, shown.get(name)))
            for name, field in listed
        )

    def gone(self, id: str, at: datetime, last: Version) -> None:
        """The API said at that moment that the record is gone."""
        if last.ended_at is None:
            self.endings[id] = deleted(last, at)


def _stored(record: Resource) -> dict[str, Any]:
    """What the record shows, as its row will hold it."""
    raw: dict[str, Any] = json.loads(as_json(record.raw))
    return raw

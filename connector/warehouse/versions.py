"""Versions of a record and their times: the rules of the history.

The API does not show when a record changed: a response shows it unchanged or changed. Therefore
each version has an interval in which it began, an interval in which it ended, and the best single
time of both. All times are server times in whole seconds: a response of the second s was made
between s and s + 1.

-   `observed_from` and `observed_to` are the seconds of the first and the last response that showed
    the version: all of it, or its listed fields if only lists have shown it.
-   A version *began* after `began_after`, the second in which the record was last seen with other
    values, and before `began_before`, the end of the second `observed_from`. A first version began
    no earlier than the record's creation, a later version no earlier than the previous one, and a
    version after a deletion no earlier than the deletion was known. A list with the values of the
    previous version only counts as an observation of it if a changed field is one that the list
    would have shown.
-   It *ended* after `observed_to`, and before the end of the second in which the next version was
    first seen, or the record was known to be deleted. A later list does not prove that the fields
    that it does not show were still the same.
-   `valid_from` is the API's own `updated_at` if it is within the interval, `began_after` if it is
    earlier (the write became visible late), and otherwise `observed_from`. If there were several
    edits between two reads, a field may have changed earlier than `valid_from`, but not before
    `began_after`.
-   `valid_to` is the next version's `valid_from`. A deletion has no date and counts from the time
    when it was first known.
-   Versions follow each other in the order in which responses were committed, which is the order in
    which the landing showed them. A response may be older than the last version (it was committed
    late, or the server clock was set back). It then counts as of that version's last time, so that
    versions never overlap and none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from connector.catalog.resource import Declaration, Resource
from connector.warehouse.schema import (
    HALF_PAIR_MARK,
    as_json,
    can_appear_in_list,
    differing_listed_names,
    differing_names,
    parsed_value,
)

DELETED_FIELD = "_deleted_at"
"""First name in `_changed` if a deleted record exists again."""

SECOND = timedelta(seconds=1)
"""Precision of the times of responses (`Date`)."""


@dataclass(frozen=True, slots=True)
class Version:
    """Last version of a record. It is open unless `ended_at` is set.

    `list_item` has the values if only lists have shown the version; otherwise they are in the
    landing table. `changed` are the changed fields; None for a first version.
    """

    number: int
    valid_from: datetime
    began_after: datetime | None
    observed_from: datetime
    observed_to: datetime
    changed: tuple[str, ...] | None = None
    hydrated_at: datetime | None = None
    ended_at: datetime | None = None
    list_item: Mapping[str, Any] | None = None

    @property
    def is_from_detail(self) -> bool:
        """Return True if a detail has shown the version, not only lists."""
        return self.hydrated_at is not None

    @property
    def began_before(self) -> datetime:
        """Latest possible time of its beginning: the end of the second of `observed_from`."""
        return self.observed_from + SECOND

    def is_outdated_by(self, observation: Observation) -> bool:
        """Return True if the record was changed after the last response that showed this version.

        The observation's `updated_at` decides. A date after the observation is wrong and proves
        nothing.
        """
        at = observation.updated_at
        return at is not None and self.observed_to + SECOND <= at < observation.at + SECOND


@dataclass(frozen=True, slots=True)
class Observation:
    """Response that showed a record at the server time `at`. `updated_at` is the record's date."""

    at: datetime
    updated_at: datetime | None
    is_detail: bool


@dataclass(frozen=True, slots=True)
class VersionEnd:
    """End of a version.

    Attributes:
        valid_to: Best estimate of the time.
        before: Latest possible time. The earliest possible one is the version's `observed_to`.
        by: `change` or `deletion`.
    """

    valid_to: datetime
    before: datetime
    by: str


def first_version(observation: Observation, created_at: datetime | None) -> Version:
    """Return the first version of a record, which cannot begin before the record's `created_at`."""
    if created_at is not None and created_at >= observation.at + SECOND:
        created_at = observation.at
    return _new_version(1, observation, observation.at, created_at, None)


def next_version(
    before: Version, observation: Observation, changed: Iterable[str], listed_at: datetime | None
) -> Version:
    """Return the version that follows an open one.

    `listed_at` is the time when a list last showed the previous version; None if no changed field
    is one that a list would have shown.
    """
    at = max(observation.at, before.observed_to)
    last_seen_at = before.observed_to if listed_at is None else max(before.observed_to, listed_at)
    # No version begins before the previous one, whatever a later detail shows.
    began_after = max(min(last_seen_at, at), before.valid_from)
    return _new_version(before.number + 1, observation, at, began_after, tuple(changed))


def revived_version(before: Version, observation: Observation, changed: Iterable[str]) -> Version:
    """Return the version of a record that exists again after a deletion."""
    assert before.ended_at is not None, "only a record that was deleted can exist again"
    at = max(observation.at, before.ended_at)
    version = _new_version(
        before.number + 1, observation, at, before.ended_at, (DELETED_FIELD, *changed)
    )
    if version.valid_from == before.ended_at:
        # The record was missing then, so an earlier date is not the date of its return.
        version = replace(version, valid_from=at)
    return version


def completed_version(listed: Version, observation: Observation, changed: Iterable[str]) -> Version:
    """Return a version seen only in lists, completed by the first detail with the same values.

    It counts as observed since that detail, because lists do not show all of it.
    """
    at = max(observation.at, listed.observed_to)
    names = None
    if listed.changed is not None:
        names = tuple(dict.fromkeys((*listed.changed, *changed)))
    return replace(
        listed,
        valid_from=_best_start(observation.updated_at, listed.began_after, listed.observed_from),
        observed_from=at,
        observed_to=at,
        changed=names,
        hydrated_at=at,
        list_item=None,
    )


def end_by_change(following: Version) -> VersionEnd:
    """Return the end of a version that the version `following` replaces."""
    return VersionEnd(following.valid_from, following.began_before, "change")


def _new_version(
    number: int,
    observation: Observation,
    at: datetime,
    began_after: datetime | None,
    changed: tuple[str, ...] | None,
) -> Version:
    """Return an open version that was first seen at `at` and began after `began_after`."""
    return Version(
        number=number,
        valid_from=_best_start(observation.updated_at, began_after, at),
        began_after=began_after,
        observed_from=at,
        observed_to=at,
        changed=changed,
        hydrated_at=at if observation.is_detail else None,
    )


def _best_start(
    updated_at: datetime | None, began_after: datetime | None, observed_from: datetime
) -> datetime:
    """Return `updated_at` if it is between the two other times, else the nearest of them."""
    is_within = updated_at is not None and updated_at < observed_from + SECOND
    timestamp = updated_at if updated_at is not None and is_within else observed_from
    return timestamp if began_after is None else max(timestamp, began_after)


# -- Edits -----------------------------------------------------------------------------------------
# Rules by which responses change the versions of a stream's records; `landing.py` writes them.
#
# - For each id, versions are numbered from 1 without a gap. Each begins when the previous one ended
# (later, if the record was deleted in between), and the last one is open while the record exists.
# - An unchanged response makes no version: it moves `observed_to`.
# - A list item that differs from the open version begins a version with only the listed fields,
# because others may have changed as well. The first detail that agrees completes it. A detail with
# other values there, or with a date after that list, begins another version.
# - A list item is only accepted if it is newer by a second than the response that it contradicts,
# because server times are whole seconds and pages are committed after they were read. An item of a
# deleted record changes nothing: a detail decides.
# - A deletion ends the last version. A record that exists again continues with the next one.

_DATE = "updated_at"


@dataclass(frozen=True, slots=True)
class RecordState:
    """Record before a response: its last version, its landing row and last response."""

    last: Version
    landed: Mapping[str, Any]
    is_hydrated: bool
    seen_at: datetime | None

    @property
    def known_values(self) -> dict[str, Any]:
        """Latest values of the fields: of the list item since the last detail, or of the detail."""
        return {**self.landed, **(self.last.list_item or {})}


@dataclass(slots=True)
class HistoryEdits:
    """Changes to the history table by a batch of responses, by record id.

    Attributes:
        begun: New versions, each with the record that has its values.
        completed: Versions from lists that a detail completes, with the detail.
        endings: Ends of open versions.
        moved: Completed versions whose start moved, and with it the end of the previous version.
        confirmed: Times at which a list showed an open version again.
        stale: Ids whose list items are older than their last version and are ignored.
    """

    declaration: Declaration
    begun: dict[str, tuple[Version, Resource]] = field(default_factory=dict)
    completed: dict[str, tuple[Version, Resource]] = field(default_factory=dict)
    endings: dict[str, VersionEnd] = field(default_factory=dict)
    moved: dict[str, Version] = field(default_factory=dict)
    confirmed: dict[str, datetime] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)

    def add_list_item(self, item: Resource, at: datetime, before: RecordState | None) -> None:
        """Add the edit for a list item; `before` is None for a new record."""
        updated_at = item.updated_at if self.declaration.lists_updated_at else None
        observation = Observation(at, updated_at, False)
        if before is None:
            self.begun[item.id] = first_version(observation, item.created_at), item
            return
        last, shown, raw = before.last, before.known_values, _stored_values(item)
        names = differing_listed_names(self.declaration, raw, shown)
        if not names:
            if not last.is_from_detail:
                self.confirmed[item.id] = at
        elif at < last.observed_to + SECOND:
            self.stale.add(item.id)
        else:
            version = next_version(last, observation, names, before.seen_at)
            self.endings[item.id] = end_by_change(version)
            if before.is_hydrated:
                raw = {
                    name: raw[name]
                    for name in raw
                    if not self._may_hide_unlisted_value(name, raw, shown)
                }
            self.begun[item.id] = version, self.declaration.record(raw)

    def _may_hide_unlisted_value(
        self, name: str, raw: Mapping[str, Any], shown: Mapping[str, Any]
    ) -> bool:
        """Return True if a list cannot show the stored value and therefore shows another one."""
        field = self.declaration.fields.get(name)
        if field is None or name not in shown or can_appear_in_list(field, shown[name]):
            return False
        return bool(parsed_value(field, raw[name]) != parsed_value(field, shown[name]))

    def add_detail(self, record: Resource, at: datetime, before: RecordState | None) -> None:
        """Add the edit for a changed detail; `before` is None for a new record."""
        observation = Observation(at, record.updated_at, True)
        if before is None:
            self.begun[record.id] = first_version(observation, record.created_at), record
            return
        last, shown, raw = before.last, before.known_values, _stored_values(record)
        names, listable = self._changed_fields(shown, raw, before)
        if last.ended_at is not None:
            self.begun[record.id] = revived_version(last, observation, names), record
        elif last.is_from_detail or self._is_another_version(names, shown, raw, last, observation):
            # If no detail had shown the record, a later date may be the only sign of a change.
            seen_at = before.seen_at if listable else None
            version = next_version(last, observation, names or (_DATE,), seen_at)
            self.begun[record.id] = version, record
            self.endings[record.id] = end_by_change(version)
        else:
            version = completed_version(last, observation, names)
            self.completed[record.id] = version, record
            if version.valid_from != last.valid_from:
                self.moved[record.id] = version

    def _changed_fields(
        self, shown: Mapping[str, Any], raw: Mapping[str, Any], before: RecordState
    ) -> tuple[tuple[str, ...], bool]:
        """Return the fields in which a detail differs, and True if lists would show one of them."""
        names = differing_names(shown, raw)
        if not before.last.is_from_detail:
            # Values from a list are compared by their parsed values.
            fields = {f.name: f for f in self.declaration.item_fields}
            names = tuple(
                name
                for name in names
                if (before.is_hydrated or name in shown)
                and (
                    name not in fields
                    or name not in shown
                    or parsed_value(fields[name], shown[name])
                    != parsed_value(fields[name], raw.get(name))
                )
            )
        return names, any(
            name in shown and self._is_surely_listed(name, shown[name]) for name in names
        )

    def _is_surely_listed(self, name: str, value: Any) -> bool:
        """Return True if a list certainly shows the field with this value."""
        field = self.declaration.fields.get(name)
        # An unsortable list may have no dates; the API does not say (API 2.6).
        is_sure = name != _DATE or bool(self.declaration.sortable)
        return is_sure and field is not None and can_appear_in_list(field, value)

    def _is_another_version(
        self,
        names: tuple[str, ...],
        shown: Mapping[str, Any],
        raw: Mapping[str, Any],
        last: Version,
        observation: Observation,
    ) -> bool:
        """Return True if a detail shows another version than the one that lists have shown.

        `names` are the fields that differ. A list's value proves little if a list cannot show the
        value of the detail.
        """
        if last.is_outdated_by(observation):
            return True
        from_list = set(names) if last.changed is None else set(last.changed)
        return any(
            self._is_surely_listed(name, raw.get(name))
            and (name in from_list or self._is_surely_listed(name, shown.get(name)))
            for name in names
        )

    def add_deletion(self, id: str, at: datetime, last: Version) -> None:
        """Add the end of the record's last version, unless it has ended already."""
        if last.ended_at is None:
            at = max(at, last.observed_to)
            self.endings[id] = VersionEnd(max(at, last.valid_from), at + SECOND, "deletion")


def _stored_values(record: Resource) -> Mapping[str, Any]:
    """Return the values of a response as a row stores them, without half surrogates."""
    text = as_json(record.raw)
    return record.raw if HALF_PAIR_MARK not in text else json.loads(text)

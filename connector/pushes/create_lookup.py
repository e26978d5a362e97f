"""Search for the record of a create whose response was lost.

    floor = server time before the first attempt - lateness

The list is read, newest first, down to the first record that is older than the floor. `search` is
not used, because the API does not define what it searches (API 4.1). A list item that may be the
row's record is read as a detail, and every sent field is compared. Records that were in the
warehouse before, or that belong to another row, do not match.

A record that is not found may still appear, or a shifted page or an unsorted list may hide it. So
the result also shows whether everything was read, and which records are similar or may belong to
another unconfirmed row. If there are such records, a person decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from connector.catalog.field import Kind
from connector.catalog.field_comparison import is_same_value, unapplied_fields
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS, Declaration, Page, Resource
from connector.ledger.journal_records import Attempt
from connector.ledger.push_plan import fold_identity
from connector.pushes.push_row import (
    ClaimedRecords,
    ListNewest,
    NewestBefore,
    OpenCreates,
    PushSteps,
    ReadOne,
)
from connector.warehouse.stream import FoundDetail, Outcome, UnreadableDetail

PAGES_MAX = 20
"""Maximum number of pages of one lookup. A longer list is not seen completely."""

STARTS_MAX = 3
"""How often a lookup starts again because the list shrank while it was read."""

DETAILS_MAX = 10
"""Maximum number of similar records that are read as details."""


@dataclass(frozen=True, slots=True)
class SoughtRecord:
    """Record that an unconfirmed create may have made.

    Attributes:
        body: Values that were sent.
        identity: Values of the natural key, by field; may be empty.
        first_attempt: First unconfirmed attempt.
        lateness_seconds: Maximum delay in seconds until a new record appears in lists.
    """

    resource: Declaration
    body: Mapping[str, Any]
    identity: Mapping[str, Any]
    first_attempt: Attempt
    lateness_seconds: float


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Records that a lookup found.

    Attributes:
        matches: Records with all values that were sent.
        similar_ids: Ids of similar records, and of matches that may belong to another row.
        is_complete: Whether the lookup saw every record that can be the row's.
        started_at: Time of our own clock before the first page was requested.
    """

    matches: tuple[FoundDetail, ...]
    similar_ids: tuple[str, ...]
    is_complete: bool
    started_at: datetime


@dataclass(slots=True)
class _CandidateItems:
    """List items that were created late enough to be the row's record, by id."""

    items: dict[str, Resource]
    is_complete: bool
    started_at: datetime


def find_created_record(sought: SoughtRecord) -> PushSteps[LookupResult | None]:
    """Search the list and its details for the record. Return None if one could not be read."""
    listed = None
    for _ in range(STARTS_MAX):
        listed, has_shrunk = yield from _list_candidates(sought)
        if listed is None or not has_shrunk:
            break
    if listed is None:
        return None
    ids = tuple(id for id, item in listed.items.items() if _may_match(sought, item))
    others = yield from _ids_of_other_rows(ids)
    matches: list[FoundDetail] = []
    alike: list[str] = []
    candidates = [id for id in ids if id not in others]
    for id in candidates[:DETAILS_MAX]:
        outcome: Outcome = yield ReadOne(id)
        if isinstance(outcome, UnreadableDetail):
            return None
        if not isinstance(outcome, FoundDetail):
            # It existed and was deleted in the meantime, so that its origin cannot be found out.
            alike.append(id)
        elif _is_match(sought, outcome.record.raw):
            matches.append(outcome)
        elif _is_similar(sought, outcome.record.raw):
            alike.append(id)
    alike += candidates[DETAILS_MAX:]
    matches, contested = yield from _separate_contested_matches(sought, matches)
    is_complete = listed.is_complete and not has_shrunk
    return LookupResult(tuple(matches), (*contested, *alike), is_complete, listed.started_at)


def find_ids_on_newest_page(
    resource: Declaration, identity: Mapping[str, Any]
) -> PushSteps[tuple[str, ...] | None]:
    """Return the ids on the newest page before the batch that have this identity.

    Records of other rows of the journal, and records that were in the warehouse before the batch,
    are left out. Empty if list items do not have the whole identity; None if the list could not be
    read.
    """
    page: Page[Resource] | UnreadableDetail = yield NewestBefore()
    if isinstance(page, UnreadableDetail):
        return None
    ids = tuple(item.id for item in page.items if _has_identity(resource, identity, item))
    others = yield from _ids_of_other_rows(ids)
    return tuple(id for id in ids if id not in others)


def _ids_of_other_rows(ids: tuple[str, ...]) -> PushSteps[frozenset[str]]:
    """Return those of the ids that are certainly not the record of this row."""
    return (yield ClaimedRecords(ids)) if ids else frozenset()


def _has_identity(resource: Declaration, identity: Mapping[str, Any], item: Resource) -> bool:
    """Return True if the list item has all values of the identity, except for case and outer
    blanks.
    """
    for name, value in identity.items():
        shown = item.raw.get(name)
        if fold_identity(value) == fold_identity(shown):
            continue
        field = resource.field(name)
        # Different texts differ. Parsing each would take most of the time.
        if field.kind is Kind.STRING or not is_same_value(field, value, shown):
            return False
    return True


def _separate_contested_matches(
    sought: SoughtRecord, matches: list[FoundDetail]
) -> PushSteps[tuple[list[FoundDetail], list[str]]]:
    """Return the matches that can only belong to this row, and the ids of the other matches.

    A record with everything that this row sent may come from another unconfirmed row that sent the
    same and more.
    """
    if not matches:
        return matches, []
    rivals: Iterable[Mapping[str, Any]] = yield OpenCreates()
    # Look up the records of other rows after that: an open create may have found its record since,
    # which must not be taken.
    others = yield from _ids_of_other_rows(tuple(each.record.id for each in matches))
    matches = [each for each in matches if each.record.id not in others]
    sure = [
        each
        for each in matches
        if all(unapplied_fields(sought.resource, sent, each.record.raw) for sent in rivals)
    ]
    return sure, [each.record.id for each in matches if each not in sure]


def _list_candidates(sought: SoughtRecord) -> PushSteps[tuple[_CandidateItems | None, bool]]:
    """Read the list, newest first, and return the items that were created late enough.

    The items are None if a page could not be read. The second value is True if the list shrank
    while it was read, so that it has to be read again.
    """
    listed: _CandidateItems | None = None
    pages: list[Page[Resource]] = []
    while len(pages) < PAGES_MAX:
        page: Page[Resource] | UnreadableDetail = yield ListNewest(len(pages) + 1)
        if isinstance(page, UnreadableDetail):
            return None, False
        has_shrunk = bool(pages) and page.total < pages[-1].total
        pages.append(page)
        if listed is None:
            assert page.received_at is not None
            asked_at = page.received_at - timedelta(seconds=page.round_trip_seconds)
            listed = _CandidateItems({}, False, asked_at)
        floor = _earliest_creation(sought, page)
        for item in page.items:
            if item.created_at is None or item.created_at >= floor:
                listed.items[item.id] = item
        if has_shrunk:
            return listed, True
        if page.is_last or (_is_sorted(pages) and _ends_before(page, floor)):
            listed.is_complete = True
            break
    return listed, False


def _earliest_creation(sought: SoughtRecord, page: Page[Resource]) -> datetime:
    """Return the earliest time at which the record can have been created, by the server's clock."""
    first, lateness = sought.first_attempt, timedelta(seconds=sought.lateness_seconds)
    if page.served_at is None or page.received_at is None:
        untimed = timedelta(seconds=LATENESS_UNTIMED_SECONDS)
        return min(first.intended_at, first.sent_after) - max(lateness, untimed)
    # The server's clock now, less the time that has passed by ours: right even where the clock was
    # not known when the attempt was made.
    passed = max(page.received_at - first.intended_at, timedelta(0))
    return min(first.sent_after, page.served_at - passed) - lateness


def _is_sorted(pages: list[Page[Resource]]) -> bool:
    """Return True if the pages so far are sorted by creation, newest first."""
    created = [item.created_at for page in pages for item in page.items if item.created_at]
    # A record that came between two pages shows the last one of a page again.
    return all(earlier >= later for earlier, later in pairwise(created))


def _ends_before(page: Page[Resource], floor: datetime) -> bool:
    """Return True if the last item of the page was created before `floor`."""
    created = [item.created_at for item in page.items if item.created_at is not None]
    return bool(created) and created[-1] < floor


def _may_match(sought: SoughtRecord, item: Resource) -> bool:
    """Return True unless the list item contradicts the row's identity or else its body."""
    identifying = sought.identity or sought.body
    return all(
        is_same_value(field, identifying[field.name], item.raw[field.name])
        for field in sought.resource.item_fields
        if field.create.accepted and field.name in identifying and field.name in item.raw
    )


def _is_match(sought: SoughtRecord, detail: Mapping[str, Any]) -> bool:
    """Return True if the record has all values that were sent."""
    return not unapplied_fields(sought.resource, sought.body, detail)


def _is_similar(sought: SoughtRecord, detail: Mapping[str, Any]) -> bool:
    """Return True if the record may be the row's, although some values differ."""
    identity = sought.identity
    return bool(identity) and not unapplied_fields(sought.resource, identity, detail)

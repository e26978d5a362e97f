"""Lookup of a record whose create was not answered; comparison of values.

    floor: the time before the first attempt, by the server's clock, less the lateness

The list is read last created first, down to the first record that is older than the floor. No
`search` is used, since the API does not say what it matches (API 4.1). An item that may be the
row's, by the fields that lists show, is read, and every field sent is compared. A record that had
landed before, or that belongs to another row, is no match.

A record that is not found may still come, or may be hidden: by a page that shifted, by a list that
is not sorted. So a lookup also says whether it saw everything, and which records are similar or may
belong to another row in doubt. While there are any, nothing is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from unicodedata import normalize

from connector.catalog.field import Field
from connector.catalog.page import Page
from connector.catalog.resource import Declaration, Resource
from connector.catalog.value import Kind
from connector.engine.bookmark import LATENESS_UNTIMED_SECONDS
from connector.engine.commands import Found, Outcome, Unread
from connector.engine.push_commands import (
    Attempt,
    ClaimedRecords,
    ListNewest,
    Newest,
    OpenCreates,
    PushSteps,
    ReadOne,
)
from connector.engine.push_plan import Problem, folded

# -- Comparison of values --------------------------------------------------------------------------
# Whether the API shows what was sent: one value, one body, or a record that others may change too.
#
# The API may write a value in another form (API, conventions): `1.0` for `1`, an offset for `Z`, a
# moment cut to the second, no blanks around a text, null for an empty one. None of these is a
# difference. Fields that an answer does not have are not compared.


SHOWN_CHARACTERS_MAX = 200
"""Characters of a value that a problem shows."""

_UNITS = (1_000, 1_000_000)
"""Microseconds to which a server may cut its moments."""


def is_same(field: Field, sent: Any, shown: Any) -> bool:
    """Whether the value shown is the value sent, whatever its form."""
    if field.kind is Kind.VALUES:
        return not _differing_keys(sent, shown)
    if _is_blank(sent) or _is_blank(shown):
        return _is_blank(sent) and _is_blank(shown)
    one, other = field.read(sent)[0], field.read(shown)[0]
    if one is None or other is None:
        return bool(sent == shown)
    if isinstance(one, str):
        one, other = composed(one), composed(str(other))
        return one.casefold() == other.casefold() if field.format == "email" else one == other
    if isinstance(one, datetime):
        return other in (one, *(_cut(one, unit) for unit in _UNITS))
    return bool(one == other)


def composed(text: str) -> str:
    """Return the text without outer blanks, with each accented letter as one character.

    Two encodings of the same letters (NFC and NFD) are equal, as they are where rows are matched.
    """
    return (text if text.isascii() else normalize("NFC", text)).strip()


def differing(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[str, ...]:
    """Names of the sent fields that an answer shows with another value.

    Fields that the answer leaves out are not among them: an echo may have fewer (API 4.7).
    """
    return tuple(
        name
        for name, value in sent.items()
        if name in shown and not is_same(resource.field(name), value, shown[name])
    )


def lacking(
    resource: Declaration, wanted: Mapping[str, Any], detail: Mapping[str, Any]
) -> tuple[str, ...]:
    """Names of the fields that a detail does not have as wanted.

    A field that a detail leaves out is empty. Fields that are never shown are not among them.
    """
    return tuple(
        name
        for name, value in wanted.items()
        if not resource.field(name).write_only
        and not is_same(resource.field(name), value, detail.get(name))
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """Rest of an update: the body to send, and fields that somebody else changed.

    `is_shown` says whether answers can show any field of the body.
    """

    body: Mapping[str, Any]
    conflicts: tuple[str, ...]
    is_shown: bool


def compare(
    resource: Declaration,
    wanted: Mapping[str, Any],
    base: Mapping[str, Any],
    detail: Mapping[str, Any],
    *,
    overwrite: bool,
) -> Compared:
    """Compare wanted values with the record as it is now, and as it was known.

    A field that has the wanted value is not sent. A field with neither the wanted nor the former
    value is a conflict, unless `overwrite`. Values of content are compared key by key and sent
    whole, since the API does not say whether it merges them (API 4.7).
    """
    body: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in wanted:
        field = resource.field(name)
        if field.write_only:
            body[name] = wanted[name]
            continue
        now, former = detail.get(name), base.get(name)
        is_known = name in base
        if field.kind is Kind.VALUES:
            keys = _differing_keys(wanted[name], now)
            taken = [key for key in keys if is_known and _differing_keys(_only(former, key), now)]
            if keys:
                body[name] = {**_values(now), **wanted[name]}
            is_taken = bool(taken)
        elif is_same(field, wanted[name], now):
            continue
        else:
            body[name] = wanted[name]
            is_taken = is_known and not is_same(field, former, now)
        if is_taken and not overwrite:
            conflicts.append(name)
    is_shown = any(not resource.field(name).write_only for name in body)
    return Compared(body, tuple(conflicts), is_shown)


def altered(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[Problem, ...]:
    """Problems of fields that the API accepted and shows with another value."""
    return tuple(
        Problem(
            "values_differ",
            f"{name} was accepted, but the API now shows another value",
            field=name,
            received=as_text(sent[name]),
            found=as_text(shown[name]),
            fix=("Check the record in the application. The API may change this value when saving."),
        )
        for name in differing(resource, sent, shown)
    )


def as_text(value: Any) -> str:
    """A value as a problem shows it."""
    return "" if value is None else str(value)[:SHOWN_CHARACTERS_MAX]


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _cut(moment: datetime, unit: int) -> datetime:
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def _values(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _only(value: Any, key: str) -> Mapping[str, Any]:
    return {key: _values(value).get(key)}


def _differing_keys(sent: Any, shown: Any) -> list[str]:
    """The keys of content values sent that are shown otherwise."""
    return [key for key, value in _values(sent).items() if not _is_value(value, shown, key)]


def _is_value(value: Any, shown: Any, key: str) -> bool:
    other = _values(shown).get(key)
    blanks = (_is_blank(value) or value == [], _is_blank(other) or other == [])
    if any(blanks):
        return all(blanks)
    if isinstance(value, list) or isinstance(other, list):
        return bool(value == other)
    # A content value has no declared type (API 2.7): its text is what both sides agree on.
    return value == other or composed(str(value)) == composed(str(other))


# -- Lookup ----------------------------------------------------------------------------------------


PAGES_MAX = 20
"""Pages of one look. A list that has more above the floor is not seen whole."""

STARTS_MAX = 3
"""How often a look begins anew because records went from the list while it was read."""

DETAILS_MAX = 10
"""Records alike that are read; more of them are too many to tell apart."""


@dataclass(frozen=True, slots=True)
class SoughtRecord:
    """Record sought: body, identity, mark (empty: none), first attempt in doubt."""

    resource: Declaration
    body: Mapping[str, Any]
    identity: Mapping[str, Any]
    marker: Mapping[str, str]
    first: Attempt
    lateness_seconds: float


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Result of a lookup: records as they were sent, and ids of similar ones.

    `is_complete` says that every record that can be the row's was seen. `looked_at` is our own
    clock before the first list was requested.
    """

    matches: tuple[Found, ...]
    alike: tuple[str, ...]
    is_complete: bool
    looked_at: datetime


@dataclass(slots=True)
class _Listed:
    """The items above the floor, by id."""

    items: dict[str, Resource]
    is_complete: bool
    looked_at: datetime


def look(sought: SoughtRecord) -> PushSteps[LookupResult | None]:
    """Look for the record; None where a list or a detail could not be read."""
    listed = None
    for _ in range(STARTS_MAX):
        listed, has_shrunk = yield from _listed(sought)
        if listed is None or not has_shrunk:
            break
    if listed is None:
        return None
    ids = tuple(id for id, item in listed.items.items() if _can_be(sought, item))
    others = yield from _claimed(ids)
    matches: list[Found] = []
    alike: list[str] = []
    candidates = [id for id in ids if id not in others]
    for id in candidates[:DETAILS_MAX]:
        outcome: Outcome = yield ReadOne(id)
        if isinstance(outcome, Unread):
            return None
        if not isinstance(outcome, Found):
            # It existed and was deleted meanwhile, so that its origin cannot be found out.
            alike.append(id)
        elif _is_match(sought, outcome.record.raw):
            matches.append(outcome)
        elif _is_alike(sought, outcome.record.raw):
            alike.append(id)
    alike += candidates[DETAILS_MAX:]
    matches, contested = yield from _uncontested(sought, matches)
    is_complete = listed.is_complete and not has_shrunk
    return LookupResult(tuple(matches), (*contested, *alike), is_complete, listed.looked_at)


def already_there(
    resource: Declaration, identity: Mapping[str, Any]
) -> PushSteps[tuple[str, ...] | None]:
    """Ids of the newest records with this identity, unknown to landing and journal.

    Empty if the list does not show the whole identity; None if the list could not be read.
    """
    page: Page[Resource] | Unread = yield Newest()
    if isinstance(page, Unread):
        return None
    ids = tuple(item.id for item in page.items if _identifies(resource, identity, item))
    others = yield from _claimed(ids)
    return tuple(id for id in ids if id not in others)


def _claimed(ids: tuple[str, ...]) -> PushSteps[frozenset[str]]:
    """Ids of the records that are certainly not this row's."""
    return (yield ClaimedRecords(ids)) if ids else frozenset()


def _identifies(resource: Declaration, identity: Mapping[str, Any], item: Resource) -> bool:
    """Whether the item shows the whole identity, letter case and outer blanks aside."""
    for name, value in identity.items():
        shown = item.raw.get(name)
        if folded(value) == folded(shown):
            continue
        field = resource.field(name)
        # Texts are settled by now, and reading each would take most of the time.
        if field.kind is Kind.STRING or not is_same(field, value, shown):
            return False
    return True


def _uncontested(
    sought: SoughtRecord, matches: list[Found]
) -> PushSteps[tuple[list[Found], list[str]]]:
    """Matches that can belong to no other row, and the ids of the others.

    A record with everything that this row sent may come from another row in doubt that sent the
    same and more. A mark excludes that.
    """
    if sought.marker or not matches:
        return matches, []
    rivals: Iterable[Mapping[str, Any]] = yield OpenCreates()
    # Read the claims again after that: a rival that has its record by now is no rival any more, and
    # its record must not be taken.
    others = yield from _claimed(tuple(each.record.id for each in matches))
    matches = [each for each in matches if each.record.id not in others]
    sure = [
        each
        for each in matches
        if all(lacking(sought.resource, sent, each.record.raw) for sent in rivals)
    ]
    return sure, [each.record.id for each in matches if each not in sure]


def _listed(sought: SoughtRecord) -> PushSteps[tuple[_Listed | None, bool]]:
    """Items above the floor, and whether the list shrank, so that some slid past."""
    listed: _Listed | None = None
    pages: list[Page[Resource]] = []
    while len(pages) < PAGES_MAX:
        page: Page[Resource] | Unread = yield ListNewest(len(pages) + 1)
        if isinstance(page, Unread):
            return None, False
        has_shrunk = bool(pages) and page.total < pages[-1].total
        pages.append(page)
        if listed is None:
            assert page.heard_at is not None
            asked_at = page.heard_at - timedelta(seconds=page.round_trip_seconds)
            listed = _Listed({}, False, asked_at)
        floor = _floor(sought, page)
        for item in page.items:
            if item.created_at is None or item.created_at >= floor:
                listed.items[item.id] = item
        if has_shrunk:
            return listed, True
        if page.is_last or (_is_sorted(pages) and _reaches_below(page, floor)):
            listed.is_complete = True
            break
    return listed, False


def _floor(sought: SoughtRecord, page: Page[Resource]) -> datetime:
    """Time before the first attempt, by the server's clock, less the lateness."""
    first, lateness = sought.first, timedelta(seconds=sought.lateness_seconds)
    if page.served_at is None or page.heard_at is None:
        untimed = timedelta(seconds=LATENESS_UNTIMED_SECONDS)
        return min(first.intended_at, first.sent_after) - max(lateness, untimed)
    # The server's clock now, less the time that has passed by ours: right even where the clock was
    # not known when the attempt was made.
    passed = max(page.heard_at - first.intended_at, timedelta(0))
    return min(first.sent_after, page.served_at - passed) - lateness


def _is_sorted(pages: list[Page[Resource]]) -> bool:
    """Whether the pages so far are in the order that was asked for."""
    created = [item.created_at for page in pages for item in page.items if item.created_at]
    # A record that came between two pages shows the last one of a page once more.
    return all(earlier >= later for earlier, later in pairwise(created))


def _reaches_below(page: Page[Resource], floor: datetime) -> bool:
    created = [item.created_at for item in page.items if item.created_at is not None]
    return bool(created) and created[-1] < floor


def _can_be(sought: SoughtRecord, item: Resource) -> bool:
    """Whether a list item shows the row's mark and its identity (or else its body)."""
    told = {**(sought.identity or sought.body), **sought.marker}
    return all(
        is_same(field, told[field.name], item.raw[field.name])
        for field in _listed_fields(sought.resource)
        if field.name in told and field.name in item.raw
    )


def _listed_fields(resource: Declaration) -> tuple[Field, ...]:
    return tuple(field for field in resource.item_fields if field.create.accepted)


def _is_match(sought: SoughtRecord, detail: Mapping[str, Any]) -> bool:
    """Whether the record is the row's, by its mark or by all that was sent."""
    return not lacking(sought.resource, sought.marker or sought.body, detail)


def _is_alike(sought: SoughtRecord, detail: Mapping[str, Any]) -> bool:
    """Whether the record may be the row's, with values changed on the way or since."""
    told = sought.body if sought.marker else sought.identity
    unmarked = {name: value for name, value in told.items() if name not in sought.marker}
    return bool(unmarked) and not lacking(sought.resource, unmarked, detail)

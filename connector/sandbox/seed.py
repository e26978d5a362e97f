"""Sample data of an agency: number of records, relations and times.

The same seed, counts and day create the same records. Related records exist, imported records share
one timestamp, statuses are distributed as in a real agency, and every record is at least an hour
old. `records.py` creates single records, with the words of `vocabulary.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.errors import SettingsError, UnknownName
from connector.sandbox.direct_writes import DirectStore
from connector.sandbox.random_values import AgencyContext, RandomValues
from connector.sandbox.record_table import StoredRecord
from connector.sandbox.records import make_record

COUNTS_DEFAULT: Mapping[str, int] = MappingProxyType(
    {name: each.sandbox_count for name, each in CATALOG.items()}
)
"""Default number of sample records by resource."""

_DAYS = 730
_LATENESS = timedelta(hours=1)
_IMPORT_MIN = 150
_IMPORT_SHARE = 0.3
_EDIT_SHARE = 0.1
# Of the records that neither an import nor a bulk edit made, those never changed since.
_UNTOUCHED_SHARE = 0.35

Timestamps = tuple[datetime, datetime]
"""When a record was created, and when it was last changed."""


def seed_store(store: DirectStore, counts: Mapping[str, int], *, seed: int) -> None:
    """Fill an empty store with these numbers of sample records by resource.

    Raises `UnknownName` for an unknown resource, and `SettingsError` for a negative number or for
    content items without a content type.
    """
    for name, number in counts.items():
        if name not in CATALOG:
            raise UnknownName("resource", name, CATALOG)
        if number < 0:
            raise SettingsError(f"The number of {name} is {number}; it must be 0 or more.")
    if counts.get("content_items") and not counts.get("content_types"):
        raise SettingsError("Content items need at least one content type.")
    # Not the store's own generator: the number of records must not change later ids.
    rng = RandomValues(random.Random(seed))  # noqa: S311  # made-up people are no secrets
    anchor = _latest_time(store.clock())
    agency = AgencyContext(anchor)
    for name, records in _sample_records(rng, agency, counts, anchor):
        store.load(name, records)


def _latest_time(now: datetime) -> datetime:
    """Return the latest time in the data: a midnight, so that data of the same day is equal."""
    return (now - _LATENESS).replace(hour=0, minute=0, second=0, microsecond=0)


def _sample_records(
    rng: RandomValues, agency: AgencyContext, counts: Mapping[str, int], anchor: datetime
) -> Iterator[tuple[str, Iterator[tuple[StoredRecord, str | None]]]]:
    """Yield each resource with its records, after the resources that it refers to."""
    for name in REFERRED_FIRST:
        moments = _sample_times(rng, counts.get(name, 0), anchor)
        yield name, (make_record(CATALOG[name], rng, agency, i, e) for i, e in enumerate(moments))


def _sample_times(rng: RandomValues, count: int, anchor: datetime) -> Sequence[Timestamps]:
    """Draw the creation and change times of records, in order of creation.

    30 % of the records come from imports, which give a group the same times. 10 % were last changed
    by a bulk edit, which gives a group the same `updated_at`. Large groups fill more than a page.
    """
    first = anchor - timedelta(days=_DAYS)
    span = _DAYS * 24 * 3600.0

    def moment(after: float = 0.0) -> float:
        return after + rng.random() * (span - after)

    seconds: list[tuple[float, float]] = []
    for size in _group_sizes(int(count * _IMPORT_SHARE)):
        seconds += [(at := moment(), at)] * size
    for size in _group_sizes(int(count * _EDIT_SHARE)):
        edited = moment(span / 2)
        seconds += [(rng.random() * edited, edited) for _ in range(size)]
    while len(seconds) < count:
        created = moment()
        is_untouched = rng.random() < _UNTOUCHED_SHARE
        seconds.append((created, created if is_untouched else moment(created)))
    seconds.sort()
    return [(first + timedelta(seconds=c), first + timedelta(seconds=u)) for c, u in seconds]


def _group_sizes(total: int) -> Iterator[int]:
    """Yield sizes of groups with the sum `total`: one group if it is small, else 150 and more."""
    while total > 0:
        size = total if total < 2 * _IMPORT_MIN else max(_IMPORT_MIN, total // 6)
        yield min(size, total)
        total -= size

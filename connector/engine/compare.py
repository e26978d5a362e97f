"""Comparing a whole stream with the API: reads everything, and changes nothing.

Every page in order of creation, and the detail of every record listed; what is landed and not
listed is read as well, since only the API's 404 says that it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from connector.engine import ask
from connector.engine.ask import Found, Gone, Steps
from connector.engine.examine import BATCH_RECORDS_MAX
from connector.resource import Declaration


@dataclass(slots=True)
class Comparison:
    """How the landing differs from the API, by id.

    `missing` are listed and not landed, `extra` are landed and gone from the API, `stale` are
    landed with other values in the fields named, `unhydrated` are landed as list items only, and
    `unread` could not be read, each with an error's code. `total` is the API's own count, and
    `compared` how many records were read.
    """

    total: int = 0
    compared: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    stale: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unhydrated: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether everything could be compared, and is the same."""
        differ = self.missing or self.extra or self.stale or self.unhydrated or self.unread
        return not differ


def compare(resource: Declaration, found: Comparison) -> Steps[None]:
    """Hold every record of the stream against the landed rows, into `found`; commits nothing."""
    sort = "created_at" if resource.sortable else None
    listed: set[str] = set()
    number, total_before = 1, None
    while True:
        page = yield from ask.list_page(number, sort, "asc")
        has_shrunk = total_before is not None and page.total < total_before
        total_before = found.total = page.total
        fresh = tuple(item.id for item in page.items if item.id not in listed)
        listed.update(fresh)
        yield from _hold(fresh, found)
        if has_shrunk and number > 1:
            number -= 1  # What stood here moved a page to the left.
        elif page.is_last:
            break
        else:
            number += 1
    held = yield from ask.between(None, None)
    for batch in _batches(sorted(held - listed)):
        yield from _hold(batch, found)


def _hold(ids: tuple[str, ...], found: Comparison) -> Steps[None]:
    """Read these records and hold them against the landed rows."""
    if not ids:
        return
    known = yield from ask.recall_ids(ids)
    outcomes: Mapping[str, ask.Outcome] = yield from ask.read_records(ids)
    records = tuple(each.record for each in outcomes.values() if isinstance(each, Found))
    found.stale |= yield from ask.differences(records)
    for id, outcome in outcomes.items():
        row = known.get(id)
        is_live = row is not None and not row.is_deleted
        if isinstance(outcome, Gone):
            if is_live:
                found.extra.append(id)
        elif not isinstance(outcome, Found):
            found.unread[id] = outcome.reason
        elif not is_live:
            found.missing.append(id)
            found.stale.pop(id, None)
        elif row is not None and row.read_at is None:
            found.unhydrated.append(id)
    found.compared += len(outcomes)


def _batches(ids: list[str]) -> Iterator[tuple[str, ...]]:
    """The ids in batches of what is read at once."""
    waiting = iter(ids)
    while batch := tuple(islice(waiting, BATCH_RECORDS_MAX)):
        yield batch

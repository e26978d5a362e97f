"""Comparison of a whole stream with the local copy.

Reads every list page in order of creation, the detail of every listed record, and every loaded
record that is not listed, because only a 404 shows that a record is deleted. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.catalog.resource import Declaration
from connector.pulls.reading import Api, Copy
from connector.warehouse.stream import (
    BATCH_RECORDS_MAX,
    DeletionProof,
    FoundDetail,
    LandedRow,
    Outcome,
)


@dataclass(slots=True)
class StreamComparison:
    """Differences between the local copy and the API, by id.

    Attributes:
        total: Number of records according to the API.
        compared: Number of records that were read.
        missing: Listed records that are not loaded.
        extra: Loaded records that the API no longer has.
        stale: Records with different values, each with the names of the fields.
        unhydrated: Records loaded as list items only.
        unread: Records that could not be read, each with the reason.
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
        """Return True if all records were compared and are equal."""
        differ = self.missing or self.extra or self.stale or self.unhydrated or self.unread
        return not differ


async def compare_all_records(
    api: Api, copy: Copy, resource: Declaration, found: StreamComparison
) -> None:
    """Compare all listed and all loaded records with the API; add differences to `found`."""
    listed: set[str] = set()
    number, total = 1, 0
    sort = "created_at" if resource.sortable else None
    while True:
        page = await api.page(number, sort, "asc")
        has_shrunk, total = page.total < total, page.total
        found.total = total
        fresh = tuple(dict.fromkeys(e.id for e in page.items if e.id not in listed))
        listed.update(fresh)
        await compare_details(api, copy, fresh, found)
        if has_shrunk and number > 1:
            number -= 1  # A deletion moved a record to the page before.
        elif page.is_last or (page.is_full and not fresh):
            break
        else:
            number += 1
    unlisted = sorted(await copy.live(None, None) - listed)
    for start in range(0, len(unlisted), BATCH_RECORDS_MAX):
        batch = tuple(unlisted[start : start + BATCH_RECORDS_MAX])
        await compare_details(api, copy, batch, found)


async def compare_details(
    api: Api, copy: Copy, ids: tuple[str, ...], found: StreamComparison
) -> None:
    """Read these records, compare them with the rows, and add differences to `found`."""
    while ids:
        rows = await copy.rows_by_id(ids)
        outcomes = await api.details(ids)
        ids = tuple(id for id in ids if id not in outcomes)
        records = tuple(e.record for e in outcomes.values() if isinstance(e, FoundDetail))
        found.stale |= await copy.differing(records)
        for id, outcome in outcomes.items():
            _compare_detail(id, outcome, rows.get(id), found)
        found.compared += len(outcomes)


def _compare_detail(
    id: str, outcome: Outcome, row: LandedRow | None, found: StreamComparison
) -> None:
    """Compare one detail with its row."""
    is_live = row is not None and not row.is_deleted
    if isinstance(outcome, DeletionProof):
        if is_live:
            found.extra.append(id)
    elif not isinstance(outcome, FoundDetail):
        found.unread[id] = outcome.message or outcome.reason
    elif not is_live:
        found.missing.append(id)
        found.stale.pop(id, None)
    elif row is not None and row.read_at is None:
        found.unhydrated.append(id)

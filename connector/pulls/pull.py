"""Exact pull of one stream, as plain async functions. The API and the local copy are injected.

    R, proven_at          server time up to which every change is loaded or queued
    L, lateness_seconds   a write that becomes visible at t is dated after t - L
    W, floor_of: R - L    every record dated up to W is loaded or queued

    scan      list by `updated_at`, newest first, down to the first record that is certainly
              unchanged; read every record above it; R becomes the server time before the first list
    audit     compare the live rows with the total of the list; if they differ, halve the list by
              `created_at` until the deleted and the missing records are found
    sweep     every page by `created_at`: first load, unexplained totals, lists that are not sorted

A change while a list is read only moves a record up, so the scan becomes longer and never wrong.
Only a 404 of the API proves a deletion, and many deletions need the user's consent (`Pull.check`).
Every step is committed together with the bookmark that it justifies, so a pull may be killed at any
`await`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connector.catalog.resource import Declaration
from connector.errors import NotFound
from connector.pulls.audit import audit
from connector.pulls.reading import (
    DELETIONS_MIN,
    Api,
    Copy,
    Pull,
    PullOptions,
    PullResult,
    drain,
    list_page,
    read,
    settle,
)
from connector.pulls.scan import UNSORTED, scan
from connector.pulls.sweep import UNSORTED_FOR, compare_all, first_load, pull_whole, reverify
from connector.warehouse.stream import Bookmark, Commit, DeletionProof, Event

NOT_READ = "the API's answer could not be read for"
ONLY_THESE = "only the requested records were read"
HELD = "deletions_held"
"""Code of a result whose deletions wait for `--accept-deletes`."""


async def run(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, options: PullOptions
) -> PullResult:
    """Update one stream with the fewest requests that prove it.

    Args:
        api: Reads of the stream.
        copy: Local copy of the stream.
        resource: Its resource.
        mark: Its bookmark.
        options: What to do beyond the minimum.

    Returns:
        Whether the copy is proven, and if not, why.
    """
    api.purpose = "pull"
    pull = Pull(api, copy, resource, mark, options, known=await copy.count())
    reason = await _run(pull)
    if pull.refused is not None:
        await copy.commit(Commit(events=(Event("mass_deletion", pull.refused),)))
        return PullResult(False, pull.refused, pull.total, HELD)
    if reason is None and pull.mark.deletions:
        pull.mark = replace(pull.mark, deletions=0)
        await copy.commit(Commit(bookmark=pull.mark))
    return PullResult(reason is None, reason, pull.total)


async def _run(pull: Pull) -> str | None:
    """Choose between a first load, a scan and a read of the whole list; return why not proven."""
    options, mark = pull.options, pull.mark
    if not pull.resource.sortable:
        return await pull_whole(pull, reads_all=options.is_full)
    reason: str | None = None
    if mark.proven_at is None:
        reason = await first_load(pull)
    elif options.is_full or options.sweeps:
        reason = await compare_all(pull, reads_all=options.is_full)
    if reason is not None:
        return reason
    pull.api.purpose = "pull"
    reason = await scan_and_audit(pull)
    if options.verification_requests and pull.refused is None:
        await reverify(pull, options.verification_requests)
    return reason


async def scan_and_audit(pull: Pull) -> str | None:
    """Find changes, then deletions. An unsorted list is read whole. Return why not proven."""
    at, is_resumed = pull.mark.unsorted_at, pull.mark.opened_at is not None
    if at is not None and not pull.options.is_full:
        whole = await pull_whole(pull)
        # The verdict is a day old at most; the next pull tries to scan again.
        assert pull.served_at is not None
        if pull.mark.unsorted_at is not None and pull.served_at - at >= UNSORTED_FOR:
            pull.mark = replace(pull.mark, unsorted_at=None)
            await pull.copy.commit(Commit(bookmark=pull.mark))
        return whole
    await drain(pull)
    reason, listing = await scan(pull)
    if is_resumed and reason is None:
        reason, listing = await scan(pull)  # The first one proves the time of the killed pass.
    if reason == UNSORTED:
        return await pull_whole(pull)
    gone = len(pull.gone)
    if pull.refused is None:
        await settle(pull)
    if reason is not None or pull.refused is not None:
        return pull.refused or reason
    return await audit(pull, listing, gone)


async def read_ids(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, ids: Sequence[str]
) -> PullResult:
    """Read only these records. A deleted record is marked as deleted immediately."""
    pull = Pull(api, copy, resource, mark, PullOptions(accepts_deletes=True), await copy.count())
    await read(pull, ids)
    await settle(pull)
    rows = await copy.rows_by_id(ids)
    reason = ONLY_THESE
    if pull.unread:
        reasons = (f"{id} ({why})" for id, why in sorted(pull.unread.items()))
        reason = f"{NOT_READ} {', '.join(reasons)}"
    elif absent := [id for id in ids if id not in rows]:
        reason = f"the API has no record {', '.join(absent)}"
    elif gone := sorted(id for id, row in rows.items() if row.is_deleted):
        reason = f"gone from the API: {', '.join(gone)}"
    return PullResult(False, reason, pull.known)


async def end_stream(
    api: Api, copy: Copy, resource: Declaration, mark: Bookmark, options: PullOptions
) -> PullResult:
    """Mark the records of a stream as deleted because its parent is deleted.

    The 404 of the list proves all of these deletions.
    """
    live = await copy.live(None, None)
    pull = Pull(api, copy, resource, mark, options, known=len(live))
    gone: DeletionProof | None = None
    if live:
        try:
            page = await list_page(pull, 1, "created_at", "desc")
        except NotFound as error:
            if not error.is_api_error or error.served_at is None:
                raise
            gone = DeletionProof(error.served_at)
        else:
            reason = "the content type is deleted, but the API still lists its items"
            return PullResult(False, reason, page.total)
        why = "belong to a deleted parent"
        if len(live) > DELETIONS_MIN and not pull.check(len(live), why, live):
            await copy.commit(Commit(events=(Event("mass_deletion", str(pull.refused)),)))
            return PullResult(False, pull.refused, 0, HELD)
    proofs = {id: gone for id in sorted(live) if gone is not None}
    await copy.commit(Commit(gone=proofs, ends_stream=True))
    return PullResult(True, None, 0)

"""The search for the first clean record of a list, which whoever walks and whoever prices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from connector.engine.ask import Known, Steps

Verdict = Literal["dirty", "clean", "odd", "end"]
"""Of the record of a rank: above the floor, at or below it, without a date that could say so, or
not there, since the list ends before.
"""


def predicted(rows: Sequence[Known | None], floor: datetime, future: datetime) -> int:
    """The smallest index from which on all rows, in the list's order, look landed and in order.

    None is a record that is not landed. A row without `updated_at`, or with one after `future`,
    predicts nothing.
    """
    start, newer = len(rows), None
    while start > 0:
        row = rows[start - 1]
        if row is None or row.is_queued or row.is_deleted:
            break
        updated_at = row.updated_at
        if updated_at is not None and updated_at <= future:
            if updated_at > floor or (newer is not None and updated_at < newer):
                break
            newer = updated_at
        start -= 1
    return start


def first_clean(
    start: int, verdict: Callable[[int], Steps[Verdict]], end: Callable[[], int]
) -> Steps[int]:
    """The index of the first clean record, or `end()`: gallop from `start` 1, 2, 4, then halve.

    What is odd says nothing of those above it, so the gallop steps over it.
    """
    low, probe, stride = start - 1, start, 1
    while (found := (yield from verdict(probe))) != "clean":
        if found == "end":
            probe = end()
            break
        if found == "odd":
            probe += 1
            continue
        low, probe, stride = probe, probe + stride, stride * 2
    high = probe
    while high - low > 1:
        middle = (low + high) // 2
        if (yield from verdict(middle)) == "clean":
            high = middle
        else:
            low = middle
    return high

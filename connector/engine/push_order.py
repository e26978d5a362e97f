"""In which order a batch's rows are begun: as the file has them, and those about one thing one
after another, so that no look can take one row's record for another's.

Pure: it hands rows out and is told how they ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Ordered(Protocol):
    """A row to be brought further: its key, and what it is about (None: nothing identifies it)."""

    @property
    def key(self) -> tuple[str, int]:
        """Its batch and number."""

    @property
    def subject(self) -> str | None:
        """What it is about."""


W = TypeVar("W", bound=Ordered)


@dataclass(frozen=True, slots=True)
class Blocked(Generic[W]):
    """A row that may not be begun: the row `by` is about the same thing, and is open."""

    row: W
    by: tuple[str, int]


class Order(Generic[W]):
    """The rows of one run, which are taken one by one. `open_about` is what is open in the journal,
    by the row, and `mine` which rows of those are among the run's.
    """

    def __init__(
        self,
        rows: Iterable[W],
        open_about: Mapping[str, tuple[str, int]],
        mine: Collection[tuple[str, int]],
    ) -> None:
        self._rows = iter(rows)
        self._is_read = False
        self._ready: deque[W] = deque()
        self._under_way: dict[str, tuple[str, int]] = {
            subject: key for subject, key in open_about.items() if key in mine
        }
        self._open = {s: key for s, key in open_about.items() if key not in mine}
        self._behind: dict[str, list[W]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no row waits, not even for another one."""
        return self._is_read and not self._ready and not self._behind

    def next(self) -> W | Blocked[W] | None:
        """The next row that may be begun, or one that may not; None while there is neither."""
        while (row := self._taken()) is not None:
            if row.subject is None:
                return row
            if row.subject in self._open:
                return Blocked(row, self._open[row.subject])
            holder = self._under_way.setdefault(row.subject, row.key)
            if holder == row.key:
                return row
            self._behind.setdefault(row.subject, []).append(row)
        return None

    def ended(self, row: W, *, is_open: bool) -> None:
        """The row can be brought no further; `is_open`: whether it was written is open."""
        if row.subject is None:
            return
        assert self._under_way.pop(row.subject) == row.key
        if is_open:
            self._open[row.subject] = row.key
        self._ready.extendleft(reversed(self._behind.pop(row.subject, [])))

    def _taken(self) -> W | None:
        """The row whose turn it is: one that has waited for another, else the next one."""
        if self._ready:
            return self._ready.popleft()
        row = next(self._rows, None)
        self._is_read = row is None
        return row

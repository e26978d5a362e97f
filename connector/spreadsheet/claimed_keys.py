"""Claimed keys of a file's rows: digests in flat arrays, for files of any length.

A million keys take 25 MB. The digest is Python's own, of 64 bits and keyed anew in each process:
two keys with one digest would be taken for one, among a million once in some thirty million files.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from connector.spreadsheet.target_columns import folded

_PARTS = 64
_PART_BITS = 6
_PLACES_FIRST = 1 << 7


def comparable(values: Iterable[object]) -> str:
    """Values as one text that is the same for values that mean the same."""
    return "\x1f".join([folded(each) for each in values])


class ClaimedKeys:
    """Keys with the number of the row that had each first.

    They are dealt to parts by their digests, since a part is there twice while it grows.
    """

    def __init__(self) -> None:
        self._parts = [_Part() for _ in range(_PARTS)]

    def __len__(self) -> int:
        return sum(part.count for part in self._parts)

    def claim(self, key: str, row: int) -> int | None:
        """The row that had the key first; None where this one has it, now or already."""
        digest = _digest(key)
        held = self._parts[digest & (_PARTS - 1)].claim(digest, row)
        return held if held != row else None

    def first(self, key: str) -> int | None:
        """The row that has the key; None where none has claimed it."""
        digest = _digest(key)
        part = self._parts[digest & (_PARTS - 1)]
        place = part.place_of(digest)
        return part.rows[place] if part.digests[place] else None


class _Part:
    """A hash table of one part's keys, of which half the places are free, at least."""

    __slots__ = ("count", "digests", "rows")

    def __init__(self) -> None:
        self.digests = array("q", bytes(8 * _PLACES_FIRST))
        self.rows = array("I", bytes(4 * _PLACES_FIRST))
        self.count = 0

    def place_of(self, digest: int) -> int:
        """Where the digest is, or would be."""
        digests = self.digests
        mask = len(digests) - 1
        place = (digest >> _PART_BITS) & mask
        while (held := digests[place]) and held != digest:
            place = (place + 1) & mask
        return place

    def claim(self, digest: int, row: int) -> int:
        """The row that has the digest: the first that claimed it."""
        place = self.place_of(digest)
        if self.digests[place]:
            return self.rows[place]
        self.digests[place], self.rows[place] = digest, row
        self.count += 1
        if self.count * 2 >= len(self.digests):
            self._grow()
        return row

    def _grow(self) -> None:
        before = zip(self.digests, self.rows, strict=True)
        size = len(self.digests) * 2
        self.digests, self.rows = array("q", bytes(8 * size)), array("I", bytes(4 * size))
        for digest, row in before:
            if digest:
                place = self.place_of(digest)
                self.digests[place], self.rows[place] = digest, row


def _digest(key: str) -> int:
    """The key's digest; never 0, which marks a free place."""
    return hash(key) or 1

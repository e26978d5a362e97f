"""Which keys were seen before in a file, for files of any length: digests in flat arrays.

A million keys take 25 MB. The digest is Python's own, of 64 bits and keyed anew in each process:
two keys with one digest would be taken for one, among a million once in some thirty million files.
"""

from __future__ import annotations

from array import array

_SLOTS_FIRST = 1 << 12


class Claims:
    """Keys with the number of the row that had each first."""

    def __init__(self) -> None:
        self._mask = _SLOTS_FIRST - 1
        self._digests = array("q", bytes(8 * _SLOTS_FIRST))
        self._rows = array("I", bytes(4 * _SLOTS_FIRST))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def claim(self, key: str, row: int) -> int | None:
        """The row that had the key first; None where this one has it, now or already."""
        # No digest is 0, which marks a free place.
        digest = hash(key) or 1
        digests, mask = self._digests, self._mask
        place = digest & mask
        while (held := digests[place]) and held != digest:
            place = (place + 1) & mask
        if held:
            return self._rows[place] if self._rows[place] != row else None
        digests[place], self._rows[place] = digest, row
        self._count += 1
        if self._count * 2 > mask:
            self._grow()
        return None

    def _grow(self) -> None:
        digests, rows = self._digests, self._rows
        size = (self._mask + 1) * 2
        self._mask = mask = size - 1
        self._digests = made = array("q", bytes(8 * size))
        self._rows = numbers = array("I", bytes(4 * size))
        for digest, row in zip(digests, rows, strict=True):
            if digest:
                place = digest & mask
                while made[place]:
                    place = (place + 1) & mask
                made[place], numbers[place] = digest, row

"""Spill file: values in their order, a million of which take no memory.

The first stay in memory, and all are in a file from then on. The file has no name, is its owner's
alone, and is gone with the process: what a spreadsheet holds is personal data.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Generic, TypeVar

from connector.errors import naming_file_errors

MEMORY_BYTES = 1_000_000
"""As much is kept in memory before the file is begun."""

_LINES_AT_ONCE = 500
_READ_BYTES = 64 * 1024

T = TypeVar("T")
U = TypeVar("U")


class SpillFile(Collection[T], Generic[T]):
    """Values in the order in which they were added; may be read as often as wanted.

    `pack` makes one line of ASCII of a value, and `unpack` the value again. Adding and reading
    raise a `WarehouseError` that names the folder where the disk fails.
    """

    def __init__(self, folder: Path, pack: Callable[[T], str], unpack: Callable[[str], T]) -> None:
        self._folder, self._pack, self._unpack = folder, pack, unpack
        self._file = SpooledTemporaryFile(  # noqa: SIM115 # it stays open as long as this
            MEMORY_BYTES, dir=str(folder)
        )
        weakref.finalize(self, self._file.close)
        self._lines: list[str] = []
        self._count = self._bytes = 0

    def add(self, value: T) -> int:
        """Put a value behind the others; returns the place at which `at` finds it."""
        line, place = self._pack(value), self._bytes
        self._lines.append(line)
        self._count += 1
        self._bytes += len(line) + 1
        if len(self._lines) >= _LINES_AT_ONCE:
            self._write()
        return place

    def value_at(self, place: int) -> T:
        """The value that was added at that place."""
        self._write()
        with naming_file_errors(self._folder):
            self._file.seek(place)
            return self._unpack(self._file.readline().decode("ascii").rstrip("\n"))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)

    def __iter__(self) -> Iterator[T]:
        self._write()
        place, unpack = 0, self._unpack
        while lines := self._read(place):
            # Another reading may move the file's position in the meantime.
            place += sum(map(len, lines))
            for line in lines:
                yield unpack(line.decode("ascii"))

    def _write(self) -> None:
        if not self._lines:
            return
        text, self._lines = "".join(f"{line}\n" for line in self._lines), []
        with naming_file_errors(self._folder):
            self._file.seek(0, 2)
            self._file.write(text.encode("ascii"))

    def _read(self, place: int) -> list[bytes]:
        with naming_file_errors(self._folder):
            self._file.seek(place)
            return list(self._file.readlines(_READ_BYTES))


class SpillMap(Collection[U], Generic[T, U]):
    """The values of a collection as `make` makes them each time they are read.

    One for which it gives None is left out; `count` is how many are not.
    """

    def __init__(self, values: Collection[T], make: Callable[[T], U | None], count: int) -> None:
        self._values, self._make, self._count = values, make, count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)

    def __iter__(self) -> Iterator[U]:
        return (made for value in self._values if (made := self._make(value)) is not None)

"""What this process keeps of the memory that it is done with.

Three allocators serve a pull: the C library's, Arrow's and the one that comes with DuckDB. Each
keeps what was freed, in case more is wanted soon: tens of MiB each, with a file of 300 MB. A pull
waits for the network most of the time, so that giving it back costs little; with a small file there
is nothing to save.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

SMALL_BYTES = 16 * 1024 * 1024
"""With a file that is not larger memory is not saved: that takes a third of each opening."""

DECAY_MILLISECONDS = 1_000
"""For how long DuckDB's allocator keeps freed pages, as DuckDB sets it, where there is no need to
save.
"""

# Arrow's own allocator keeps tens of MiB for each thread that has ever staged a batch.
pa.set_memory_pool(pa.system_memory_pool())

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Gives what was freed back to the system, where the C library is GNU's: it keeps pages for itself
that hold anything, and each opening frees hundreds of thousands of small pieces.
"""


def is_small(path: Path) -> bool:
    """Whether the file is so small that all of it may be in memory."""
    with suppress(OSError):
        return path.stat().st_size <= SMALL_BYTES
    return True


@contextmanager
def sparing(path: Path) -> Iterator[None]:
    """Give back what is freed while a large file is open, and afterwards."""
    if is_small(path):
        yield
        return
    keep_freed(0)
    try:
        yield
    finally:
        keep_freed(DECAY_MILLISECONDS)
        if _trim is not None:
            _trim(0)


def keep_freed(milliseconds: int) -> bool:
    """Let DuckDB's allocator keep freed pages for so long; returns whether it does.

    Builds of DuckDB without jemalloc use the C library's.
    """
    if _control is None:
        return False
    count = ctypes.c_uint()
    size = ctypes.c_size_t(ctypes.sizeof(count))
    _control(b"arenas.narenas", ctypes.byref(count), ctypes.byref(size), None, 0)
    value = ctypes.c_ssize_t(milliseconds)
    names = [b"arenas", *(b"arena.%d" % number for number in range(count.value))]
    is_set = False
    for name in names:
        for kind in (b"dirty", b"muzzy"):
            # An arena that was not used yet says no, and takes over what all begin with.
            failed = _control(name + b"." + kind + b"_decay_ms", None, None, ctypes.byref(value), 8)
            is_set |= not failed
    return is_set


def _find_control() -> ctypes._NamedFuncPointer | None:
    """The function of DuckDB's library that tells jemalloc what to do."""
    with suppress(OSError, KeyError, AttributeError, TypeError):
        library = ctypes.CDLL(sys.modules[duckdb.DuckDBPyConnection.__module__].__file__)
        found: ctypes._NamedFuncPointer = library.duckdb_je_mallctl
        found.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3, ctypes.c_size_t]
        return found
    return None


_control = _find_control()

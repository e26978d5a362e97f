"""A file system that refuses every lock, as some network shares do.

A small library, loaded before all others, refuses the locks of Python, DuckDB and SQLite.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.sandbox.server import Sandbox
from tests.support.command import KEY, call, start, variables

REFUSES_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
static int refuse(void) { errno = atoi(getenv("LOCK_ERRNO")); return -1; }
static int locks(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_GETLK;
}
int flock(int file, int operation) { return refuse(); }
#define REFUSING(name) \
    int name(int file, int command, ...) { \
        va_list more; va_start(more, command); void *given = va_arg(more, void *); va_end(more); \
        int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name); \
        return locks(command) ? refuse() : real(file, command, given); \
    }
REFUSING(fcntl)
REFUSING(fcntl64)
"""

Preload = Callable[[int], dict[str, str]]


@pytest.fixture(scope="module")
def preload_environ(tmp_path_factory: pytest.TempPathFactory) -> Preload:
    """Return a function from an error number to an environment in which file locks fail with it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("library")
    source, library = folder / "refuses_locks.c", folder / "refuses_locks.so"
    source.write_text(REFUSES_LOCKS)
    made = (compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl")
    subprocess.run(made, check=True)  # our own source
    return lambda number: {"LD_PRELOAD": str(library), "LOCK_ERRNO": str(number)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP], ids=os.strerror)
@pytest.mark.parametrize("command", ["pull", "status", "publish"])
def test_a_file_system_without_locks_is_reported(
    tmp_path: Path, preload_environ: Preload, command: str, number: int
) -> None:
    with Sandbox(counts={"jobs": 2}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        assert 0 == call(["pull", "jobs"], environ).status
        sent = len(sandbox.log)
        process = start([command], environ | preload_environ(number))
        _, err = process.communicate(timeout=120)

        assert sent == len(sandbox.log)
    assert 1 == process.returncode
    assert f"the file system of {tmp_path / 'data'}" in err
    assert "[no_file_locks]" in err
    assert WarehouseError.codes["no_file_locks"] in err

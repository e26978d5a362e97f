"""Who holds a lease: one process on one machine, known well enough to tell that it is dead.

A process number alone says little: it is given out again, and in another container it means
another process. Nothing is written here.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_BORN_FIELD = 19
"""Of the fields of `/proc/N/stat` after the command's name: when the process began."""

_ENDED = frozenset(("Z", "X"))


@dataclass(frozen=True, slots=True)
class Owner:
    """A run and the process that it runs in.

    `born` is when the process began, `boot` names the start of its machine's system and `space`
    the container's own numbering of processes; each is None where the system does not tell.
    """

    run_id: str
    command: str
    pid: int
    born: str | None
    host: str
    boot: str | None
    space: str | None

    @classmethod
    def of_this_process(cls, run_id: str, command: str) -> Owner:
        """The owner that a run of this very process is."""
        pid = os.getpid()
        return cls(run_id, command, pid, _born(pid), socket.gethostname(), _boot(), _space())

    @property
    def is_dead(self) -> bool:
        """Whether the process is certainly gone; false where that cannot be told from here."""
        if os.name != "posix" or self.host != socket.gethostname():
            return False
        if self.boot != _boot():
            return True  # This machine was started again since.
        if self.space != _space():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # It is there, and somebody else's.
        return self.born != _born(self.pid)


def _born(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets too.
    fields = stat.rpartition(")")[2].split()
    # What has ended and was not yet taken note of by its parent does nothing any more.
    return None if fields[0] in _ENDED else fields[_BORN_FIELD]


def _boot() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _space() -> str | None:
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None

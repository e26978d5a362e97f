"""Who may open the account's folder and the files in it: what is wider than it should be.

Everything the connector makes is its owner's alone, folders 0700 and files 0600, whatever the
umask. What was there before, or was changed since, is told and left as it is: somebody may have
meant it. Nothing is opened here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OTHERS = 0o077
_FOR_ANALYSTS = "recruitment."
"""What the names of files begin with that are meant for others."""


@dataclass(frozen=True, slots=True)
class Wide:
    """Something that others than its owner may open, and its mode."""

    path: Path
    mode: int

    def __str__(self) -> str:
        return f"{self.path} can be opened by others (mode {self.mode:04o})"

    @property
    def action(self) -> str:
        """What closes it."""
        return f"Run chmod {'700' if self.path.is_dir() else '600'} on it, unless it is meant."


def wide(folder: Path) -> Iterator[Wide]:
    """The account's folder and what lies in it, where others may open it.

    The published file and the page are left out: they are for others. Where the folder itself is
    closed nobody gets at what is in it, and nothing else is looked at.
    """
    if os.name != "posix":
        return
    found = _wide(folder)
    if found is None:
        return
    yield found
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if not name.startswith(_FOR_ANALYSTS) and (each := _wide(folder / name)) is not None:
            yield each


def _wide(path: Path) -> Wide | None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return Wide(path, mode) if mode & _OTHERS else None

"""What lies in a folder of the inbox, and whether it may be read: decided before it is opened."""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from connector.errors import ConnectorError, Misused
from connector.pulls.advice import explain
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX

Place = Literal["done", "rejected"]
"""Where a file is put away: `rejected` where a row or the whole file needs a person's hand."""

Stamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, and time of change in nanoseconds: by these a file is the same."""

NAME_BYTES_MAX = 180
"""What is put behind a name when its file is put away must fit into a name as well."""

_SUFFIXES = (*TEXT_SUFFIXES, WORKBOOK_SUFFIX)
_PARTIAL = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart")
_FORBIDDEN = frozenset('/\\:*?"<>|;`')
_PIECE_BYTES = 1024 * 1024

# A pipe that took a file's place would let nobody open it until somebody writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):  # It never leaves the inbox, where it is a sentence.
    """Why an entry is not read, to be put behind its name."""


def listed(folder: Path) -> list[os.DirEntry[str]]:
    """What is in the folder and not hidden, by name."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted(found, key=lambda entry: entry.name)


def real(folder: Path) -> Path:
    """The folder itself, which is not a link to another."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise RefusedEntry(f"leads elsewhere: {folder.name} is no folder, or a link to one")
    return folder


def safe(folder: Path) -> None:
    """Refuse a resource's folder from which a path would lead elsewhere."""
    for each in (folder, *(folder / place for place in get_args(Place))):
        if each == folder or os.path.lexists(each):
            real(each)


def told(path: Path, error: Exception) -> str:
    """Why an entry was not read, in one line whatever its name holds."""
    if isinstance(error, ConnectorError):
        return explain(error)
    return f"{shown(path.parent.name)}: {shown(path.name)} {why_of(error)}."


def fit(name: str, status: os.stat_result) -> os.stat_result:
    """The entry's status, if it is a file that may be read."""
    regular(status)
    plain(name)
    stem, suffix = os.path.splitext(name)
    is_partial = name.startswith("~$") or os.path.splitext(stem)[1].lower() in _PARTIAL
    if is_partial or suffix.lower() in _PARTIAL:
        raise RefusedEntry("is a part of a file, or a program's lock")
    if suffix.lower() not in _SUFFIXES:
        raise RefusedEntry(f"is none of {', '.join(_SUFFIXES)}")
    if not status.st_size:
        raise RefusedEntry("is empty")
    return status


def regular(status: os.stat_result) -> None:
    """Refuse what is no file, and a file that is not of this folder alone."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is a link, a folder, a pipe or a device, and no file")
    if status.st_nlink > 1:
        raise RefusedEntry("has another name elsewhere, so that it is not the inbox's alone")


def plain(name: str) -> None:
    """Refuse a name that could mean something else to a shell, a database or another system."""
    if not name.isprintable() or _FORBIDDEN & set(name) or name.startswith((".", " ", "-")):
        raise RefusedEntry("has a name with characters that are not taken; give it a plain one")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise RefusedEntry(f"has a name of more than {NAME_BYTES_MAX} bytes")


def folded(name: str) -> str:
    """What names have in common that some systems take for one."""
    return unicodedata.normalize("NFC", name).casefold()


def shown(name: str) -> str:
    """A name as a log may show it: whatever it holds, it is one line."""
    return ascii(name[:NAME_BYTES_MAX])


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file of this status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def digest_of(path: Path) -> tuple[str, Stamp]:
    """The SHA-256 of a regular file, and its stamp, of the same opening of it."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _OPENING), "rb") as file:
        status = os.fstat(file.fileno())
        regular(status)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest(), stamp_of(status)


def why_of(error: Exception) -> str:
    """What was wrong, without the path."""
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)


# -- Orders ----------------------------------------------------------------------------------------
# How the files of one folder are to be pushed: `push.toml` in it.
#
# It takes every option of a push under its own name (`connector/pushes/options.py`), `map` for the
# file of the mapping, and what the job takes besides: whether to apply, whether to pull first, and
# a budget.


ORDERS = "push.toml"
"""The file that says how a folder's files are pushed."""

_BYTES_MAX = 100_000
_MODE = "create"


@dataclass(frozen=True, slots=True)
class Orders:
    """How a folder's files are pushed. Without `push.toml` they are previewed as creates.

    `options` are those of a push; the file of its mapping lies in the folder. `applies`: send what
    is foreseen. `pulls`: bring the landing up to date first. `budget`: the most requests that one
    file may take.
    """

    options: PushOptions = field(default_factory=lambda: PushOptions(_MODE))
    applies: bool = False
    pulls: bool = True
    budget: int | None = None


def orders_of(folder: Path) -> Orders:
    """What `push.toml` says. Raises `Misused` that names the key, and what is allowed,
    and `OSError`.
    """
    path = folder / ORDERS
    if not os.path.lexists(path):
        return Orders()
    try:
        regular(path.lstat())
        if path.lstat().st_size > _BYTES_MAX:
            raise RefusedEntry("it is too large to be one")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        return _as_orders(path, given)
    except (RefusedEntry, ValueError, RecursionError) as why:
        raise Misused(
            f"{path} says nothing that can be followed: {why}",
            action="Correct it; its folder's files wait until then.",
        ) from None


def _as_orders(path: Path, given: dict[str, Any]) -> Orders:
    """The orders that the document gives."""
    for key in given:
        if key not in KEYS:
            raise RefusedEntry(f"{shown(key)} is none of {', '.join(KEYS)}")
    read = {KEYS[key][0]: KEYS[key][1](path, key, value) for key, value in given.items()}
    said = {name: read.pop(name) for name in PUSH_OPTIONS if name in read}
    options = PushOptions(**{"mode": _MODE, **said})
    try:
        # The mapping is read when a file is pushed; all else can be wrong now.
        replace(options, map_file=None).asked(path.parent.name, path)
        options.terms()
    except ConnectorError as error:
        raise RefusedEntry(explain(error)) from None
    return Orders(options, **read)


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RefusedEntry(f"{key} is no text in quotes")
    return value


def _texts(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RefusedEntry(f'{key} is no list of texts, as ["email"]')
    return tuple(value)


def _truth(path: Path, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedEntry(f"{key} is neither true nor false")
    return value


def _count(path: Path, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RefusedEntry(f"{key} is no whole number from 1 on")
    return value


def _beside(path: Path, key: str, value: Any) -> Path:
    """A file beside `push.toml`."""
    name = _text(path, key, value)
    try:
        plain(name)
        regular(path.with_name(name).lstat())
    except (RefusedEntry, OSError) as error:
        told = f"{key} must be a file beside it, and {shown(name)} {why_of(error)}"
        raise RefusedEntry(told) from None
    return path.with_name(name)


_Reader = Callable[[Path, str, Any], Any]
_READERS: Mapping[Any, _Reader] = {
    str: _text,
    str | None: _text,
    tuple[str, ...]: _texts,
    bool: _truth,
    Path | None: _beside,
}
_TYPES = get_type_hints(PushOptions)

KEYS: Mapping[str, tuple[str, _Reader]] = {
    # What is a file for the command is the name of one here: `map`, as the command's own --map.
    **{name.removesuffix("_file"): (name, _READERS[_TYPES[name]]) for name in PUSH_OPTIONS},
    "apply": ("applies", _truth),
    "pull": ("pulls", _truth),
    "budget": ("budget", _count),
}
"""The keys that `push.toml` may have: which option or order each of them is, and how it is read."""

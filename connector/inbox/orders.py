"""How the files of one folder are to be pushed: `push.toml` in it.

It takes every option of a push under its own name (`connector/asking.py`), `map` for the file of
the mapping, and what the job takes besides: whether to apply, whether to pull first, and a budget.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

from connector.advice import explain
from connector.asking import PUSH_OPTIONS, PushOptions
from connector.errors import ConnectorError, Misused
from connector.inbox.entries import RefusedEntry, plain, regular, shown, why_of

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

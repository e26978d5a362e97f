"""How the files of one folder are to be pushed: `push.toml` in it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from connector.engine.task import Mode
from connector.errors import Misused
from connector.inbox.entries import RefusedEntry, plain, regular, shown, why_of

ORDERS = "push.toml"
"""The file that says how a folder's files are pushed."""

_KEYS = ("mode", "match", "apply", "map", "content_type")
_BYTES_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Orders:
    """How a folder's files are pushed. Without `push.toml` they are previewed as creates.

    `mapping` is the file in the folder that says what each column is for.
    """

    mode: Mode = "create"
    match: tuple[str, ...] = ()
    applies: bool = False
    mapping: Path | None = None
    content_type: str | None = None


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
    for name in given:
        if name not in _KEYS:
            raise RefusedEntry(f"{shown(name)} is none of {', '.join(_KEYS)}")
    mode, match = given.get("mode", "create"), given.get("match", [])
    if mode not in get_args(Mode):
        raise RefusedEntry(f"mode is {mode!r}, and must be one of {', '.join(get_args(Mode))}")
    if not isinstance(match, list) or not all(isinstance(each, str) for each in match):
        raise RefusedEntry('match is no list of fields, as ["email"]')
    applies, parent = given.get("apply", False), given.get("content_type")
    if not isinstance(applies, bool):
        raise RefusedEntry("apply is neither true nor false")
    if parent is not None and not isinstance(parent, str):
        raise RefusedEntry("content_type is no text in quotes")
    return Orders(mode, tuple(match), applies, _mapping(path, given.get("map")), parent)


def _mapping(path: Path, name: Any) -> Path | None:
    """The mapping beside `push.toml`."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise RefusedEntry("map is no text in quotes")
    try:
        plain(name)
        regular(path.with_name(name).lstat())
    except (RefusedEntry, OSError) as error:
        told = f"map must be a file beside it, and {shown(name)} {why_of(error)}"
        raise RefusedEntry(told) from None
    return path.with_name(name)

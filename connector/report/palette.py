"""The report's colours, each once for the light theme and once for the dark one.

Charts and styles name them as CSS variables, so that one drawing serves both themes and print.
Blue, orange and grey differ in lightness as well as in hue: they stay apart for readers who see
no red or no green, and on a printer without colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Theme = Literal["light", "dark"]


class Shade(NamedTuple):
    """One colour in both themes, as #rrggbb."""

    light: str
    dark: str


PALETTE: Mapping[str, Shade] = {
    "paper": Shade("#f7f5f0", "#14171b"),
    "card": Shade("#ffffff", "#1c2026"),
    "ink": Shade("#1c2127", "#ecebe7"),
    "muted": Shade("#555d67", "#a8b0ba"),
    "line": Shade("#dedad1", "#353b44"),
    "link": Shade("#0f5683", "#7fbfec"),
    "first": Shade("#0e4f7d", "#5aaee4"),
    "second": Shade("#c0610f", "#f0b064"),
    "third": Shade("#8b949e", "#7d8792"),
    "fourth": Shade("#2b2b33", "#e4e1f7"),
    "warn": Shade("#93400b", "#f3b27a"),
}
"""Every colour by its name. `paper` and `card` are surfaces, `ink`, `muted`, `link` and `warn` are
written on them, `first` to `fourth` are what charts draw with.
"""

SURFACES = ("paper", "card")
TEXTS = ("ink", "muted", "link", "warn")
SERIES = ("first", "second", "third", "fourth")


def variable(name: str) -> str:
    """The colour as charts and styles write it. Raises `KeyError` for one that is not declared."""
    assert name in PALETTE, name
    return f"var(--{name})"

"""Texts of the pages in `docs`, to which the website adds its reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

Texts = Mapping[str, str]
"""Texts of pages, by their paths from the project's folder."""


def read_or_empty(path: str) -> str:
    """Return the content of a file of the project; empty if it does not exist."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else ""

"""Folders in the data folder that the connector uses, and the names that an account can have."""

from __future__ import annotations

import re

OWN_FOLDERS = ("inbox", "imports", "pushes", "maps", "seeds", "dagster", "backups")
"""An account of such a name would have its databases in a folder of the connector."""

INBOX_FOLDER, IMPORTS_FOLDER, PUSHES_FOLDER = OWN_FOLDERS[:3]
MAPS_FOLDER, SEEDS_FOLDER, DAGSTER_FOLDER = OWN_FOLDERS[3:6]

KEEP_DAYS = 7
"""Days for which imports of the page and files of queries are kept after the last change."""

WAITED = "waited-"
"""Beginning of the names of folders with inbox files from before a restore."""


def parse_account_name(name: object) -> str:
    """Return an account's name, which is also the name of its folder. Raises `ValueError`."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ValueError("at most 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit")
    if name in OWN_FOLDERS or name.startswith(WAITED):
        own = f"{', '.join(OWN_FOLDERS)} and {WAITED}..."
        raise ValueError(f"another name, because the connector uses the folders {own}")
    return name

"""Folders in the data folder that the connector uses, and the names that an account can have."""

from __future__ import annotations

import re
from collections.abc import Mapping

INBOX_FOLDER, SEEDS_FOLDER, MAPS_FOLDER = "inbox", "seeds", "maps"
IMPORTS_FOLDER, PUSHES_FOLDER = "imports", "pushes"
DAGSTER_FOLDER = "dagster"
WAITED = "waited-"

OWN_FOLDERS: Mapping[str, str] = {
    INBOX_FOLDER: "files that the inbox pushes",
    IMPORTS_FOLDER: "imports that users prepare on the import page",
    PUSHES_FOLDER: "results of queries that were pushed",
    MAPS_FOLDER: "saved column mappings",
    SEEDS_FOLDER: "seed files of the models",
    DAGSTER_FOLDER: "Dagster's state",
    "backups": "backups",
}
"""Folders with their contents. An account of the same name would have its databases there."""

OWN_PREFIXES: Mapping[str, str] = {WAITED: "inbox files from before a restore"}
"""Beginnings of such folders' names that a time stamp follows."""


def parse_account_name(name: object) -> str:
    """Validate an account's name, which is also the name of its folder.

    Raises `ValueError` for invalid characters, or for the name of a folder of the connector.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ValueError("at most 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit")
    prefixes = (OWN_PREFIXES[each] for each in OWN_PREFIXES if name.startswith(each))
    contents = OWN_FOLDERS.get(name) or next(prefixes, None)
    if contents is not None:
        taken = ", ".join((*OWN_FOLDERS, *(f"{each}..." for each in OWN_PREFIXES)))
        raise ValueError(
            f"another name, since {name}/ in the data folder is for {contents}; the connector's own"
            f" folders are {taken}"
        )
    return name

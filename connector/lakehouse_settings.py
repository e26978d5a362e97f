"""How the settings on the shared lakehouse are read: its catalog, and where its data is.

Values alone: nothing is opened or looked up here, and no text of an error holds any of a secret.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from connector.errors import SettingsError
from connector.sources import ENVIRONMENT, FILE_ENDING, Setting, refuse

PushJournal = Literal["folder", "lakehouse"]
"""Where a create is claimed before it is sent."""

OBJECT_STORAGE = "s3://"
"""What an address of object storage begins with."""

CATALOG_CHARACTERS_MAX = 4096

_CATALOG = re.compile(r"postgres(ql)?://[\x21-\x7e]+|\w+ *= *[\x20-\x7e]*")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()=-]+)*/?")


def read_catalog(text: str) -> str:
    """A connection string of PostgreSQL in either of its forms. Raises `ValueError`, whose text
    holds nothing of it.
    """
    if len(text) > CATALOG_CHARACTERS_MAX or not _CATALOG.fullmatch(text.strip()):
        raise ValueError(
            "must be a connection string of PostgreSQL, such as postgresql://USER:PASSWORD@HOST/"
            "DATABASE or host=HOST dbname=DATABASE user=USER password=PASSWORD"
        )
    return text.strip()


def read_data(raw: object, folder: Path) -> str:
    """A folder, which starts from `folder` where it is relative, or an address in object storage,
    without a slash at its end. Raises `ValueError`.
    """
    text = str(raw).strip()
    if not isinstance(raw, str | Path) or not text:
        raise ValueError("a folder, or an address such as s3://bucket/lake")
    if "://" not in text:
        return str((folder / text).absolute())
    if not _BUCKET.fullmatch(text):
        raise ValueError("a folder, or an address such as s3://bucket/lake")
    return text.rstrip("/")


def check_lakehouse(
    catalog: Setting[SecretStr | None], data: Setting[str | None], data_dir: Setting[Path]
) -> None:
    """Refuse a lakehouse that is half described, and one whose files would lie among those of the
    accounts, which are searched and erased by other rules. Raises `SettingsError`.
    """
    if (catalog.value is None) != (data.value is None):
        given, name = (catalog, "lakehouse") if catalog.value else (data, "lakehouse_data")
        missing = "lakehouse_data" if catalog.value else f"lakehouse{FILE_ENDING}"
        raise SettingsError(
            f"{name} (from {given.origin}) cannot do without the other half of what a lakehouse"
            " needs",
            action=f"Set {ENVIRONMENT[missing]} as well.",
        )
    if data.value and Path(data.value).is_relative_to(data_dir.value.absolute()):
        refuse("lakehouse_data", data.value, "outside data_dir", data.origin)

"""What a backup says of itself: of which account and moment it is, and every file with its digest.

The manifest is the first member of the tar, so that it is read without the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

from connector.errors import BackupDamaged
from connector.stamp import stamped

MANIFEST = "manifest.json"
FORMAT = 1
"""How backups are laid out; a later program may lay them out otherwise."""

BYTES_MAX = 16 * 1024 * 1024
"""A manifest is never larger than this."""

UNNAMED = "unnamed"
"""What stands in a backup's name for the account that has none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a backup: its path below the account's folder, its bytes and SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds. `account` is None for the unnamed one; `version` is the program's;
    `work` and `ledger` are the numbers of the files' last migrations, None where there was none.
    """

    made_at: datetime
    account: str | None
    version: str
    work: int | None
    ledger: int | None
    entries: tuple[Entry, ...]
    format: int = FORMAT

    def file_name(self) -> str:
        """The backup's name: whose it is, and of when."""
        return f"{prefix_of(self.account)}{stamped(self.made_at)}.tar"

    def as_json(self) -> dict[str, Any]:
        """The manifest as it is kept, with a digest of itself."""
        told = {**asdict(self), "made_at": self.made_at.isoformat()}
        told["entries"] = [asdict(each) for each in self.entries]
        return {**told, "digest": _digest(told)}

    def as_bytes(self) -> bytes:
        """The manifest as a file."""
        return f"{json.dumps(self.as_json(), indent=2)}\n".encode()

    @classmethod
    def read(cls, content: bytes, path: Path) -> Self:
        """The manifest of the backup at `path`. Raises `BackupDamaged`."""
        try:
            told = json.loads(content)
            digest = told.pop("digest")
            if digest != _digest(told):
                raise BackupDamaged(f"the manifest of {path} was changed")
            if told["format"] != FORMAT:
                raise BackupDamaged(
                    f"{path} was made by a later version of the connector",
                    action=f"Install version {told['version']} or a later one, and restore.",
                )
            entries = tuple(Entry(**each) for each in told.pop("entries"))
            made_at = datetime.fromisoformat(told.pop("made_at"))
            found = cls(made_at=made_at, entries=entries, **told)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BackupDamaged(f"{path} has no manifest that can be read") from None
        for each in found.entries:
            _check_name(each.name, path)
        return found


def prefix_of(account: str | None) -> str:
    """What the names of an account's backups begin with."""
    return f"connector-{account or UNNAMED}-"


def is_backup_of(name: str, account: str | None) -> bool:
    """Whether a file of this name is a backup of the account."""
    return re.fullmatch(rf"{re.escape(prefix_of(account))}\d{{8}}T\d{{6}}Z\.tar", name) is not None


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _check_name(name: str, path: Path) -> None:
    """Refuse a name that could lead out of the folder that it is restored to."""
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise BackupDamaged(f"{path} has a file whose name leads elsewhere")

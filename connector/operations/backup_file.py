"""Backup files: a tar whose first member is a manifest.

The manifest contains the account, the time, and every file with its digest, which is verified when
the file is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self

from connector.atomic_files import create_private_file
from connector.errors import BackupError, file_error
from connector.log import compact_timestamp
from connector.warehouse.duckdb_file import make_folder

MANIFEST = "manifest.json"
FORMAT = 1
"""Version of the backup format."""

BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of a manifest."""

_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """File of a backup: its path below the account's folder, size in bytes and SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup.

    Attributes:
        work: Layout version of the work file; None if the backup lacks it.
        ledger: Layout version of the ledger; None if the backup lacks it.
    """

    made_at: datetime
    account: str | None
    version: str
    work: int | None
    ledger: int | None
    entries: tuple[BackupEntry, ...]
    format: int = FORMAT

    def file_name(self) -> str:
        """Return the name of the backup file, from account and time."""
        return f"{backup_prefix(self.account)}{compact_timestamp(self.made_at)}.tar"

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as it is stored, with a digest of itself."""
        values = {**asdict(self), "made_at": self.made_at.isoformat()}
        return {**values, "digest": _json_digest(values)}

    def as_bytes(self) -> bytes:
        """Return the manifest as the content of a file."""
        return f"{json.dumps(self.as_json(), indent=2)}\n".encode()

    @classmethod
    def parse(cls, content: bytes, path: Path) -> Self:
        """Parse the manifest of the backup at `path`. Raises `BackupError` if it was modified."""
        try:
            values = json.loads(content)
            if values.pop("digest") != _json_digest(values):
                raise BackupError(f"the manifest of {path} was modified", code="backup_damaged")
            if values["format"] != FORMAT:
                raise BackupError(
                    f"{path} was made by a newer version of the connector",
                    action=f"Install version {values['version']} or a newer one, and restore.",
                    code="backup_damaged",
                )
            entries = tuple(BackupEntry(**each) for each in values.pop("entries"))
            made_at = datetime.fromisoformat(values.pop("made_at"))
            found = cls(made_at=made_at, entries=entries, **values)
            leads_elsewhere = any(_escapes_folder(each.name) for each in entries)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BackupError(
                f"the manifest of {path} cannot be read", code="backup_damaged"
            ) from None
        if leads_elsewhere:
            raise BackupError(f"{path} contains a file with an unsafe path", code="backup_damaged")
        return found


_NAME_IT = "Give the backup file, or the folder that 'connector backup' wrote to."


def backup_prefix(account: str | None) -> str:
    """Return the beginning of the names of an account's backups."""
    return f"connector-{account or 'unnamed'}-"


def is_backup_of(name: str, account: str | None) -> bool:
    """Return True if a file with this name is a backup of the account."""
    return (
        re.fullmatch(rf"{re.escape(backup_prefix(account))}\d{{8}}T\d{{6}}Z\.tar", name) is not None
    )


def newest_backup(source: Path, account: str | None) -> Path:
    """Return the account's newest backup in a folder; a file is returned unchanged.

    Raises `BackupError` if the folder has none or cannot be read.
    """
    if not source.is_dir():
        return source
    try:
        found = sorted(each for each in source.iterdir() if is_backup_of(each.name, account))
    except OSError as error:
        raise BackupError(f"{source} cannot be read: {error.strerror}", action=_NAME_IT) from None
    if not found:
        raise BackupError(
            f"{source} has no backup of {account or 'the unnamed account'}", action=_NAME_IT
        )
    return found[-1]


def _json_digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the values as sorted JSON, in hexadecimal."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _escapes_folder(name: str) -> bool:
    """Return True if a name could lead out of the folder that it is restored to."""
    is_absolute = not name or name.startswith("/")
    return is_absolute or ".." in PurePosixPath(name).parts or "\\" in name or "\0" in name


# -- Reading ---------------------------------------------------------------------------------------


def check_backup(path: Path) -> Manifest:
    """Read the whole backup and return its manifest.

    Raises `BackupError` if any part has changed, and a `WarehouseError` if it cannot be read.
    """
    return _read_backup(path, None)


def unpack(path: Path, folder: Path) -> Manifest:
    """Write the backup's files to an empty folder, readable only by its owner.

    Raises as `check_backup` does. After an error, the files in the folder cannot be used.
    """
    return _read_backup(path, folder)


def read_manifest(path: Path) -> Manifest:
    """Return the backup's manifest without reading the rest. Raises as `check_backup` does."""
    with _open_tar(path) as tar:
        return _read_manifest_member(tar, path)


def _read_backup(path: Path, folder: Path | None) -> Manifest:
    """Verify all files of the backup, and write them to the folder if one is given."""
    with _open_tar(path) as tar:
        manifest = _read_manifest_member(tar, path)
        for each in manifest.entries:
            member = tar.next()
            if member is None:
                raise BackupError(
                    f"{path} is incomplete: {each.name} is missing", code="backup_damaged"
                )
            if member.name != each.name or not member.isreg() or member.size != each.bytes:
                raise BackupError(
                    f"{path} contains {member.name!r} instead of {each.name}", code="backup_damaged"
                )
            with nullcontext() if folder is None else _create_synced(folder / each.name) as target:
                if _copy_and_hash(_member_content(tar, member), target) != (
                    each.bytes,
                    each.sha256,
                ):
                    raise BackupError(f"{each.name} in {path} is damaged", code="backup_damaged")
        if tar.next() is not None:
            raise BackupError(
                f"{path} contains files that its manifest does not list", code="backup_damaged"
            )
    return manifest


@contextmanager
def _open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open the tar file. Errors of reading it are raised as `BackupError` or `WarehouseError`."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, UnicodeDecodeError):
        raise BackupError(f"{path} is not a backup, or is damaged", code="backup_damaged") from None
    except OSError as error:
        if not path.exists():
            raise BackupError(f"{path} does not exist", action=_NAME_IT) from None
        raise file_error(path, error) from error


def _read_manifest_member(tar: tarfile.TarFile, path: Path) -> Manifest:
    """Read the manifest, the first file of the tar. Raises `BackupError` if there is none."""
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > BYTES_MAX:
        raise BackupError(f"{path} is not a backup: it has no manifest", code="backup_damaged")
    return Manifest.parse(_member_content(tar, first).read(), path)


def _member_content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    """Return a stream of the content of a regular file in the tar."""
    content = tar.extractfile(member)
    assert content is not None, member.name
    return content


@contextmanager
def _create_synced(path: Path) -> Iterator[IO[bytes]]:
    """Create a file and its folder; the file is flushed to the disk when the block ends."""
    make_folder(path.parent)
    with create_private_file(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _copy_and_hash(content: IO[bytes], target: IO[bytes] | None) -> tuple[int, str]:
    """Read the stream to its end, and copy it to `target` if given; return size and SHA-256."""
    digest, read = hashlib.sha256(), 0
    while piece := content.read(_PIECE_BYTES):
        digest.update(piece)
        read += len(piece)
        if target is not None:
            target.write(piece)
    return read, digest.hexdigest()

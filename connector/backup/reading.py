"""Reading a backup: its manifest, and its files, each held against its digest while it is read."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from connector.backup.manifest import BYTES_MAX, MANIFEST, Entry, Manifest
from connector.disk import create
from connector.errors import BackupDamaged
from connector.errors.files import naming
from connector.warehouse.file import make_folder

_PIECE_BYTES = 1024 * 1024


def check_backup(path: Path) -> Manifest:
    """Read the whole backup, and return its manifest. Raises `BackupDamaged` where any of it is
    not as it was written, and a `WarehouseError` where it cannot be read.
    """
    with _opened(path) as tar:
        manifest = _manifest(tar, path)
        for each, content in _contents(tar, manifest, path):
            _spend(each, content, None, path)
    return manifest


def read_manifest(path: Path) -> Manifest:
    """What the backup says of itself; nothing else of it is read. Raises as `check_backup` does."""
    with _opened(path) as tar:
        return _manifest(tar, path)


def unpack(path: Path, folder: Path) -> Manifest:
    """Write the backup's files to a folder, which is there and empty, each readable by its owner
    alone. Raises as `check_backup` does; what was written by then is of no use.
    """
    with _opened(path) as tar:
        manifest = _manifest(tar, path)
        for each, content in _contents(tar, manifest, path):
            target = folder / each.name
            make_folder(target.parent)
            with create(target) as file:
                _spend(each, content, file, path)
                file.flush()
                os.fsync(file.fileno())
    return manifest


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, UnicodeDecodeError):
        raise BackupDamaged(f"{path} is no backup, or is damaged") from None
    except OSError as error:
        raise naming(path, error) from error


def _manifest(tar: tarfile.TarFile, path: Path) -> Manifest:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > BYTES_MAX:
        raise BackupDamaged(f"{path} is no backup: it does not begin with a manifest")
    content = tar.extractfile(first)
    assert content is not None, first.name
    return Manifest.read(content.read(), path)


def _contents(
    tar: tarfile.TarFile, manifest: Manifest, path: Path
) -> Iterator[tuple[Entry, IO[bytes]]]:
    """The files in their order, which is the manifest's: nothing more and nothing less."""
    for each in manifest.entries:
        member = tar.next()
        if member is None:
            raise BackupDamaged(f"{path} ends before {each.name}")
        if member.name != each.name or not member.isreg() or member.size != each.bytes:
            raise BackupDamaged(f"{path} holds {member.name!r} where its manifest has {each.name}")
        content = tar.extractfile(member)
        assert content is not None, member.name
        yield each, content
    if tar.next() is not None:
        raise BackupDamaged(f"{path} holds more than its manifest says")


def _spend(each: Entry, content: IO[bytes], target: IO[bytes] | None, path: Path) -> None:
    """Read a file to its end, write it to `target` if there is one, and hold it to its digest."""
    digest, read = hashlib.sha256(), 0
    while piece := content.read(_PIECE_BYTES):
        digest.update(piece)
        read += len(piece)
        if target is not None:
            target.write(piece)
    if read != each.bytes or digest.hexdigest() != each.sha256:
        raise BackupDamaged(f"{each.name} in {path} is not as it was written")

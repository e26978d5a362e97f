"""What a backup says of itself: of which account and moment it is, and every file with its digest.

The manifest is the first member of the tar, so that it is read without the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, Self

from connector.engine.quota import shown
from connector.errors import BackupDamaged, BackupError, LedgerDamaged, NotALedger, naming
from connector.ledger.sqlite_file import check_ledger, continues, is_blank
from connector.system.atomic_files import create
from connector.system.log import stamped
from connector.warehouse.duckdb_file import make_folder

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


# -- Reading ---------------------------------------------------------------------------------------
# Reading a backup: its manifest, and its files, each held against its digest while it is read.


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


# -- Ledgers ---------------------------------------------------------------------------------------
# Which ledger stays: the one that is here, which knows what happened since, or the backup's.


Name = Literal["kept", "restored"]


@dataclass(frozen=True, slots=True)
class Choice:
    """`kept`: the ledger that is here stays, and nothing that it knows is lost; `restored`: the
    backup's takes its place. `can_read_live` says whether the one that is here can be read.
    """

    name: Name
    can_read_live: bool

    @property
    def keeps_live(self) -> bool:
        """Whether the ledger that is here stays."""
        return self.name == "kept"

    def lost(self, made_at: datetime) -> Iterator[str]:
        """Sentences on what is not known any more."""
        when = shown(made_at)
        yield (
            f"The history has no version that came and went after {when}; what is so now is read"
            " again by the next pull."
        )
        if self.keeps_live:
            return
        yield (
            f"The journal does not know what was pushed after {when}. Nothing is pushed to a"
            " resource before a pull has proven it: then rows that were sent since meet their own"
            " records, and are told as duplicates."
        )
        yield (
            f"Requests that were sent after {when} are not counted: until the billing cycle ends,"
            " lower monthly_requests by them."
        )


def choose(live: Path, staged: Path, *, takes: bool) -> Choice:
    """Choose between the ledger at `live` and the backup's, which is taken where it `takes` it.

    Raises `BackupError` where the ledger that is here is not the one that the backup was made of
    and holds something of its own, and a `WarehouseError`.
    """
    if not live.exists():
        return Choice("restored", can_read_live=False)
    try:
        check_ledger(live)
    except (LedgerDamaged, NotALedger):
        return Choice("restored", can_read_live=False)
    if not staged.exists():
        return Choice("kept", can_read_live=True)
    if not takes and continues(live, staged):
        return Choice("kept", can_read_live=True)
    if not takes and not is_blank(live):
        raise BackupError(
            f"{live} is not the ledger that the backup was made of, and knows of pushes or erasures"
            " that the backup does not",
            action="Look whether it is the right backup and folder; --with-ledger moves the ledger"
            " aside and takes the backup's.",
        )
    return Choice("restored", can_read_live=True)

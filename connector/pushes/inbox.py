"""Inbox of an account: files in the folder of a resource are checked, pushed and archived.

`push.toml` in a folder has the options for its files: every option of a push by its name, and
`pull` and `max_requests`. Without it, creates are previewed. No link is followed, and a file that
still changes is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.atomic_files import create_private_file
from connector.errors import (
    ConnectorError,
    Misused,
    ReportRefused,
    SettingsError,
    SpreadsheetError,
    convert_file_errors,
)
from connector.log import compact_timestamp
from connector.pulls.report import Watch, explain
from connector.pushes.options import PushFile, parse_options
from connector.pushes.report import ORDER, PushReport, push
from connector.settings import Settings
from connector.settings.folders import INBOX_FOLDER
from connector.spreadsheet.report import report_suffix
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES

_ARCHIVES = ("done", "rejected")
_HIDDEN = (".", "~$")
_SUFFIXES = (*TEXT_SUFFIXES, *BOOK_SUFFIXES)


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """File in the inbox that no longer changes, with its SHA-256 and its options."""

    resource: str
    name: str
    digest: str
    options: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Hash that identifies resource, name and content without showing them."""
        text = f"{self.resource}/{self.name}\n{self.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InboxScan:
    """Files to push, sentences on entries that are not read, and the state for the next scan."""

    waiting: list[WaitingFile]
    refused: list[str]
    state: str


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Report of a push, and the path to which its file was moved.

    `archived` is None for a file outside the inbox, or that stays in it.
    """

    report: PushReport
    archived: Path | None = None


# -- Scan ------------------------------------------------------------------------------------------


def scan_inbox(folder: Path, last_state: str | None) -> InboxScan:
    """Return the files of an account's inbox that have not changed since the last scan.

    Files are in the order in which resources refer to each other. `last_state` is the state of the
    last scan; None if there was none. Changes nothing.
    """
    inbox, before = folder / INBOX_FOLDER, json.loads(last_state or "{}")
    now, waiting, refused = dict[str, list[int]](), list[WaitingFile](), list[str]()
    if not os.path.lexists(inbox):
        missing = f"The folder {inbox} does not exist."
        return InboxScan([], [f"{missing} Create it, with one folder for each resource."], "{}")
    with _collect(refused, inbox):
        _check_folders(inbox)
        names = {name for name in os.listdir(inbox) if not name.startswith(".")}
        for name in sorted(names.difference(ORDER)):
            allowed = f"is not a folder of a resource; folders are {', '.join(ORDER)}"
            refused.append(str(_refusal(inbox / name, allowed)))
        for path in (inbox / name for name in ORDER if name in names):
            with _collect(refused, path):
                _check_folders(path, *map(path.joinpath, _ARCHIVES))
                options = read_instructions(path)
                for file in filter(_may_be_pushed, sorted(path.iterdir())):
                    with _collect(refused, file):
                        key = f"{path.name}/{file.name}"
                        now[key] = _check_file(file)
                        if before.get(key) == now[key]:  # A file that still changes is not read.
                            digest = _digest(file)
                            waiting += [WaitingFile(path.name, file.name, digest, options)]
    return InboxScan(waiting, refused, json.dumps(now))


@contextmanager
def _collect(refused: list[str], path: Path) -> Iterator[None]:
    """Add the reason to `refused` if the entry cannot be read. A removed one is no error."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        refused.append(str(_refusal(path, error.strerror or "cannot be read")))
    except ConnectorError as error:
        refused.append(explain(error))


def _refusal(path: Path, why: str) -> Misused:
    """Return the error for an entry that is not read.

    Names of files may have line breaks, and the sentence is logged.
    """
    action = "Wait until the inbox pushes the file, or push the file from another folder."
    return Misused(f"{path.parent.name!a}: {path.name!a} {why}", action=action)


def _may_be_pushed(path: Path) -> bool:
    """Return True unless the entry is hidden, Excel's lock file, an archive or options."""
    return not (path.name.startswith(_HIDDEN) or path.name in _ARCHIVES or path.suffix == ".toml")


def _check_file(path: Path) -> list[int]:
    """Return numbers that identify the version of a spreadsheet. Raises `Misused` for others."""
    name, status = path.name, path.lstat()
    if not name.isprintable() or "\\" in name or name.startswith(_HIDDEN):
        raise _refusal(path, "has a name with characters that are not allowed. Rename it")
    if not stat.S_ISREG(status.st_mode):
        raise _refusal(path, "is not a regular file")
    if path.suffix.lower() not in _SUFFIXES:
        raise _refusal(path, f"has another file type than {', '.join(_SUFFIXES)}")
    if not status.st_size:
        raise _refusal(path, "is empty")
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _check_folders(*folders: Path) -> None:
    """Raise `Misused` if a folder exists as a link, or as anything but a folder."""
    for each in folders:
        if each.is_symlink() or (each.exists() and not each.is_dir()):
            raise _refusal(each, "is not a folder")


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- Instructions ----------------------------------------------------------------------------------


def read_instructions(folder: Path) -> dict[str, Any]:
    """Return the options in `push.toml` by name. Without the file, creates are previewed.

    Raises `Misused` that names the invalid key, and `OSError`.
    """
    path = folder / "push.toml"
    if not os.path.lexists(path):
        return {"mode": "create"}
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("it is not a regular file")
        given = {"mode": "create", **tomllib.loads(path.read_text(encoding="utf-8"))}
        if "output" in given:
            raise ValueError("output is not allowed: the report is put beside the file")
        # The mapping is read when a file is pushed. All other options are checked now.
        options = parse_options(given)
        replace(options, mapping=None).push_file(folder.name, path)
        if options.mapping is not None:
            mapping = folder / options.mapping
            if mapping.parent != folder or not mapping.is_file():
                raise ValueError("mapping must name a file in the same folder")
            given["mapping"] = str(mapping)
        return given
    except (ValueError, ConnectorError) as error:
        why = explain(error) if isinstance(error, ConnectorError) else str(error)
    raise Misused(
        f"{path} is not valid: {why}",
        action="Correct the file. Until then the other files of the folder are not pushed.",
    )


# -- Delivery --------------------------------------------------------------------------------------


async def deliver(
    settings: Settings,
    push_file: PushFile,
    *,
    digest: str | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> DeliveryResult:
    """Push one file and, if it is in the inbox, archive it with its report.

    With the `digest` of a scan, the file is in the inbox of its resource. It is archived under the
    time `now` once its report is written. A file that cannot be pushed at all is moved to
    `rejected/` with the reason. A file whose push was stopped or failed stays, and so does one that
    was changed during its push.

    Raises what `push` raises, and:

    Raises:
        Misused: The file may not be read.
        SpreadsheetError: The file is gone or has another digest.
        WarehouseError: The file could not be archived, and stays where it was.
    """
    if digest is None:
        return DeliveryResult(await push(settings, push_file, watch=watch))
    path = _claim(settings.folder / INBOX_FOLDER, push_file, digest)
    name = f"{path.stem}.{compact_timestamp(now or datetime.now(UTC))}-{digest[:8]}"
    # A hidden file next to the pushed file, to which the report is first written.
    draft = path.with_name(f".{digest[:16]}{report_suffix(path)}")
    file = replace(push_file, path=path, options=replace(push_file.options, output=draft))
    try:
        report = await push(settings, file, watch=watch)
    except ConnectorError as error:
        if _is_caused_by_file(error):
            with convert_file_errors(draft):
                draft.unlink(missing_ok=True)
                with create_private_file(draft) as reason:
                    reason.write(f"{explain(error)}\n".encode())
            _archive(path, digest, draft, path.parent / "rejected" / f"{name}.reason.txt", name)
        raise
    if report.outcome in ("stopped", "failed"):
        draft.unlink(missing_ok=True)
        return DeliveryResult(replace(report, file=None))
    folder = path.parent / ("done" if report.exit_status == 0 else "rejected")
    moved = folder / f"{name}.report{draft.suffix}"
    archived = _archive(path, digest, draft, moved, name)
    return DeliveryResult(replace(report, file=moved), archived)


def _claim(inbox: Path, push_file: PushFile, digest: str) -> Path:
    """Check a file of a scan again, and return its path. Raises as `deliver`."""
    path = inbox / push_file.resource / push_file.path.name
    if push_file.resource not in ORDER:
        raise _refusal(path, "is in a folder of no resource")
    is_same = False
    with convert_file_errors(path), suppress(FileNotFoundError):
        _check_folders(inbox, path.parent, *map(path.parent.joinpath, _ARCHIVES))
        _check_file(path)
        is_same = _digest(path) == digest
    if not is_same:
        message = f"{path} was replaced by another file, or no longer exists"
        raise SpreadsheetError(message, code="spreadsheet_changed")
    return path


def _archive(path: Path, digest: str, draft: Path, report: Path, name: str) -> Path | None:
    """Move the report to its archive, and the file too, under this name and its own ending.

    Returns the path of the file; None if it was changed or removed. Raises `WarehouseError`, and
    the file stays.
    """
    with convert_file_errors(report.parent):
        report.parent.mkdir(mode=0o700, exist_ok=True)
        draft.replace(report)
        with suppress(FileNotFoundError):
            if _digest(path) == digest:
                return path.replace(report.with_name(name + path.suffix))
    return None


def _is_caused_by_file(error: ConnectorError) -> bool:
    """Return True if every push of the file would fail in the same way, before it sends a row."""
    if isinstance(error, SettingsError | ReportRefused) or error.code == "spreadsheet_changed":
        return False
    # An error of the class itself comes from the disk, and may not occur again.
    is_files = isinstance(error, Misused | SpreadsheetError)
    return is_files and error.code != SpreadsheetError.code

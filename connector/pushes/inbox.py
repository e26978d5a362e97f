"""Inbox of an account: files in the folder of a resource are checked, pushed and archived.

`push.toml` in a folder has the options for its files: every option of a push by its name, `mapping`
for the mapping file, and `apply`, `pull`, `max_requests`. Without it, creates are previewed. Other
users may write to the folders, so links are not followed, and nothing is opened before its name and
its type are checked.
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
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast, get_type_hints

from pydantic import ConfigDict, PositiveInt, ValidationError, create_model

from connector.atomic_files import create_private_file
from connector.errors import (
    ConnectorError,
    Misused,
    ReportRefused,
    SettingsError,
    SpreadsheetChanged,
    SpreadsheetError,
    WarehouseError,
    convert_file_errors,
    file_error,
)
from connector.log import compact_timestamp
from connector.pulls.report import Watch, explain
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.preview import PushFile
from connector.pushes.report import ORDER, PushReport, PushRunOptions, push
from connector.settings import Settings
from connector.settings.folders import INBOX_FOLDER
from connector.spreadsheet.report import report_suffix
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES

INSTRUCTIONS_FILE = "push.toml"

NAME_BYTES_MAX = 180
"""Maximum length of a name, so that the suffixes of an archived file fit as well."""

Place = Literal["done", "rejected"]
"""Archive of a file: `rejected` if a row or the whole file needs a correction."""

_PLACES: tuple[Place, ...] = ("done", "rejected")
_SUFFIXES = (*TEXT_SUFFIXES, *BOOK_SUFFIXES)
_TOML_BYTES_MAX = 100_000
# Without O_NONBLOCK, opening a pipe would wait until another process writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):
    """An entry of the inbox is not read. The text follows the name of the entry."""


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

    `archived` is None for a file outside the inbox, or that stays in it. `has_changed` is True if
    the file was changed or removed during the push, so that only its report was moved.
    """

    report: PushReport
    archived: Path | None = None
    has_changed: bool = False


# -- Scan ------------------------------------------------------------------------------------------


def scan_inbox(folder: Path, last_state: str | None) -> InboxScan:
    """Return the files of an account's inbox that have not changed since the last scan.

    Files are in the order in which resources refer to each other. `last_state` is the state of the
    last scan; None if there was none. Changes nothing.
    """
    inbox, before = folder / INBOX_FOLDER, _parse_state(last_state)
    now, waiting, refused = dict[str, list[int]](), list[WaitingFile](), list[str]()
    if not os.path.lexists(inbox):
        missing = f"The folder {inbox} does not exist."
        return InboxScan([], [f"{missing} Create it, with one folder for each resource."], "{}")
    with _collect(refused, inbox):
        _check_folder(inbox)
        names = {name for name in os.listdir(inbox) if not name.startswith(".")}
        for name in sorted(names.difference(ORDER)):
            reason = f"is not a folder of a resource; folders are {', '.join(ORDER)}"
            refused.append(_sentence(inbox / name, RefusedEntry(reason)))
        for path in (inbox / name for name in ORDER if name in names):
            with _collect(refused, path):
                _check_folders(path)
                options = read_instructions(path)
                for file in filter(_may_be_pushed, sorted(path.iterdir())):
                    with _collect(refused, file):
                        key = f"{path.name}/{file.name}"
                        now[key] = _checked_stamp(file)
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
    except (OSError, RefusedEntry, ConnectorError) as error:
        refused.append(_sentence(path, error))


def _parse_state(state: str | None) -> dict[str, Any]:
    """Return the stamps of the last scan by file; empty if the state is not valid."""
    with suppress(ValueError):
        found = json.loads(state or "{}")
        return found if isinstance(found, dict) else {}
    return {}


# -- Checks ----------------------------------------------------------------------------------------


def _may_be_pushed(path: Path) -> bool:
    """Return True unless the entry is hidden, an archive or a file of options."""
    return not (path.name in _PLACES or path.name.startswith(".") or path.suffix == ".toml")


def _checked_stamp(path: Path) -> list[int]:
    """Return numbers that identify a version of a spreadsheet.

    Raises `RefusedEntry` for any other entry.
    """
    status = path.lstat()
    _check_regular(status)
    _check_name(path.name)
    if path.suffix.lower() not in _SUFFIXES:
        raise RefusedEntry(f"has another file type than {', '.join(_SUFFIXES)}")
    if not status.st_size:
        raise RefusedEntry("is empty")
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _check_regular(status: os.stat_result) -> None:
    """Raise `RefusedEntry` unless this is a regular file with one link."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is not a regular file")
    if status.st_nlink > 1:
        raise RefusedEntry("is also linked from another folder")


def _check_name(name: str) -> None:
    """Raise `RefusedEntry` for a name that is too long, or special to a shell or a file system."""
    if not name.isprintable() or {*name} & {*'/\\:*?"<>|;`'} or name.startswith((*". -~",)):
        raise RefusedEntry("has a name with characters that are not allowed. Rename it")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise RefusedEntry(f"has a name of more than {NAME_BYTES_MAX} bytes")


def _check_folder(folder: Path) -> None:
    """Raise `RefusedEntry` if the folder is a link or not a folder."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise RefusedEntry(f"{folder.name} is not a folder")


def _check_folders(folder: Path) -> None:
    """Raise `RefusedEntry` if the folder, or one of its archives, is a link or not a folder."""
    _check_folder(folder)
    for each in map(folder.joinpath, _PLACES):
        if os.path.lexists(each):
            _check_folder(each)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal."""
    with os.fdopen(os.open(path, _OPENING), "rb") as file:
        _check_regular(os.fstat(file.fileno()))
        return hashlib.file_digest(file, "sha256").hexdigest()


def _printable(name: str) -> str:
    """Return a name for a log, escaped and in one line."""
    return ascii(name[:NAME_BYTES_MAX])


def _reason(error: Exception) -> str:
    """Return the message of an error, without the path."""
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)


def _sentence(path: Path, error: Exception) -> str:
    """Return the name of an entry and the reason why it was not read, in one line."""
    if isinstance(error, ConnectorError):
        return explain(error)
    return f"{_printable(path.parent.name)}: {_printable(path.name)} {_reason(error)}."


# -- Instructions ----------------------------------------------------------------------------------

_TYPES = get_type_hints(PushOptions)

# `mapping_file` is called `mapping`, as in --mapping.
_OPTIONS = {name.removesuffix("_file"): name for name in PUSH_OPTIONS}
_FIELDS = {key: _TYPES[name] for key, name in _OPTIONS.items()}
_FIELDS |= {"apply": bool, "pull": bool, "max_requests": PositiveInt}

KEYS = (*_FIELDS,)
"""Keys of `push.toml`."""

_File = create_model(
    "_File",
    __config__=ConfigDict(extra="forbid", strict=True),
    **cast("Any", {key: (kind | None, None) for key, kind in _FIELDS.items()}),
)


def read_instructions(folder: Path) -> dict[str, Any]:
    """Return the options in `push.toml` by the names of the push job's configuration.

    Without the file, creates are previewed. Raises `Misused` that names the invalid key, and
    `OSError`.
    """
    path = folder / INSTRUCTIONS_FILE
    if not os.path.lexists(path):
        return {"mode": "create"}
    try:
        _check_regular(path.lstat())
        if path.lstat().st_size > _TOML_BYTES_MAX:
            raise RefusedEntry("the file is too large")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        # JSON has no tuples and no paths either, so that lists and texts are accepted for them.
        read = _File.model_validate_json(json.dumps(given, default=str)).model_dump()
        options = {"mode": "create", **{_OPTIONS.get(key, key): read[key] for key in given}}
        # The mapping is read when a file is pushed. All other options are checked now.
        checked = {name: value for name, value in options.items() if name in PUSH_OPTIONS}
        PushOptions(**{**checked, "mapping_file": None}).push_file(folder.name, path)
        if "mapping_file" in options:
            options["mapping_file"] = _checked_mapping(folder, str(options["mapping_file"]))
        return options
    except ValidationError as error:
        first = error.errors()[0]
        key, message = str(first["loc"][0]), first["msg"]
        why = f"{key}: {message}"
        if first["type"] == "extra_forbidden":
            why = f"unknown setting {_printable(key)}; allowed are {', '.join(KEYS)}"
    except (RefusedEntry, ValueError, RecursionError, ConnectorError) as error:
        why = explain(error) if isinstance(error, ConnectorError) else str(error)
    raise Misused(
        f"{path} is not valid: {why}",
        action="Correct the file. Until then the other files of the folder are not pushed.",
    )


def _checked_mapping(folder: Path, name: str) -> str:
    """Return the path of a mapping file. Raises `RefusedEntry` unless it is in the folder."""
    try:
        _check_name(name)
        _check_regular((folder / name).lstat())
    except (RefusedEntry, OSError) as error:
        reason = f"{_printable(name)} {_reason(error)}"
        raise RefusedEntry(f"mapping must name a file in the same folder, but {reason}") from None
    return str(folder / name)


# -- Delivery --------------------------------------------------------------------------------------


async def deliver(
    settings: Settings,
    push_file: PushFile,
    options: PushRunOptions,
    *,
    digest: str | None = None,
    budget: int | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> DeliveryResult:
    """Push one file and, if it is in the inbox, archive it.

    With the `digest` of a scan, the file is in the inbox of its resource. It is archived under the
    time `now` once its report is written. A file of the inbox that cannot be pushed at all is moved
    to `rejected/` with the reason. A file whose push was stopped or failed stays.

    Raises what `push` raises, and:

    Raises:
        Misused: The file may not be read.
        SpreadsheetChanged: The file is gone or has another digest.
        WarehouseError: The file could not be archived, and stays where it was.
    """
    if digest is None:
        return DeliveryResult(await push(settings, push_file, options, budget=budget, watch=watch))
    moment = now or datetime.now(UTC)
    path = _claim(settings.folder / INBOX_FOLDER, push_file, digest)
    # A hidden file next to the pushed file, to which the report is first written.
    draft = path.with_name(f".{digest[:16]}{report_suffix(path)}")
    options, file = replace(options, reports=True, output=draft), replace(push_file, path=path)
    try:
        report = await push(settings, file, options, budget=budget, watch=watch)
    except ConnectorError as error:
        if _is_caused_by_file(error):
            with convert_file_errors(draft):
                draft.unlink(missing_ok=True)
                with create_private_file(draft) as reason:
                    reason.write(f"{explain(error)}\n".encode())
            _archive(path, digest, draft, "rejected", ending=".reason.txt", at=moment)
        raise
    if report.outcome in ("stopped", "failed"):
        draft.unlink(missing_ok=True)
        return DeliveryResult(replace(report, file=None))
    place: Place = "done" if report.exit_status == 0 else "rejected"
    ending = f".report{draft.suffix}"
    archived, moved = _archive(path, digest, draft, place, ending=ending, at=moment)
    return DeliveryResult(replace(report, file=moved), archived, has_changed=archived is None)


def _claim(inbox: Path, push_file: PushFile, digest: str) -> Path:
    """Check a file of a scan again, and return its path. Raises as `deliver`."""
    resource, name = push_file.resource, push_file.path.name
    path = inbox / resource / name
    try:
        if resource not in ORDER:
            raise RefusedEntry("is in a folder of no resource")
        _check_name(name)
        _check_folder(inbox)
        _check_folders(path.parent)
        _checked_stamp(path)
        is_same = _digest(path) == digest
    except RefusedEntry as why:
        raise Misused(
            f"{INBOX_FOLDER}/{_printable(resource)}/{_printable(name)} {why}",
            action="Wait until the inbox pushes the file, or push the file from another folder.",
        ) from None
    except FileNotFoundError:
        raise SpreadsheetChanged(f"{path} no longer exists") from None
    except OSError as error:
        raise file_error(path, error) from error
    if not is_same:
        raise SpreadsheetChanged(f"{path} was replaced by another file")
    return path


def _archive(
    path: Path, digest: str, draft: Path, place: Place, *, ending: str, at: datetime
) -> tuple[Path | None, Path]:
    """Move the file and its report to an archive, both named with the time of the run.

    A name that exists already gets a number. Returns both paths; that of the file is None if the
    file was changed or removed. Raises `WarehouseError`, and the file stays.
    """
    folder, stem = path.parent / place, f"{path.stem}.{compact_timestamp(at)}"
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        _check_folder(folder)
        for number in count(1):
            name = stem if number == 1 else f"{stem}-{number}"
            file, report = folder / f"{name}{path.suffix}", folder / f"{name}{ending}"
            if not (os.path.lexists(file) or os.path.lexists(report)):
                break
        draft.replace(report)
        with suppress(FileNotFoundError, RefusedEntry):
            if _digest(path) == digest:
                path.replace(file)
                return file, report
        return None, report
    except RefusedEntry as why:
        raise WarehouseError(f"{folder} {why}", action="Remove it.") from None
    except OSError as error:
        raise file_error(folder, error) from error


def _is_caused_by_file(error: ConnectorError) -> bool:
    """Return True if every push of the file would fail in the same way, before it sends a row."""
    if isinstance(error, SettingsError | SpreadsheetChanged | ReportRefused):
        return False
    # An error of the class itself comes from the disk, and may not occur again.
    is_files = isinstance(error, Misused | SpreadsheetError)
    return is_files and error.code != SpreadsheetError.code

"""Inbox of an account: files in the folder of a resource are checked, pushed and archived.

`push.toml` in a folder has the options for its files: every option of a push by its name, `mapping`
for the mapping file, and `apply`, `pull`, `max_requests`. Without it, creates are previewed. Links
are not followed, and nothing is opened before its name and its type are checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_type_hints

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

FILES_MAX = 1000
"""Maximum number of files of one folder in a scan. The others wait for a later one."""

NAME_BYTES_MAX = 180
"""Maximum length of a name, so that the suffixes of an archived file fit as well."""

Place = Literal["done", "rejected"]
"""Archive of a file: `rejected` if a row or the whole file needs a correction."""

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size, and times of change in nanoseconds: they identify a version of a file."""

_PLACES: tuple[Place, ...] = ("done", "rejected")
_PARTIAL = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart")
_FORBIDDEN = frozenset('/\\:*?"<>|;`')
_TOML_BYTES_MAX = 100_000
# Without O_NONBLOCK, opening a pipe would wait until another process writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):
    """An entry of the inbox is not read. The text follows the name of the entry."""


@dataclass(frozen=True, slots=True)
class PushInstructions:
    """Instructions for the files of a folder. By default, creates are previewed.

    `budget` is the maximum number of requests for one file.
    """

    options: PushOptions = field(default_factory=lambda: PushOptions("create"))
    applies: bool = False
    pulls: bool = True
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """File in the inbox that no longer changes, with its SHA-256."""

    resource: str
    name: str
    digest: str
    instructions: PushInstructions

    @property
    def key(self) -> str:
        """Hash that identifies resource, name and content without showing them."""
        text = f"{self.resource}/{self.name}\n{self.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InboxScan:
    """Files to push, sentences on entries that are not read, and the state for the next scan."""

    waiting: tuple[WaitingFile, ...]
    refused: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True)
class ArchivedFiles:
    """Archived file and its report.

    `file` is None if the file was changed or removed during the push: only the report was moved.
    """

    place: Place
    file: Path | None
    report: Path


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Report of a push; `archived` is None for a file outside the inbox, or that stays in it."""

    report: PushReport
    archived: ArchivedFiles | None = None


# -- Scan ------------------------------------------------------------------------------------------


class Inbox:
    """Inbox in an account's data folder, with one folder for each resource."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / INBOX_FOLDER

    def scan(self, last_state: str | None) -> InboxScan:
        """Return the files that have not changed since the last scan. Changes nothing.

        Files are in the order in which resources refer to each other. `last_state` is the state of
        the last scan; None if there was none.
        """
        before, now = _parse_state(last_state), dict[str, list[Any]]()
        waiting: list[WaitingFile] = []
        refused: list[str] = []
        for folder in self._folders(refused):
            try:
                instructions = read_instructions(folder)
                entries = list(_files(folder, refused))
            except (ConnectorError, OSError) as error:
                refused.append(_sentence(folder, error))
                continue
            for path, stamp in entries:
                key = f"{folder.name}/{path.name}"
                *earlier, digest = before.get(key) or [""]
                if earlier != [*stamp]:
                    now[key] = [*stamp, ""]  # A file that still changes is not read.
                    continue
                try:
                    digest = digest or _digest(path)
                except (OSError, RefusedEntry) as error:
                    refused.append(_sentence(path, error))
                    continue
                now[key] = [*stamp, digest]
                waiting.append(WaitingFile(folder.name, path.name, digest, instructions))
        return InboxScan(tuple(waiting), tuple(refused), json.dumps(now))

    def _folders(self, refused: list[str]) -> list[Path]:
        """Return the folders of resources, in order. Adds reasons for other entries."""
        if not os.path.lexists(self.folder):
            refused.append(
                f"The folder {self.folder} does not exist. Create it, with one folder for each "
                "resource."
            )
            return []
        found = []
        try:
            _check_folder(self.folder)
            names = sorted(each for each in os.listdir(self.folder) if not each.startswith("."))
        except (OSError, RefusedEntry) as error:
            refused.append(_sentence(self.folder, error))
            return []
        for path in map(self.folder.joinpath, names):
            try:
                if path.name not in ORDER:
                    known = ", ".join(ORDER)
                    raise RefusedEntry(f"is not a folder of a resource; folders are {known}")
                _check_folders(path)
                found.append(path)
            except (OSError, RefusedEntry) as error:
                refused.append(_sentence(path, error))
        return sorted(found, key=lambda path: ORDER.index(path.name))


def _files(folder: Path, refused: list[str]) -> Iterator[tuple[Path, Stamp]]:
    """Yield each file to read with its stamp. Adds reasons for others to `refused`."""
    names = sorted(
        name
        for name in os.listdir(folder)
        if name not in _PLACES and not name.startswith(".") and not name.endswith(".toml")
    )
    folds = Counter(map(_fold, names))
    for number, path in enumerate(map(folder.joinpath, names)):
        try:
            if number >= FILES_MAX:
                raise RefusedEntry(
                    "and later files are not pushed yet, because the folder has more than"
                    f" {FILES_MAX} files"
                )
            if folds[_fold(path.name)] > 1:
                raise RefusedEntry("has the same name as another file, except for case or accents")
            yield path, _checked(path)
        except FileNotFoundError:
            continue
        except (OSError, RefusedEntry) as error:
            refused.append(_sentence(path, error))
            if number >= FILES_MAX:
                return


def _parse_state(state: str | None) -> Mapping[str, list[Any]]:
    """Return stamp and digest of each file from `InboxScan.state`; empty if it is not valid."""
    try:
        found = json.loads(state or "{}")
    except ValueError:
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in known if isinstance(value, list)}


# -- Checks ----------------------------------------------------------------------------------------


def _checked(path: Path) -> Stamp:
    """Return the stamp of a spreadsheet. Raises `RefusedEntry` for any other entry."""
    status = path.lstat()
    _check_regular(status)
    _check_name(path.name)
    stem, suffix = os.path.splitext(path.name)
    ends = {suffix.lower(), os.path.splitext(stem)[1].lower()}
    if path.name.startswith("~$") or ends & {*_PARTIAL}:
        raise RefusedEntry("is a temporary file of another program")
    known = (*TEXT_SUFFIXES, *BOOK_SUFFIXES)
    if suffix.lower() not in known:
        raise RefusedEntry(f"has another file type than {', '.join(known)}")
    if not status.st_size:
        raise RefusedEntry("is empty")
    return _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    """Return what identifies a version of a file."""
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, status.st_size, *times


def _check_regular(status: os.stat_result) -> None:
    """Raise `RefusedEntry` unless this is a regular file with one link."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is not a regular file")
    if status.st_nlink > 1:
        raise RefusedEntry("is also linked from another folder")


def _check_name(name: str) -> None:
    """Raise `RefusedEntry` for a name that is too long, or special to a shell or a file system."""
    if not name.isprintable() or _FORBIDDEN & {*name} or name.startswith((".", " ", "-")):
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


def _fold(name: str) -> str:
    """Return the name in the form in which a file system may treat two names as the same."""
    return unicodedata.normalize("NFC", name).casefold()


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
_RUN_KEYS: Mapping[str, tuple[str, Any]] = {
    "apply": ("applies", bool),
    "pull": ("pulls", bool),
    "max_requests": ("budget", int | None),
}

KEYS: Mapping[str, tuple[str, Any]] = {
    # `mapping_file` is called `mapping`, as in --mapping.
    **{name.removesuffix("_file"): (name, _TYPES[name]) for name in PUSH_OPTIONS},
    **_RUN_KEYS,
}
"""Keys of `push.toml`: the option of each, and the type of its value."""


def read_instructions(folder: Path) -> PushInstructions:
    """Return the instructions in `push.toml`, or the default ones if the file is missing.

    Raises `Misused` that names the invalid key, and `OSError`.
    """
    path = folder / INSTRUCTIONS_FILE
    if not os.path.lexists(path):
        return PushInstructions()
    try:
        _check_regular(path.lstat())
        if path.lstat().st_size > _TOML_BYTES_MAX:
            raise RefusedEntry("the file is too large")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        if unknown := [key for key in given if key not in KEYS]:
            known = ", ".join(KEYS)
            raise RefusedEntry(f"unknown setting {_printable(unknown[0])}; allowed are {known}")
        read = {KEYS[key][0]: _value(path, key, value) for key, value in given.items()}
        options = PushOptions(
            **{"mode": "create", **{n: v for n, v in read.items() if n in PUSH_OPTIONS}}
        )
        # The mapping is read when a file is pushed. All other options are checked now.
        replace(options, mapping_file=None).push_file(folder.name, path)
        rest = {name: value for name, value in read.items() if name not in PUSH_OPTIONS}
        return PushInstructions(options, **rest)
    except (RefusedEntry, ValueError, RecursionError, ConnectorError) as error:
        why = explain(error) if isinstance(error, ConnectorError) else str(error)
        raise Misused(
            f"{path} is not valid: {why}",
            action="Correct the file. Until then the inbox does not push the other files of the "
            "folder.",
        ) from None


def _value(path: Path, key: str, value: Any) -> Any:
    """Return the value of a key of `push.toml`. Raises `RefusedEntry` if its type is wrong."""
    kind = KEYS[key][1]
    if kind is bool:
        if not isinstance(value, bool):
            raise RefusedEntry(f"{key} must be true or false")
        return value
    if kind == int | None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise RefusedEntry(f"{key} must be a whole number, 1 or greater")
        return value
    if kind == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise RefusedEntry(f'{key} must be a list of texts, for example ["email"]')
        return tuple(value)
    if not isinstance(value, str):
        raise RefusedEntry(f"{key} must be text in quotes")
    if kind != Path | None:
        return value
    try:
        _check_name(value)
        _check_regular(path.with_name(value).lstat())
    except (RefusedEntry, OSError) as error:
        reason = f"{_printable(value)} {_reason(error)}"
        raise RefusedEntry(f"{key} must name a file in the same folder, but {reason}") from None
    return path.with_name(value)


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
        report = await push(settings, push_file, options, budget=budget, watch=watch)
        return DeliveryResult(report)
    moment = now or datetime.now(UTC)
    path, stamp = _claim(settings.folder / INBOX_FOLDER, push_file, digest)
    # A hidden file next to the pushed file, to which the report is first written.
    draft = path.with_name(f".{digest[:16]}{report_suffix(path)}")
    options = replace(options, reports=True, output=draft)
    try:
        report = await push(
            settings, replace(push_file, path=path), options, budget=budget, watch=watch
        )
    except ConnectorError as error:
        if _is_caused_by_file(error):
            with convert_file_errors(draft):
                draft.unlink(missing_ok=True)
                with create_private_file(draft) as file:
                    file.write(f"{explain(error)}\n".encode())
            _archive(path, stamp, draft, "rejected", ending=".reason.txt", at=moment)
        raise
    if report.outcome in ("stopped", "failed"):
        draft.unlink(missing_ok=True)
        return DeliveryResult(replace(report, file=None))
    place: Place = "done" if report.exit_status == 0 else "rejected"
    ending = f".report{report_suffix(path)}"
    archived = _archive(path, stamp, draft, place, ending=ending, at=moment)
    return DeliveryResult(replace(report, file=archived.report), archived)


def _claim(inbox: Path, push_file: PushFile, digest: str) -> tuple[Path, Stamp]:
    """Check a file of a scan again, and return its path and stamp. Raises as `deliver`."""
    resource, name = push_file.resource, push_file.path.name
    if resource not in ORDER:
        raise Misused(
            f"{_printable(resource)} has no inbox", action=f"Use one of: {', '.join(ORDER)}."
        )
    path = inbox / resource / name
    try:
        _check_name(name)
        _check_folder(inbox)
        _check_folders(path.parent)
        stamp, found = _checked(path), _digest(path)
    except RefusedEntry as why:
        raise Misused(
            f"{INBOX_FOLDER}/{_printable(resource)}/{_printable(name)} {why}",
            action="Wait until the inbox pushes the file, or push the file from another folder.",
        ) from None
    except FileNotFoundError:
        raise SpreadsheetChanged(f"{path} no longer exists") from None
    except OSError as error:
        raise file_error(path, error) from error
    if found != digest:
        raise SpreadsheetChanged(f"{path} was replaced by another file")
    return path, stamp


def _archive(
    path: Path, stamp: Stamp, draft: Path, place: Place, *, ending: str, at: datetime
) -> ArchivedFiles:
    """Move the file and its report to an archive, both named with the time of the run.

    A name that exists already gets a number. Raises `WarehouseError`, and the file stays.
    """
    folder = path.parent / place
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        _check_folder(folder)
        stem = f"{path.stem}.{compact_timestamp(at)}"
        file, report = _free_names(folder, stem, path.suffix, ending)
        draft.replace(report)
        try:
            if _stamp(path.lstat()) != stamp:
                raise FileNotFoundError
            path.replace(file)
        except FileNotFoundError:
            file.unlink()
            return ArchivedFiles(place, None, report)
    except RefusedEntry as why:
        raise WarehouseError(f"{folder} {why}", action="Remove it.") from None
    except OSError as error:
        raise file_error(folder, error) from error
    return ArchivedFiles(place, file, report)


def _free_names(folder: Path, stem: str, suffix: str, ending: str) -> tuple[Path, Path]:
    """Create two empty files with unused names in the folder, and return (file, report)."""
    for number in count(1):
        name = stem if number == 1 else f"{stem}-{number}"
        report, file = folder / f"{name}{ending}", folder / f"{name}{suffix}"
        with suppress(FileExistsError):
            create_private_file(report).close()
            try:
                create_private_file(file).close()
            except FileExistsError:
                report.unlink()
                raise
            return file, report
    raise AssertionError  # The count has no end.


def _is_caused_by_file(error: ConnectorError) -> bool:
    """Return True if every push of the file would fail in the same way, before it sends a row."""
    if isinstance(error, SettingsError | SpreadsheetChanged | ReportRefused):
        return False
    # An error of the class itself comes from the disk, and may not occur again.
    is_files = isinstance(error, Misused | SpreadsheetError)
    return is_files and error.code != SpreadsheetError.code

"""Inbox of an account: its files are found, checked, pushed and archived.

An entry is checked before it is opened. Links are not followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from connector.atomic_files import create_private_file
from connector.errors import (
    ConnectorError,
    Misused,
    ReportRefused,
    SettingsError,
    SpreadsheetChanged,
    SpreadsheetError,
    WarehouseError,
    file_error,
)
from connector.log import compact_timestamp
from connector.pulls.outcome import Watch, explain
from connector.pushes.dry_run import PushFile
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.push import ORDER, PushReport, PushRunOptions, push
from connector.settings import Settings
from connector.settings.folders import INBOX_FOLDER
from connector.spreadsheet.report import report_suffix
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES

Place = Literal["done", "rejected"]
"""Archive of a file: `rejected` if a row or the whole file needs a correction."""

Stamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, and time of change in nanoseconds. They identify a version of a
file.
"""

NAME_BYTES_MAX = 180
"""Maximum length of a name, so that the suffixes of an archived file fit as well."""

_SUFFIXES = (*TEXT_SUFFIXES, *BOOK_SUFFIXES)
_PARTIAL = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart")
_FORBIDDEN = frozenset('/\\:*?"<>|;`')
_PIECE_BYTES = 1024 * 1024

# Without O_NONBLOCK, opening a pipe would wait until another process writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):  # It never leaves the inbox, where it is a sentence.
    """Raised if an entry of the inbox cannot be read. Its text follows the name of the entry."""


def visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of the folder, sorted by name, without hidden ones."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted(found, key=lambda entry: entry.name)


def check_not_link(folder: Path) -> Path:
    """Return the folder. Raises `RefusedEntry` if it is a link or not a folder."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise RefusedEntry(f"{folder.name} is not a folder")
    return folder


def check_no_links(folder: Path) -> None:
    """Raise `RefusedEntry` if the folder, or one of its archive folders, is a link."""
    for each in (folder, *(folder / place for place in get_args(Place))):
        if each == folder or os.path.lexists(each):
            check_not_link(each)


def describe_refusal(path: Path, error: Exception) -> str:
    """Return the name of an entry and the reason why it was not read, in one line."""
    if isinstance(error, ConnectorError):
        return explain(error)
    names = f"{printable_name(path.parent.name)}: {printable_name(path.name)}"
    return f"{names} {describe_error(error)}."


def check_entry(name: str, status: os.stat_result) -> os.stat_result:
    """Return the entry's status. Raises `RefusedEntry` unless it is a spreadsheet to read."""
    check_regular_file(status)
    check_name(name)
    stem, suffix = os.path.splitext(name)
    is_partial = name.startswith("~$") or os.path.splitext(stem)[1].lower() in _PARTIAL
    if is_partial or suffix.lower() in _PARTIAL:
        raise RefusedEntry("is a temporary file of another program")
    if suffix.lower() not in _SUFFIXES:
        raise RefusedEntry(f"has another file type than {', '.join(_SUFFIXES)}")
    if not status.st_size:
        raise RefusedEntry("is empty")
    return status


def check_regular_file(status: os.stat_result) -> None:
    """Raise `RefusedEntry` unless this is a regular file with one link."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is not a regular file")
    if status.st_nlink > 1:
        raise RefusedEntry("is also linked from another folder")


def check_name(name: str) -> None:
    """Raise `RefusedEntry` for a name that is too long, or special to a shell or a file system."""
    if not name.isprintable() or _FORBIDDEN & set(name) or name.startswith((".", " ", "-")):
        raise RefusedEntry("has a name with characters that are not allowed. Rename it")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise RefusedEntry(f"has a name of more than {NAME_BYTES_MAX} bytes")


def normalized_name(name: str) -> str:
    """Return the name in the form in which a file system may treat two names as the same."""
    return unicodedata.normalize("NFC", name).casefold()


def printable_name(name: str) -> str:
    """Return a name for a log, escaped and in one line."""
    return ascii(name[:NAME_BYTES_MAX])


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp that identifies a version of a file, from its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def digest_of(path: Path) -> tuple[str, Stamp]:
    """Return the SHA-256 of a regular file, in hexadecimal, and the file's stamp before it was
    read.
    """
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _OPENING), "rb") as file:
        status = os.fstat(file.fileno())
        check_regular_file(status)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest(), stamp_of(status)


def describe_error(error: Exception) -> str:
    """Return the message of an error, without the path."""
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)


# -- Instructions ----------------------------------------------------------------------------------
# `push.toml` in a folder has the options for its files. It accepts every option of a push by its
# name (`connector/pushes/options.py`), `mapping` for the mapping file, and `apply`, `pull`,
# `max_requests`.


INSTRUCTIONS_FILE = "push.toml"
"""Name of the file with the instructions for a folder."""

_BYTES_MAX = 100_000
_MODE = "create"


@dataclass(frozen=True, slots=True)
class PushInstructions:
    """Instructions for the files of a folder, from `push.toml`. By default, creates are previewed.

    Attributes:
        options: Options of the push. The mapping file is in the same folder.
        applies: Whether to send the rows, or only preview them.
        pulls: Whether to pull first.
        budget: Maximum number of requests for one file.
    """

    options: PushOptions = field(default_factory=lambda: PushOptions(_MODE))
    applies: bool = False
    pulls: bool = True
    budget: int | None = None


def read_instructions(folder: Path) -> PushInstructions:
    """Return the instructions in `push.toml`, or the default ones if the file is missing.

    Raises `Misused` that names the invalid key, and `OSError`.
    """
    path = folder / INSTRUCTIONS_FILE
    if not os.path.lexists(path):
        return PushInstructions()
    try:
        check_regular_file(path.lstat())
        if path.lstat().st_size > _BYTES_MAX:
            raise RefusedEntry("the file is too large")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        return _parse_instructions(path, given)
    except (RefusedEntry, ValueError, RecursionError) as why:
        raise Misused(
            f"{path} is not valid: {why}",
            action="Correct the file. Until then the inbox does not push the other files of the "
            "folder.",
        ) from None


def _parse_instructions(path: Path, given: dict[str, Any]) -> PushInstructions:
    """Return the instructions in a parsed `push.toml`. Raises `RefusedEntry` with the reason."""
    for key in given:
        if key not in KEYS:
            raise RefusedEntry(
                f"unknown setting {printable_name(key)}; allowed are {', '.join(KEYS)}"
            )
    read = {KEYS[key][0]: KEYS[key][1](path, key, value) for key, value in given.items()}
    said = {name: read.pop(name) for name in PUSH_OPTIONS if name in read}
    options = PushOptions(**{"mode": _MODE, **said})
    try:
        # The mapping is read when a file is pushed. All other options are checked now.
        replace(options, mapping_file=None).push_file(path.parent.name, path)
        options.policy()
    except ConnectorError as error:
        raise RefusedEntry(explain(error)) from None
    return PushInstructions(options, **read)


def _read_text(path: Path, key: str, value: Any) -> str:
    """Return the value of a key if it is text. Raises `RefusedEntry`."""
    if not isinstance(value, str):
        raise RefusedEntry(f"{key} must be text in quotes")
    return value


def _read_texts(path: Path, key: str, value: Any) -> tuple[str, ...]:
    """Return the value of a key if it is a list of texts. Raises `RefusedEntry`."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RefusedEntry(f'{key} must be a list of texts, for example ["email"]')
    return tuple(value)


def _read_boolean(path: Path, key: str, value: Any) -> bool:
    """Return the value of a key if it is true or false. Raises `RefusedEntry`."""
    if not isinstance(value, bool):
        raise RefusedEntry(f"{key} must be true or false")
    return value


def _read_count(path: Path, key: str, value: Any) -> int:
    """Return the value of a key if it is a whole number, 1 or greater. Raises `RefusedEntry`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RefusedEntry(f"{key} must be a whole number, 1 or greater")
    return value


def _read_path(path: Path, key: str, value: Any) -> Path:
    """Return the file that a key names, in the folder of `push.toml`. Raises `RefusedEntry`."""
    name = _read_text(path, key, value)
    try:
        check_name(name)
        check_regular_file(path.with_name(name).lstat())
    except (RefusedEntry, OSError) as error:
        reason = f"{printable_name(name)} {describe_error(error)}"
        message = f"{key} must name a file in the same folder, but {reason}"
        raise RefusedEntry(message) from None
    return path.with_name(name)


_Reader = Callable[[Path, str, Any], Any]
_READERS: Mapping[Any, _Reader] = {
    str: _read_text,
    str | None: _read_text,
    tuple[str, ...]: _read_texts,
    bool: _read_boolean,
    int | None: _read_count,
    Path | None: _read_path,
}
_TYPES = get_type_hints(PushOptions)

KEYS: Mapping[str, tuple[str, _Reader]] = {
    # `mapping_file` is called `mapping`, as in --mapping.
    **{name.removesuffix("_file"): (name, _READERS[_TYPES[name]]) for name in PUSH_OPTIONS},
    "apply": ("applies", _read_boolean),
    "pull": ("pulls", _read_boolean),
    "max_requests": ("budget", _read_count),
}
"""Keys of `push.toml`: the option of each, and the function that reads its value."""


# -- Inbox -----------------------------------------------------------------------------------------


FILES_MAX = 1000
"""Maximum number of files of one folder in a scan. The others wait for a later one."""


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """File in the inbox that no longer changes.

    Attributes:
        name: Name of the file in the folder of its resource.
        digest: SHA-256 of the file, in hexadecimal.
    """

    resource: str
    name: str
    digest: str
    instructions: PushInstructions

    @property
    def key(self) -> str:
        """Hash of the resource, the name and the content, which identifies the file without showing
        them.
        """
        text = f"{self.resource}/{self.name}\n{self.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InboxScan:
    """Result of a scan of the inbox.

    Attributes:
        waiting: Files to push.
        refused: Sentences for users about entries that are not read.
        state: Stamps and digests of the files as JSON, for the next scan.
    """

    waiting: tuple[WaitingFile, ...]
    refused: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True)
class ClaimedFile:
    """File of the inbox that is being pushed, with its SHA-256 and the stamp of this version."""

    path: Path
    digest: str
    stamp: Stamp

    @property
    def report_draft(self) -> Path:
        """Hidden file next to the pushed file, to which the report is first written."""
        return self.path.with_name(f".{self.digest[:16]}{report_suffix(self.path)}")


@dataclass(frozen=True, slots=True)
class ArchivedFiles:
    """Archived file and its report.

    `file` is None if the file was changed or removed during the push. Then only the report was
    moved.
    """

    place: Place
    file: Path | None
    report: Path


class Inbox:
    """Inbox in an account's data folder, with one folder for each resource."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / INBOX_FOLDER

    # -- scan -------------------------------------------------------------------------------------

    def scan(self, last_state: str | None) -> InboxScan:
        """Return the files that have not changed since the last scan, and reasons to refuse others.

        Files are in the order in which resources refer to each other. Changes nothing. Hidden
        entries are ignored.
        `last_state` is the state of the last scan; None if there was none.
        """
        before, now = _parse_scan_state(last_state), dict[str, list[Any]]()
        waiting: list[WaitingFile] = []
        refused: list[str] = []
        for resource in self._find_resource_folders(refused):
            try:
                orders = read_instructions(self._folder / resource)
                entries = list(self._find_readable_files(resource, refused))
            except (ConnectorError, OSError) as error:
                refused.append(describe_refusal(self._folder / resource, error))
                continue
            for name, status in entries:
                key, stamp = f"{resource}/{name}", [*stamp_of(status), status.st_ctime_ns]
                *earlier, digest = before.get(key) or [""]
                if earlier != stamp:
                    # A file that still changes is not read.
                    now[key] = [*stamp, ""]
                    continue
                try:
                    digest = digest or digest_of(self._folder / resource / name)[0]
                except (OSError, RefusedEntry) as error:
                    refused.append(describe_refusal(self._folder / resource / name, error))
                    continue
                now[key] = [*stamp, digest]
                waiting.append(WaitingFile(resource, name, digest, orders))
        return InboxScan(tuple(waiting), tuple(refused), json.dumps(now))

    def _find_resource_folders(self, refused: list[str]) -> list[str]:
        """Return the resources that have a folder, in order. Adds reasons for other entries to
        `refused`.
        """
        if not os.path.lexists(self._folder):
            refused.append(
                f"The folder {self._folder} does not exist. Create it, with one folder for "
                "each resource."
            )
            return []
        try:
            entries = visible_entries(check_not_link(self._folder))
        except (OSError, RefusedEntry) as error:
            refused.append(describe_refusal(self._folder, error))
            return []
        found = []
        for entry in entries:
            try:
                if entry.name not in ORDER:
                    raise RefusedEntry(
                        f"is not a folder of a resource; folders are {', '.join(ORDER)}"
                    )
                check_no_links(self._folder / entry.name)
                found.append(entry.name)
            except (OSError, RefusedEntry) as error:
                refused.append(describe_refusal(self._folder / entry.name, error))
        return sorted(found, key=ORDER.index)

    def _find_readable_files(
        self, resource: str, refused: list[str]
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the name and status of each file to read. Adds reasons for others to `refused`."""
        entries = [
            entry
            for entry in visible_entries(self._folder / resource)
            if entry.name not in get_args(Place) and not entry.name.endswith(".toml")
        ]
        folds = Counter(normalized_name(entry.name) for entry in entries)
        for number, entry in enumerate(entries):
            try:
                if number >= FILES_MAX:
                    raise RefusedEntry(
                        f"and later files are not pushed yet, because the folder has more than "
                        f"{FILES_MAX} files"
                    )
                if folds[normalized_name(entry.name)] > 1:
                    raise RefusedEntry(
                        "has the same name as another file, except for case or accents"
                    )
                yield entry.name, check_entry(entry.name, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except RefusedEntry as why:
                refused.append(describe_refusal(self._folder / resource / entry.name, why))
                if number >= FILES_MAX:
                    return

    # -- files ------------------------------------------------------------------------------------

    def claim(self, resource: str, name: str, digest: str) -> ClaimedFile:
        """Check a file of a scan again, and return it with its present stamp.

        Raises `Misused` if the file may not be read, and `SpreadsheetChanged` if it is gone or has
        another digest.
        """
        if resource not in ORDER:
            raise Misused(
                f"{printable_name(resource)} has no inbox",
                action=f"Use one of: {', '.join(ORDER)}.",
            )
        path = self._folder / resource / name
        try:
            check_name(name)
            check_not_link(self._folder)
            check_no_links(self._folder / resource)
            check_entry(name, path.lstat())
            found, stamp = digest_of(path)
        except RefusedEntry as why:
            raise Misused(
                f"{INBOX_FOLDER}/{printable_name(resource)}/{printable_name(name)} {why}",
                action="Wait until the inbox pushes the file, or push the file from another "
                "folder.",
            ) from None
        except FileNotFoundError:
            raise SpreadsheetChanged(f"{path} no longer exists") from None
        except OSError as error:
            raise file_error(path, error) from error
        if found != digest:
            raise SpreadsheetChanged(f"{path} was replaced by another file")
        return ClaimedFile(path, digest, stamp)

    def archive(
        self, claimed: ClaimedFile, place: Place, suffix: str, moment: datetime
    ) -> ArchivedFiles:
        """Move the file and its report to an archive folder, both named with the time of the run.

        A name that exists already gets a number. `suffix` is that of the report, for example
        `.report.csv`. Raises `WarehouseError`, and the file stays where it was.
        """
        folder = claimed.path.parent / place
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            check_not_link(folder)
            stem = f"{claimed.path.stem}.{compact_timestamp(moment)}"
            file, report = _create_free_names(folder, stem, claimed.path.suffix, suffix)
            claimed.report_draft.replace(report)
            try:
                if stamp_of(claimed.path.lstat()) != claimed.stamp:
                    raise FileNotFoundError
                claimed.path.replace(file)
            except FileNotFoundError:
                file.unlink()
                return ArchivedFiles(place, None, report)
        except RefusedEntry as why:
            raise WarehouseError(f"{folder} {why}", action="Remove it.") from None
        except OSError as error:
            raise file_error(folder, error) from error
        return ArchivedFiles(place, file, report)


def _create_free_names(
    folder: Path, stem: str, suffix: str, report_ending: str
) -> tuple[Path, Path]:
    """Create two empty files with unused names in the folder, and return (file, report)."""
    for number in count(1):
        name = stem if number == 1 else f"{stem}-{number}"
        report, file = folder / f"{name}{report_ending}", folder / f"{name}{suffix}"
        try:
            create_private_file(report).close()
        except FileExistsError:
            continue
        try:
            create_private_file(file).close()
        except FileExistsError:
            report.unlink()
            continue
        return file, report
    raise AssertionError  # The count has no end.


def _parse_scan_state(state: str | None) -> dict[str, list[Any]]:
    """Return the stamp and digest of each file from `InboxScan.state`; empty if it is not valid."""
    try:
        found = json.loads(state or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, list)}


# -- Delivery --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Report of a push, and where the file was archived.

    `archived` is None for a file outside the inbox, and for a file whose push was stopped or
    failed.
    """

    report: PushReport
    archived: ArchivedFiles | None = None


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

    Raises what `Inbox.claim`, `push` and `Inbox.archive` raise.
    """
    if digest is None:
        report = await push(settings, push_file, options, budget=budget, watch=watch)
        return DeliveryResult(report)
    inbox, moment = Inbox(settings.folder), now or datetime.now(UTC)
    taken = inbox.claim(push_file.resource, push_file.path.name, digest)
    push_file = replace(push_file, path=taken.path)
    options = replace(options, reports=True, output=taken.report_draft)
    try:
        report = await push(settings, push_file, options, budget=budget, watch=watch)
    except ConnectorError as error:
        if _is_caused_by_file(error):
            _write_rejection_reason(taken.report_draft, error)
            inbox.archive(taken, "rejected", ".reason.txt", moment)
        raise
    if report.outcome in ("stopped", "failed"):
        taken.report_draft.unlink(missing_ok=True)
        return DeliveryResult(replace(report, file=None))
    place: Place = "done" if report.exit_status == 0 else "rejected"
    archived = inbox.archive(taken, place, f".report{report_suffix(taken.path)}", moment)
    return DeliveryResult(replace(report, file=archived.report), archived)


def _is_caused_by_file(error: ConnectorError) -> bool:
    """Return True if every push of the same file would fail in the same way, before anything is
    sent.
    """
    if isinstance(error, SettingsError | SpreadsheetChanged | ReportRefused):
        return False
    # An error of the class itself comes from the disk, and may not occur again.
    is_files = isinstance(error, Misused | SpreadsheetError)
    return is_files and error.code != SpreadsheetError.code


def _write_rejection_reason(path: Path, error: ConnectorError) -> None:
    """Write the error as text to a new file. Raises a `WarehouseError`."""
    try:
        path.unlink(missing_ok=True)
        with create_private_file(path) as file:
            file.write(f"{explain(error)}\n".encode())
    except OSError as failed:
        raise file_error(path, failed) from failed

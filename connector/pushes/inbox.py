"""Inbox of an account: a file in it is found, taken, pushed and put away.

Whether an entry may be read is decided before it is opened. Nothing here follows a link.
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

from connector.atomic_files import create
from connector.errors import (
    ConnectorError,
    Misused,
    ReportRefused,
    SettingsError,
    SpreadsheetChanged,
    SpreadsheetError,
    WarehouseError,
    naming,
)
from connector.log import stamped
from connector.pulls.error_hints import explain
from connector.pulls.outcome import Watch
from connector.pushes.dry_run import PushFile
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.push import ORDER, PushReport, PushRunOptions, push
from connector.settings.layers import INBOX_FOLDER
from connector.settings.model import Settings
from connector.spreadsheet.report import report_suffix
from connector.spreadsheet.table import BOOK_SUFFIXES, TEXT_SUFFIXES

Place = Literal["done", "rejected"]
"""Where a file is put away: `rejected` where a row or the whole file needs a person's hand."""

Stamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, and time of change in nanoseconds: by these a file is the same."""

NAME_BYTES_MAX = 180
"""What is put behind a name when its file is put away must fit into a name as well."""

_SUFFIXES = (*TEXT_SUFFIXES, *BOOK_SUFFIXES)
_PARTIAL = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart")
_FORBIDDEN = frozenset('/\\:*?"<>|;`')
_PIECE_BYTES = 1024 * 1024

# A pipe that took a file's place would let no one open it until a person writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):  # It never leaves the inbox, where it is a sentence.
    """Reason why an entry is not read, to be put behind its name."""


def visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of the folder that are not hidden, by name."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted(found, key=lambda entry: entry.name)


def check_not_link(folder: Path) -> Path:
    """The folder itself, which is not a link to another."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise RefusedEntry(f"{folder.name} is not a folder")
    return folder


def check_inside(folder: Path) -> None:
    """Refuse a resource's folder from which a path would lead elsewhere."""
    for each in (folder, *(folder / place for place in get_args(Place))):
        if each == folder or os.path.lexists(each):
            check_not_link(each)


def describe_refusal(path: Path, error: Exception) -> str:
    """Return the reason why an entry was not read, in one line."""
    if isinstance(error, ConnectorError):
        return explain(error)
    names = f"{printable_name(path.parent.name)}: {printable_name(path.name)}"
    return f"{names} {reason_without_path(error)}."


def check_status(name: str, status: os.stat_result) -> os.stat_result:
    """The entry's status, if it is a file that may be read."""
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
    """Refuse what is no file, and a file that is not of this folder alone."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is not a regular file")
    if status.st_nlink > 1:
        raise RefusedEntry("is also linked from another folder")


def check_name(name: str) -> None:
    """Refuse a name that means something else to a shell or another system."""
    if not name.isprintable() or _FORBIDDEN & set(name) or name.startswith((".", " ", "-")):
        raise RefusedEntry("has a name with characters that are not allowed. Rename it")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise RefusedEntry(f"has a name of more than {NAME_BYTES_MAX} bytes")


def normalized_name(name: str) -> str:
    """Return the form of a name that is equal for names that some systems take for one."""
    return unicodedata.normalize("NFC", name).casefold()


def printable_name(name: str) -> str:
    """A name as a log may show it: whatever it holds, it is one line."""
    return ascii(name[:NAME_BYTES_MAX])


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file of this status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def digest_of(path: Path) -> tuple[str, Stamp]:
    """The SHA-256 of a regular file, and its stamp, of the same opening of it."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _OPENING), "rb") as file:
        status = os.fstat(file.fileno())
        check_regular_file(status)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest(), stamp_of(status)


def reason_without_path(error: Exception) -> str:
    """Return the reason of an error, without the path."""
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)


# -- Orders ----------------------------------------------------------------------------------------
# How the files of one folder are to be pushed: `push.toml` in it.
#
# It takes every option of a push under its own name (`connector/pushes/options.py`), `mapping`
# for the file of the mapping, and besides `apply`, `pull` and `max_requests`.


ORDERS = "push.toml"
"""The file that says how a folder's files are pushed."""

_BYTES_MAX = 100_000
_MODE = "create"


@dataclass(frozen=True, slots=True)
class PushInstructions:
    """Orders for a folder's files; without `push.toml`, to preview creates.

    `options` are those of a push; the file of its mapping lies in the folder. `applies`: send what
    is previewed. `pulls`: bring the landing up to date first. `budget`: the most requests that one
    file may take.
    """

    options: PushOptions = field(default_factory=lambda: PushOptions(_MODE))
    applies: bool = False
    pulls: bool = True
    budget: int | None = None


def read_instructions(folder: Path) -> PushInstructions:
    """Orders by `push.toml`. Raises `Misused`, with the key, and `OSError`."""
    path = folder / ORDERS
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
    """The orders that the document gives."""
    for key in given:
        if key not in KEYS:
            raise RefusedEntry(
                f"unknown setting {printable_name(key)}; allowed are {', '.join(KEYS)}"
            )
    read = {KEYS[key][0]: KEYS[key][1](path, key, value) for key, value in given.items()}
    said = {name: read.pop(name) for name in PUSH_OPTIONS if name in read}
    options = PushOptions(**{"mode": _MODE, **said})
    try:
        # The mapping is read when a file is pushed; all else can be wrong now.
        replace(options, mapping_file=None).push_file(path.parent.name, path)
        options.policy()
    except ConnectorError as error:
        raise RefusedEntry(explain(error)) from None
    return PushInstructions(options, **read)


def _read_text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RefusedEntry(f"{key} must be text in quotes")
    return value


def _read_texts(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RefusedEntry(f'{key} must be a list of texts, for example ["email"]')
    return tuple(value)


def _read_boolean(path: Path, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedEntry(f"{key} must be true or false")
    return value


def _read_count(path: Path, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RefusedEntry(f"{key} must be a whole number, 1 or greater")
    return value


def _read_path(path: Path, key: str, value: Any) -> Path:
    """A file beside `push.toml`."""
    name = _read_text(path, key, value)
    try:
        check_name(name)
        check_regular_file(path.with_name(name).lstat())
    except (RefusedEntry, OSError) as error:
        reason = f"{printable_name(name)} {reason_without_path(error)}"
        told = f"{key} must name a file in the same folder, but {reason}"
        raise RefusedEntry(told) from None
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
    # What is a file for the command is the name of one here: `mapping`, as in --mapping.
    **{name.removesuffix("_file"): (name, _READERS[_TYPES[name]]) for name in PUSH_OPTIONS},
    "apply": ("applies", _read_boolean),
    "pull": ("pulls", _read_boolean),
    "max_requests": ("budget", _read_count),
}
"""The keys that `push.toml` may have: which option or order each of them is, and how it is read."""


# -- Inbox -----------------------------------------------------------------------------------------


FILES_MAX = 1000
"""More files than these, of one folder, wait for a later look."""


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A settled file: its name in its resource's folder, and its SHA-256."""

    resource: str
    name: str
    digest: str
    orders: PushInstructions

    @property
    def key(self) -> str:
        """Key that identifies the file and its content, and shows neither."""
        text = f"{self.resource}/{self.name}\n{self.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InboxScan:
    """Result of a look: `refused` are sentences, `seen` is for the next look."""

    waiting: tuple[WaitingFile, ...]
    refused: tuple[str, ...]
    seen: str


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file that is being pushed; `report_draft` is the hidden file that its report is first
    written to.
    """

    path: Path
    digest: str
    stamp: Stamp

    @property
    def report_draft(self) -> Path:
        """The report's first place."""
        return self.path.with_name(f".{self.digest[:16]}{report_suffix(self.path)}")


@dataclass(frozen=True, slots=True)
class ArchivedFiles:
    """Places of a push's files. `file` is None if it was changed or removed
    in the meantime, and then nothing was done to what is there instead.
    """

    place: Place
    file: Path | None
    report: Path


class Inbox:
    """The inbox of the account whose folder this is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / INBOX_FOLDER

    # -- looking ----------------------------------------------------------------------------------

    def scan(self, seen: str | None) -> InboxScan:
        """Find what has settled, in the order in which resources refer to each other.
        `seen` is what the look before this one returned; None, or a text that no look made:
        there was none.

        Changes nothing. Every entry that is not taken is told of, hidden ones apart.
        """
        before, now = _parse_seen(seen), dict[str, list[Any]]()
        waiting: list[WaitingFile] = []
        refused: list[str] = []
        for resource in self._folders(refused):
            try:
                orders = read_instructions(self._folder / resource)
                entries = list(self._files(resource, refused))
            except (ConnectorError, OSError) as error:
                refused.append(describe_refusal(self._folder / resource, error))
                continue
            for name, status in entries:
                key, stamp = f"{resource}/{name}", [*stamp_of(status), status.st_ctime_ns]
                *earlier, digest = before.get(key) or [""]
                if earlier != stamp:
                    # A digest is of what has settled: no one reads a file that still grows.
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

    def _folders(self, refused: list[str]) -> list[str]:
        """The resources that have a folder, in their order."""
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
                check_inside(self._folder / entry.name)
                found.append(entry.name)
            except (OSError, RefusedEntry) as error:
                refused.append(describe_refusal(self._folder / entry.name, error))
        return sorted(found, key=ORDER.index)

    def _files(self, resource: str, refused: list[str]) -> Iterator[tuple[str, os.stat_result]]:
        """The files of a resource that may be read, by name."""
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
                yield entry.name, check_status(entry.name, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except RefusedEntry as why:
                refused.append(describe_refusal(self._folder / resource / entry.name, why))
                if number >= FILES_MAX:
                    return

    # -- taking -----------------------------------------------------------------------------------

    def claim(self, resource: str, name: str, digest: str) -> TakenFile:
        """The file looked at. Raises `Misused`, or `SpreadsheetChanged` if it is gone."""
        if resource not in ORDER:
            raise Misused(
                f"{printable_name(resource)} has no inbox",
                action=f"Use one of: {', '.join(ORDER)}.",
            )
        path = self._folder / resource / name
        try:
            check_name(name)
            check_not_link(self._folder)
            check_inside(self._folder / resource)
            check_status(name, path.lstat())
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
            raise naming(path, error) from error
        if found != digest:
            raise SpreadsheetChanged(f"{path} was replaced by another file")
        return TakenFile(path, digest, stamp)

    def archive(self, taken: TakenFile, place: Place, kind: str, moment: datetime) -> ArchivedFiles:
        """Move the file to `place`, and what is `beside` it as its `kind` (`.report.csv`),
        both under the run's time; a name that is there already gets a number.

        Raises `WarehouseError`, with the file where it was.
        """
        folder = taken.path.parent / place
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            check_not_link(folder)
            stem = f"{taken.path.stem}.{stamped(moment)}"
            file, report = _reserve_names(folder, stem, taken.path.suffix, kind)
            taken.report_draft.replace(report)
            try:
                if stamp_of(taken.path.lstat()) != taken.stamp:
                    raise FileNotFoundError
                taken.path.replace(file)
            except FileNotFoundError:
                file.unlink()
                return ArchivedFiles(place, None, report)
        except RefusedEntry as why:
            raise WarehouseError(f"{folder} {why}", action="Remove it.") from None
        except OSError as error:
            raise naming(folder, error) from error
        return ArchivedFiles(place, file, report)


def _reserve_names(folder: Path, stem: str, suffix: str, kind: str) -> tuple[Path, Path]:
    """Two names in the folder that no one had, and that no one else gets."""
    for number in count(1):
        name = stem if number == 1 else f"{stem}-{number}"
        report, file = folder / f"{name}{kind}", folder / f"{name}{suffix}"
        try:
            create(report).close()
        except FileExistsError:
            continue
        try:
            create(file).close()
        except FileExistsError:
            report.unlink()
            continue
        return file, report
    raise AssertionError  # The count has no end.


def _parse_seen(seen: str | None) -> dict[str, list[Any]]:
    """Parse the state of an earlier scan; empty if the text is not of a scan."""
    try:
        found = json.loads(seen or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, list)}


# -- Delivery --------------------------------------------------------------------------------------
# One file pushed: from anywhere, or from the inbox, and then put away there.


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Result of a push. `put_away` is None for a file that is not of the inbox, and
    for one that stays in it, since its push did not end.
    """

    report: PushReport
    put_away: ArchivedFiles | None = None


async def deliver(
    settings: Settings,
    asked: PushFile,
    manner: PushRunOptions,
    *,
    digest: str | None = None,
    budget: int | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> DeliveryResult:
    """Push one file. With the `digest` that a look found, it is the file of that name
    in the inbox of its resource, and is put away when its report is written, under the time
    `now`.

    A file of the inbox that cannot be pushed at all goes to `rejected/` with the reason; one whose
    push was stopped or failed stays. Raises what `Inbox.take`, `push` and `Inbox.put_away` raise.
    """
    if digest is None:
        (report,) = await push(settings, [asked], manner, budget=budget, watch=watch)
        return DeliveryResult(report)
    inbox, moment = Inbox(settings.folder), now or datetime.now(UTC)
    taken = inbox.claim(asked.resource, asked.path.name, digest)
    asked = replace(asked, path=taken.path)
    manner = replace(manner, reports=True, output=taken.report_draft)
    try:
        (report,) = await push(settings, [asked], manner, budget=budget, watch=watch)
    except ConnectorError as error:
        if _is_caused_by_file(error):
            _write_reason(taken.report_draft, error)
            inbox.archive(taken, "rejected", ".reason.txt", moment)
        raise
    if report.outcome in ("stopped", "failed"):
        taken.report_draft.unlink(missing_ok=True)
        return DeliveryResult(replace(report, file=None))
    return archive_files(inbox, taken, report, moment)


def archive_files(
    inbox: Inbox, taken: TakenFile, report: PushReport, moment: datetime
) -> DeliveryResult:
    """Put a file away whose push has ended and whose report is written."""
    place: Place = "done" if report.exit_status == 0 else "rejected"
    kept = inbox.archive(taken, place, f".report{report_suffix(taken.path)}", moment)
    return DeliveryResult(replace(report, file=kept.report), kept)


def _is_caused_by_file(error: ConnectorError) -> bool:
    """Whether the same file would be refused for ever, before anything is sent."""
    if isinstance(error, SettingsError | SpreadsheetChanged | ReportRefused):
        return False
    # The plain error is the disk's, which may do better the next time.
    return isinstance(error, Misused | SpreadsheetError) and type(error) is not SpreadsheetError


def _write_reason(path: Path, error: ConnectorError) -> None:
    try:
        path.unlink(missing_ok=True)
        with create(path) as file:
            file.write(f"{explain(error)}\n".encode())
    except OSError as failed:
        raise naming(path, failed) from failed

"""Looking into the inbox, taking a file of it, and putting it away."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, get_args

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
from connector.pulls.advice import explain
from connector.pushes.dry_run import Asked
from connector.pushes.inbox_entries import (
    Orders,
    Place,
    RefusedEntry,
    Stamp,
    digest_of,
    fit,
    folded,
    listed,
    orders_of,
    plain,
    real,
    safe,
    shown,
    stamp_of,
    told,
)
from connector.pushes.push import ORDER, Manner, PushReport, Watches, push
from connector.settings.layers import INBOX_FOLDER
from connector.settings.model import Settings
from connector.system.atomic_files import create
from connector.system.log import stamped

FILES_MAX = 1000
"""More files than these, of one folder, wait for a later look."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A settled file: its name in the folder of its resource, and the SHA-256 of what it holds."""

    resource: str
    name: str
    digest: str
    orders: Orders

    @property
    def key(self) -> str:
        """What tells it from every other file, and from others of its name; shows neither."""
        text = f"{self.resource}/{self.name}\n{self.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found. `refused` are sentences; `seen` is what the next look is to be given."""

    waiting: tuple[Waiting, ...]
    refused: tuple[str, ...]
    seen: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A file of the inbox that is being pushed. `beside` is where its report is written first: a
    hidden name, that no look sees.
    """

    path: Path
    digest: str
    stamp: Stamp

    @property
    def beside(self) -> Path:
        """The report's first place."""
        return self.path.with_name(f".{self.digest[:16]}{self.path.suffix}")


@dataclass(frozen=True, slots=True)
class PutAway:
    """Where a push's files are. `file` is None where it was changed or taken away meanwhile, and
    then nothing was done to what is there instead.
    """

    place: Place
    file: Path | None
    report: Path


class Inbox:
    """The inbox of the account whose folder this is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / INBOX_FOLDER

    # -- looking ----------------------------------------------------------------------------------

    def look(self, seen: str | None) -> Look:
        """Find what has settled, in the order in which resources refer to each other. `seen` is
        what the look before this one returned; None, or a text that no look made: there was none.

        Changes nothing. Every entry that is not taken is told of, hidden ones apart.
        """
        before, now = _read(seen), dict[str, list[Any]]()
        waiting: list[Waiting] = []
        refused: list[str] = []
        for resource in self._folders(refused):
            try:
                orders = orders_of(self._folder / resource)
                entries = list(self._files(resource, refused))
            except (ConnectorError, OSError) as error:
                refused.append(told(self._folder / resource, error))
                continue
            for name, status in entries:
                key, stamp = f"{resource}/{name}", [*stamp_of(status), status.st_ctime_ns]
                *earlier, digest = before.get(key) or [""]
                if earlier != stamp:
                    # A digest is of what has settled: nobody reads a file that still grows.
                    now[key] = [*stamp, ""]
                    continue
                try:
                    digest = digest or digest_of(self._folder / resource / name)[0]
                except (OSError, RefusedEntry) as error:
                    refused.append(told(self._folder / resource / name, error))
                    continue
                now[key] = [*stamp, digest]
                waiting.append(Waiting(resource, name, digest, orders))
        return Look(tuple(waiting), tuple(refused), json.dumps(now))

    def _folders(self, refused: list[str]) -> list[str]:
        """The resources that have a folder, in their order."""
        if not os.path.lexists(self._folder):
            refused.append(f"There is no folder {self._folder}: make it, and folders of resources.")
            return []
        try:
            entries = listed(real(self._folder))
        except (OSError, RefusedEntry) as error:
            refused.append(told(self._folder, error))
            return []
        found = []
        for entry in entries:
            try:
                if entry.name not in ORDER:
                    raise RefusedEntry(f"is no folder of a resource: {', '.join(ORDER)}")
                safe(self._folder / entry.name)
                found.append(entry.name)
            except (OSError, RefusedEntry) as error:
                refused.append(told(self._folder / entry.name, error))
        return sorted(found, key=ORDER.index)

    def _files(self, resource: str, refused: list[str]) -> Iterator[tuple[str, os.stat_result]]:
        """The files of a resource that may be read, by name."""
        entries = [
            entry
            for entry in listed(self._folder / resource)
            if entry.name not in get_args(Place) and not entry.name.endswith(".toml")
        ]
        folds = Counter(folded(entry.name) for entry in entries)
        for number, entry in enumerate(entries):
            try:
                if number >= FILES_MAX:
                    raise RefusedEntry(f"and all behind it wait: there are more than {FILES_MAX}")
                if folds[folded(entry.name)] > 1:
                    raise RefusedEntry(
                        "has the name of another file but for its case or its accents"
                    )
                yield entry.name, fit(entry.name, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except RefusedEntry as why:
                refused.append(told(self._folder / resource / entry.name, why))
                if number >= FILES_MAX:
                    return

    # -- taking -----------------------------------------------------------------------------------

    def take(self, resource: str, name: str, digest: str) -> Taken:
        """The file that was looked at. Raises `Misused` for what is no file of the inbox, and
        `SpreadsheetChanged` where it is gone or another one.
        """
        if resource not in ORDER:
            raise Misused(
                f"{shown(resource)} has no inbox", action=f"Name one of: {', '.join(ORDER)}."
            )
        path = self._folder / resource / name
        try:
            plain(name)
            real(self._folder)
            safe(self._folder / resource)
            fit(name, path.lstat())
            found, stamp = digest_of(path)
        except RefusedEntry as why:
            raise Misused(
                f"{INBOX_FOLDER}/{shown(resource)}/{shown(name)} {why}",
                action="Leave the inbox to its sensor, or push the file from another place.",
            ) from None
        except FileNotFoundError:
            raise SpreadsheetChanged(f"{path} is gone") from None
        except OSError as error:
            raise naming(path, error) from error
        if found != digest:
            raise SpreadsheetChanged(f"{path} is not the file that was looked at")
        return Taken(path, digest, stamp)

    def put_away(self, taken: Taken, place: Place, kind: str, moment: datetime) -> PutAway:
        """Move the file to `place`, and what is `beside` it as its `kind` (`.report.csv`), both
        under the run's moment; a name that is there already gets a number.

        Raises `WarehouseError`, with the file where it was.
        """
        folder = taken.path.parent / place
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            real(folder)
            stem = f"{taken.path.stem}.{stamped(moment)}"
            file, report = _reserve(folder, stem, taken.path.suffix, kind)
            taken.beside.replace(report)
            try:
                if stamp_of(taken.path.lstat()) != taken.stamp:
                    raise FileNotFoundError
                taken.path.replace(file)
            except FileNotFoundError:
                file.unlink()
                return PutAway(place, None, report)
        except RefusedEntry as why:
            raise WarehouseError(f"{folder} {why}", action="Move it away.") from None
        except OSError as error:
            raise naming(folder, error) from error
        return PutAway(place, file, report)


def _reserve(folder: Path, stem: str, suffix: str, kind: str) -> tuple[Path, Path]:
    """Two names in the folder that nobody had, and that nobody else gets."""
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


def _read(seen: str | None) -> dict[str, list[Any]]:
    """What an earlier look saw; nothing where the text is none that a look made."""
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
class Delivered:
    """What a push came to. `put_away` is None for a file that is not of the inbox, and for one that
    stays in it, since its push did not end.
    """

    report: PushReport
    put_away: PutAway | None = None


_UNWATCHED = Watches()


async def deliver(
    settings: Settings,
    asked: Asked,
    manner: Manner,
    *,
    digest: str | None = None,
    budget: int | None = None,
    watches: Watches = _UNWATCHED,
    now: datetime | None = None,
) -> Delivered:
    """Push one file. With the `digest` that a look found, it is the file of that name in the inbox
    of its resource, and is put away when its report is written, under the moment `now`.

    A file of the inbox that cannot be pushed at all goes to `rejected/` with the reason; one whose
    push was stopped or failed stays. Raises what `Inbox.take`, `push` and `Inbox.put_away` raise.
    """
    if digest is None:
        (report,) = await push(settings, [asked], manner, budget=budget, watches=watches)
        return Delivered(report)
    inbox, moment = Inbox(settings.folder), now or datetime.now(UTC)
    taken = inbox.take(asked.resource, asked.path.name, digest)
    asked = replace(asked, path=taken.path)
    manner = replace(manner, reports=True, report=taken.beside)
    try:
        (report,) = await push(settings, [asked], manner, budget=budget, watches=watches)
    except ConnectorError as error:
        if _is_of_the_file(error):
            _write_reason(taken.beside, error)
            inbox.put_away(taken, "rejected", ".reason.txt", moment)
        raise
    if report.outcome in ("stopped", "failed"):
        taken.beside.unlink(missing_ok=True)
        return Delivered(replace(report, file=None))
    return put_away(inbox, taken, report, moment)


def put_away(inbox: Inbox, taken: Taken, report: PushReport, moment: datetime) -> Delivered:
    """Put a file away whose push has ended and whose report is written."""
    place: Place = "done" if report.exit_status == 0 else "rejected"
    kept = inbox.put_away(taken, place, f".report{taken.path.suffix}", moment)
    return Delivered(replace(report, file=kept.report), kept)


def _is_of_the_file(error: ConnectorError) -> bool:
    """Whether the same file would be refused for ever; such errors come before anything is sent."""
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

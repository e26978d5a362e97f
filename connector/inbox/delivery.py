"""One file pushed: from anywhere, or from the inbox, and then put away there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from connector.advice import explain
from connector.disk import create
from connector.errors import (
    ConnectorError,
    Misused,
    ReportRefused,
    SettingsError,
    SpreadsheetChanged,
    SpreadsheetError,
)
from connector.errors.files import naming
from connector.inbox.entries import Place
from connector.inbox.inbox import Inbox, PutAway, Taken
from connector.preview import Asked
from connector.push import Manner, PushReport, Watches, push
from connector.settings import Settings


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

"""Everything that can go wrong, grouped by what the caller should do about it.

    ConnectorError
    ├── Misused                  change the command or the settings (exit 2)
    │   ├── SettingsError        a setting is missing, malformed or unsafe
    │   │   └── OtherWorkspace   the data folder has the records of another workspace
    │   ├── UnusableId           an id that no path can contain
    │   └── UnknownName          a resource, field, sort or option that does not exist
    ├── Answered                 an error that the API answered with: Denied, Refused, ServerFailed
    ├── Denied                   ask for access; repeating will not help
    │   ├── Unauthorized         401: the key is missing or not accepted
    │   └── Forbidden            403: the key lacks the scope of this operation
    ├── Refused                  change what was sent; repeating will not help
    │   ├── InvalidRequest       400: the request is malformed
    │   ├── NotFound             404: there is no such record
    │   ├── ValidationFailed     422: fields were refused, with messages by field
    │   └── UnexpectedStatus     a status that the API does not document
    ├── TryAgain                 nothing was applied; the same request may be repeated later
    │   ├── RateLimited          429: the minute's or the month's allowance is spent
    │   ├── Unreachable          no connection could be made
    │   ├── NoAnswer             the answer to a read did not arrive whole and in time
    │   ├── ServerFailed         5xx to a read
    │   ├── LeaseHeld            another run of this account is under way
    │   └── DeletionsWaiting     a pull has yet to read all lists before it believes deletions
    ├── NotTheApi                the answer cannot come from this API: check the address
    │   ├── Redirected           3xx: redirects are never followed
    │   │   └── RedirectedToSlash  to the same address with a slash at its end
    │   ├── UnreadableAnswer     not JSON, or JSON of another shape
    │   ├── AnswerTooLarge       the body passed the cap
    │   └── AnswerBroken         unreadable, from an address that gave readable answers before
    ├── RecordUnreadable         a record could not be read in two pulls in a row
    ├── InDoubt                  a write was sent and its fate is unknown: look before repeating
    ├── Stopped                  a limit was reached; run again to continue (exit 4)
    │   ├── BudgetSpent          the run's own limit of requests
    │   ├── QuotaSpent           the month's allowance
    │   └── LeaseLost            another run has taken over
    ├── DeletionsRefused         a pull has landed all but deletions that it did not believe
    │   ├── ListShrank           the list is suddenly much shorter
    │   ├── ListUnfamiliar       it shows hardly any landed record
    │   └── DetailsGone          it shows what is said to be gone
    ├── WarehouseError           the data folder or a file in it cannot be used
    │   ├── NotAWarehouse        the file is not a DuckDB database, or not one of ours
    │   ├── WorkLost             the work file is gone, and cannot be made of the published one
    │   ├── DamagedLog           the log of the last commits cannot be read back
    │   ├── NotALedger           the file is not a ledger of this version
    │   ├── LedgerDamaged        the ledger cannot be read any more
    │   ├── LedgerLost           the ledger is gone, or an empty one is in its place
    │   ├── FolderMixed          the work file and the ledger belong to different folders
    │   ├── ErasuresUnknown      the list of erased people, its key or a receipt is lost
    │   ├── WarehouseBusy        another process holds the file
    │   ├── NoFileLocks          the file system has no locks
    │   ├── DiskFull             the disk is full
    │   ├── NothingPublished     there is no published file yet
    │   └── MartsMissing         the published file has no marts
    ├── BackupError              a backup cannot be written, or restored here
    │   └── BackupDamaged        the file is no backup, or not as it was written
    ├── RestoredUnpulled         the ledger was replaced and may not know what was pushed
    ├── NotDelivered             an alert did not arrive; it waits and is sent again
    ├── LakehouseError           the lakehouse cannot be used with these settings
    │   ├── LakehouseOffline     its database or the place of its files did not answer
    │   ├── LakehouseBusy        other processes changed it at each attempt
    │   └── LakehouseDiffers     a column has another type there
    ├── PublishingRefused        checks that block have failed; the old file stays
    ├── ModelError               a model, seed, test or audit cannot be used (exit 2)
    │   ├── ModelInvalid         a file is not as models are written
    │   ├── ReferenceUnknown     a ref() or source() names nothing
    │   ├── ModelsCircular       models refer to each other in a ring
    │   ├── ModelTwice           two have the same name
    │   ├── SeedInvalid          a seed cannot be read as it is declared
    │   └── ModelFailed          DuckDB did not build it (exit 1)
    └── SpreadsheetError         a spreadsheet cannot be read or written (exit 2)
        ├── NotASpreadsheet      no such file, or none that can be read
        │   └── PasswordProtected  the workbook opens only with a password
        ├── DamagedSpreadsheet   it cannot be read to its end
        ├── UnsafeWorkbook       it would grow without measure, or reaches out of itself
        ├── EncodingUnknown      the text's encoding is not certain
        ├── DelimiterUnknown     no delimiter, or more than one, fits the rows
        ├── HeadingsRefused      there are no headings, or a report's are out of place
        ├── NoRows               nothing stands below the headings
        ├── SheetUnknown         which sheet is meant is not clear
        ├── SpreadsheetChanged   somebody wrote to the file meanwhile
        └── ReportRefused        a report would not say what happened

Exceptions carry objects, and text is made at the edge: `str(error)` is one sentence on what
happened and where, `error.action` is one on what to do next, `error.code` is stable and
documented. No error ever holds the API key, and none but `EncodingUnknown.samples`, which only the
person with the file is shown, the value of a personal field.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, TypedDict, Unpack


class ConnectorError(Exception):
    """Root of all errors; the `code` is the name in snake case unless given."""

    code: ClassVar[str] = "failed"
    action: str = "Run the command again with --debug, and read the last lines of its log."
    exit_status: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower().removesuffix("_error")

    def __init__(self, message: str, *, action: str | None = None) -> None:
        super().__init__(message)
        if action is not None:
            self.action = action

    def as_json(self) -> dict[str, str]:
        """The error as reports print it with `--json`."""
        return {"code": self.code, "message": str(self), "action": self.action}


def kinds_of(base: type[ConnectorError]) -> Iterator[type[ConnectorError]]:
    """Yield an error class and all its subclasses."""
    yield base
    for each in base.__subclasses__():
        yield from kinds_of(each)


class Misused(ConnectorError):
    """The command or its settings are wrong; repeating the command does not help."""

    action = "Run the command with --help to see its options."
    exit_status = 2


class SettingsError(Misused):
    """A setting is missing, malformed or unsafe; the message says which."""

    action = "Correct this setting, then run 'connector doctor'."


class OtherWorkspace(SettingsError):
    """The data folder has the records of another workspace; nothing was read or written."""

    action = "If base_url is wrong, correct it. If not, set CONNECTOR_DATA_DIR to an empty folder."


class UnusableId(Misused):
    """An id that no path can contain; a value that could lead to another address is refused."""

    action = (
        "Copy the id from the application or from the column 'id' of recruitment.duckdb. Allowed:"
        " letters, digits, hyphens, underscores and single dots, except at the start."
    )


class UnknownName(Misused):
    """An unknown name; the message lists the allowed names and the nearest one."""

    def __init__(self, what: str, received: str, allowed: Iterable[str]) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        hint = _hint(map(repr, get_close_matches(received, self.allowed, n=1)))
        action = f"Use one of: {', '.join(self.allowed)}."
        super().__init__(f"{received!r} is not a {what}.{hint}", action=action)


def _hint(near: Iterable[str]) -> str:
    names = " or ".join(near)
    return f" Did you mean {names}?" if names else ""


# -- Files -----------------------------------------------------------------------------------------
class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    action = "Set CONNECTOR_DATA_DIR to a folder that this user can write to."


class NotAWarehouse(WarehouseError):
    """The file is not a DuckDB database, or one that the connector did not make."""

    action = (
        "Restore a backup with 'connector restore FILE --replace'. Without a backup, move the file "
        "away and pull: the pull recovers the records from recruitment.duckdb or the API."
    )


class WorkLost(WarehouseError):
    """The work file is gone, and the published file cannot give its history back."""

    action = (
        "Restore a backup with 'connector restore FILE --replace'. Without a backup, move "
        "recruitment.duckdb to another folder and pull: the history starts again from today."
    )


class DamagedLog(WarehouseError):
    """The log of the last commits cannot be read back; the file is whole."""

    action = (
        "Run 'connector doctor --repair'. It moves the log to another file, and the next pull "
        "reads the lost records again."
    )


_NEW_LEDGER = (
    "Restore a backup with 'connector restore FILE --replace'. Without a backup, run 'connector"
    " doctor --new-ledger': it keeps the old file and lists the information that is lost."
)


class NotALedger(WarehouseError):
    """The file is no SQLite database, or none that this version can use."""

    action = _NEW_LEDGER


class LedgerDamaged(WarehouseError):
    """The ledger cannot be read any more; loaded records are not affected."""

    action = _NEW_LEDGER


class LedgerLost(WarehouseError):
    """The ledger is gone or empty, and with it the journal of pushes and the month's count."""

    action = _NEW_LEDGER


class FolderMixed(WarehouseError):
    """The work file and the ledger belong to different data folders."""

    action = (
        "Copy the missing file of this account to the folder, or restore a backup with 'connector "
        "restore FILE --replace'. If the right ledger is lost, run 'connector doctor --new-ledger'."
    )


class ErasuresUnknown(WarehouseError):
    """The list of erased people cannot be read, so that nothing is pulled or pushed."""

    action = "Restore the file from a backup, then run the command again."


class WarehouseBusy(WarehouseError):
    """Another process held the file for longer than the deadline."""

    action = "Wait until the other process ends. To query data, open recruitment.duckdb instead."


class NoFileLocks(WarehouseError):
    """The file system has no locks, so that two processes could write at once."""

    action = (
        "Set CONNECTOR_DATA_DIR to a folder on a local disk, or enable locks on the network share"
        " (for NFS: start the lock service, and remove the mount option 'nolock')."
    )


class DiskFull(WarehouseError):
    """The disk is full; committed data stays readable."""

    action = "Free space on this disk, then run the command again. Committed data is not lost."


def naming(path: Path, error: OSError) -> WarehouseError:
    """The error that stands for what the file system refused to do with `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"the disk is full: {path} cannot be written")
    return WarehouseError(f"{path} cannot be used: {error.strerror or error}")


@contextmanager
def naming_file_errors(path: Path) -> Iterator[None]:
    """Raise `naming` of what the file system refuses to do with `path`."""
    try:
        yield
    except OSError as error:
        raise naming(path, error) from error


# -- Models ----------------------------------------------------------------------------------------
class _Position(TypedDict, total=False):
    """Place of an error in the models, as far as it is known."""

    path: Path | None
    line: int | None


class ModelError(ConnectorError):
    """A model, seed, test or audit cannot be used; `path` and `line` say where."""

    action = "Correct this file, then run 'connector models list'."
    exit_status = 2

    def __init__(
        self, message: str, *, action: str | None = None, **place: Unpack[_Position]
    ) -> None:
        self.path, self.line = place.get("path"), place.get("line")
        places = [str(each) for each in (self.path, self.line) if each is not None]
        super().__init__(f"{':'.join(places)}: {message}" if places else message, action=action)


class ModelInvalid(ModelError):
    """A file is not as models are written: its header, braces or declaration."""


class ReferenceUnknown(ModelError):
    """A `ref()` or `source()` names nothing; the message has the nearest names."""

    action = "Use an existing name: 'connector models list' shows them."

    def __init__(
        self, what: str, received: str, allowed: Sequence[str], **place: Unpack[_Position]
    ) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        hint = _hint(get_close_matches(received, self.allowed, n=3))
        super().__init__(f"there is no {what} {received!r}.{hint}", **place)


class ModelsCircular(ModelError):
    """Models refer to each other in a circle; `ring` has their names in order."""

    action = "Remove one of these ref() calls."

    def __init__(self, ring: Sequence[str], *, path: Path | None = None) -> None:
        self.ring = tuple(ring)
        told = " -> ".join((*self.ring, self.ring[0]))
        super().__init__(f"models refer to each other in a circle: {told}", path=path)


class ModelTwice(ModelError):
    """Two files, or two declarations, have the same name."""

    action = "Rename one of them."


class SeedInvalid(ModelError):
    """A seed cannot be read as its columns are declared; no value is shown."""

    action = "Correct this line of the csv file, then run 'connector models build'."


class ModelFailed(ModelError):
    """DuckDB could not build a model or run a check; the earlier tables are unchanged."""

    action = "Correct the SQL at this place, then run 'connector models build'."
    exit_status = 1


# -- Spreadsheet -----------------------------------------------------------------------------------
# What can be wrong with a spreadsheet as a whole. What is wrong with one row is no error: it is
# a problem of that row, and the others go on.


class SpreadsheetError(ConnectorError):
    """A spreadsheet cannot be read or written. Nothing of it was used."""

    action = "Check that the file exists, and that this user can read it and write to its folder."
    exit_status = 2


class NotASpreadsheet(SpreadsheetError):
    """There is no such file, or it is no csv, tsv, txt, xlsx, xls or ods."""

    action = "Save the table as xlsx or as csv in UTF-8, and use that file."


class PasswordProtected(NotASpreadsheet):
    """The workbook opens only with a password."""

    action = "Save the workbook without a password, or save the sheet as csv in UTF-8."


class DamagedSpreadsheet(SpreadsheetError):
    """The file cannot be read to its end; the message says where."""

    action = "Correct the named cell or row, or open the file in its program and save it again."


class UnsafeWorkbook(SpreadsheetError):
    """The workbook is too large when unpacked, or refers to other files."""

    action = "Copy the table as values to a new workbook or csv, and use that file."


class EncodingUnknown(SpreadsheetError):
    """The text's encoding is not certain, or is not the one that was said.

    `offered` is the encoding that would fit, if any, and `samples` has cells as they would then
    read, for the person whose file it is to judge; they are in no message.
    """

    def __init__(
        self, path: Path, reason: str, *, offered: str | None = None, samples: tuple[str, ...] = ()
    ) -> None:
        self.path, self.offered, self.samples = path, offered, samples
        action = "Save the file as csv in UTF-8, or give its encoding with --encoding."
        if offered is not None:
            action = (
                f"If the sample cells are correct, use --encoding {offered}. "
                "Otherwise save the file as csv in UTF-8."
            )
        super().__init__(f"{path}: {reason}", action=action)


class DelimiterUnknown(SpreadsheetError):
    """No delimiter, or more than one, fits the rows of the text."""

    action = "Give the column separator with --delimiter: comma, semicolon, tab or pipe."


class HeadingsRefused(SpreadsheetError):
    """There are no headings, or a report's own columns are not its last."""

    action = "Give each column a different name in the first row, and save the file."


class NoRows(SpreadsheetError):
    """There are headings and no row below them that holds anything."""

    action = "Add rows below the column names, and save the file."


class SheetUnknown(SpreadsheetError):
    """Several sheets of the workbook have rows, or none has the given name.

    `names` are the sheets that may be meant.
    """

    action = "Choose the sheet with --sheet."

    def __init__(
        self, message: str, *, action: str | None = None, names: Iterable[str] = ()
    ) -> None:
        self.names = tuple(names)
        super().__init__(message, action=action)


class SpreadsheetChanged(SpreadsheetError):
    """Somebody wrote to the file while it was being read."""

    action = "Wait until the file is saved, then run the command again."


class ReportRefused(SpreadsheetError):
    """A row of a report has no outcome, or two, by a mistake of ours."""

    action = (
        "Run 'connector resolve' to list rows whose result is unknown, and report this message."
    )
    exit_status = 1


# -- Backups ---------------------------------------------------------------------------------------
class BackupError(ConnectorError):
    """A backup cannot be written, or cannot be restored here."""

    action = (
        "Check that the folder exists, and that this user can write to it. Nothing was changed."
    )


class BackupDamaged(BackupError):
    """The file is no backup, or was cut off, changed or damaged."""

    action = "Use another backup. 'connector restore FILE --check' shows if a backup is complete."


class RestoredUnpulled(ConnectorError):
    """The ledger was replaced and does not know what was pushed: creates could be repeated."""

    action = "Run 'connector pull'. Push again when the resource is verified."


# -- Lakehouse -------------------------------------------------------------------------------------
class LakehouseError(ConnectorError):
    """The lakehouse cannot be used with these settings."""

    action = (
        "Correct the lakehouse settings (docs/LAKEHOUSE.md), then run 'connector lakehouse "
        "publish'. recruitment.duckdb is published anyway."
    )


class LakehouseOffline(LakehouseError):
    """The lakehouse's database, or the place of its files, did not answer."""

    action = (
        "Check the connection to the lakehouse's database and to its files. The next publication, "
        "or 'connector lakehouse publish', brings the lakehouse up to date."
    )


class LakehouseBusy(LakehouseError):
    """Other processes changed the lakehouse at each attempt."""

    action = (
        "Wait until the other processes end, then run 'connector lakehouse publish'. Or wait: the "
        "next publication tries again."
    )


class LakehouseDiffers(LakehouseError):
    """A column has one type in the lakehouse and another in the published file."""

    action = (
        "Publish every account with the same version of the connector and the same models. If the "
        "new type is intended, drop the table in the lakehouse as docs/LAKEHOUSE.md shows, then "
        "run 'connector lakehouse publish --all --force'."
    )


class NotDelivered(ConnectorError):
    """An alert did not arrive; the message says where, and never at which address."""

    code = "alert_not_delivered"
    action = (
        "Check the alert_* settings with 'connector alerts --test'. The next run sends the alert "
        "again."
    )


# -- Words -----------------------------------------------------------------------------------------
def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, as in "1 record"; `plural` if an s does not make it."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def closed(text: str) -> str:
    """Return the text with a full stop at its end, if it does not end a sentence yet."""
    return text if text.endswith((".", "!", "?", ":", "…")) or not text else f"{text}."


# -- Publishing ------------------------------------------------------------------------------------
_NAMED_MAX = 5


class PublishingRefused(ConnectorError):
    """Checks that block have failed, named in `failed`: the old file stays."""

    action = (
        "Correct the rows that the checks report, or the seeds, then run 'connector publish'. "
        "Until then analysts keep the earlier file."
    )

    def __init__(self, failed: Sequence[tuple[str, int | None]]) -> None:
        """`failed` has each check with its rows, None where they are not known."""
        self.failed = tuple(name for name, _ in failed)
        shown = [
            name if rows is None else f"{name} ({count_noun(rows, 'row')})"
            for name, rows in failed[:_NAMED_MAX]
        ]
        more = [f"{len(failed) - _NAMED_MAX} more"] if len(failed) > _NAMED_MAX else []
        checks = count_noun(len(failed), "check has", "checks have")
        super().__init__(f"nothing was published: {checks} failed: {', '.join(shown + more)}")


class NothingPublished(WarehouseError):
    """There is no published file yet."""

    action = "Run 'connector pull', which publishes the file, then run this command again."


class MartsMissing(WarehouseError):
    """The published file has no marts: models are off, or the file goes without them."""

    action = (
        "Set CONNECTOR_MODELS to on and remove marts from CONNECTOR_PUBLISH_WITHOUT, then run "
        "'connector publish'."
    )

"""Everything that can go wrong, grouped by what the caller should do about it.

    ConnectorError
    ├── Misused                  change the command or the settings (exit 2)
    │   ├── SettingsError        a setting is missing, malformed or unsafe
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
    │   ├── UnreadableAnswer     not JSON, or JSON of another shape
    │   └── AnswerTooLarge       the body passed the cap
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
    │   ├── ErasuresUnknown      the list of erased people, its key or a receipt is lost
    │   ├── WarehouseBusy        another process holds the file
    │   ├── DiskFull             there is no room left to write
    │   ├── NothingPublished     there is no published file yet
    │   └── MartsMissing         the published file has no marts
    ├── BackupError              a backup cannot be written, or restored here
    │   └── BackupDamaged        the file is no backup, or not as it was written
    ├── RestoredUnpulled         the ledger came from a backup: pull before pushing
    ├── NotDelivered             an alert did not arrive; it waits and is sent again
    ├── LakehouseError           the lakehouse cannot be used as it is set up
    │   ├── LakehouseOffline     its database or the place of its files did not answer
    │   ├── LakehouseBusy        others have held it for too long
    │   └── LakehouseDiffers     a column has another type there
    ├── PushJournalUnreached     the database in which folders share claims cannot be used
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
        ├── DamagedSpreadsheet   it cannot be read to its end
        ├── UnsafeWorkbook       it would grow without measure, or reaches out of itself
        ├── EncodingUnknown      the text's encoding is not certain
        ├── DelimiterUnknown     no delimiter, or more than one, fits the rows
        ├── HeadingsRefused      a heading is missing, empty or there twice
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
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar


class ConnectorError(Exception):
    """The root: one sentence on what happened, a stable `code`, an `action`, and an
    `exit_status`.
    """

    code: ClassVar[str] = "failed"
    action: str = "Run the command again with --debug and read its last lines."
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, action: str | None = None) -> None:
        super().__init__(message)
        if action is not None:
            self.action = action

    def as_json(self) -> dict[str, str]:
        """The error as reports print it with `--json`."""
        return {"code": self.code, "message": str(self), "action": self.action}


class Misused(ConnectorError):
    """The command or the settings must change before a repeat can succeed."""

    code = "misused"
    action = "Run the command with --help."
    exit_status = 2


class SettingsError(Misused):
    """A setting is missing, malformed or unsafe; the message names it and where it was read."""

    code = "settings"
    action = "Correct the setting that is named, then run 'connector doctor'."


class UnknownName(Misused):
    """A name that is not one of those allowed; the message lists them and the nearest."""

    code = "unknown_name"

    def __init__(self, what: str, received: str, allowed: Iterable[str]) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        near = get_close_matches(received, self.allowed, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(self.allowed)
        super().__init__(
            f"{received!r} is not a {what}.{hint}",
            action=f"Use one of: {listed}.",
        )


# -- Files -----------------------------------------------------------------------------------------
# What can be wrong with the data folder and the files in it.


class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    code = "warehouse"
    action = "Check CONNECTOR_DATA_DIR: it must be a folder that this user may write to."


class NotAWarehouse(WarehouseError):
    """The file is not a DuckDB database, or one that the connector did not make."""

    code = "not_a_warehouse"
    action = "Move the file away, or point CONNECTOR_DATA_DIR at another folder, and pull again."


class WorkLost(WarehouseError):
    """The work file is gone, and the published file beside it cannot give its history back. Nothing
    was made, since the next publication would drop that history.
    """

    code = "work_lost"
    action = (
        "Restore a backup with 'connector restore FILE --replace'. Without one move "
        "recruitment.duckdb to another folder, and pull: history begins anew."
    )


class DamagedLog(WarehouseError):
    """The log beside the file holds its last commits and cannot be read back; the file is whole
    without it.
    """

    code = "damaged_log"
    action = (
        "Run 'connector doctor --repair': it moves the log aside, and the next pull reads again "
        "what was in it."
    )


class NotALedger(WarehouseError):
    """The file is not an SQLite database, or none that this version of the connector can use."""

    code = "not_a_ledger"
    action = "Move the file away, or point CONNECTOR_DATA_DIR at another folder."


class LedgerDamaged(WarehouseError):
    """The ledger cannot be read any more; nothing that landed is harmed."""

    code = "ledger_damaged"
    action = "Put a backup of the file in its place, or move it away: counting then begins anew."


class ErasuresUnknown(WarehouseError):
    """It is not known who was erased: the list, its key or a receipt was lost or cannot be read.
    Nothing is read or sent, since somebody who was erased could come back.
    """

    code = "erasures_unknown"
    action = "Put the file that is named back from a backup, then run the command again."


class WarehouseBusy(WarehouseError):
    """Another process held the file for longer than the deadline."""

    code = "warehouse_busy"
    action = (
        "Wait until the other process has ended; analysts should open recruitment.duckdb instead."
    )


class DiskFull(WarehouseError):
    """There is no room left to write; what was committed before stays readable."""

    code = "disk_full"
    action = "Free some space on that disk and run again; nothing that was committed is lost."


def naming(path: Path, error: OSError) -> WarehouseError:
    """The error that stands for what the file system refused to do with `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"there is no room left to write {path}")
    return WarehouseError(f"{path} cannot be used: {error.strerror or error}")


# -- Models ----------------------------------------------------------------------------------------
# What can be wrong with the models: SQL files, their declarations, and the seeds.


class ModelError(ConnectorError):
    """A model, seed, test or audit cannot be used; `path` and `line` (from 1) say where, as far
    as it is known.
    """

    code = "model"
    action = "Correct the file that is named, then run 'connector models list'."
    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        action: str | None = None,
    ) -> None:
        self.path, self.line, self.column = path, line, column
        places = [str(each) for each in (path, line, column) if each is not None]
        super().__init__(f"{':'.join(places)}: {message}" if places else message, action=action)


class ModelInvalid(ModelError):
    """A file is not as models are written: its header, its braces, or what declares it."""

    code = "model_invalid"


class ReferenceUnknown(ModelError):
    """A `ref()` or `source()` names nothing that there is; the message gives the nearest names."""

    code = "reference_unknown"
    action = "Write one of the names that there are: 'connector models list' shows them."

    def __init__(
        self,
        what: str,
        received: str,
        allowed: Sequence[str],
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        near = get_close_matches(received, self.allowed, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(
            f"there is no {what} {received!r}.{hint}", path=path, line=line, column=column
        )


class ModelsCircular(ModelError):
    """Models are made of each other in a ring; `ring` names all of it, in order."""

    code = "models_circular"
    action = "Take one ref() out of the ring: no model can be built before itself."

    def __init__(self, ring: Sequence[str], *, path: Path | None = None) -> None:
        self.ring = tuple(ring)
        told = " -> ".join((*self.ring, self.ring[0]))
        super().__init__(f"models refer to each other in a ring: {told}", path=path)


class ModelTwice(ModelError):
    """Two files, or two declarations, have the same name."""

    code = "model_twice"
    action = "Rename one of the two: ref() must mean one thing."


class SeedInvalid(ModelError):
    """A seed's table cannot be read as its columns are declared; no value of it is shown."""

    code = "seed_invalid"
    action = "Correct the place that is named in the csv file, and build again."


class ModelFailed(ModelError):
    """DuckDB did not build a model or run a check; what stood before is unchanged."""

    code = "model_failed"
    action = "Correct the SQL at the place that is named, then build again."
    exit_status = 1


# -- Spreadsheet -----------------------------------------------------------------------------------
# What can be wrong with a spreadsheet as a whole. What is wrong with one row is no error: it is
# a problem of that row, and the others go on.


class SpreadsheetError(ConnectorError):
    """A spreadsheet cannot be read or written. Nothing of it was used."""

    code = "spreadsheet"
    action = "Check that the file is there, and that this user may read it and write beside it."
    exit_status = 2


class NotASpreadsheet(SpreadsheetError):
    """There is no such file, or it is none that can be read: not csv, tsv, txt or xlsx."""

    code = "not_a_spreadsheet"
    action = "Save it as xlsx, or as csv in UTF-8, and give that file."


class DamagedSpreadsheet(SpreadsheetError):
    """The file is of the right kind and cannot be read to its end; the message says where."""

    code = "damaged_spreadsheet"
    action = "Correct the place that is named, or save the file again from its program."


class UnsafeWorkbook(SpreadsheetError):
    """The workbook would grow without measure when read, or reaches out of itself."""

    code = "unsafe_workbook"
    action = "Copy the table itself, as values, to a new workbook or a csv, and give that file."


class EncodingUnknown(SpreadsheetError):
    """The text's encoding is not certain, or is not the one that was said.

    `offered` is the encoding that would fit, if any, and `samples` has cells as they would then
    read, for the person whose file it is to judge; they are in no message.
    """

    code = "encoding_unknown"

    def __init__(
        self, path: Path, reason: str, *, offered: str | None = None, samples: tuple[str, ...] = ()
    ) -> None:
        self.path, self.offered, self.samples = path, offered, samples
        action = "Save the file as csv in UTF-8, or name its encoding with --encoding."
        if offered is not None:
            action = (
                f"If the sample cells read right, give --encoding {offered}; "
                "else save the file as csv in UTF-8."
            )
        super().__init__(f"{path}: {reason}", action=action)


class DelimiterUnknown(SpreadsheetError):
    """No delimiter, or more than one, fits the rows of the text."""

    code = "delimiter_unknown"
    action = "Name what stands between the cells with --delimiter: comma, semicolon, tab or pipe."


class HeadingsRefused(SpreadsheetError):
    """The first row has no headings, an empty one, or two that are the same."""

    code = "headings_refused"
    action = "Give each column a heading of its own in the first row, and save the file."


class NoRows(SpreadsheetError):
    """There are headings and no row below them that holds anything."""

    code = "no_rows"
    action = "Put the rows below the headings, and save the file."


class SheetUnknown(SpreadsheetError):
    """The workbook has several sheets with rows in them, or none of the name that was given."""

    code = "sheet_unknown"
    action = "Name the sheet with --sheet."


class SpreadsheetChanged(SpreadsheetError):
    """Somebody wrote to the file while it was being read."""

    code = "spreadsheet_changed"
    action = "Wait until nobody writes to the file, then run the command again."


class ReportRefused(SpreadsheetError):
    """A report would not say what happened: a row without an outcome, or one with two.

    It is a mistake of the program's own; no report is written rather than a wrong one.
    """

    code = "report_refused"
    action = "Run 'connector status' to see what was sent, and report the message."
    exit_status = 1


# -- Backups ---------------------------------------------------------------------------------------
# What can be wrong with a backup, and with what was restored from one.


class BackupError(ConnectorError):
    """A backup cannot be written, or cannot be restored here."""

    code = "backup"
    action = (
        "Check that the folder is there, and that this user may write to it; nothing was changed."
    )


class BackupDamaged(BackupError):
    """The file is no backup, or not as it was written: it was cut off, changed or damaged."""

    code = "backup_damaged"
    action = "Take another backup: 'connector restore FILE --check' says whether one is whole."


class RestoredUnpulled(ConnectorError):
    """The ledger came from a backup, and the resource was not pulled since. What was pushed after
    the backup would not be known again, and be created twice.
    """

    code = "restored_unpulled"
    action = "Run 'connector pull', and push again once the resource is proven."


# -- Lakehouse -------------------------------------------------------------------------------------
# What can go wrong with the shared lakehouse, and with the claims of pushes in its database.


class LakehouseError(ConnectorError):
    """The lakehouse cannot be used as it is set up; analysts have their own file all the same."""

    code = "lakehouse"
    action = (
        "Correct what is named (docs/LAKEHOUSE.md), then run 'connector lakehouse publish'; "
        "recruitment.duckdb is published all the same."
    )


class LakehouseOffline(LakehouseError):
    """The lakehouse's database, or the place of its files, did not answer."""

    code = "lakehouse_offline"
    action = (
        "Check that the lakehouse's database and the place of its files can be reached from here; "
        "the next publication, or 'connector lakehouse publish', makes it good."
    )


class LakehouseBusy(LakehouseError):
    """Others have held the lakehouse for longer than the connector waits."""

    code = "lakehouse_busy"
    action = (
        "Wait until the others have ended, then run 'connector lakehouse publish'; the next "
        "publication makes it good as well."
    )


class LakehouseDiffers(LakehouseError):
    """A column has one type in the lakehouse and another in the published file."""

    code = "lakehouse_differs"
    action = (
        "Publish every account with the same version of the connector and the same models; where "
        "the new type is meant, drop the table in the lakehouse as docs/LAKEHOUSE.md shows, then "
        "run 'connector lakehouse publish --all'."
    )


class PushJournalUnreached(ConnectorError):
    """The database in which folders share their claims on creates cannot be used."""

    code = "push_journal"
    action = (
        "Check that the lakehouse's database can be reached from here, then run the same command "
        "again: no create is sent without it."
    )


# -- Alerting --------------------------------------------------------------------------------------
# What can keep an alert from arriving.


class NotDelivered(ConnectorError):
    """An alert did not arrive; the message says where, and never at which address."""

    code = "alert_not_delivered"
    action = (
        "Check the alert_* settings with 'connector alerts --test'; what is due waits, and is sent "
        "again."
    )


# -- Words -----------------------------------------------------------------------------------------
# Numbers with their nouns, the same in every sentence that a person reads.


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun, as in "1 record" and "2,000 records"; `plural` is said where an s
    does not make it.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


# -- Publishing ------------------------------------------------------------------------------------
# What can keep a warehouse from being published.


_NAMED_MAX = 5


class PublishingRefused(ConnectorError):
    """Checks that block have failed: analysts keep the file that they have. `failed` names them."""

    code = "publishing_refused"
    action = (
        "Correct what the checks have found, or the seeds, then run 'connector publish'; analysts "
        "keep the file that they have until then."
    )

    def __init__(self, failed: Sequence[tuple[str, int | None]]) -> None:
        """`failed` has each check with the number of rows that it found, None where that is not
        known any more.
        """
        self.failed = tuple(name for name, _ in failed)
        shown = [
            name if rows is None else f"{name} ({count_noun(rows, 'row')})"
            for name, rows in failed[:_NAMED_MAX]
        ]
        more = [f"{len(failed) - _NAMED_MAX} more"] if len(failed) > _NAMED_MAX else []
        checks = count_noun(len(failed), "check has", "checks have")
        super().__init__(f"nothing was published: {checks} failed: {', '.join(shown + more)}")


class NothingPublished(WarehouseError):
    """There is no published file yet, so that nothing can be read from it."""

    code = "nothing_published"
    action = "Run 'connector pull', which publishes when it is done, then run this again."


class MartsMissing(WarehouseError):
    """The published file has no marts: models are off, or the file goes without them."""

    code = "marts_missing"
    action = (
        "Set CONNECTOR_MODELS to on and take marts out of CONNECTOR_PUBLISH_WITHOUT, then run "
        "'connector publish'."
    )

"""Errors of the connector, grouped by what the caller should do.

    ConnectorError
    ├── Misused                  change the command or the settings (exit 2)
    │   ├── SettingsError        a setting is missing, malformed or unsafe
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
    │   └── LeaseHeld            another run of this account is under way
    ├── NotTheApi                the answer cannot come from this API: check the address
    │   ├── Redirected           3xx: redirects are never followed
    │   ├── UnreadableAnswer     not JSON, or JSON of another shape
    │   ├── AnswerTooLarge       the body passed the cap
    │   └── AnswerBroken         unreadable, from an address that gave readable answers before
    ├── InDoubt                  a write was sent and its result is unknown: check first
    ├── Stopped                  a limit was reached; run again to continue (exit 4)
    │   ├── BudgetSpent          the run's own limit of requests
    │   ├── QuotaSpent           the month's allowance
    │   └── LeaseLost            another run has taken over
    ├── WarehouseError           the data folder or a file in it cannot be used
    │   ├── NotAWarehouse        the file is not a DuckDB database, or not one of ours
    │   ├── DamagedLog           the log of the last commits cannot be read back
    │   ├── LedgerError          the ledger is damaged, lost or of another folder
    │   ├── WarehouseBusy        another process holds the file
    │   ├── NothingPublished     there is no published file yet
    │   └── MartsMissing         the published file has no marts
    ├── BackupError              a backup cannot be written, or restored here
    ├── NotDelivered             an alert did not arrive; it waits and is sent again
    ├── PublishingRefused        checks that block have failed; the old file stays
    ├── ModelError               a model, seed, test or audit cannot be used (exit 2)
    │   ├── ReferenceUnknown     a ref() or source() names nothing
    │   └── ModelFailed          DuckDB did not build it (exit 1)
    └── SpreadsheetError         a spreadsheet cannot be read or written (exit 2)
        ├── DamagedSpreadsheet   it cannot be read to its end
        ├── EncodingUnknown      the text's encoding is not certain
        ├── SheetUnknown         several sheets may be meant
        ├── SpreadsheetChanged   the file was changed while it was being read
        └── ReportRefused        a report would not show every row's outcome (exit 1)

An error is a class if a caller catches it or if it has its own exit status. Other errors are a
`code` of their class.

`str(error)` is one sentence on what happened and where, `error.action` is one sentence on the next
step, and `error.code` is stable and documented. No error contains the API key. Only
`EncodingUnknown.samples`, which the owner of the file sees, contains personal values.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, TypedDict, Unpack

_ACCEPT = "run 'connector pull --accept-deletes'"


class ConnectorError(Exception):
    """Base class of all errors. Subclasses derive `code` from their name unless they set it.

    Args:
        message: What failed, and where.
        code: One of the class's `codes`, which also sets the action.
        action: What the user should do; replaces the action of the code.
    """

    code: str = "failed"
    action: str = "Run the command again with --debug, and read the last lines of its log."
    exit_status: ClassVar[int] = 1
    codes: ClassVar[Mapping[str, str]] = {
        "restored_unpulled": "Run 'connector pull'. Push again when the resource is verified.",
        # A pull that ends as partial has one of these codes and raises nothing.
        "record_unreadable": (
            "Open the record on the platform, correct the named value, and save the record. If"
            " the error stays, send the id and the reason to the platform's support: another pull"
            " does not help. The table sync.queue lists all unread records."
        ),
        "deletions_refused": (
            f"Check on the platform whether they exist. If they were deleted on purpose, {_ACCEPT}."
        ),
        "deletions_held": (
            "Check one of these records on the platform. If they were deleted on purpose,"
            f" {_ACCEPT}. If not, check that CONNECTOR_BASE_URL and CONNECTOR_API_KEY belong to"
            " this account, and the scopes and the user of the key."
        ),
        "record_forbidden": (
            "Ask the platform's support why the key may read the list, but not this record. The"
            " other records are loaded, and the next pull reads it again."
        ),
    }

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower().removesuffix("_error")
        if "codes" not in vars(cls):
            cls.codes = {}

    def __init__(self, message: str, *, code: str | None = None, action: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code, self.action = code, self.codes[code]
        if action is not None:
            self.action = action

    def as_json(self) -> dict[str, str]:
        """Return the object that commands print with `--json`."""
        return {"code": self.code, "message": str(self), "action": self.action}


def codes_of(base: type[ConnectorError]) -> Iterator[tuple[str, type[ConnectorError], str]]:
    """Yield each error code of a class and its subclasses, with its class and its action."""
    yield base.code, base, base.action
    for code, action in base.codes.items():
        yield code, base, action
    for each in base.__subclasses__():
        yield from codes_of(each)


class Misused(ConnectorError):
    """Error in the command or its settings. Running the command again does not help."""

    action = "Run the command with --help to see its options."
    exit_status = 2


class SettingsError(Misused):
    """A setting is missing, malformed or unsafe."""

    action = "Correct the named setting, then run 'connector doctor'."
    codes: ClassVar = {
        "other_workspace": (
            "If base_url is wrong, correct it. If not, set CONNECTOR_DATA_DIR to an empty folder."
        )
    }


class UnusableId(Misused):
    """The id has characters that could change the address of a request, so it is not sent."""

    action = (
        "Copy the id from the platform or from the column 'id' of recruitment.duckdb. An id has"
        " letters, digits, hyphens, underscores and dots. It starts with a letter or digit, and"
        " has no two dots in a row."
    )


class UnknownName(Misused):
    """The name does not exist; the action lists the allowed names."""

    def __init__(self, what: str, received: str, allowed: Iterable[str]) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        hint = _suggestion(map(repr, get_close_matches(received, self.allowed, n=1)))
        action = f"Use one of: {', '.join(self.allowed)}."
        super().__init__(f"{received!r} is not a {what}.{hint}", action=action)


def _suggestion(near: Iterable[str]) -> str:
    """Return " Did you mean …?" with these names; empty without names."""
    names = " or ".join(near)
    return f" Did you mean {names}?" if names else ""


# -- Files -----------------------------------------------------------------------------------------
class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    action = "Set CONNECTOR_DATA_DIR to a folder that this user can write to."
    codes: ClassVar = {
        "work_lost": (
            "Move the account's files to another folder, and restore a backup with 'connector"
            " restore FROM'. Without a backup, pull: the history starts again from today."
        ),
        "no_file_locks": (
            "Set CONNECTOR_DATA_DIR to a folder on a local disk, or enable locks on the network"
            " share (for NFS: start the lock service, and remove the mount option 'nolock')."
        ),
        "disk_full": (
            "Free space on this disk, then run the command again. Committed data is not lost."
        ),
    }


class NotAWarehouse(WarehouseError):
    """The file is not a DuckDB database, or the connector did not create it."""

    action = (
        "Move the account's files to another folder, and restore a backup with 'connector restore"
        " FROM'. Without a backup, move only this file away and pull: the pull recovers the records"
        " from recruitment.duckdb or the API."
    )


class DamagedLog(WarehouseError):
    """DuckDB's log of the last commits cannot be read. The database file itself is not damaged."""

    action = (
        "Move this log to another folder, then run 'connector pull': it reads the lost records"
        " again."
    )


_NEW_LEDGER = (
    "Move the account's files to another folder, and restore a backup with 'connector restore"
    " FROM'. Without a backup, pull into the empty folder: the history starts again. Do not push"
    " earlier files again, because their rows may be created twice."
)


class LedgerError(WarehouseError):
    """The ledger is damaged, lost, or of another folder. Loaded records are not affected."""

    code = "ledger_damaged"
    action = _NEW_LEDGER
    codes: ClassVar = {
        "not_a_ledger": _NEW_LEDGER,
        "ledger_lost": _NEW_LEDGER,
        "folder_mixed": (
            "Copy the file that belongs to this account back to the folder. If it is lost, move"
            " the account's files to another folder, and restore a backup with 'connector restore"
            " FROM'."
        ),
    }


class WarehouseBusy(WarehouseError):
    """Another process held the file for longer than the deadline."""

    action = "Wait until the other process ends. To query data, open recruitment.duckdb instead."


def file_error(path: Path, error: OSError) -> WarehouseError:
    """Return the error for an `OSError` of `path`; a full disk has the code `disk_full`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WarehouseError(f"the disk is full: {path} cannot be written", code="disk_full")
    return WarehouseError(f"{path} cannot be used: {error.strerror or error}")


@contextmanager
def convert_file_errors(path: Path) -> Iterator[None]:
    """Convert an `OSError` in the block to a `WarehouseError` with the path."""
    try:
        yield
    except OSError as error:
        raise file_error(path, error) from error


# -- Models ----------------------------------------------------------------------------------------
class _Position(TypedDict, total=False):
    """File and line of an error in a model, if known."""

    path: Path | None
    line: int | None


class ModelError(ConnectorError):
    """A model, seed, test or audit cannot be used. The message starts with `path` and `line`."""

    code = "model_invalid"
    action = "Correct the named file, then run 'connector models list'."
    exit_status = 2
    codes: ClassVar = {
        "model_twice": "Rename one of the two.",
        "models_circular": "Remove one of the ref() calls between these models.",
        "seed_invalid": "Correct the named line of the csv file, then run 'connector models "
        "build'.",
    }

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        action: str | None = None,
        **place: Unpack[_Position],
    ) -> None:
        self.path, self.line = place.get("path"), place.get("line")
        places = [str(each) for each in (self.path, self.line) if each is not None]
        text = f"{':'.join(places)}: {message}" if places else message
        super().__init__(text, code=code, action=action)


class ReferenceUnknown(ModelError):
    """A `ref()` or `source()` names a table that does not exist."""

    action = "Use an existing name: 'connector models list' shows them."

    def __init__(
        self, what: str, received: str, allowed: Sequence[str], **place: Unpack[_Position]
    ) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        hint = _suggestion(get_close_matches(received, self.allowed, n=3))
        super().__init__(f"there is no {what} {received!r}.{hint}", **place)


class ModelFailed(ModelError):
    """DuckDB could not build a model or run a check; the earlier tables are unchanged."""

    action = "Correct the SQL at the named line, then run 'connector models build'."
    exit_status = 1


# -- Spreadsheet -----------------------------------------------------------------------------------
# What can be wrong with a spreadsheet as a whole. What is wrong with one row is no error: it is
# a problem of that row, and the others go on.


class SpreadsheetError(ConnectorError):
    """A spreadsheet cannot be read or written; no row of it was used."""

    action = "Check that the file exists, and that this user can read it and write to its folder."
    exit_status = 2
    codes: ClassVar = {
        "not_a_spreadsheet": "Save the table as xlsx or as csv in UTF-8, and use that file.",
        "password_protected": (
            "Save the workbook without a password, or save the sheet as csv in UTF-8."
        ),
        "unsafe_workbook": "Copy the table as values to a new workbook or csv, and use that file.",
        "delimiter_unknown": (
            "Give the column separator with --delimiter: comma, semicolon, tab or pipe."
        ),
        "headings_refused": (
            "Give each column a different name in the first row, and save the file."
        ),
        "no_rows": "Add rows below the column names, and save the file.",
    }


class DamagedSpreadsheet(SpreadsheetError):
    """The file ends early or has a damaged part."""

    action = "Open it in a spreadsheet program and save it again as xlsx, then use that file."


class EncodingUnknown(SpreadsheetError):
    """The text has another encoding than the given one, its mark says, or UTF-8."""

    action = "Save the file as csv in UTF-8, or give its encoding with --encoding."


class SheetUnknown(SpreadsheetError):
    """Several sheets of the workbook have rows, or no sheet has the given name.

    `names` are the sheets to choose from.
    """

    action = "Choose the sheet with --sheet."

    def __init__(
        self, message: str, *, action: str | None = None, names: Iterable[str] = ()
    ) -> None:
        self.names = tuple(names)
        super().__init__(message, action=action)


class SpreadsheetChanged(SpreadsheetError):
    """The file was changed while it was being read."""

    action = "Wait until the file is saved, then run the command again."


class ReportRefused(SpreadsheetError):
    """Internal error: a row of a report has no outcome, or several outcomes."""

    action = (
        "Run 'connector resolve' to list rows whose result is unknown, and report this message."
    )
    exit_status = 1


# -- Backups ---------------------------------------------------------------------------------------
class BackupError(ConnectorError):
    """A backup cannot be written, or cannot be restored to this folder."""

    action = (
        "Check that the folder exists, and that this user can write to it. Nothing was changed."
    )
    codes: ClassVar = {
        "backup_damaged": (
            "Use another backup. 'connector restore FILE --check' shows if a backup is complete."
        )
    }


# -- Notifications ---------------------------------------------------------------------------------
class NotDelivered(ConnectorError):
    """A notification could not be sent. The message does not contain the address."""

    code = "not_delivered"
    action = (
        "Check notify_urls and the network. The next 'connector status --notify' sends it again."
    )


# -- Words -----------------------------------------------------------------------------------------
def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun, for example "1 record".

    `plural` is required if it is not the noun with an "s".
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def end_sentence(text: str) -> str:
    """Add a full stop to a text that does not end with punctuation."""
    return text if text.endswith((".", "!", "?", ":", "…")) or not text else f"{text}."


# -- Publishing ------------------------------------------------------------------------------------
_NAMED_MAX = 5


class PublishingRefused(ConnectorError):
    """Blocking checks failed, so the earlier published file stays. `failed` are their names."""

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
    """The published file has no marts, because models are off or the settings exclude marts."""

    action = (
        "Set CONNECTOR_MODELS to on and remove marts from CONNECTOR_PUBLISH_WITHOUT, then run "
        "'connector publish'."
    )

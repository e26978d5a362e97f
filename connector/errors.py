"""Errors of the connector; docs/ERRORS.md lists all codes. No error contains the API key.

An error is a class if a caller catches it or if it has its own exit status. Other errors are a
`code` of their class. `str(error)` says what happened and where, and `error.action` what to do.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

DONE, FAILED, MISUSED, PARTIAL, STOPPED = range(5)
"""Exit statuses of the commands."""

_RESTORE = (
    "With a backup, move the account's folder away and run 'connector restore'. Without a backup, "
)


class ConnectorError(Exception):
    """Base class of all errors. Subclasses derive `code` from their name unless they set it.

    Args:
        message: What failed, and where.
        code: One of the class's `codes`, which also sets the action.
        action: What the user should do; replaces the action of the code.
    """

    code: str = "failed"
    action: str = "Run the command again with --debug, and read the last lines of its log."
    exit_status: ClassVar[int] = FAILED
    codes: ClassVar[Mapping[str, str]] = {
        "restored_unpulled": "Run 'connector pull'. Push again when the resource is verified.",
        # A pull that ends as partial has one of these codes and raises nothing.
        "record_unreadable": (
            "Open the record on the platform, correct the named value, and save the record. The"
            " table sync.queue lists all unread records."
        ),
        "record_forbidden": "Ask the platform's support why the key may not read this record.",
        **dict.fromkeys(
            ("deletions_refused", "deletions_held"),
            "Check one of these records on the platform. If they were deleted on purpose, run"
            " 'connector pull --accept-deletes'. If not, check the address and the key's scopes.",
        ),
        "backup": "Check that the folder exists, and that this user can write to it.",
        "backup_damaged": "Use another backup; 'connector restore FILE --check' tests it.",
        "not_delivered": "Check notify_urls and the network. The next check sends it again.",
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
        self.action = action or self.action

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
    exit_status = MISUSED


class SettingsError(Misused):
    """A setting is missing, malformed or unsafe."""

    action = "Correct the named setting, then run 'connector doctor'."
    codes: ClassVar = {
        "other_workspace": "Correct base_url, or set CONNECTOR_DATA_DIR to an empty folder."
    }


class UnusableId(Misused):
    """The id has characters that could change the address of a request, so it is not sent."""

    action = "Copy the id from the platform or from the column 'id' of recruitment.duckdb."


class UnknownName(Misused):
    """The name does not exist; the action lists the allowed names."""

    def __init__(self, what: str, received: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(allowed)
        near = get_close_matches(received, self.allowed, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        action = f"Use one of: {', '.join(self.allowed)}."
        super().__init__(f"{received!r} is not a {what}.{hint}", action=action)


# -- Answers of the API ----------------------------------------------------------------------------


class Answered(ConnectorError):
    """The API rejected the request or failed (API 7).

    `answer` is, for example, "answered 404"; `reason` also contains the API's message. `scope` is
    the one that the request needs, and `errors` has the API's messages by field (API 7.1).
    """

    def __init__(
        self,
        where: str,
        *,
        status: int,
        api_code: str | None = None,
        api_message: str | None = None,
        scope: str = "",
        served_at: datetime | None = None,
        errors: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.where, self.status, self.answer = where, status, f"answered {status}"
        self.api_code, self.api_message = api_code, api_message
        self.scope, self.served_at, self.errors = scope, served_at, dict(errors or {})
        self.reason = self.answer + (f": {api_message}" if api_message else "")
        super().__init__(f"{where} was {self.reason}")


class Unauthorized(Answered):
    """401: the key is missing or was rejected (API 5.3)."""

    action = "Check CONNECTOR_API_KEY. If in doubt, generate a new key in the platform's settings."


class Forbidden(Answered):
    """403: the key does not have the scope of this operation (API 5.4)."""

    def __init__(self, where: str, **answer: Any) -> None:
        super().__init__(where, **answer)
        self.action = f"Give the key the scope {self.scope!r}, or pull only the other resources."


class Refused(Answered):
    """400 and subclasses: the API rejected the content. Repeating the request does not help."""

    code = "invalid_request"
    action = "Change the request; repeating it gives the same answer."


class NotFound(Refused):
    """404: the API has no such record at the server time `served_at`, if `is_api_error`."""

    action = "Check CONNECTOR_BASE_URL. If other requests succeed, check the id."

    @property
    def is_api_error(self) -> bool:
        """False without the error format of the API: a 404 of a proxy proves nothing."""
        return bool(self.api_message)


class ValidationFailed(Refused):
    """422: the API rejected the fields of `errors`."""

    def __init__(self, where: str, **answer: Any) -> None:
        super().__init__(where, **answer)
        fields = ", ".join(self.errors) or "the API does not say which"
        self.action = f"Correct these fields, and send the record again: {fields}."


class UnexpectedStatus(Refused):
    """The status is not documented by the API."""

    action = "Check CONNECTOR_BASE_URL. If it is correct, the API has changed: report the status."


class TryAgain(ConnectorError):
    """Nothing was changed. The same request can be repeated later."""

    action = "Run the command again later. Loaded records are kept."
    retry_after_seconds: float = 0.0


class RateLimited(TryAgain):
    """429 after all retries, or the wait for the rate limit would be longer than allowed."""

    action = "Another program may use the same API key. Run the command again when it has ended."


class Unreachable(TryAgain):
    """The connection failed, so nothing was sent."""

    action = "Check CONNECTOR_BASE_URL and the network, then run the command again."
    codes: ClassVar = {
        "certificate_expired": (
            "Ask the server's administrator for a new certificate. Also check this machine's clock."
        ),
        "certificate_of_another_host": "Check CONNECTOR_BASE_URL: use the certificate's host.",
        "certificate_untrusted": (
            "Check CONNECTOR_BASE_URL. Set CONNECTOR_CA_FILE for a private certificate authority."
        ),
        "name_not_resolved": "Check the host name in CONNECTOR_BASE_URL, and the name server.",
        "no_tls": "Check the port in CONNECTOR_BASE_URL: https needs a port with TLS.",
        "connection_refused": "Check host and port in CONNECTOR_BASE_URL, and the firewall.",
        "proxy_refused": "Check CONNECTOR_PROXY, and if the proxy permits this host.",
    }


class NoAnswer(TryAgain):
    """The complete response to a read did not arrive before the timeout."""

    def __init__(self, where: str, reason: str) -> None:
        self.answer = f"not answered: {reason}"
        super().__init__(f"{where} was {self.answer}")


class ServerFailed(TryAgain, Answered):
    """5xx for a read: the server failed (API 7)."""


class AccountBusy(TryAgain):
    """Another process uses the account, so this one sent nothing. `holder` is what it does."""

    # No `Stopped`: a loop that repeats at the exit status 4 would not wait for anything.
    action = "Wait until that process ends ('connector status' shows its progress), or stop it."

    def __init__(self, message: str, *, holder: str = "") -> None:
        self.holder = holder
        super().__init__(message)


class NotTheApi(ConnectorError):
    """The response is not from this API, so it is ignored. `reason` is `answer` with details."""

    action = "Check CONNECTOR_BASE_URL: it is the part of the address before '/api/v1'."
    codes: ClassVar = {
        # Redirects are not followed, because the key must not be sent to another address.
        "redirected": (
            "If this is the platform's new address, set CONNECTOR_BASE_URL to it, without '/api/v1'"
            " and what follows."
        ),
        "answer_broken": "Run the command again later, then send the reason to the API's support.",
    }

    def __init__(self, where: str, answer: str, more: str = "", *, code: str | None = None) -> None:
        self.where, self.answer, self.reason = where, answer, answer + more
        super().__init__(f"{where} was {self.reason}", code=code)


class UnreadableAnswer(NotTheApi):
    """The body is not JSON, or does not have the format of the API."""


class AnswerTooLarge(NotTheApi):
    """The body is larger than the limit, and the rest of it was not read."""


class InDoubt(ConnectorError):
    """A write was sent and its result is unknown. The write must not be repeated without a check.

    `answer` describes the response without the API's message; None if no response arrived.
    """

    action = "Check if the record exists with these values before you send it again."

    def __init__(self, where: str, reason: str, answer: str | None = None) -> None:
        self.where, self.reason, self.answer = where, reason, answer
        super().__init__(f"{where} was sent, but its result is unknown: {reason}")


class Stopped(ConnectorError):
    """A limit was reached. Loaded records are kept, and the next run continues."""

    action = "Run the same command again to continue."
    exit_status = STOPPED
    codes: ClassVar = {
        "budget_spent": action,
        "quota_spent": "Run the same command again in the next billing cycle.",
    }


def quota_spent(message: str, resets_at: str | None = None) -> Stopped:
    """Return the error for a used-up month; `resets_at` is the time in ISO 8601, if known."""
    action = f"Run the same command again after {resets_at}. Loaded records are kept."
    return Stopped(message, code="quota_spent", action=action if resets_at else None)


class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    action = "Set CONNECTOR_DATA_DIR to a folder that this user can write to."
    codes: ClassVar = {
        "work_lost": f"{_RESTORE}run 'connector pull --full': the history starts again.",
        "not_a_warehouse": (
            f"{_RESTORE}move only this file away and run 'connector pull --full': the history"
            " starts again."
        ),
        **dict.fromkeys(
            ("state_damaged", "not_a_state", "state_lost"),
            f"{_RESTORE}move it away and run 'connector pull': the history starts again. Do not"
            " push earlier files again, because their rows may be created twice.",
        ),
        "folder_mixed": f"{_RESTORE}copy the file that belongs to this account back to the folder.",
        "damaged_log": "Move this log to another folder, then run 'connector pull'.",
        "no_file_locks": "Set CONNECTOR_DATA_DIR to a folder on a local disk.",
        "out_of_memory": "Give the process more memory, or set CONNECTOR_MODELS=off.",
        "disk_full": "Free space on this disk, then run the command again. No data is lost.",
        "purge_undone": "Run 'connector pull', then 'connector person purge --apply'.",
        "warehouse_busy": "Wait until the other process ends. To query, open recruitment.duckdb.",
        "nothing_published": "Run 'connector pull', then run this command again.",
        "marts_missing": (
            "Publish with CONNECTOR_MODELS on, and without marts in CONNECTOR_PUBLISH_WITHOUT."
        ),
    }


CHOOSE_PATH = "Choose another path, or a folder that this user can write to."
"""Action for a path that the user gave; other paths are in the data folder."""


def file_error(path: Path, error: OSError, action: str | None = None) -> WarehouseError:
    """Return the error for an `OSError` of `path`; a full disk has the code `disk_full`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return WarehouseError(f"the disk is full: {path} cannot be written", code="disk_full")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        action = "Raise the limit of open files, for example with 'ulimit -n 1024'."
    if error.errno == errno.EROFS:
        action = action or "Check the disk and make the file system writable again."
    return WarehouseError(f"{path} cannot be used: {error.strerror or error}", action=action)


@contextmanager
def convert_file_errors(path: Path) -> Iterator[None]:
    """Convert an `OSError` in the block to a `WarehouseError` with the path."""
    try:
        yield
    except OSError as error:
        raise file_error(path, error) from error


class ModelError(ConnectorError):
    """A model, seed, test or audit cannot be used. The message starts with `path` and `line`."""

    code = "model_invalid"
    action = "Correct the named file, then run 'connector models list'."
    exit_status = MISUSED
    codes: ClassVar = {
        "seed_invalid": "Correct the named line of the csv file, then run 'connector publish'."
    }

    def __init__(
        self, message: str, *, path: Path | None = None, line: int | None = None, **options: Any
    ) -> None:
        self.path, self.line = path, line
        place = ":".join(str(each) for each in (path, line) if each is not None)
        super().__init__(f"{place}: {message}" if place else message, **options)


class ModelFailed(ModelError):
    """DuckDB could not build a model or run a check; the earlier tables are unchanged."""

    action = "Correct the SQL at the named line, then run 'connector publish'."
    exit_status = FAILED


class PublishingRefused(ConnectorError):
    """Blocking checks failed, so the earlier published file stays. `failed` are their names."""

    action = (
        "'connector models test' shows the rows. Correct them on the platform, or the seeds, and"
        " pull again."
    )

    def __init__(
        self, failed: Sequence[tuple[str, int | None]], results: Sequence[Any] = ()
    ) -> None:
        """`failed` has each check with its rows, None where they are not known.

        `results` are the results of all checks.
        """
        self.failed, self.results = tuple(name for name, _ in failed), results
        rows = (name if n is None else f"{name} ({count_noun(n, 'row')})" for name, n in failed)
        checks = count_noun(len(failed), "check has", "checks have")
        super().__init__(f"nothing was published: {checks} failed: {', '.join(rows)}")


# -- Spreadsheet -----------------------------------------------------------------------------------


class SpreadsheetError(ConnectorError):
    """A spreadsheet cannot be read or written; no row of it was used."""

    action = "Check that the file exists, and that this user can read it and write to its folder."
    exit_status = MISUSED
    codes: ClassVar = {
        "not_a_spreadsheet": "Save the table as xlsx or as csv in UTF-8, and use that file.",
        "password_protected": "Save the workbook without a password, and use that file.",
        "unsafe_workbook": "Copy the table as values to a new workbook or csv, and use that file.",
        "damaged_spreadsheet": "Open it in a spreadsheet program and save it again.",
        "delimiter_unknown": "Give --delimiter as comma, semicolon, tab or pipe.",
        "encoding_unknown": "Save the file as csv in UTF-8, or give its encoding with --encoding.",
        "headings_refused": "Give each column its own name in the first row, and save the file.",
        "no_rows": "Add rows below the column names, and save the file.",
        "sheet_unknown": "Choose the sheet with --sheet.",
        "spreadsheet_changed": "Wait until the file is saved, then run the command again.",
    }

    def __init__(self, message: str, *, names: Sequence[str] = (), **options: Any) -> None:
        """`names` are the sheets from which the user has to choose one."""
        self.names = tuple(names)
        super().__init__(message, **options)


class ReportRefused(SpreadsheetError):
    """Internal error: a row of a report has no outcome, or several outcomes."""

    action = "Run 'connector resolve' to list unconfirmed rows, and report this message."
    exit_status = FAILED


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun, for example "1 record".

    `plural` is required if it is not the noun with an "s".
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def end_sentence(text: str) -> str:
    """Add a full stop to a text that does not end with punctuation."""
    return text if text.endswith((".", "!", "?", ":", "…")) or not text else f"{text}."

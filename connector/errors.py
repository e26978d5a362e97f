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
    │   └── ServerFailed         5xx to a read
    ├── NotTheApi                the answer cannot come from this API: check the address
    │   ├── Redirected           3xx: redirects are never followed
    │   ├── UnreadableAnswer     not JSON, or JSON of another shape
    │   └── AnswerTooLarge       the body passed the cap
    ├── InDoubt                  a write was sent and its fate is unknown: look before repeating
    ├── Stopped                  a limit was reached; run again to continue (exit 4)
    │   ├── BudgetSpent          the run's own limit of requests
    │   └── QuotaSpent           the month's allowance
    └── WarehouseError           the data folder or a file in it cannot be used
        ├── NotAWarehouse        the file is not a DuckDB database, or not one of ours
        ├── WarehouseBusy        another process holds the file
        └── DiskFull             there is no room left to write

Exceptions carry objects, and text is made at the edge: `str(error)` is one sentence on what
happened and where, `error.action` is one on what to do next, `error.code` is stable and
documented. No error ever holds the API key or the value of a personal field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
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


class Answered(ConnectorError):
    """An error that the API answered with; carries its status and its own words (API 7)."""

    code = "answered"

    def __init__(
        self,
        where: str,
        *,
        status: int,
        api_code: str | None = None,
        api_message: str | None = None,
        action: str | None = None,
    ) -> None:
        self.where, self.status = where, status
        self.api_code, self.api_message = api_code, api_message
        said = f": {api_message}" if api_message else ""
        super().__init__(f"{where} was answered {status}{said}", action=action)


class Denied(Answered):
    """The key does not allow this; repeating will not help."""

    code = "denied"
    action = "Ask the workspace's administrator for access."


class Unauthorized(Denied):
    """401: the key is missing or not accepted (API 5.3)."""

    code = "unauthorized"
    action = (
        "Check CONNECTOR_API_KEY: generate a new key in the application's settings if in doubt."
    )


class Forbidden(Denied):
    """403: the key lacks the scope of this operation (API 5.4)."""

    code = "forbidden"

    def __init__(
        self,
        where: str,
        *,
        status: int,
        scope: str | None = None,
        api_code: str | None = None,
        api_message: str | None = None,
    ) -> None:
        self.scope = scope
        super().__init__(
            where,
            status=status,
            api_code=api_code,
            api_message=api_message,
            action=f"Give the key the scope {scope!r}, or leave this resource out."
            if scope
            else "Give the key the scope that the operation needs.",
        )


class Refused(Answered):
    """The request itself must change before a repeat can succeed."""

    code = "refused"
    action = "Change what is sent; repeating it will give the same answer."


class InvalidRequest(Refused):
    """400: the request's format is invalid (API 7)."""

    code = "invalid_request"


class NotFound(Refused):
    """404. `is_api_error` says whether the body was the API's own error shape, which makes it
    evidence.

    A proxy's page for a wrong address is a 404 as well and proves nothing about a record.
    """

    code = "not_found"

    def __init__(
        self,
        where: str,
        *,
        status: int,
        is_api_error: bool = False,
        api_code: str | None = None,
        api_message: str | None = None,
    ) -> None:
        self.is_api_error = is_api_error
        super().__init__(
            where,
            status=status,
            api_code=api_code,
            api_message=api_message,
            action="Check the id; if every request is answered so, check CONNECTOR_BASE_URL.",
        )


class ValidationFailed(Refused):
    """422: `errors` maps field names to the API's own messages, as received (API 7.1)."""

    code = "validation_failed"

    def __init__(
        self,
        where: str,
        *,
        status: int,
        errors: Mapping[str, tuple[str, ...]],
        api_code: str | None = None,
        api_message: str | None = None,
    ) -> None:
        self.errors = dict(errors)
        fields = ", ".join(self.errors) or "no field was named"
        super().__init__(
            where,
            status=status,
            api_code=api_code,
            api_message=api_message,
            action=f"Correct the fields that the API names ({fields}) and send again.",
        )


class UnexpectedStatus(Refused):
    """A status that the API does not document, with no known meaning."""

    code = "unexpected_status"
    action = "Check CONNECTOR_BASE_URL; if it is right, the API has changed: report the status."


class TryAgain(ConnectorError):
    """Nothing was applied; the same request may be repeated later."""

    code = "try_again"
    action = "Run the command again later; what has landed is kept."


class RateLimited(TryAgain):
    """429 after the bounded retries; `reset_in_seconds` is the server's own figure where it gave
    one.
    """

    code = "rate_limited"

    def __init__(self, where: str, *, reset_in_seconds: float | None) -> None:
        self.where, self.reset_in_seconds = where, reset_in_seconds
        when = "" if reset_in_seconds is None else f"; the limit resets in {reset_in_seconds:.0f} s"
        super().__init__(f"{where} was answered 429: the rate limit is exceeded{when}")


class Unreachable(TryAgain):
    """No connection could be made, so nothing was sent."""

    code = "unreachable"
    action = "Check CONNECTOR_BASE_URL and the network, then run again."


class NoAnswer(TryAgain):
    """The answer to a read did not arrive whole within its deadline; a read changes nothing."""

    code = "no_answer"


class ServerFailed(TryAgain, Answered):
    """5xx to a read: the server failed and may recover (API 7)."""

    code = "server_failed"


class NotTheApi(ConnectorError):
    """The answer cannot come from this API; nothing in it is believed."""

    code = "not_the_api"
    action = (
        "Check CONNECTOR_BASE_URL: it is the address before '/api/v1', without a path of a page."
    )


class Redirected(NotTheApi):
    """3xx: redirects are never followed, so the key never leaves the address it was meant for."""

    code = "redirected"

    def __init__(self, where: str, *, status: int, target: str) -> None:
        self.target = target
        super().__init__(
            f"{where} was answered {status} with a redirect to {target}, which is not followed",
            action="If the target is the right address, put it in CONNECTOR_BASE_URL.",
        )


class UnreadableAnswer(NotTheApi):
    """The body is not JSON, or JSON of another shape than the API's."""

    code = "unreadable_answer"


class AnswerTooLarge(NotTheApi):
    """The body passed the cap in bytes and was not read further."""

    code = "answer_too_large"


class InDoubt(ConnectorError):
    """A write was sent and its fate is unknown; it is never repeated blindly."""

    code = "in_doubt"
    action = "Look whether the record exists as sent before sending it again."

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where} was sent and its fate is unknown: {reason}")


class Stopped(ConnectorError):
    """A limit was reached; everything so far is kept and the next run continues."""

    code = "stopped"
    action = "Run the same command again to continue."
    exit_status = 4


class BudgetSpent(Stopped):
    """The run's own limit of requests is spent."""

    code = "budget_spent"


class QuotaSpent(Stopped):
    """The month's allowance is spent; `resets_at` is an ISO date and time where it is known."""

    code = "quota_spent"

    def __init__(self, message: str, *, resets_at: str | None = None) -> None:
        self.resets_at = resets_at
        when = f" after {resets_at}" if resets_at else " in the next billing cycle"
        super().__init__(
            message, action=f"Run the same command again{when}; everything landed is kept."
        )


class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    code = "warehouse"
    action = "Check CONNECTOR_DATA_DIR: it must be a folder that this user may write to."


class NotAWarehouse(WarehouseError):
    """The file is not a DuckDB database, or one that the connector did not make."""

    code = "not_a_warehouse"
    action = "Move the file away, or point CONNECTOR_DATA_DIR at another folder, and pull again."


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

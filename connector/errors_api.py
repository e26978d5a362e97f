"""Errors of requests: the API rejects a request, or does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Required, TypedDict, Unpack

from connector.errors import ConnectorError


class _Said(TypedDict, total=False):
    """The status of an answer, and the API's own words where it gave any."""

    status: Required[int]
    api_code: str | None
    api_message: str | None


class Answered(ConnectorError):
    """An error that the API answered with: its status and its own words (API 7).

    `answer` is the answer without the API's words, and `reason` with them.
    """

    def __init__(self, where: str, *, action: str | None = None, **said: Unpack[_Said]) -> None:
        self.where, self.status = where, said["status"]
        self.api_code, self.api_message = said.get("api_code"), said.get("api_message")
        self.answer = f"answered {self.status}"
        self.reason = self.answer + (f": {self.api_message}" if self.api_message else "")
        super().__init__(f"{where} was {self.reason}", action=action)


class Denied(Answered):
    """The key does not allow this; repeating will not help."""

    action = "Ask the administrator of the workspace for access."


class Unauthorized(Denied):
    """401: the key is missing or not accepted (API 5.3)."""

    action = "Check CONNECTOR_API_KEY. If in doubt, generate a new key in the platform's settings."


class Forbidden(Denied):
    """403: the key lacks the scope of this operation (API 5.4)."""

    action = "Give the API key the scope that this operation requires."

    def __init__(self, where: str, *, scope: str | None = None, **said: Unpack[_Said]) -> None:
        self.scope = scope
        named = f"Give the key the scope {scope!r}, or exclude this resource."
        super().__init__(where, action=named if scope else None, **said)


class Refused(Answered):
    """The request itself must change before a repeat can succeed."""

    action = "Change the request; repeating it gives the same answer."


class InvalidRequest(Refused):
    """400: the request's format is invalid (API 7)."""


class NotFound(Refused):
    """404: the record does not exist at `served_at`, if the body has the API's own error shape.

    A proxy's page for a wrong address is a 404 as well and proves nothing about a record.
    """

    action = "Check the id. If every request fails like this, check CONNECTOR_BASE_URL."

    def __init__(
        self,
        where: str,
        *,
        is_api_error: bool = False,
        served_at: datetime | None = None,
        **said: Unpack[_Said],
    ) -> None:
        self.is_api_error, self.served_at = is_api_error, served_at
        super().__init__(where, **said)


class ValidationFailed(Refused):
    """422: `errors` maps field names to the API's own messages, as received (API 7.1)."""

    def __init__(
        self, where: str, *, errors: Mapping[str, tuple[str, ...]], **said: Unpack[_Said]
    ) -> None:
        self.errors = dict(errors)
        fields = ", ".join(self.errors) or "the API does not say which"
        action = f"Correct these fields, and send the record again: {fields}."
        super().__init__(where, action=action, **said)


class UnexpectedStatus(Refused):
    """A status that the API does not document, with no known meaning."""

    action = "Check CONNECTOR_BASE_URL. If it is correct, the API has changed: report the status."


class TryAgain(ConnectorError):
    """Nothing was applied; the same request may be repeated later."""

    action = "Run the command again later. Loaded records are kept."
    codes: ClassVar = {
        "deletions_waiting": (
            "Run the same command again. It reads every list first, and then marks as deleted each"
            " record that is in no list. If all these records were deleted on purpose, run"
            " 'connector pull --accept-deletes'."
        )
    }
    retry_after_seconds: float | None = None
    """The value of `Retry-After`; None if the answer has none."""


class RateLimited(TryAgain):
    """429 after the bounded retries, or no room within `retry_seconds_max`."""

    def __init__(self, where: str, *, reset_in_seconds: float | None, is_sent: bool = True) -> None:
        self.where, self.reset_in_seconds = where, reset_in_seconds
        when = "" if reset_in_seconds is None else f"; the limit resets in {reset_in_seconds:.0f} s"
        what = "was answered 429: the rate limit is exceeded"
        if not is_sent:
            what = "was not sent, because the wait for the rate limit is too long"
        super().__init__(f"{where} {what}{when}")


class Unreachable(TryAgain):
    """No connection could be made, so nothing was sent."""

    action = "Check CONNECTOR_BASE_URL and the network, then run the command again."


class NoAnswer(TryAgain):
    """The answer to a read did not arrive whole within its deadline."""

    def __init__(self, where: str, reason: str) -> None:
        self.answer = f"not answered: {reason}"
        super().__init__(f"{where} was {self.answer}")


class ServerFailed(TryAgain, Answered):
    """5xx to a read: the server failed and may recover (API 7)."""


class NotTheApi(ConnectorError):
    """The answer cannot come from this API, so it is ignored.

    `answer` is the answer in a few words, for example "answered with JSON that is not an object",
    and `reason` says more where there is more.
    """

    action = "Check CONNECTOR_BASE_URL: it is the part of the address before '/api/v1'."

    def __init__(
        self,
        where: str,
        answer: str,
        more: str = "",
        *,
        code: str | None = None,
        action: str | None = None,
    ) -> None:
        self.where, self.answer, self.reason = where, answer, answer + more
        super().__init__(f"{where} was {self.reason}", code=code, action=action)


class Redirected(NotTheApi):
    """3xx: redirects are never followed, so the key stays with its address."""

    action = "If the target is correct, set CONNECTOR_BASE_URL to its part before '/api/v1'."
    codes: ClassVar = {
        "redirected_to_slash": (
            "Ask the administrator of the web server or proxy to answer paths without a slash at"
            " the end instead of redirecting them. CONNECTOR_BASE_URL is correct."
        )
    }

    def __init__(self, where: str, *, status: int, target: str, code: str | None = None) -> None:
        self.target = target
        more = f" with a redirect to {target}, which is not followed"
        super().__init__(where, f"answered {status}", more, code=code)


class UnreadableAnswer(NotTheApi):
    """The body is not JSON, or JSON of another shape than the API's."""


class AnswerTooLarge(NotTheApi):
    """The body passed the cap in bytes and was not read further."""


class AnswerBroken(NotTheApi):
    """The answer cannot be read, although this address has given readable answers before."""

    action = (
        "Run the command again later: earlier answers of this address were readable. If the error"
        " does not go away, send the request and the reason to the platform's support."
    )


class InDoubt(ConnectorError):
    """A write was sent and its fate is unknown; it is never repeated blindly.

    `answer` is the answer without the API's own words; None if no answer came.
    """

    action = "Check if the record exists with these values before you send it again."

    def __init__(self, where: str, reason: str, answer: str | None = None) -> None:
        self.where, self.reason, self.answer = where, reason, answer
        super().__init__(f"{where} was sent, but its result is unknown: {reason}")


# -- Limits ----------------------------------------------------------------------------------------
# Limits that end a run, and the turn of another run that lets none begin.


class Stopped(ConnectorError):
    """A limit was reached; everything so far is kept and the next run continues."""

    action = "Run the same command again to continue."
    exit_status = 4


class BudgetSpent(Stopped):
    """The run's own limit of requests is spent."""


class QuotaSpent(Stopped):
    """The month's allowance is spent; `resets_at` is in ISO 8601, if known."""

    def __init__(self, message: str, *, resets_at: str | None = None) -> None:
        self.resets_at = resets_at
        when = f" after {resets_at}" if resets_at else " in the next billing cycle"
        super().__init__(
            message, action=f"Run the same command again{when}. Loaded records are kept."
        )


class LeaseHeld(TryAgain):
    """Another run of this kind is under way; this one sent nothing."""

    # No `Stopped`: a loop that repeats at the exit status 4 would not wait for anything.

    action = "Wait until that run ends ('connector status' shows its progress), or stop it."


class LeaseLost(Stopped):
    """The run was paused for so long that another run has started."""

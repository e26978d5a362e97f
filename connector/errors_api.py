"""Errors of requests: the API rejects a request, or does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Required, TypedDict, Unpack

from connector.errors import ConnectorError


class _ResponseDetails(TypedDict, total=False):
    """Status of a response, and the error code and message in its body."""

    status: Required[int]
    api_code: str | None
    api_message: str | None


class Answered(ConnectorError):
    """The API rejected the request or failed (API 7).

    `answer` is, for example, "answered 404"; `reason` also contains the API's message.
    """

    def __init__(
        self, where: str, *, action: str | None = None, **said: Unpack[_ResponseDetails]
    ) -> None:
        self.where, self.status = where, said["status"]
        self.api_code, self.api_message = said.get("api_code"), said.get("api_message")
        self.answer = f"answered {self.status}"
        self.reason = self.answer + (f": {self.api_message}" if self.api_message else "")
        super().__init__(f"{where} was {self.reason}", action=action)


class Denied(Answered):
    """The key does not allow the request. Repeating the request does not help."""

    action = "Ask the administrator of the workspace for access."


class Unauthorized(Denied):
    """401: the key is missing or was rejected (API 5.3)."""

    action = "Check CONNECTOR_API_KEY. If in doubt, generate a new key in the platform's settings."


class Forbidden(Denied):
    """403: the key does not have the scope of this operation (API 5.4)."""

    action = "Give the API key the scope that this operation requires."

    def __init__(
        self, where: str, *, scope: str | None = None, **said: Unpack[_ResponseDetails]
    ) -> None:
        self.scope = scope
        named = f"Give the key the scope {scope!r}, or exclude this resource."
        super().__init__(where, action=named if scope else None, **said)


class Refused(Answered):
    """The API rejected the content of the request. Repeating the request does not help."""

    action = "Change the request; repeating it gives the same answer."


class InvalidRequest(Refused):
    """400: the request's format is invalid (API 7)."""


class NotFound(Refused):
    """404: the API has no such record at the server time `served_at`, if `is_api_error`.

    Without the error format of the API, the 404 may come from a proxy and proves nothing.
    """

    action = "Check the id. If every request fails like this, check CONNECTOR_BASE_URL."

    def __init__(
        self,
        where: str,
        *,
        is_api_error: bool = False,
        served_at: datetime | None = None,
        **said: Unpack[_ResponseDetails],
    ) -> None:
        self.is_api_error, self.served_at = is_api_error, served_at
        super().__init__(where, **said)


class ValidationFailed(Refused):
    """422: the API rejected fields. `errors` has its messages by field (API 7.1)."""

    def __init__(
        self, where: str, *, errors: Mapping[str, tuple[str, ...]], **said: Unpack[_ResponseDetails]
    ) -> None:
        self.errors = dict(errors)
        fields = ", ".join(self.errors) or "the API does not say which"
        action = f"Correct these fields, and send the record again: {fields}."
        super().__init__(where, action=action, **said)


class UnexpectedStatus(Refused):
    """The status is not documented by the API."""

    action = "Check CONNECTOR_BASE_URL. If it is correct, the API has changed: report the status."


class TryAgain(ConnectorError):
    """Nothing was changed. The same request can be repeated later."""

    action = "Run the command again later. Loaded records are kept."
    retry_after_seconds: float | None = None
    """The value of `Retry-After`; None if the answer has none."""


class RateLimited(TryAgain):
    """429 after all retries, or the wait for the rate limit would be longer than allowed."""

    def __init__(self, where: str, *, reset_in_seconds: float | None, is_sent: bool = True) -> None:
        self.where, self.reset_in_seconds = where, reset_in_seconds
        when = "" if reset_in_seconds is None else f"; the limit resets in {reset_in_seconds:.0f} s"
        what = "was answered 429: the rate limit is exceeded"
        if not is_sent:
            what = "was not sent, because the wait for the rate limit is too long"
        super().__init__(f"{where} {what}{when}")


class Unreachable(TryAgain):
    """The connection failed, so nothing was sent."""

    action = "Check CONNECTOR_BASE_URL and the network, then run the command again."
    codes: ClassVar = {
        "certificate_expired": (
            "Ask the administrator of the server to renew the certificate. Also check this"
            " machine's clock."
        ),
        "certificate_of_another_host": (
            "Check CONNECTOR_BASE_URL: use the host name for which the certificate was issued."
        ),
        "certificate_untrusted": (
            "Check CONNECTOR_BASE_URL. If the server uses a private certificate authority, set"
            " CONNECTOR_CA_FILE to its certificate file."
        ),
        "name_not_resolved": (
            "Check the host name in CONNECTOR_BASE_URL, and the name server of this machine."
        ),
        "connection_refused": (
            "Check the host and the port in CONNECTOR_BASE_URL, and the firewall in between."
        ),
        "proxy_refused": "Check CONNECTOR_PROXY, and if the proxy permits this host.",
    }


class NoAnswer(TryAgain):
    """The complete response to a read did not arrive before the timeout."""

    def __init__(self, where: str, reason: str) -> None:
        self.answer = f"not answered: {reason}"
        super().__init__(f"{where} was {self.answer}")


class ServerFailed(TryAgain, Answered):
    """5xx for a read: the server failed (API 7)."""


class NotTheApi(ConnectorError):
    """The response is not from this API, so it is ignored.

    `answer` describes the response, for example "answered with JSON that is not an object", and
    `reason` adds details.
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
    """3xx: redirects are not followed, because the key must not be sent to another address."""

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
    """The body is not JSON, or does not have the format of the API."""


class AnswerTooLarge(NotTheApi):
    """The body is larger than the limit, and the rest of it was not read."""


class AnswerBroken(NotTheApi):
    """The response cannot be read, but earlier responses of this address could."""

    action = (
        "Run the command again later: earlier answers of this address were readable. If the error"
        " does not go away, send the request and the reason to the platform's support."
    )


class InDoubt(ConnectorError):
    """A write was sent and its result is unknown. The write must not be repeated without a check.

    `answer` describes the response without the API's message; None if no response arrived.
    """

    action = "Check if the record exists with these values before you send it again."

    def __init__(self, where: str, reason: str, answer: str | None = None) -> None:
        self.where, self.reason, self.answer = where, reason, answer
        super().__init__(f"{where} was sent, but its result is unknown: {reason}")


# -- Limits ----------------------------------------------------------------------------------------
# Limits that end a run, and the turn of another run that lets none begin.


class Stopped(ConnectorError):
    """A limit was reached. Loaded records are kept, and the next run continues."""

    action = "Run the same command again to continue."
    exit_status = 4


class BudgetSpent(Stopped):
    """The maximum number of requests of this run was reached."""


class QuotaSpent(Stopped):
    """The monthly quota is used up; `resets_at` is in ISO 8601, if known."""

    def __init__(self, message: str, *, resets_at: str | None = None) -> None:
        self.resets_at = resets_at
        when = f" after {resets_at}" if resets_at else " in the next billing cycle"
        super().__init__(
            message, action=f"Run the same command again{when}. Loaded records are kept."
        )


class LeaseHeld(TryAgain):
    """Another run of this kind is in progress, so this run sent nothing."""

    # No `Stopped`: a loop that repeats at the exit status 4 would not wait for anything.

    action = "Wait until that run ends ('connector status' shows its progress), or stop it."


class LeaseLost(Stopped):
    """Another run took over, because this run was paused for too long."""

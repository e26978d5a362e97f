"""From a status to an error: what an answer other than a success stands for (API 7).

Whether to repeat a request is the caller's to decide; whether a write that failed can have been
applied is decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from connector.errors import (
    Answered,
    ConnectorError,
    Forbidden,
    InDoubt,
    InvalidRequest,
    NotFound,
    RateLimited,
    Redirected,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    ValidationFailed,
)
from connector.wire.answer import Answer, served_at
from connector.wire.body import parse
from connector.wire.request import Request

WORDS_CHARACTERS_MAX = 500
"""As much is kept of one message of the API."""

TARGET_CHARACTERS_MAX = 200
"""As much is shown of a redirect's target."""

OF_NO_FIELD = ""
"""The name under which a 422's messages stand that name no field."""

# Errors are logged, and the API may well quote an address that it refuses.
_EMAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:]+")


def error_of(
    request: Request, answer: Answer, *, reset_in_seconds: float | None = None
) -> ConnectorError:
    """The error that an answer other than a success stands for (API 7).

    For a write, only a 429 and a 4xx in the API's own words, which are JSON (API 7), prove that
    nothing was applied. Any other answer leaves its fate unknown: `InDoubt`.
    """
    if answer.status == 429:
        return RateLimited(request.where, reset_in_seconds=reset_in_seconds)
    said = _said(answer)
    error = _error_of(request, answer, said or {})
    # A time-out says nothing of what came of the request, whoever tells it.
    is_refusal = 400 <= answer.status < 500 and answer.status != 408
    if request.is_read or (is_refusal and said is not None):
        return error
    return in_doubt(request, error)


def in_doubt(request: Request, error: ConnectorError) -> InDoubt:
    """The doubt in which an error leaves a write; the error's own words are the reason."""
    return InDoubt(request.where, str(error).removeprefix(f"{request.where} was "))


def words(value: Any) -> str:
    """A message of the API as text, whatever its form; cut where it is very long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:WORDS_CHARACTERS_MAX]


def _error_of(request: Request, answer: Answer, said: Mapping[str, Any]) -> ConnectorError:
    where, status = request.where, answer.status
    if 300 <= status < 400:
        return Redirected(where, status=status, target=_target(answer))
    code, message = (_text(said.get(name)) for name in ("error", "message"))
    terms = {"api_code": code, "api_message": message or code}
    errors: Mapping[int, Callable[[], Answered]] = {
        400: lambda: InvalidRequest(where, status=status, **terms),
        401: lambda: Unauthorized(where, status=status, **terms),
        403: lambda: Forbidden(where, status=status, scope=request.scope, **terms),
        404: lambda: NotFound(
            where,
            status=status,
            is_api_error=bool(message or code),
            served_at=served_at(answer),
            **terms,
        ),
        422: lambda: ValidationFailed(
            where, status=status, errors=_by_field(said.get("errors")), **terms
        ),
    }
    if status in errors:
        return errors[status]()
    kind = ServerFailed if status >= 500 else UnexpectedStatus
    return kind(where, status=status, **terms)


def _said(answer: Answer) -> dict[str, Any] | None:
    """The JSON object that every error of the API comes with (API 7); None: it is not the API's."""
    try:
        said = parse(answer.body)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _text(value: Any) -> str | None:
    """A summary of the API's, without the email addresses that it may quote."""
    return _EMAIL.sub("(an email)", words(value)) if isinstance(value, str) else None


def _by_field(errors: Any) -> dict[str, tuple[str, ...]]:
    """Messages by field as the API sent them (API 7.1); what is said in another form is kept."""
    by_field = errors if isinstance(errors, dict) else {OF_NO_FIELD: errors}
    return {
        name: tuple(words(each) for each in (said if isinstance(said, list) else [said]))
        for name, said in by_field.items()
        if said not in (None, [])
    }


def _target(answer: Answer) -> str:
    """Where a redirect leads: without a name, a password, a query, and anything beyond."""
    try:
        location = urlsplit(answer.headers.get("location", ""))
    except ValueError:
        return "an address that cannot be read"
    host = location.netloc.rpartition("@")[2]
    shown = location._replace(netloc=host, query="", fragment="").geturl()
    printable = "".join(each if each.isprintable() else "?" for each in shown)
    return printable[:TARGET_CHARACTERS_MAX] or "nowhere"

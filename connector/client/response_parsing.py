"""Parsing of responses: an error (API 7), a list, a record or a write (API 4).

A response with another structure than the API's raises an error. This module decides whether a
failed write may have been applied; the caller decides whether to repeat a request. A successful
write whose response cannot be read raises `InDoubt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

from connector.catalog import declaration
from connector.catalog.resource import PER_PAGE_MAX
from connector.client.answer_fit import create_mismatch, misfit_of_id
from connector.client.messages import Request, Response, parse_count, parse_json, served_at
from connector.errors import ConnectorError
from connector.errors_api import (
    Answered,
    Forbidden,
    InDoubt,
    InvalidRequest,
    NotFound,
    NotTheApi,
    RateLimited,
    Redirected,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    UnreadableAnswer,
    ValidationFailed,
)
from connector.log import escape_control_characters

WORDS_CHARACTERS_MAX = 500
"""Characters that are kept of one message of the API."""

TARGET_CHARACTERS_MAX = 200
"""Characters that are shown of a redirect's target."""

REFUSALS = (400, 401, 403, 404, 422)
"""Statuses with which the API says that it did nothing (API 7), as it does with 429."""

OF_NO_FIELD = ""
"""Key of those messages of a 422 that name no field."""

# Errors are logged, and the API may well quote an address that it refuses.
_EMAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:]+")


def response_error(
    request: Request, answer: Response, *, base_url: str = "", reset_in_seconds: float | None = None
) -> ConnectorError:
    """Return the error for an answer that is not a success (API 7).

    A redirect is compared with `base_url`, the address of the account.

    For a write, only a 429, or a documented refusal with the API's own JSON body (API 7), proves
    that nothing was applied. For any other answer, the error is `InDoubt`.
    """
    if answer.status == 429:
        return RateLimited(request.method_and_path, reset_in_seconds=reset_in_seconds)
    error_body = _api_error_body(answer)
    error = _status_error(request, answer, error_body or {}, base_url)
    if request.is_read or (answer.status in REFUSALS and error_body is not None):
        return error
    return doubt_error(request, error)


def doubt_error(request: Request, error: Answered | NotTheApi) -> InDoubt:
    """Return the error for a write that may or may not have been applied; `error` is the reason."""
    return InDoubt(request.method_and_path, error.reason, error.answer)


def message_text(value: Any) -> str:
    """Return a message of the API, a text or other JSON, as text of at most 500 characters.

    Control characters are made visible, because the text is printed, logged and shown in Dagster.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape_control_characters(text[:WORDS_CHARACTERS_MAX])


def _status_error(
    request: Request, answer: Response, error_body: Mapping[str, Any], base_url: str
) -> Answered | NotTheApi:
    """Return the error for the answer's status and the texts of the API's error body."""
    where, status = request.method_and_path, answer.status
    if 300 <= status < 400:
        target, here = _redirect_target(answer), base_url + request.path
        is_slash = urljoin(here, target) == f"{here}/"
        slash = "redirected_to_slash" if is_slash else None
        return Redirected(where, status=status, target=target, code=slash)
    code, message = (_mask_emails(error_body.get(name)) for name in ("error", "message"))
    texts = {"api_code": code, "api_message": message or code}
    errors: Mapping[int, Callable[[], Answered]] = {
        400: lambda: InvalidRequest(where, status=status, **texts),
        401: lambda: Unauthorized(where, status=status, **texts),
        403: lambda: Forbidden(where, status=status, scope=request.scope, **texts),
        404: lambda: NotFound(
            where,
            status=status,
            is_api_error=bool(message or code),
            served_at=served_at(answer),
            **texts,
        ),
        422: lambda: ValidationFailed(
            where, status=status, errors=_messages_by_field(error_body.get("errors")), **texts
        ),
    }
    if status in errors:
        return errors[status]()
    kind = ServerFailed if status >= 500 else UnexpectedStatus
    return kind(where, status=status, **texts)


def _api_error_body(answer: Response) -> dict[str, Any] | None:
    """Return the JSON object of an error answer (API 7); None if the body is no JSON object."""
    try:
        error_body = parse_json(answer.body)
    except ValueError:
        return None
    return error_body if isinstance(error_body, dict) else None


def _mask_emails(value: Any) -> str | None:
    """Return a text of the API without email addresses; None if the value is no text."""
    return _EMAIL.sub("(an email)", message_text(value)) if isinstance(value, str) else None


def _messages_by_field(errors: Any) -> dict[str, tuple[str, ...]]:
    """Return the messages by field (API 7.1); messages of no field have the key `OF_NO_FIELD`."""
    by_field = errors if isinstance(errors, dict) else {OF_NO_FIELD: errors}
    return {
        message_text(name): tuple(
            message_text(each) for each in (messages if isinstance(messages, list) else [messages])
        )
        for name, messages in by_field.items()
        if messages not in (None, [])
    }


def _redirect_target(answer: Response) -> str:
    """Return the target of a redirect, without user name, password, query and fragment."""
    try:
        location = urlsplit(answer.headers.get("location", ""))
    except ValueError:
        return "an address that cannot be read"
    host = location.netloc.rpartition("@")[2]
    shown = location._replace(netloc=host, query="", fragment="").geturl()
    printable = "".join(each if each.isprintable() else "?" for each in shown)
    return printable[:TARGET_CHARACTERS_MAX] or "nowhere"


# -- Successes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListResponse:
    """Items of a list as received, and its pagination (API 4.1)."""

    items: tuple[dict[str, Any], ...] = field(repr=False)
    page: int
    per_page: int
    total: int
    total_pages: int


def read_list(request: Request, answer: Response) -> ListResponse:
    """Return the items and pagination of a list. Raises the error of a failed answer.

    The API does not document pages after the last (API 4.1). If a server repeats its last page
    there, the result has no items, because they belong to another page.
    """
    document = _parse_success(request, answer, expected=(200,))
    items, pagination = document.get("data"), document.get("pagination")
    if not isinstance(items, list) or not all(_has_id(item) for item in items):
        raise UnreadableAnswer(
            request.method_and_path, "answered without a list of records in 'data'"
        )
    if not isinstance(pagination, dict):
        raise UnreadableAnswer(request.method_and_path, "answered without 'pagination'")
    numbers = {}
    for name in ("page", "per_page", "total", "total_pages"):
        value = parse_count(pagination.get(name))
        if value is None:
            raise UnreadableAnswer(request.method_and_path, f"answered without a readable {name!r}")
        numbers[name] = value
    if len(items) > numbers["per_page"] or numbers["per_page"] > PER_PAGE_MAX:
        raise UnreadableAnswer(
            request.method_and_path,
            f"answered with {len(items)} records and 'per_page' {numbers['per_page']}; the API"
            f" serves at most {PER_PAGE_MAX}",
        )
    requested, page = int(request.query["page"]), numbers["page"]
    if numbers["per_page"] >= 1 and page == requested:
        return ListResponse(tuple(items), **numbers)
    if numbers["per_page"] >= 1 and max(1, numbers["total_pages"]) == page < requested:
        return ListResponse((), **{**numbers, "page": requested})
    raise UnreadableAnswer(
        request.method_and_path,
        f"answered with page {page} of {numbers['total_pages']}, {numbers['per_page']} per page,"
        f" and page {requested} was requested",
    )


def read_record(request: Request, answer: Response) -> dict[str, Any]:
    """Return the record in `data` of a detail. Raises the error of a failed answer.

    Raises `UnreadableAnswer` if the record's id is not the requested one.
    """
    return _extract_record(request, answer, _parse_success(request, answer, expected=(200,)))


def read_written(request: Request, answer: Response) -> tuple[dict[str, Any], str | None]:
    """Return the record and the message of a create, update or convert.

    Raises `InDoubt` for a success that cannot be read or whose record does not fit the request
    (`client/answer_fit.py`), because the write may have happened.
    """
    try:
        document = _parse_success(request, answer, expected=(200, 201))
        return _extract_record(request, answer, document), _extract_message(document)
    except NotTheApi as error:
        raise doubt_error(request, error) from error


def read_deleted(request: Request, answer: Response) -> str | None:
    """Return the message of a delete's answer; None for a 204 (API 4.8).

    Raises `InDoubt` if the body contains another record.
    """
    if answer.status == 204:
        return None
    try:
        document = _parse_success(request, answer, expected=(200,))
        if document.get("data") is not None:
            _extract_record(request, answer, document)
        return _extract_message(document)
    except NotTheApi as error:
        raise doubt_error(request, error) from error


def _parse_success(request: Request, answer: Response, expected: tuple[int, ...]) -> dict[str, Any]:
    """Return the JSON object of an answer with an expected status. Raises the error of other
    answers.
    """
    if answer.status not in expected:
        if 200 <= answer.status < 300:
            raise UnreadableAnswer(
                request.method_and_path,
                f"answered {answer.status}",
                ", a success that the API does not document",
            )
        raise response_error(request, answer)
    try:
        document = parse_json(answer.body)
    except ValueError as error:
        raise UnreadableAnswer(request.method_and_path, f"answered with {error}") from None
    if not isinstance(document, dict):
        raise UnreadableAnswer(request.method_and_path, "answered with JSON that is not an object")
    return document


def _extract_record(request: Request, answer: Response, document: dict[str, Any]) -> dict[str, Any]:
    """Return the record in `data`. Raises `UnreadableAnswer` if it cannot answer the request."""
    record = document.get("data")
    if not isinstance(record, dict) or not _has_id(record):
        raise UnreadableAnswer(request.method_and_path, "answered without a record in 'data'")
    if (reason := _describe_mismatch(request, answer, record)) is not None:
        is_same_word = str(request.record_id).casefold() == record["id"].casefold()
        action = f"Write the id as the API does: {record['id']}" if is_same_word else None
        raise UnreadableAnswer(request.method_and_path, f"answered with {reason}", action=action)
    return record


def _describe_mismatch(request: Request, answer: Response, record: Mapping[str, Any]) -> str | None:
    """Return why the record cannot answer the request; None if it can."""
    if request.record_id is not None:
        return misfit_of_id(request.record_id, record)
    moment = served_at(answer)
    sent_at = None if moment is None else moment - timedelta(seconds=answer.seconds)
    sent = json.loads(request.body or b"{}")
    return create_mismatch(declaration(request.resource), sent, record, sent_at)


def _extract_message(document: dict[str, Any]) -> str | None:
    """Return the text in `message`; None if there is no text."""
    message = document.get("message")
    return message_text(message) if isinstance(message, str) else None


def _has_id(record: Any) -> bool:
    """Return True if the value is an object with a non-empty text in `id`."""
    return isinstance(record, dict) and isinstance(record.get("id"), str) and bool(record["id"])

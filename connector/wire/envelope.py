"""The envelopes of successes (API 4): lists, records, writes and deletes, read strictly.

What is not the API's own shape raises by name. For a write, even an unreadable success has
happened, so it raises `InDoubt`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connector.errors import NotTheApi, UnreadableAnswer
from connector.wire.answer import Answer, whole
from connector.wire.body import parse
from connector.wire.refusal import error_of, in_doubt, words
from connector.wire.request import Request


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """A list's items as received, and its pagination (API 4.1)."""

    items: tuple[dict[str, Any], ...] = field(repr=False)
    page: int
    per_page: int
    total: int
    total_pages: int


def read_list(request: Request, answer: Answer) -> ListAnswer:
    """The items and the pagination of a list's answer. Raises the error that the answer stands
    for.

    Behaviour past the last page is "not shown" (API 4.1); a server that serves its last page once
    more gives an empty page here, since those items are not this page's.
    """
    document = _document(request, answer, expected=(200,))
    items, pagination = document.get("data"), document.get("pagination")
    if not isinstance(items, list) or not all(_has_id(item) for item in items):
        raise UnreadableAnswer(f"{request.where} was answered without a list of records in 'data'")
    if not isinstance(pagination, dict):
        raise UnreadableAnswer(f"{request.where} was answered without 'pagination'")
    numbers = {}
    for name in ("page", "per_page", "total", "total_pages"):
        value = whole(pagination.get(name))
        if value is None:
            raise UnreadableAnswer(f"{request.where} was answered without a readable {name!r}")
        numbers[name] = value
    asked, page = int(request.query["page"]), numbers["page"]
    if numbers["per_page"] >= 1 and page == asked:
        return ListAnswer(tuple(items), **numbers)
    if numbers["per_page"] >= 1 and max(1, numbers["total_pages"]) == page < asked:
        return ListAnswer((), **{**numbers, "page": asked})
    raise UnreadableAnswer(
        f"{request.where} was asked for page {asked} and answered page {page} "
        f"of {numbers['total_pages']} with {numbers['per_page']} per page"
    )


def read_record(request: Request, answer: Answer) -> dict[str, Any]:
    """The record in `data` of a detail's answer. Raises the error that the answer stands for."""
    return _record(request, _document(request, answer, expected=(200,)))


def read_written(request: Request, answer: Answer) -> tuple[dict[str, Any], str | None]:
    """The record and the message of a create's, update's or convert's answer.

    A success that cannot be read did happen all the same: it raises `InDoubt`.
    """
    try:
        document = _document(request, answer, expected=(200, 201))
        return _record(request, document), _message(document)
    except NotTheApi as error:
        raise in_doubt(request, error) from error


def read_deleted(request: Request, answer: Answer) -> str | None:
    """The message of a delete's answer, if it has one: 204 or a body with a message (API 4.8)."""
    if answer.status == 204:
        return None
    try:
        return _message(_document(request, answer, expected=(200,)))
    except NotTheApi as error:
        raise in_doubt(request, error) from error


def _document(request: Request, answer: Answer, expected: tuple[int, ...]) -> dict[str, Any]:
    if answer.status not in expected:
        if 200 <= answer.status < 300:
            raise UnreadableAnswer(
                f"{request.where} was answered {answer.status}, a success "
                "that the API does not document"
            )
        raise error_of(request, answer)
    try:
        document = parse(answer.body)
    except ValueError as error:
        raise UnreadableAnswer(f"{request.where} was answered with {error}") from None
    if not isinstance(document, dict):
        raise UnreadableAnswer(f"{request.where} was answered with JSON that is not an object")
    return document


def _record(request: Request, document: dict[str, Any]) -> dict[str, Any]:
    record = document.get("data")
    if not isinstance(record, dict) or not _has_id(record):
        raise UnreadableAnswer(f"{request.where} was answered without a record in 'data'")
    return record


def _message(document: dict[str, Any]) -> str | None:
    said = document.get("message")
    return words(said) if isinstance(said, str) else None


def _has_id(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("id"), str) and bool(record["id"])

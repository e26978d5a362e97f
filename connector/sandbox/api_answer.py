"""Answers of the store: a success, or a `Rejection` with the API's error body (API 4, 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
"""A JSON object, as a request or an answer carries it."""

CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    422: "validation_error",
    429: "rate_limit_exceeded",
    500: "server_error",
}
"""The `error` of each status; the API shows that of 422 alone (API 7.3)."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """Successful response: its status and its JSON body, which is None for 204."""

    status: int
    body: Body | None

    @property
    def record(self) -> Body:
        """Record in the response. Raises `KeyError` if the response has no `data`."""
        record: Body = (self.body or {})["data"]
        return record

    @property
    def items(self) -> list[Body]:
        """Records of a list. Raises `KeyError` if the response has no `data`."""
        items: list[Body] = (self.body or {})["data"]
        return items

    @property
    def pagination(self) -> dict[str, int]:
        """`pagination` of a list. Raises `KeyError` for other responses."""
        pagination: dict[str, int] = (self.body or {})["pagination"]
        return pagination


class Rejection(Exception):
    """Error of a rejected request: status, message, and for 422 the messages by field."""

    def __init__(
        self, status: int, message: str, errors: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message
        self.errors = None if errors is None else {k: list(v) for k, v in errors.items()}

    def error_body(self) -> Body:
        """Return the JSON body of the error (API 7)."""
        body = {"error": CODES.get(self.status, "error"), "message": self.message}
        if self.errors is not None:
            return {**body, "errors": self.errors}
        return body


def validation_rejection(errors: Mapping[str, Sequence[str]]) -> Rejection:
    """Return the error 422 with these messages by field (API 7.1)."""
    return Rejection(422, "The given data was invalid.", errors)

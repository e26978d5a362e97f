"""Checks of request bodies, and the fields that the server sets by itself.

All rules come from the declared fields (API 2, 4, 7.1). Only the kinds of values are written here
a second time: a mistake that client and sandbox share would not be found.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from connector.catalog import references
from connector.catalog.field import (
    AcceptedWhen,
    AtLeastOneOf,
    Field,
    FieldInput,
    Kind,
    RequiredWhen,
    parse_datetime,
)
from connector.catalog.resource import Declaration
from connector.sandbox.behaviour import Behaviours

Body = dict[str, Any]
"""A JSON object: a request, a response, or a stored record.

A stored record has every field with a value, also write-only and undeclared ones. A name that
begins with an underscore is the sandbox's own and never shown.
"""

Messages = dict[str, list[str]]
Write = Literal["create", "update"]
Check = tuple[Callable[[Any], object], str]
"""Returns a true value for accepted values, and completes the sentence "must be ..."."""

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

_REQUIRED = "is required"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?", re.IGNORECASE)
_CURRENCY = re.compile(r"[A-Z]{3}")
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")


class Rejection(Exception):
    """Error of a rejected request: status, message, for 422 the messages by field, and headers."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Messages | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.errors, self.headers = status, message, errors, headers

    def error_body(self) -> Body:
        """Return the JSON body of the error (API 7)."""
        body = {"error": CODES.get(self.status, "error"), "message": self.message}
        return body if self.errors is None else {**body, "errors": self.errors}


def raise_if_any(errors: Messages) -> None:
    """Raise `Rejection` 422 with these messages by field, if there are any (API 7.1)."""
    if errors:
        raise Rejection(422, "The given data was invalid.", errors)


def format_time(moment: datetime, behaviours: Behaviours) -> str:
    """Format a time in UTC, truncated to the server's precision. Such texts sort as times do."""
    local = moment.astimezone(UTC).replace(tzinfo=None)
    return local.isoformat(timespec=behaviours["timestamp_precision"]) + "Z"


def parse_date(text: str) -> date:
    """Parse a date in the form YYYY-MM-DD. Raises `ValueError` for other ISO forms too."""
    if len(text) != len("2024-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)


def make_slug(title: str) -> str:
    """Return a title as part of an address: lower case, ASCII, with hyphens."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_SLUGS.sub("-", plain).strip("-") or "untitled"


# -- Kinds of values -------------------------------------------------------------------------------


def _parses(parse: Callable[[Any], object]) -> Callable[[Any], bool]:

    def accepts(value: Any) -> bool:
        try:
            parse(value)
        # Time zones raise further errors for names of folders and odd characters.
        except (ValueError, TypeError, OverflowError, KeyError, OSError):
            return False
        return True

    return accepts


def _is_number(value: Any) -> bool:
    """Return True for a JSON number within the range of 64-bit integers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -(2**63) <= value < 2**63


def _is_text_like(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


_TEXT: Check = (lambda value: isinstance(value, str), "a string")
_KINDS: Mapping[Kind, Check] = {
    Kind.STRING: _TEXT,
    Kind.UUID: _TEXT,
    Kind.NUMBER: (_is_number, "a number"),
    Kind.INTEGER: (lambda value: isinstance(value, int) and _is_number(value), "an integer"),
    Kind.BOOL: (lambda value: isinstance(value, bool), "true or false"),
    Kind.DATE: (_parses(parse_date), "a date, as 2024-01-31"),
    Kind.DATETIME: (_parses(parse_datetime), "a date and time, as 2024-01-31T09:30:00Z"),
    Kind.OBJECT: (lambda value: isinstance(value, dict), "an object"),
    Kind.ARRAY: (lambda value: isinstance(value, list), "an array"),
}
_FORMATS: Mapping[str, Check] = {
    Kind.UUID: (_UUID.fullmatch, "a uuid"),
    "email": (_EMAIL.fullmatch, "a valid email address"),
    "url": (_URL.fullmatch, "an address that begins with http:// or https://"),
    "currency": (_CURRENCY.fullmatch, "a currency code of three capital letters"),
    "timezone": (_parses(ZoneInfo), "a time zone, as Europe/London"),
}
_WEB_ADDRESS: Check = (_is_text_like(_URL), "a web address")
_CONTENT: Mapping[str, Check] = {
    "number": _KINDS[Kind.NUMBER],
    "multi_select": (
        lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
        "an array of strings",
    ),
    "date": _KINDS[Kind.DATE],
    "datetime": _KINDS[Kind.DATETIME],
    "boolean": _KINDS[Kind.BOOL],
    "image": _WEB_ADDRESS,
    "file": _WEB_ADDRESS,
    "url": _WEB_ADDRESS,
    "email": (_is_text_like(_EMAIL), "an email address"),
}
"""What each `field_type` accepts, as a form with such a field would send it; others are texts."""


# -- Bodies ----------------------------------------------------------------------------------------


def check_body(
    declaration: Declaration,
    body: Body,
    operation: Write,
    behaviours: Behaviours,
    *,
    exists: Callable[[str, str], bool],
    stored: Body | None = None,
) -> Body:
    """Check a request body; return its values as they are stored.

    Args:
        declaration: Resource of the record.
        body: Body of the request. Fields that the operation does not accept are ignored.
        operation: Create or update.
        behaviours: Behaviours of the server.
        exists: Returns True if the resource of that name has a record with that id.
        stored: Record before an update.

    Raises:
        Rejection: 422 with all messages.
    """
    inputs = {each.name: (each, taken) for each, taken in declaration.body_fields(operation)}
    errors: Messages = {}
    values: Body = {}
    for name, given in body.items():
        if name in inputs:
            values[name], problem = _check_value(*inputs[name], given, behaviours)
            if problem:
                del values[name]
                errors[name] = [problem]
    if operation == "create":
        _check_required(declaration, inputs, values, errors)
    else:
        for rule in declaration.rules:
            if isinstance(rule, AcceptedWhen) and values.get(rule.field) is not None:
                state = values.get(rule.on, (stored or {}).get(rule.on))
                if state not in rule.values:
                    problem = f"is accepted only when {rule.on} is {rule.values[0]}"
                    errors[rule.field] = [problem]
    for name, target in references(declaration).items():
        if values.get(name) is not None and not exists(target, values[name]):
            errors[name] = [f"is no record of {target}"]
    raise_if_any(errors)
    return values


def _check_value(
    declared: Field, taken: FieldInput, given: Any, behaviours: Behaviours
) -> tuple[Any, str | None]:
    """Return the value of a field as it is stored, and a message if it is not valid."""
    if isinstance(given, str):
        if behaviours["whitespace"] == "trimmed":
            given = given.strip()
        if behaviours["empty_strings"] == "null":
            given = given or None
    # A field that create requires cannot be cleared by an update.
    is_needed = declared.create.required or not declared.nullable
    if given is None or (given == "" and is_needed):
        return None, _REQUIRED if is_needed else None
    accepts, expected = _KINDS[declared.kind]
    if not accepts(given):
        return None, f"must be {expected}"
    if declared.kind is Kind.DATE:
        return parse_date(given).isoformat(), None
    if declared.kind is Kind.DATETIME:
        return format_time(parse_datetime(given), behaviours), None
    if choices := taken.values or declared.values:
        return given, None if given in choices else f"must be one of {', '.join(choices)}"
    # An empty text clears a field, whatever its format.
    accepts, expected = _FORMATS.get(declared.format or declared.kind, _KINDS[declared.kind])
    return given, None if given == "" or accepts(given) else f"must be {expected}"


def _check_required(
    declaration: Declaration,
    inputs: Mapping[str, tuple[Field, FieldInput]],
    values: Body,
    errors: Messages,
) -> None:
    """Add a message to `errors` for each missing field that a create requires."""
    needed = [name for name, (_, taken) in inputs.items() if taken.required]
    for rule in declaration.rules:
        if isinstance(rule, RequiredWhen) and values.get(rule.on) in rule.values:
            needed += rule.fields
        if isinstance(rule, AtLeastOneOf) and not any(values.get(n) for n in rule.fields):
            for name in rule.fields:
                problem = f"at least one of {', '.join(rule.fields)} is required"
                errors.setdefault(name, []).append(problem)
    for name in needed:
        if values.get(name) in (None, ""):
            errors.setdefault(name, [_REQUIRED])


def check_content(
    type_fields: Sequence[Body], given: Body, operation: Write, behaviours: Behaviours
) -> Body:
    """Check the values of a content item; return those of the type's fields (API 2.6, 2.7).

    Raises `Rejection` 422 with the messages by `fields.<field_key>`.
    """
    fields = {each["field_key"]: each for each in type_fields}
    values = {key: value for key, value in given.items() if key in fields}
    found = ((key, _content_problem(fields[key], value)) for key, value in values.items())
    errors = {f"fields.{key}": [problem] for key, problem in found if problem}
    replaces = operation == "create" or behaviours["content_update"] == "replaced"
    for key, declared in fields.items():
        is_given = key in given or replaces
        if declared["is_required"] and is_given and given.get(key) in (None, "", []):
            errors[f"fields.{key}"] = [_REQUIRED]
    raise_if_any(errors)
    return values


def _content_problem(declared: Body, value: Any) -> str | None:
    kind = declared["field_type"]
    # A form sends an empty text for a field without a value.
    is_empty = value == "" and kind not in ("number", "boolean", "multi_select")
    if value is None or is_empty:
        return None
    accepts, expected = _CONTENT.get(kind, _TEXT)
    if not accepts(value):
        return f"must be {expected}"
    options: Sequence[str] = ()
    if kind in ("select", "multi_select") and declared["config"]:
        options = json.loads(declared["config"]).get("options", ())
    chosen = value if isinstance(value, list) else [value]
    if options and any(each not in options for each in chosen):
        return f"must be one of {', '.join(options)}"
    return None


# -- Fields that the server sets (API 3) -----------------------------------------------------------


def set_server_fields(
    declaration: Declaration, record: Body, before: Body | None, stamp: str
) -> None:
    """Set the fields that the server decides: state, slug, publication time, meeting.

    `before` is None for a new record. `stamp` is the time of the change.
    """
    for name, value in _server_fields(declaration, record, before or {}, stamp):
        if name in declaration.fields and not record.get(name):
            record[name] = value


def _server_fields(
    declaration: Declaration, record: Body, before: Body, stamp: str
) -> Iterator[tuple[str, str]]:
    """Yield the server's value of each field that it fills, if the record has none."""
    fields, id = declaration.fields, record["id"]
    if not before and "status" in fields and record.get("status") is None:
        yield "status", (fields["status"].create.values or fields["status"].values)[0]
    if "slug" in fields:
        # A job's public address is made once and is its own; an item's is its title.
        suffix = "" if fields["slug"].create.accepted else f"-{id[:8]}"
        yield "slug", make_slug(str(record.get("title") or declaration.singular)) + suffix
    if record.get("status") == "published" != before.get("status"):
        yield "published_at", stamp
    if record.get("meeting_platform") and not record.get("meeting_id"):
        number = f"{int(id.replace('-', ''), 16) % 10**10:010d}"
        yield "meeting_id", number
        yield "meeting_password", id[-6:]
        yield "meeting_join_url", f"https://meet.example.com/j/{number}"

"""Validation of request bodies: accepted, missing and malformed fields.

All rules come from the declared fields (API 2, 4, 7.1). The result is the values to store, or
messages by field. The caller checks whether related records exist.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID
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
from connector.sandbox.api_answer import Body, validation_rejection
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.record_table import (
    StoredRecord,
    format_stored_time,
    parse_date,
    truncate_time,
)

Messages = dict[str, list[str]]
Exists = Callable[[str, str], bool]
"""Whether the resource of that name has a record of that id."""

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?", re.IGNORECASE)
_CURRENCY = re.compile(r"[A-Z]{3}")
_MISSING = "is required"
# A server's columns hold no number that is further from nothing.
_NUMBER_END = 2**63


def check_body(
    declaration: Declaration,
    body: Body,
    operation: Literal["create", "update"],
    behaviours: Behaviours,
    *,
    exists: Exists,
    stored: StoredRecord | None = None,
) -> StoredRecord:
    """Validate a request body; return its values as they are stored.

    `stored` is the record before an update. Raises `Rejection` 422 with all messages.
    """
    terms = {each.name: (each, taken) for each, taken in declaration.body_fields(operation)}
    errors: Messages = {}
    values: StoredRecord = {}
    for name, given in body.items():
        if name not in terms:
            continue
        declared, taken = terms[name]
        value, message = _check_value(declared, taken, given, behaviours)
        if message:
            errors[name] = [message]
        else:
            values[name] = value
    if operation == "create":
        _require_fields(declaration, terms, values, errors)
    else:
        _check_accepted_when(declaration, values, stored or {}, errors)
    for name, target in references(declaration).items():
        if values.get(name) is not None and not exists(target, values[name]):
            errors[name] = [f"is no record of {target}"]
    if errors:
        raise validation_rejection(errors)
    return values


def _check_value(
    declared: Field, taken: FieldInput, given: Any, behaviours: Behaviours
) -> tuple[Any, str | None]:
    """Return the value of a field as it is stored, and a message if it is not valid."""
    given = _normalise_text(given, behaviours)
    # What create requires, update cannot clear.
    is_needed = declared.create.required or not declared.nullable
    if given is None or (is_needed and given == ""):
        return None, _MISSING if is_needed else None
    value, message = _parse_value(declared.kind, given, behaviours)
    # Clearing a field with an empty string is no malformed value of it.
    is_cleared = value == "" and not declared.values
    if message or is_cleared or not isinstance(value, str):
        return value, message
    choices = taken.values or declared.values
    if choices and value not in choices:
        return None, f"must be one of {', '.join(choices)}"
    return value, _format_problem(declared, value)


def _normalise_text(given: Any, behaviours: Behaviours) -> Any:
    """Return the value, trimmed or with an empty text as None if configured."""
    if isinstance(given, str):
        if behaviours.whitespace == "trimmed":
            given = given.strip()
        if behaviours.empty_strings == "null" and not given:
            return None
    return given


def _parse_value(kind: Kind, given: Any, behaviours: Behaviours) -> tuple[Any, str | None]:
    """Return a JSON value as it is stored, or None and a message if it has another type."""
    accepts, expected = _KINDS[kind]
    if not accepts(given):
        return None, f"must be {expected}"
    if kind is Kind.DATE:
        return parse_date(given).isoformat(), None
    if kind is Kind.DATETIME:
        return format_stored_time(truncate_time(parse_datetime(given), behaviours)), None
    return given, None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number(value: Any) -> bool:
    """Return True for a JSON number within the range of 64-bit integers."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and -_NUMBER_END <= value < _NUMBER_END


def _is_web_address(value: Any) -> bool:
    """Return True for a text that starts with http:// or https://, without spaces."""
    return _is_text(value) and _URL.fullmatch(value) is not None


def _is_parsed_by(reader: Callable[[str], object]) -> Callable[[Any], bool]:
    """Return a function that returns True for values that the parser accepts."""

    def accepts(value: Any) -> bool:
        try:
            reader(value)
        except (ValueError, TypeError, OverflowError):
            return False
        return True

    return accepts


_KINDS: Mapping[Kind, tuple[Callable[[Any], bool], str]] = {
    Kind.STRING: (_is_text, "a string"),
    Kind.UUID: (_is_text, "a string"),
    Kind.NUMBER: (_is_number, "a number"),
    Kind.INTEGER: (lambda value: isinstance(value, int) and _is_number(value), "an integer"),
    Kind.BOOL: (lambda value: isinstance(value, bool), "true or false"),
    Kind.DATE: (_is_parsed_by(parse_date), "a date, as 2024-01-31"),
    Kind.DATETIME: (_is_parsed_by(parse_datetime), "a date and time, as 2024-01-31T09:30:00Z"),
    Kind.OBJECT: (lambda value: isinstance(value, dict), "an object"),
    Kind.ARRAY: (lambda value: isinstance(value, list), "an array"),
}
"""Which JSON values a field of a kind takes, and how that is said."""


def _format_problem(declared: Field, value: str) -> str | None:
    """Return a message if the text does not have the format of the field."""
    if declared.format == "email":
        return None if _EMAIL.fullmatch(value) else "must be a valid email address"
    if declared.kind is Kind.UUID and not _is_uuid(value):
        return "must be a uuid"
    accepts, message = _FORMATS.get(declared.format or "", (None, None))
    return message if accepts is not None and not accepts(value) else None


def _is_uuid(value: str) -> bool:
    """Return True for a UUID with hyphens."""
    try:
        return str(UUID(value)) == value.lower()
    except ValueError:
        return False


def _is_timezone(value: str) -> bool:
    try:
        ZoneInfo(value)
    # The library raises other errors for names of folders and odd characters.
    except (KeyError, ValueError, OSError):
        return False
    return True


_FORMATS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "url": (_URL.fullmatch, "must be an address that begins with http:// or https://"),
    "currency": (_CURRENCY.fullmatch, "must be a currency code of three capital letters"),
    "timezone": (_is_timezone, "must be a time zone, as Europe/London"),
}


def _require_fields(
    declaration: Declaration,
    terms: Mapping[str, tuple[Field, FieldInput]],
    values: StoredRecord,
    errors: Messages,
) -> None:
    """Add a message to `errors` for each missing field that a create requires."""
    needed = [name for name, (_, taken) in terms.items() if taken.required]
    for rule in declaration.rules:
        if isinstance(rule, RequiredWhen) and values.get(rule.on) in rule.values:
            needed += rule.fields
        if isinstance(rule, AtLeastOneOf) and not any(values.get(n) for n in rule.fields):
            message = f"at least one of {', '.join(rule.fields)} is required"
            for name in rule.fields:
                errors.setdefault(name, []).append(message)
    for name in needed:
        if values.get(name) in (None, "") and name not in errors:
            errors[name] = [_MISSING]


def _check_accepted_when(
    declaration: Declaration, values: StoredRecord, stored: StoredRecord, errors: Messages
) -> None:
    """Add a message for each field that needs a certain value of another field (API 2.4)."""
    for rule in declaration.rules:
        if not isinstance(rule, AcceptedWhen) or values.get(rule.field) is None:
            continue
        state = values.get(rule.on, stored.get(rule.on))
        if state not in rule.values:
            errors[rule.field] = [f"is accepted only when {rule.on} is {rule.values[0]}"]


# -- What the server fills in by itself (API 3) ----------------------------------------------------


_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")


def set_server_values(
    declaration: Declaration, record: StoredRecord, before: StoredRecord | None, stamp: str
) -> None:
    """Set the fields that the server decides: state, slug, publication time, meeting.

    `before` is None for a new record. `stamp` is the time of the change.
    """
    fields = declaration.fields
    if before is None and "status" in fields and record.get("status") is None:
        record["status"] = initial_status(declaration)
    if "slug" in fields and not record.get("slug"):
        title = str(record.get("title") or declaration.singular)
        # A job's public address is made once and is its own; an item's is its title.
        suffix = "" if fields["slug"].create.accepted else f"-{record['id'][:8]}"
        record["slug"] = make_slug(title) + suffix
    states = [each.get("status") == "published" for each in (before or {}, record)]
    if "published_at" in fields and states == [False, True] and not record.get("published_at"):
        record["published_at"] = stamp
    if "meeting_join_url" in fields:
        _fill_in_meeting(record)


def initial_status(declaration: Declaration) -> str:
    """Return the state of a record that is created without a state."""
    status = declaration.fields["status"]
    return (status.create.values or status.values)[0]


def make_slug(title: str) -> str:
    """Return a title as part of an address: lower case, ASCII, with hyphens."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_SLUGS.sub("-", plain).strip("-") or "untitled"


def _fill_in_meeting(record: StoredRecord) -> None:
    """Set the number, password and address of a meeting that has a platform and no number."""
    if record.get("meeting_platform") and not record.get("meeting_id"):
        number = int(record["id"].replace("-", ""), 16) % 10**10
        record["meeting_id"] = f"{number:010d}"
        record["meeting_password"] = record["id"][-6:]
        record["meeting_join_url"] = f"https://meet.example.com/j/{record['meeting_id']}"


# -- Content ---------------------------------------------------------------------------------------
# The `fields` of a content item against the fields of its content type (API 2.6, 2.7).
#
# Which values each `field_type` takes is not shown; what this module accepts is what a form with
# such a field would send. It reads no store.


def check_content(
    type_fields: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    operation: Literal["create", "update"],
    behaviours: Behaviours,
) -> tuple[dict[str, Any], Messages]:
    """Return the content values to store, and messages by `fields.<field_key>`."""
    by_key = {each["field_key"]: each for each in type_fields}
    values: dict[str, Any] = {}
    errors: Messages = {}
    for key, value in given.items():
        if key not in by_key:
            continue
        if value is not None and (problem := _content_problem(by_key[key], value)):
            errors[f"fields.{key}"] = [problem]
        else:
            values[key] = value
    replaces = operation == "create" or behaviours.content_update == "replaced"
    for key, declared in by_key.items():
        is_given = key in given or replaces
        if declared["is_required"] and is_given and given.get(key) in (None, "", []):
            errors[f"fields.{key}"] = ["is required"]
    return values, errors


def _content_problem(declared: Mapping[str, Any], value: Any) -> str | None:
    """Return a message if the value does not fit the content field; otherwise None."""
    kind = declared["field_type"]
    accepts, expected = _TYPES.get(kind, _KINDS[Kind.STRING])
    # A form sends an empty text for a field without a value.
    if value == "" and kind not in ("number", "boolean", "multi_select"):
        return None
    if not accepts(value):
        return f"must be {expected}"
    options = _content_options(declared)
    chosen = value if isinstance(value, list) else [value]
    if options and any(each not in options for each in chosen):
        return f"must be one of {', '.join(options)}"
    return None


def _content_options(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options of a select field; empty for other fields."""
    if declared["field_type"] not in ("select", "multi_select") or not declared["config"]:
        return ()
    return tuple(json.loads(declared["config"]).get("options", ()))


_TYPES: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "number": (_is_number, "a number"),
    "multi_select": (_is_text_list, "an array of strings"),
    "date": _KINDS[Kind.DATE],
    "datetime": _KINDS[Kind.DATETIME],
    "boolean": _KINDS[Kind.BOOL],
    "image": (_is_web_address, "a web address"),
    "file": (_is_web_address, "a web address"),
    "url": (_is_web_address, "a web address"),
    "email": (lambda value: _is_text(value) and _EMAIL.fullmatch(value), "an email address"),
}
"""What each `field_type` takes, and how that is said; those left out take any string."""

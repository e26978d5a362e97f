"""Request bodies against the declaration: what is accepted, what is missing, what is malformed.

Everything is derived from the declared fields and rules (API 2, 4, 7.1); the answer is either the
values to store or messages by field. This module reads no store: whether a related record exists
is asked of the caller.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from connector.field import AcceptedWhen, AtLeastOneOf, Field, Input, RequiredWhen
from connector.resource import Declaration
from connector.sandbox.answer import Body, invalid
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.moment import keep, read_date, truncate
from connector.sandbox.shelf import Stored, relations
from connector.value import Kind, read_datetime

Messages = dict[str, list[str]]
Exists = Callable[[str, str], bool]
"""Whether the resource of that name has a record of that id."""

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?", re.IGNORECASE)
_CURRENCY = re.compile(r"[A-Z]{3}")
_MISSING = "is required"
_INTEGER_MAX = 2**63 - 1


def check_body(
    declaration: Declaration,
    body: Body,
    operation: Literal["create", "update"],
    behaviours: Behaviours,
    *,
    exists: Exists,
    stored: Stored | None = None,
) -> Stored:
    """The values that the body gives, as they are stored.

    `stored` is the record that an update changes. Raises `Rejection` 422 with every message.
    """
    terms = {each.name: (each, taken) for each, taken in declaration.bodies(operation)}
    errors: Messages = {}
    values: Stored = {}
    for name, given in body.items():
        if name not in terms:
            if behaviours.unknown_fields == "refused":
                errors[name] = [f"is not accepted on {operation}"]
            continue
        declared, taken = terms[name]
        value, message = _check_value(declared, taken, given, operation, behaviours)
        if message:
            errors[name] = [message]
        else:
            values[name] = value
    if operation == "create":
        _check_presence(declaration, terms, values, errors)
    else:
        _check_companions(declaration, values, stored or {}, behaviours, errors)
    if behaviours.references == "checked":
        for name, target in relations(declaration).items():
            if values.get(name) is not None and not exists(target, values[name]):
                errors[name] = [f"is no record of {target}"]
    if errors:
        raise invalid(errors)
    return values


def _check_value(
    declared: Field,
    taken: Input,
    given: Any,
    operation: Literal["create", "update"],
    behaviours: Behaviours,
) -> tuple[Any, str | None]:
    given = _cleaned(given, behaviours)
    # What create requires, update cannot clear.
    is_needed = declared.create.required or not declared.nullable
    if given is None or (is_needed and given == ""):
        return None, _MISSING if is_needed else None
    value, message = _read(declared.kind, given, behaviours)
    # Clearing a field with an empty string is no malformed value of it.
    is_cleared = value == "" and not declared.values
    if message or is_cleared or not isinstance(value, str):
        return value, message
    choices = _choices(declared, taken, operation, behaviours)
    if choices and value not in choices:
        return None, f"must be one of {', '.join(choices)}"
    return value, _too_long(declared, value, behaviours) or _malformed(declared, value, behaviours)


def _cleaned(given: Any, behaviours: Behaviours) -> Any:
    """The value without what the server cuts off a text before it looks at it."""
    if isinstance(given, str):
        if behaviours.whitespace == "trimmed":
            given = given.strip()
        if behaviours.empty_strings == "null" and not given:
            return None
    return given


def _too_long(declared: Field, value: str, behaviours: Behaviours) -> str | None:
    if behaviours.text_length == "unlimited" or not declared.listed:
        return None
    longest = int(behaviours.text_length)
    return f"may not be longer than {longest} characters" if len(value) > longest else None


def _choices(
    declared: Field,
    taken: Input,
    operation: Literal["create", "update"],
    behaviours: Behaviours,
) -> tuple[str, ...]:
    if operation == "update" and behaviours.update_choices == "responses":
        return declared.values
    if operation == "update" and behaviours.update_choices == "create":
        return declared.create.values or taken.values or declared.values
    return taken.values or declared.values


def _read(kind: Kind, given: Any, behaviours: Behaviours) -> tuple[Any, str | None]:
    """The JSON value as it is stored, or why it is not of the kind."""
    match kind:
        case Kind.STRING | Kind.UUID:
            problem = None if isinstance(given, str) else "must be a string"
        case Kind.NUMBER:
            is_number = isinstance(given, int | float) and not isinstance(given, bool)
            # A number that no double holds would be shown as one that JSON does not know.
            is_number = is_number and abs(given) < math.inf and abs(given) <= 1e300
            problem = None if is_number else "must be a number"
        case Kind.INTEGER:
            is_whole = isinstance(given, int) and not isinstance(given, bool)
            is_whole = is_whole and abs(given) <= _INTEGER_MAX
            problem = None if is_whole else "must be an integer"
        case Kind.BOOL:
            problem = None if isinstance(given, bool) else "must be true or false"
        case Kind.DATE:
            return _read_date(given)
        case Kind.DATETIME:
            return _read_datetime(given, behaviours)
        case Kind.VALUES:
            problem = None if isinstance(given, dict) else "must be an object"
        case Kind.PARTS:
            problem = None if isinstance(given, list) else "must be an array"
    return given, problem


def _read_date(given: Any) -> tuple[Any, str | None]:
    try:
        return read_date(given).isoformat(), None
    except (ValueError, TypeError):
        return None, "must be a date, as 2024-01-31"


def _read_datetime(given: Any, behaviours: Behaviours) -> tuple[Any, str | None]:
    try:
        return keep(truncate(read_datetime(given), behaviours)), None
    except (ValueError, TypeError, OverflowError):
        return None, "must be a date and time, as 2024-01-31T09:30:00Z"


def _malformed(declared: Field, value: str, behaviours: Behaviours) -> str | None:
    if declared.format == "email":
        return None if is_email(value) else "must be a valid email address"
    if behaviours.formats == "email_only":
        return None
    if declared.kind is Kind.UUID and not is_uuid(value):
        return "must be a uuid"
    accepts, message = _FORMATS.get(declared.format or "", (None, None))
    return message if accepts is not None and not accepts(value) else None


def is_email(value: str) -> bool:
    """Whether the text has the form of an email address."""
    return _EMAIL.fullmatch(value) is not None


def is_url(value: str) -> bool:
    """Whether the text has the form of a web address."""
    return _URL.fullmatch(value) is not None


def is_uuid(value: str) -> bool:
    """Whether the text has the form of a uuid."""
    try:
        return str(UUID(value)) == value.lower()
    except ValueError:
        return False


def _is_currency(value: str) -> bool:
    return _CURRENCY.fullmatch(value) is not None


def _is_timezone(value: str) -> bool:
    try:
        ZoneInfo(value)
    # The library answers names of folders and odd characters with errors of its own.
    except (KeyError, ValueError, OSError):
        return False
    return True


_FORMATS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "url": (is_url, "must be an address that begins with http:// or https://"),
    "currency": (_is_currency, "must be a currency code of three capital letters"),
    "timezone": (_is_timezone, "must be a time zone, as Europe/London"),
}


def _check_presence(
    declaration: Declaration,
    terms: Mapping[str, tuple[Field, Input]],
    values: Stored,
    errors: Messages,
) -> None:
    """What a create must have: required fields, and those that its rules require."""
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


def _check_companions(
    declaration: Declaration,
    values: Stored,
    stored: Stored,
    behaviours: Behaviours,
    errors: Messages,
) -> None:
    """What an update accepts only together with another value (API 2.4: a reason to cancel)."""
    if behaviours.reason_alone == "accepted":
        return
    for rule in declaration.rules:
        if not isinstance(rule, AcceptedWhen) or values.get(rule.field) is None:
            continue
        state = values.get(rule.on, stored.get(rule.on))
        if state not in rule.values:
            errors[rule.field] = [f"is accepted only when {rule.on} is {rule.values[0]}"]

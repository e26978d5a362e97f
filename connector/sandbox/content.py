"""The `fields` of a content item against the fields of its content type (API 2.6, 2.7).

Which values each `field_type` takes is not shown; what this module accepts is what a form with
such a field would send. It reads no store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from connector.sandbox.behaviour import Behaviours
from connector.sandbox.moment import read_date
from connector.sandbox.validation import Messages, is_email, is_url
from connector.value import read_datetime


def check_content(
    type_fields: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    operation: Literal["create", "update"],
    behaviours: Behaviours,
) -> tuple[dict[str, Any], Messages]:
    """The values to store by `field_key`, and messages by `fields.<field_key>`."""
    by_key = {each["field_key"]: each for each in type_fields}
    values: dict[str, Any] = {}
    errors: Messages = {}
    for key, value in given.items():
        if key not in by_key:
            if behaviours.unknown_fields == "refused":
                errors[f"fields.{key}"] = ["is not a field of this content type"]
            continue
        if value is not None and (problem := _problem(by_key[key], value)):
            errors[f"fields.{key}"] = [problem]
        else:
            values[key] = value
    replaces = operation == "create" or behaviours.content_update == "replaced"
    for key, declared in by_key.items():
        is_given = key in given or replaces
        if declared["is_required"] and is_given and given.get(key) in (None, "", []):
            errors[f"fields.{key}"] = ["is required"]
    return values, errors


def _problem(declared: Mapping[str, Any], value: Any) -> str | None:
    """Why the value is none of the field's type, or None."""
    kind = declared["field_type"]
    accepts, expected = _TYPES.get(kind, _TYPES["text"])
    # An empty text stands for no value in whatever kind of field a form shows.
    if value == "" and kind not in ("number", "boolean", "multi_select"):
        return None
    if not accepts(value):
        return f"must be {expected}"
    options = _options(declared)
    chosen = value if isinstance(value, list) else [value]
    if options and any(each not in options for each in chosen):
        return f"must be one of {', '.join(options)}"
    return None


def _options(declared: Mapping[str, Any]) -> tuple[str, ...]:
    if declared["field_type"] not in ("select", "multi_select") or not declared["config"]:
        return ()
    return tuple(json.loads(declared["config"]).get("options", ()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reads(reader: Callable[[str], object]) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        try:
            reader(value)
        except (ValueError, TypeError):
            return False
        return True

    return accepts


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a string"),
    "textarea": (_is_text, "a string"),
    "rich_text": (_is_text, "a string"),
    "number": (_is_number, "a number"),
    "select": (_is_text, "a string"),
    "multi_select": (_is_texts, "an array of strings"),
    "date": (_reads(read_date), "a date, as 2024-01-31"),
    "datetime": (_reads(read_datetime), "a date and time, as 2024-01-31T09:30:00Z"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "image": (lambda value: _is_text(value) and is_url(value), "a web address"),
    "file": (lambda value: _is_text(value) and is_url(value), "a web address"),
    "url": (lambda value: _is_text(value) and is_url(value), "a web address"),
    "email": (lambda value: _is_text(value) and is_email(value), "an email address"),
    "phone": (_is_text, "a string"),
}

"""JSON bodies, both ways: written plainly, and read strictly and within bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from connector.errors import Misused

DEPTH_MAX = 64
"""The deepest nesting that an answer may have; the API's own answers have five levels."""


def as_body(fields: Mapping[str, Any]) -> bytes:
    """A JSON body. Raises `Misused` for a value that JSON does not have."""

    def plain(value: object) -> str:
        if isinstance(value, date):  # A datetime is a date as well.
            return value.isoformat()
        raise TypeError(type(value).__name__)

    try:
        text = json.dumps(fields, default=plain, ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError) as error:
        reason = f"a value of the type {error} cannot be sent as JSON"
        if isinstance(error, ValueError):
            reason = "a value cannot be sent as JSON: not a finite number, or not Unicode"
        raise Misused(
            reason, action="Send text, finite numbers, booleans, dates and null."
        ) from None


def parse(body: bytes) -> Any:
    """A body as JSON. Where an object repeats a key, the last value holds.

    Raises `ValueError`, whose text says what the body is instead: not JSON, nested too deeply, or
    with numbers that JSON does not have.
    """
    start = body.lstrip()[:1]
    if start == b"<":
        raise ValueError("a page of HTML or XML instead of JSON")
    if _depth(body) > DEPTH_MAX:
        raise ValueError(f"JSON nested deeper than {DEPTH_MAX} levels")
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError("something that is not JSON" if body else "an empty body") from None


def _depth(body: bytes) -> int:
    """The deepest nesting, counted without parsing: a parser may not survive 10^5 levels."""
    depth = deepest = 0
    for mark in re.finditer(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', body, re.DOTALL):
        first = mark.group()[:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > DEPTH_MAX:
                break
        elif first in b"]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)

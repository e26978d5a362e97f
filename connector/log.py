"""Log as text for people, or as one JSON object per line for programs.

Every secret is masked in each of its forms, and characters that control a terminal or break a line
are escaped. Records of the API and the queries of its addresses are never logged. Each call of a
logger names its event, and may add fields: `extra={"event": ..., "fields": {...}}`.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

Form = Literal["text", "json"]
"""Form of the log."""

NAME_CHARACTERS_MAX = 60
"""Maximum number of characters of a name or an id from the API in a message."""

MASK = "[key]"
"""Text in place of a secret."""

SECRET_CHARACTERS_MIN = 4
"""A shorter secret is not masked: it would be found everywhere."""

UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"  # control, breaks, halves of a character
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what reorders: a name could lie
)
"""Characters that control a terminal, break a line, or reorder the text."""


def escape_control_characters(text: str, *, except_for: str = "") -> str:
    r"""Escape characters that control a terminal, break a line, or reorder text.

    For example, a line feed becomes `\n`. Characters in `except_for` are not escaped.
    """
    return UNSAFE.sub(lambda c: c[0] if c[0] in except_for else ascii(c[0])[1:-1], text)


def shorten_name(text: str) -> str:
    """Return a name or id from the API, at most 60 characters long and with escapes."""
    is_long = len(text) > NAME_CHARACTERS_MAX
    return escape_control_characters(text[:NAME_CHARACTERS_MAX]) + "…" * is_long


def encoded_forms(secret: str) -> tuple[str, ...]:
    """Return the secret as text and as encoded in JSON, URLs and base64, the longest first."""
    content = secret.encode()
    found = {
        secret,
        json.dumps(secret)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        base64.b64encode(content).decode(),
        base64.urlsafe_b64encode(content).decode(),
    }
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets, also in encoded forms, by `MASK`."""
    for secret in secrets:
        if len(secret) >= SECRET_CHARACTERS_MIN:
            for each in encoded_forms(secret):
                text = text.replace(each, MASK)
    return text


def json_log_line(
    level: str, logger: str, message: str, fields: Mapping[str, Any], at: datetime
) -> str:
    """Return a log line as a JSON object in ASCII."""
    line = {
        "at": at.astimezone(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "logger": logger,
        "message": message,
        **fields,
    }
    return json.dumps(line, ensure_ascii=True, default=str)


# -- Stamp -----------------------------------------------------------------------------------------
# Times in the names of runs and files: in UTC, to the second, so that they can be sorted.


def compact_timestamp(at: datetime) -> str:
    """Format a time in UTC for names of files and runs, for example 20261122T000029Z."""
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def new_id(at: datetime) -> str:
    """Return a unique id that starts with the time, for example 20261122T000029Z-eac3b1."""
    return f"{compact_timestamp(at)}-{secrets.token_hex(3)}"

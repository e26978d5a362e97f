"""The log as people read it, or as one JSON object a line for whoever collects it.

Every secret is masked in each form that it may take on its way, and nothing that a terminal would
obey or a line would break at gets through. What is logged is decided where it happens: no record of
the API's is, and no address with what was asked for.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

Form = Literal["text", "json"]
"""How the log is written: for people, or for programs."""

NAME_CHARACTERS_MAX = 60
"""Characters that are shown of a name or an id that only the API knows."""

MASK = "[key]"
"""What stands in the place of a secret."""

SECRET_CHARACTERS_MIN = 4
"""A secret that is shorter than this is not looked for: it would be found everywhere."""

UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"  # control, breaks, halves of a character
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # what reorders: a name could lie
)
"""A character that a terminal obeys, that a line breaks at, or that reorders what is shown."""


def neutralise(text: str, *, keeping: str = "") -> str:
    r"""The text with what a terminal obeys, or a log breaks at, made visible.

    An escape becomes `\x1b` in letters, a line feed `\n`. All other characters stay, so that
    names in any script are shown as they are; so do those of `keeping`.
    """
    return UNSAFE.sub(lambda c: c[0] if c[0] in keeping else _visible(c[0]), text)


def shortened(text: str) -> str:
    """Return a name or an id that only the API knows, printable and not too long."""
    is_long = len(text) > NAME_CHARACTERS_MAX
    return neutralise(text[:NAME_CHARACTERS_MAX]) + "…" * is_long


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def forms(secret: str) -> tuple[str, ...]:
    """The secret as texts, JSON, addresses and base64 have it, the longest first."""
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


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with `MASK` in the place of each form of each secret."""
    for secret in secrets:
        if len(secret) >= SECRET_CHARACTERS_MIN:
            for each in forms(secret):
                text = text.replace(each, MASK)
    return text


def as_line(level: str, source: str, message: str, more: Mapping[str, Any], at: datetime) -> str:
    """One line of the log as JSON, in ASCII: what a terminal would obey is escaped."""
    told = {
        "at": at.astimezone(UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "logger": source,
        "message": message,
        **more,
    }
    return json.dumps(told, ensure_ascii=True, default=str)


class Masked(logging.Formatter):
    """A formatter that masks secrets, in tracebacks too."""

    def __init__(self, secrets: Iterable[str], form: Form = "text") -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets, self._form = tuple(secrets), form

    def format(self, record: logging.LogRecord) -> str:
        """The record as one text: one line for programs."""
        if self._form == "text":
            return without(super().format(record), self._secrets)
        more = {}
        if record.exc_info:
            more["traceback"] = without(self.formatException(record.exc_info), self._secrets)
        message = without(record.getMessage(), self._secrets)
        at = datetime.fromtimestamp(record.created, UTC)
        return as_line(record.levelname.lower(), record.name, message, more, at)


# -- Stamp -----------------------------------------------------------------------------------------
# Times as names of runs and files carry them: in UTC, to the second, in order when sorted.


def stamped(at: datetime) -> str:
    """The time, as in 20261122T000029Z."""
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def new_id(at: datetime) -> str:
    """A name for what begins now, as in 20261122T000029Z-eac3b1: no other has it."""
    return f"{stamped(at)}-{secrets.token_hex(3)}"

"""Parsers of settings: from a raw value to the setting.

A parser raises `ValueError` with only the allowed values, because the received value may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

API_PATH = "/api/v1"
"""Beginning of every path of the API (API 9.1)."""

OFF: Literal["off"] = "off"
"""Value of a schedule that never runs."""

SCHEMAS = ("landing", "history", "sync", "push", "staging", "marts", "seeds", "own")
"""The schemas that a published file may have."""

_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1")
HASH_KEY_CHARACTERS_MIN = 16


def whole_number(least: int, most: int) -> Callable[[object], int]:
    """Return a parser of whole numbers in a range."""

    def parse(raw: object) -> int:
        digits = re.fullmatch(r"[0-9]{1,12}", str(raw))
        if isinstance(raw, bool | float) or not digits or not least <= int(digits[0]) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(digits[0])

    return parse


def parse_left_out(raw: object) -> tuple[str, ...]:
    """Parse schemas, tables and their columns, in a list or between commas.

    Only schemas are checked, because models are not built yet.
    """
    given = raw.split(",") if isinstance(raw, str) else raw
    names = [str(each).strip() for each in given] if isinstance(given, list | tuple) else [""]
    for name in names:
        first, *more = name.split(".")
        if first not in SCHEMAS or len(more) > 2 or not all(more):
            raise ValueError(
                f"some of: {', '.join(SCHEMAS)}, SCHEMA.TABLE or SCHEMA.TABLE.COLUMN, not {name!r}"
            )
    return tuple(dict.fromkeys((*(each for each in SCHEMAS if each in names), *names)))


def parse_region(raw: object) -> str:
    """Parse the code of a country whose telephone numbers are known."""
    # Loaded only if the setting is set, because it takes a tenth of a second.
    from phonenumbers import SUPPORTED_REGIONS  # noqa: PLC0415

    if not isinstance(raw, str) or raw.upper() not in SUPPORTED_REGIONS:
        raise ValueError("a country code of two letters such as GB, DE or US")
    return raw.upper()


def parse_zone(raw: object) -> str:
    """Validate the name of a time zone."""
    try:
        return ZoneInfo(str(raw)).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("the name of a time zone such as UTC or Europe/Berlin") from None


@dataclass(frozen=True, slots=True)
class Age:
    """Duration, and the text that was parsed."""

    length: timedelta
    text: str

    def __str__(self) -> str:
        return self.text


def parse_age(raw: object) -> Age:
    """Parse a duration such as `26h`, `90min` or `2d`."""
    match = re.fullmatch(r"([0-9]{1,6}) ?(d|h|min|m)", str(raw))
    minutes = int(match[1]) * {"d": 1440, "h": 60, "m": 1}[match[2][0]] if match else 0
    if match is None or not 0 < minutes <= 366 * 1440:
        raise ValueError("a duration of at most 366 days, such as 26h, 90min or 2d")
    return Age(timedelta(minutes=minutes), match[0])


def parse_cron(raw: object) -> str:
    """Validate a cron expression of numbers, or `off`; return it with single spaces."""
    fields = str(raw).split()
    is_cron = len(fields) == len(_CRON_RANGES) and all(map(_is_cron_field, fields, _CRON_RANGES))
    if not is_cron and fields != [OFF]:
        raise ValueError(
            "a cron expression (minute, hour, day of the month, month, day of the week) such as "
            "'15 2 * * *' for 02:15 every day; or 'off'"
        )
    return " ".join(fields)


_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_RULE = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/0*[1-9][0-9]?)?")


def _is_cron_field(field: str, allowed: tuple[int, int]) -> bool:
    """Return True if each rule of the field is `*`, a number or a range, perhaps with a step."""
    least, most = allowed
    return all(
        rule and least <= int(rule[1] or least) <= int(rule[2] or rule[1] or most) <= most
        for rule in map(_CRON_RULE.fullmatch, field.split(","))
    )


def parse_address(raw: object) -> str:
    """Parse the address of the API (API 1), in lower case but for its path, without `/api/v1`."""
    text, allowed = str(raw).strip(), "an address such as https://acme.example"
    parts = _split_address(text, allowed)
    if "?" in text or "#" in text:
        raise ValueError(f"{allowed}, without '?' or '#'")
    path = parts.path.rstrip("/").removesuffix(API_PATH).rstrip("/")
    if f"{API_PATH}/" in f"{path}/":
        raise ValueError(f"the part of the address before {API_PATH}")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def parse_record_url(raw: object) -> str:
    """Validate the address of a record on the platform, with `{id}` and perhaps `{resource}`."""
    text, allowed = str(raw), "an address such as https://app.example/{resource}/{id}"
    filled = text.replace("{resource}", "x").replace("{id}", "x")
    if "{id}" not in text or "{" in filled or "}" in filled:
        raise ValueError(allowed)
    _split_address(filled, allowed)
    return text


def parse_proxy(raw: object) -> str:
    """Parse the address of a proxy. A password is not allowed, because the address is shown."""
    text = str(raw).lower().removesuffix("/")
    found = re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+):([0-9]{1,5})", text)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        example = "http://proxy.example:3128"
        raise ValueError(f"the address of a proxy such as {example}, without a name or a path")
    return text


def _split_address(text: str, allowed: str) -> SplitResult:
    """Return the parts of an address. Raises `ValueError` with the `allowed` form."""
    if re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise ValueError(f"{allowed}, without spaces or backslashes")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"{allowed}, with a port from 1 to 65535 if any") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise ValueError(allowed)
    if "@" in parts.netloc:
        raise ValueError(f"{allowed}, without a user name or a password")
    if parts.scheme == "http" and not _LOOPBACK.fullmatch(parts.hostname):
        raise ValueError(f"{allowed}: only this machine may use http, because others could read it")
    return parts


def parse_key(text: str) -> str:
    """Validate an API key: one word of ASCII that fits into a header (API 5.1, 5.5)."""
    if not re.fullmatch(r"[\x21-\x7e]{1,4096}", text):
        raise ValueError("must be one word of at most 4096 characters, all of them ASCII")
    return text


def parse_hash_key(text: str) -> str:
    """Validate the key that hashes personal fields."""
    if len(parse_key(text)) < HASH_KEY_CHARACTERS_MIN:
        raise ValueError(f"must have at least {HASH_KEY_CHARACTERS_MIN} characters")
    return text


def parse_notify_urls(text: str) -> str:
    """Validate Apprise URLs, which are separated by spaces or lines and contain tokens."""
    urls = [each for each in text.split() if not each.startswith("#")]
    if not urls or not all("://" in each for each in urls):
        raise ValueError("must be Apprise URLs such as slack://TOKEN, one per line")
    return " ".join(urls)

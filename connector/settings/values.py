"""Parsers of settings: from a raw value to the setting.

A parser raises `ValueError` with only the allowed values, because the received value may be secret.
It opens no files and sends nothing; only names of time zones are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connector.catalog import CATALOG

Word = TypeVar("Word", bound=str)

# -- Words and numbers -----------------------------------------------------------------------------


def whole_number_parser(least: int, most: int) -> Callable[[object], int]:
    """Return a parser of whole numbers in a range."""

    def read(raw: object) -> int:
        digits = re.fullmatch(r"[0-9]{1,12}", str(raw).strip())
        if isinstance(raw, bool | float) or not digits or not least <= int(digits[0]) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(digits[0])

    return read


def choice_parser(choices: Any) -> Callable[[object], Any]:
    """Return a parser of the words of a `Literal`."""
    return pattern_parser("|".join(get_args(choices)), f"one of: {', '.join(get_args(choices))}")


def schemas_or_columns_parser(schemas: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    """Return a parser of schemas, tables, their columns, and `RESOURCE.FIELD`.

    Only schemas and fields of resources are checked, because models are not loaded yet.
    """

    def read(raw: object) -> tuple[str, ...]:
        forms = f"{', '.join(schemas)}, RESOURCE.FIELD, SCHEMA.TABLE or SCHEMA.TABLE.COLUMN"
        names = _split_list(raw)
        if names is None:
            raise ValueError(f"some of: {forms}")
        for name in names:
            first, *more = name.split(".")
            if len(more) == 1 and first not in schemas:
                _refuse_unknown_field(first, more[0])
            elif first not in schemas or len(more) > 2 or not all(more):
                raise ValueError(f"some of: {forms}, not {name!r}")
        ordered = [each for each in schemas if each in names]
        return tuple(dict.fromkeys((*ordered, *names)))

    return read


def _refuse_unknown_field(resource: str, field: str) -> None:
    """Raise `ValueError` with the allowed names if the catalog does not have the field."""
    for what, name, known in (
        ("resource", resource, CATALOG),
        (f"field of {resource}", field, CATALOG[resource].fields if resource in CATALOG else ()),
    ):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(
                f"RESOURCE.FIELD; {name!r} is no {what}{hint}. Allowed: {', '.join(known)}"
            )


def pattern_parser(pattern: str, allowed: str) -> Callable[[object], str]:
    """Return a parser of texts that match a pattern, without surrounding white space."""

    def read(raw: object) -> str:
        if not isinstance(raw, str) or not re.fullmatch(pattern, raw.strip()):
            raise ValueError(allowed)
        return raw.strip()

    return read


def require_path(raw: object) -> Path:
    """Return the value if it is a path. `Layers` has already resolved it."""
    if not isinstance(raw, Path):
        raise ValueError("a path")
    return raw


def schema_name_parser(taken: tuple[str, ...]) -> Callable[[object], str]:
    """Return a parser of names of schemas, except the names in `taken`."""
    read_name = pattern_parser("[a-z][a-z0-9_]{0,62}", "")
    reserved = (*taken, "main", "temp", "pg_catalog", "information_schema")

    def read(raw: object) -> str:
        try:
            name = read_name(raw)
        except ValueError:
            name = ""
        if not name or name in reserved:
            raise ValueError(
                "a name of a-z, 0-9 and '_' that begins with a letter, other than "
                + ", ".join(reserved)
            )
        return name

    return read


def _split_list(raw: object) -> list[str] | None:
    """Return the texts of a list, or of a text with commas; None for another type."""
    given = raw.split(",") if isinstance(raw, str) else raw
    return [str(each).strip() for each in given] if isinstance(given, list) else None


# -- Addresses -------------------------------------------------------------------------------------

API_PATH = "/api/v1"
"""What every path of the API begins with (API 9.1)."""

_ADDRESS = "an address such as https://acme.example"
_RECORD_URL = "an address such as https://app.example/{resource}/{id}"
_PROXY = "the address of a proxy such as http://proxy.example:3128, without a name or a path"


def parse_record_url(raw: object) -> str:
    """Validate the address of a record on the platform, with `{id}` and perhaps `{resource}`."""
    text = raw.strip() if isinstance(raw, str) else ""
    filled = text.replace("{resource}", "x").replace("{id}", "x")
    _split_address(filled, _RECORD_URL, "ids")
    if "{id}" not in text or "{" in filled or "}" in filled:
        raise ValueError(_RECORD_URL)
    return text


def parse_address(raw: object) -> str:
    """Parse the address of the API without `/api/v1` (API 1).

    The host becomes lower case. A slash or `/api/v1` at the end is removed.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    parts = _split_address(text, _ADDRESS, "the key")
    if "?" in text or "#" in text:
        raise ValueError(f"{_ADDRESS}, without '?' or '#'")
    path = parts.path.rstrip("/").removesuffix(API_PATH).rstrip("/")
    if f"{API_PATH}/" in f"{path}/":
        raise ValueError(f"the part of the address before {API_PATH}")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def _split_address(text: str, allowed: str, what: str) -> SplitResult:
    """Return the parts of an address. Raises `ValueError` with the `allowed` form.

    Only addresses of this machine may use http, because http would show `what` to others.
    """
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
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(
            f"{allowed}: other machines must use https, because http would show {what} to others"
        )
    return parts


def parse_proxy(raw: object) -> str:
    """Parse the address of a proxy: a scheme, a host and a port.

    A user name or password is not allowed, because the address is shown.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    form = r"https?://(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})/?"
    match = re.fullmatch(form, text)
    try:
        host = urlsplit(text).hostname
    except ValueError:
        host = None
    if not host or match is None or not 1 <= int(match[1]) <= 65_535:
        raise ValueError(_PROXY)
    return text.rstrip("/").lower()


def is_loopback(host: str) -> bool:
    """Return True if the host is a name or an address of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def redact_address(raw: str) -> str:
    """Quote an invalid address for an error, without password and query.

    A value that is not an address may be a key and is not quoted.
    """
    scheme, mark, rest = raw.partition("://")
    if not mark:
        return "a value without 'https://'"
    return repr(f"{scheme}://{re.split(r'[?#]', rest.rpartition('@')[2])[0]}")


# -- Notifications and secrets ---------------------------------------------------------------------

SECRET_CHARACTERS_MAX = 4096

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "min": timedelta(minutes=1)}


def parse_notify_urls(text: str) -> str:
    """Validate Apprise URLs, which are separated by spaces or lines and contain tokens."""
    urls = [each for each in text.split() if not each.startswith("#")]
    if not urls or not all("://" in each for each in urls):
        raise ValueError("must be Apprise URLs such as slack://TOKEN, one per line")
    return " ".join(urls)


@dataclass(frozen=True, slots=True)
class Age:
    """Duration, and the text that was parsed."""

    length: timedelta
    text: str

    def __str__(self) -> str:
        return self.text


def parse_age(raw: object) -> Age:
    """Parse a duration such as `26h`, `90min` or `2d`."""
    match = re.fullmatch(r"([0-9]{1,6}) ?(d|h|min|m)", raw.strip() if isinstance(raw, str) else "")
    length = int(match[1]) * _UNITS["min" if match[2] == "m" else match[2]] if match else None
    if match is None or length is None or not timedelta(0) < length <= timedelta(days=366):
        raise ValueError("a duration of at most 366 days, such as 26h, 90min or 2d")
    return Age(length, match[0])


# -- Schedules -------------------------------------------------------------------------------------

OFF: Literal["off"] = "off"
"""In the place of a time: never by itself."""

_CRON = (
    "a cron expression (minute, hour, day of the month, month, day of the week) such as "
    "'15 2 * * *' for 02:15 every day; or 'off'"
)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The least and the greatest number of each field, in their order; Sunday is 0 as well as 7."""

_RULE = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
# The longest that each month can be: a day that none of the chosen months has never comes.
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_cron(raw: object) -> str:
    """Validate a cron expression or `off`; return it with single spaces.

    Names of months and weekdays are not allowed, nor dates that do not exist.
    """
    text = " ".join(raw.split()) if isinstance(raw, str) else ""
    if text == OFF:
        return OFF
    fields = text.split(" ")
    if len(fields) != len(_RANGES):
        raise ValueError(_CRON)
    _, _, days, months, _ = map(_parse_cron_field, fields, _RANGES)
    if all(min(days) > _LENGTHS[month - 1] for month in months):
        raise ValueError(f"{_CRON}; no chosen month has this day")
    return text


def _parse_cron_field(field: str, allowed: tuple[int, int]) -> frozenset[int]:
    """Return the numbers that a field of a cron expression selects."""
    least, most = allowed
    chosen: set[int] = set()
    for rule in field.split(","):
        match = _RULE.fullmatch(rule)
        if match is None:
            raise ValueError(_CRON)
        first, last, step = (None if each is None else int(each) for each in match.groups())
        if first is None:
            first, last = least, most
        elif last is None:
            # 5/10 is from 5 on, every tenth; 5 alone is 5.
            last = first if step is None else most
        if not least <= first <= last <= most or step == 0:
            raise ValueError(_CRON)
        chosen |= set(range(first, last + 1, step or 1))
    return frozenset(chosen)


def parse_zone(raw: object) -> str:
    """Validate the name of a time zone."""
    text = raw.strip() if isinstance(raw, str) else ""
    try:
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", text):
            return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, OSError):
        pass
    raise ValueError("the name of a time zone such as UTC or Europe/Berlin")

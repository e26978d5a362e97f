"""Behaviours that the API leaves open, as switches with values and a default.

The command's help and the table on the website are derived from `SWITCHES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from connector.errors import SettingsError, UnknownName

# Name, then the values with the default first, the section of the API, and what is decided.
_DECLARED = {
    # Lists.
    "per_page_max": "100 50 10; 8.6; Maximum number of records on a page.",
    "page_past_end": "empty 404 last; 4.1; Response to a page after the last one: an empty page,"
    " 404, or the last page again.",
    "total": "exact earlier; 4.1; `total` equals the number of records, or was counted before"
    " other requests changed the list.",
    "sorting": "honoured ignored; 4.1; The server uses `sort` and `order`, or ignores them.",
    "ties": "stable random; 4.1; Order of records with equal sort values: always the same, or"
    " random in each response.",
    "content_type_items": "declared without_updated_at; 2.6; The list of `/content-types`"
    " contains `updated_at`, or not.",
    # Values.
    "timestamp_precision": "microseconds milliseconds seconds; conventions; Precision of"
    " timestamps.",
    "nulls": "null absent; 2; A field without a value is null, or missing in the response.",
    "extra_fields": "none shown; 9.2; Responses contain an undocumented field, or not.",
    "empty_strings": "kept null; 2; The server stores an empty string as it is, or as null.",
    "whitespace": "kept trimmed; 2; The server keeps or removes spaces around a string.",
    "counters": "live moving; 2.3; A change of a company's counters keeps its `updated_at`, or"
    " updates it.",
    # Writes.
    "duplicate_emails": "allowed refused; 2; Response to an `email` that another record already"
    " has: accept it, or 422.",
    "content_update": "merged replaced; 4.7; The `fields` of an update are merged into a content"
    " item's old fields, or replace them.",
    "delete": "204 message; 4.8; A delete returns 204 without a body, or 200 with a `message`.",
    "converted_lead": "kept active deleted; 3.5; A converted lead keeps its status, gets the"
    " status `active` and a `converted_at`, or is deleted.",
    # Limits and headers.
    "rate_window": "aligned first_request sliding; 8.2; Minute of the rate limit: a minute of the"
    " clock, one that starts with the first request, or the last 60 seconds.",
    "month_reset": "month minute; 8.3; Reset time that the headers show when the monthly limit is"
    " used up: the next month, or the next minute.",
    "date_header": "shown missing; 8.3; Responses contain the `Date` header, or not.",
}


@dataclass(frozen=True, slots=True)
class Switch:
    """A behaviour to choose. The first value is the default; `section` is the API's."""

    name: str
    values: tuple[str, ...]
    section: str
    about: str


def _declared_switch(name: str) -> Switch:
    values, section, about = _DECLARED[name].split("; ", 2)
    return Switch(name, tuple(values.split()), section, about)


SWITCHES: Mapping[str, Switch] = {name: _declared_switch(name) for name in _DECLARED}
"""Every switch by its name, in the order of the documents."""


class Behaviours(dict[str, str]):
    """Value of every switch by its name.

    Args:
        given: Values by name. All other switches have their default.

    Raises:
        UnknownName: A name or a value does not exist.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        super().__init__({name: each.values[0] for name, each in SWITCHES.items()})
        for name, value in (given or {}).items():
            if name not in SWITCHES:
                raise UnknownName("behaviour", name, SWITCHES)
            if value not in SWITCHES[name].values:
                raise UnknownName(f"value of {name}", value, SWITCHES[name].values)
            self[name] = value

    @classmethod
    def parse_options(cls, texts: Iterable[str]) -> Self:
        """Parse the command's options `--behaviour NAME=VALUE`.

        Raises `SettingsError` for a text without "=", and `UnknownName`.
        """
        pairs = [text.partition("=") for text in texts]
        for name, equals, _ in pairs:
            if not equals:
                raise SettingsError(f"--behaviour takes NAME=VALUE, not {name!r}")
        return cls({name: value for name, _, value in pairs})

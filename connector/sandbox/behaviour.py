"""Behaviours that the API leaves open, as switches with values and a default.

`Behaviours` declares them: the type of a field lists the values, the default is the first one, and
the metadata has a sentence and the section of the API. The command's help and the table in
docs/SANDBOX.md are derived from it. The store, the limits and the application read the switches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from connector.errors import SettingsError, UnknownName


def declare_switch(default: str, about: str, section: str) -> Any:
    """Declare a field of `Behaviours`. `section` is the API's section that does not define it."""
    return dataclasses.field(default=default, metadata={"about": about, "section": section})


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviours:
    """Choices for everything that the API documentation does not define."""

    # Lists.
    per_page_max: Literal["100", "50", "10"] = declare_switch(
        "100", "Maximum number of records on a page.", "8.6"
    )
    page_past_end: Literal["empty", "404", "last"] = declare_switch(
        "empty",
        "Response to a page after the last one: an empty page, 404, or the last page again.",
        "4.1",
    )
    total: Literal["exact", "earlier"] = declare_switch(
        "exact",
        "`total` equals the number of records, or was counted before other requests changed the "
        "list.",
        "4.1",
    )
    sorting: Literal["honoured", "ignored"] = declare_switch(
        "honoured", "The server uses `sort` and `order`, or ignores them.", "4.1"
    )
    ties: Literal["stable", "random"] = declare_switch(
        "stable",
        "Order of records with equal sort values: always the same, or random in each response.",
        "4.1",
    )
    content_type_items: Literal["declared", "without_updated_at"] = declare_switch(
        "declared", "The list of `/content-types` contains `updated_at`, or not.", "2.6"
    )
    # Values.
    timestamp_precision: Literal["microseconds", "milliseconds", "seconds"] = declare_switch(
        "microseconds", "Precision of timestamps.", "conventions"
    )
    nulls: Literal["null", "absent"] = declare_switch(
        "null", "A field without a value is null, or missing in the response.", "2"
    )
    extra_fields: Literal["none", "shown"] = declare_switch(
        "none", "Responses contain an undocumented field, or not.", "9.2"
    )
    empty_strings: Literal["kept", "null"] = declare_switch(
        "kept", "The server stores an empty string as it is, or as null.", "2"
    )
    whitespace: Literal["kept", "trimmed"] = declare_switch(
        "kept", "The server keeps or removes spaces around a string.", "2"
    )
    counters: Literal["live", "moving"] = declare_switch(
        "live", "A change of a company's counters keeps its `updated_at`, or updates it.", "2.3"
    )
    # Writes.
    duplicate_emails: Literal["allowed", "refused"] = declare_switch(
        "allowed", "Response to an `email` that another record already has: accept it, or 422.", "2"
    )
    content_update: Literal["merged", "replaced"] = declare_switch(
        "merged",
        "The `fields` of an update are merged into a content item's old fields, or replace them.",
        "4.7",
    )
    delete: Literal["204", "message"] = declare_switch(
        "204", "A delete returns 204 without a body, or 200 with a `message`.", "4.8"
    )
    # Convert.
    converted_lead: Literal["kept", "active", "deleted"] = declare_switch(
        "kept",
        "A converted lead keeps its status, gets the status `active` and a `converted_at`, or is "
        "deleted.",
        "3.5",
    )
    convert_fields: Literal["record", "minimal"] = declare_switch(
        "record",
        "Response to a conversion: the whole lead, or only the three fields in the API's example.",
        "4.6",
    )
    # Errors and headers.
    rate_window: Literal["aligned", "first_request", "sliding"] = declare_switch(
        "aligned",
        "Minute of the rate limit: a minute of the clock, one that starts with the "
        "first request, or the last 60 seconds.",
        "8.2",
    )
    month_reset: Literal["month", "minute"] = declare_switch(
        "month",
        "Reset time that the headers show when the monthly limit is used up: the next month, or "
        "the next minute.",
        "8.3",
    )
    retry_after: Literal["absent", "seconds", "timestamp"] = declare_switch(
        "absent", "`Retry-After` of a 429: missing, in seconds, or as a Unix time.", "8.3"
    )
    date_header: Literal["shown", "missing"] = declare_switch(
        "shown", "Responses contain the `Date` header, or not.", "8.3"
    )

    @classmethod
    def from_values(cls, values: Mapping[str, str] | Behaviours | None) -> Behaviours:
        """Return behaviours with these values by name, and defaults for all others.

        Raises `UnknownName` for an unknown name or value.
        """
        if isinstance(values, Behaviours):
            return values
        for name, value in (values or {}).items():
            if name not in BEHAVIOURS:
                raise UnknownName("behaviour", name, BEHAVIOURS)
            if value not in BEHAVIOURS[name].values:
                raise UnknownName(f"value of {name}", value, BEHAVIOURS[name].values)
        return cls(**(values or {}))  # type: ignore[arg-type]  # each value was checked above

    @classmethod
    def parse_options(cls, settings: Iterable[str]) -> Behaviours:
        """Parse the command's options `--behaviour NAME=VALUE`.

        Raises `SettingsError` for a text without "=", and `UnknownName`.
        """
        given = {}
        for text in settings:
            name, equals, value = text.partition("=")
            if not equals:
                raise SettingsError(f"--behaviour takes NAME=VALUE, not {text!r}")
            given[name] = value
        return cls.from_values(given)


@dataclass(frozen=True, slots=True)
class Switch:
    """Declaration of a behaviour. The first of `values` is the default."""

    name: str
    values: tuple[str, ...]
    default: str
    about: str
    section: str


def _declared_switches() -> Iterator[tuple[str, Switch]]:
    """Yield the switch of each field of `Behaviours` by name."""
    hints = get_type_hints(Behaviours)
    for each in dataclasses.fields(Behaviours):
        switch = Switch(
            name=each.name,
            values=get_args(hints[each.name]),
            default=str(each.default),
            about=each.metadata["about"],
            section=each.metadata["section"],
        )
        yield each.name, switch


BEHAVIOURS: Mapping[str, Switch] = dict(_declared_switches())
"""Every switch by its name, in the order of the documents."""


def behaviour_table() -> str:
    """Return the Markdown table of docs/SANDBOX.md."""
    rows = [
        f"| `{each.name}` | {' · '.join(f'`{v}`' for v in each.values)} "
        f"| {each.about} | {each.section} |"
        for each in BEHAVIOURS.values()
    ]
    return "\n".join(("| Name | Values | What it decides | API |", "|---|---|---|---|", *rows))

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
    per_page_over: Literal["clamped", "422", "400", "default"] = declare_switch(
        "clamped",
        "Response to a `per_page` above the maximum: use the maximum, reject it with this status, "
        "or use 20.",
        "8.6",
    )
    per_page_max: Literal["100", "50", "10"] = declare_switch(
        "100", "Maximum number of records on a page.", "8.6"
    )
    page_invalid: Literal["refused", "first"] = declare_switch(
        "refused",
        "Response to a `page` or `per_page` that is not a positive integer: 422, or use the "
        "default.",
        "4.1",
    )
    page_past_end: Literal["empty", "404", "last"] = declare_switch(
        "empty",
        "Response to a page after the last one: an empty page, 404, or the last page again.",
        "4.1",
    )
    pages_of_nothing: Literal["0", "1"] = declare_switch(
        "0", "`total_pages` of an empty list.", "4.1"
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
    unknown_sort: Literal["ignored", "refused"] = declare_switch(
        "ignored", "Response to an unknown `sort` or `order`: ignore it, or 422.", "4.1"
    )
    content_type_sort: Literal["ignored", "refused"] = declare_switch(
        "ignored", "Response to `sort` on `/content-types`: ignore it, or 422.", "4.1"
    )
    ties: Literal["stable", "random"] = declare_switch(
        "stable",
        "Order of records with equal sort values: always the same, or random in each response.",
        "4.1",
    )
    unknown_filter_value: Literal["refused", "empty", "ignored"] = declare_switch(
        "refused", "Response to an unknown filter value: 422, an empty list, or ignore it.", "4"
    )
    unknown_parameter: Literal["ignored", "refused"] = declare_switch(
        "ignored", "Response to an unknown query parameter: ignore it, or 422.", "4"
    )
    search: Literal["listed", "names", "all"] = declare_switch(
        "listed",
        "Fields that `search` searches: the texts in lists, names and titles, or all texts.",
        "4.1",
    )
    booking_dates: Literal["start_datetime", "end_datetime", "each", "created_at"] = declare_switch(
        "start_datetime",
        "Field that `start_date` and `end_date` filter. `each`: the start and the end of the "
        "booking.",
        "4.5",
    )
    booking_bounds: Literal["inclusive", "exclusive"] = declare_switch(
        "inclusive", "The filter includes or excludes the days `start_date` and `end_date`.", "4.5"
    )
    content_type_items: Literal["declared", "without_updated_at"] = declare_switch(
        "declared", "The list of `/content-types` contains `updated_at`, or not.", "2.6"
    )
    # Values.
    timestamp_precision: Literal["microseconds", "milliseconds", "seconds"] = declare_switch(
        "microseconds", "Precision of timestamps.", "conventions"
    )
    timestamp_suffix: Literal["Z", "offset", "none"] = declare_switch(
        "Z", "End of timestamps: `Z`, `+00:00`, or no time zone.", "conventions"
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
    unknown_fields: Literal["ignored", "refused"] = declare_switch(
        "ignored", "Response to an unknown field in a request: ignore it, or 422.", "4"
    )
    duplicate_emails: Literal["allowed", "refused"] = declare_switch(
        "allowed", "Response to an `email` that another record already has: accept it, or 422.", "2"
    )
    duplicate_slugs: Literal["allowed", "refused"] = declare_switch(
        "allowed",
        "Response to a `slug` that another content item of the type already has: accept "
        "it, or 422.",
        "2",
    )
    references: Literal["checked", "unchecked"] = declare_switch(
        "checked",
        "Response to the id of a related record that does not exist: 422, or accept it.",
        "2.4",
    )
    formats: Literal["enforced", "email_only"] = declare_switch(
        "enforced",
        "Fields whose format the server checks: web addresses, currencies, time zones, ids and "
        "emails, or only emails.",
        "2",
    )
    text_length: Literal["unlimited", "255"] = declare_switch(
        "unlimited", "Maximum length of texts in fields that lists contain.", "2"
    )
    update_choices: Literal["declared", "create", "responses"] = declare_switch(
        "declared",
        "Choices that an update accepts: its documented values, those of a create, or all values "
        "in responses.",
        "2.1",
    )
    transitions: Literal["any", "restricted"] = declare_switch(
        "any",
        "A record may change from any state to any other, or never leave a final state (422; see "
        "below).",
        "3",
    )
    reason_alone: Literal["refused", "accepted"] = declare_switch(
        "refused",
        "Response to a `cancellation_reason` without a cancellation: 422, or accept it.",
        "2.4",
    )
    empty_update: Literal["moves", "keeps"] = declare_switch(
        "moves", "A PUT with an empty object updates `updated_at`, or keeps it.", "4"
    )
    unchanged_update: Literal["moves", "keeps"] = declare_switch(
        "moves", "A PUT that changes no value updates `updated_at`, or keeps it.", "4"
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
    convertible: Literal["any", "prospect"] = declare_switch(
        "any",
        "Leads that can be converted: all, or only leads with the status `prospect` (else 422).",
        "3.5",
    )
    converted_lead: Literal["kept", "active", "deleted"] = declare_switch(
        "kept",
        "A converted lead keeps its status, gets the status `active` and a `converted_at`, or is "
        "deleted.",
        "3.5",
    )
    second_convert: Literal["refused", "repeated"] = declare_switch(
        "refused",
        "Response to a second conversion of a lead: 422, or the response of the first conversion.",
        "3.5",
    )
    convert_status: Literal["200", "201"] = declare_switch(
        "200", "Status of the response to a conversion.", "4.6"
    )
    convert_fields: Literal["record", "minimal"] = declare_switch(
        "record",
        "Response to a conversion: the whole lead, or only the three fields in the API's example.",
        "4.6",
    )
    # Errors and headers.
    error_bodies: Literal["full", "message", "empty"] = declare_switch(
        "full",
        "Body of errors other than 422: `error` and `message`, only `message`, or an empty object.",
        "7.3",
    )
    unknown_paths: Literal["json", "html"] = declare_switch(
        "json",
        "Response to an unknown path: 404 with an error in JSON, or with an HTML page.",
        "7.3",
    )
    rate_window: Literal["aligned", "first_request", "sliding"] = declare_switch(
        "aligned",
        "Minute of the rate limit: a minute of the clock, one that starts with the "
        "first request, or the last 60 seconds.",
        "8.2",
    )
    rate_headers: Literal["always", "success_only", "never"] = declare_switch(
        "always", "Responses with rate limit headers: all, only successful ones, or none.", "8.3"
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

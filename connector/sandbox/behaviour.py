"""Behaviours that the API leaves open, as switches with values and a default.

The fields of `Behaviours` are the registry: the type lists the values, the default is the first
of them, and the metadata holds one sentence and the section of the API that is silent. The
command's help and the table in docs/SANDBOX.md are derived from it. This module decides nothing;
the store, the limits and the application ask it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from connector.errors import SettingsError, UnknownName


def switch(default: str, about: str, section: str) -> Any:
    """Declare a switch; `section` is the API's section that leaves the answer open."""
    return dataclasses.field(default=default, metadata={"about": about, "section": section})


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviours:
    """The sandbox's answer to every question that the API leaves open."""

    # Lists.
    per_page_over: Literal["clamped", "422", "400", "default"] = switch(
        "clamped",
        "A `per_page` above the maximum is clamped, refused with that status, or taken as 20.",
        "8.6",
    )
    per_page_max: Literal["100", "50", "10"] = switch(
        "100", "The largest page that is really served.", "8.6"
    )
    page_invalid: Literal["refused", "first"] = switch(
        "refused",
        "A `page` or `per_page` that is no positive integer is a 422, or taken as the default.",
        "4.1",
    )
    page_past_end: Literal["empty", "404", "last"] = switch(
        "empty", "A page past the end is empty, a 404, or the last page under its number.", "4.1"
    )
    pages_of_nothing: Literal["0", "1"] = switch(
        "0", "The `total_pages` of a list without members.", "4.1"
    )
    total: Literal["exact", "earlier"] = switch(
        "exact",
        "`total` fits the rows, or is counted before the rows are read and writes come between.",
        "4.1",
    )
    sorting: Literal["honoured", "ignored"] = switch(
        "honoured", "`sort` and `order` are honoured, or silently ignored altogether.", "4.1"
    )
    unknown_sort: Literal["ignored", "refused"] = switch(
        "ignored", "A `sort` or `order` outside those listed is ignored, or a 422.", "4.1"
    )
    content_type_sort: Literal["ignored", "refused"] = switch(
        "ignored", "`sort` on `/content-types` is ignored, or a 422.", "4.1"
    )
    ties: Literal["stable", "random"] = switch(
        "stable",
        "Records with equal sort values keep one order, or take another at each request.",
        "4.1",
    )
    unknown_filter_value: Literal["refused", "empty", "ignored"] = switch(
        "refused",
        "A filter value outside those listed is a 422, matches nothing, or is ignored.",
        "4",
    )
    unknown_parameter: Literal["ignored", "refused"] = switch(
        "ignored", "A query parameter that the endpoint does not list is ignored, or a 422.", "4"
    )
    search: Literal["listed", "names", "all"] = switch(
        "listed",
        "`search` looks in the texts of the list item, in names and titles, or in every text.",
        "4.1",
    )
    booking_dates: Literal["start_datetime", "end_datetime", "each", "created_at"] = switch(
        "start_datetime",
        "What `start_date` and `end_date` compare with; `each` compares each with its namesake.",
        "4.5",
    )
    booking_bounds: Literal["inclusive", "exclusive"] = switch(
        "inclusive", "Whether the days `start_date` and `end_date` themselves belong.", "4.5"
    )
    content_type_items: Literal["declared", "without_updated_at"] = switch(
        "declared", "Whether `/content-types` shows `updated_at` in its list.", "2.6"
    )
    # Values.
    timestamp_precision: Literal["microseconds", "milliseconds", "seconds"] = switch(
        "microseconds", "The precision in which timestamps are kept and shown.", "conventions"
    )
    timestamp_suffix: Literal["Z", "offset", "none"] = switch(
        "Z", "Timestamps end in `Z`, in `+00:00`, or in nothing.", "conventions"
    )
    nulls: Literal["null", "absent"] = switch(
        "null", "A field without a value is null, or absent from the answer.", "2"
    )
    extra_fields: Literal["none", "shown"] = switch(
        "none", "Whether answers carry a field that the API does not list.", "9.2"
    )
    empty_strings: Literal["kept", "null"] = switch(
        "kept", "An empty string in a body is kept, or stored as null.", "2"
    )
    whitespace: Literal["kept", "trimmed"] = switch(
        "kept", "White space around a string in a body is kept, or cut off.", "2"
    )
    counters: Literal["live", "moving"] = switch(
        "live",
        "A company's counters change alone, or a change of them moves its `updated_at`.",
        "2.3",
    )
    # Writes.
    unknown_fields: Literal["ignored", "refused"] = switch(
        "ignored", "A body field that the operation does not list is ignored, or a 422.", "4"
    )
    duplicate_emails: Literal["allowed", "refused"] = switch(
        "allowed", "Two records of a resource may share an `email`, or a 422.", "2"
    )
    duplicate_slugs: Literal["allowed", "refused"] = switch(
        "allowed", "Two content items of a type may share a `slug`, or a 422.", "2"
    )
    references: Literal["checked", "unchecked"] = switch(
        "checked", "The id of a related record must exist (422), or may be any.", "2.4"
    )
    formats: Literal["enforced", "email_only"] = switch(
        "enforced",
        "Addresses, currencies, time zones and uuids must be well formed, or emails alone.",
        "2",
    )
    text_length: Literal["unlimited", "255"] = switch(
        "unlimited", "The longest text accepted in a field that list items show.", "2"
    )
    update_choices: Literal["declared", "create", "responses"] = switch(
        "declared",
        "Update accepts the values listed for it, those of create, or all that answers show.",
        "2.1",
    )
    transitions: Literal["any", "restricted"] = switch(
        "any",
        "Any state may follow any other, or the final ones (see below) are never left (422).",
        "3",
    )
    reason_alone: Literal["refused", "accepted"] = switch(
        "refused", "`cancellation_reason` without cancelling is a 422, or accepted.", "2.4"
    )
    empty_update: Literal["moves", "keeps"] = switch(
        "moves", "A PUT with an empty object moves `updated_at`, or leaves it.", "4"
    )
    unchanged_update: Literal["moves", "keeps"] = switch(
        "moves", "A PUT that changes no value moves `updated_at`, or leaves it.", "4"
    )
    content_update: Literal["merged", "replaced"] = switch(
        "merged", "A content item's new `fields` are merged into the old, or replace them.", "4.7"
    )
    delete: Literal["204", "message"] = switch(
        "204", "A delete returns 204 without a body, or 200 with a `message`.", "4.8"
    )
    # Convert.
    convertible: Literal["any", "prospect"] = switch(
        "any", "Any lead can be converted, or only one whose status is `prospect` (422).", "3.5"
    )
    converted_lead: Literal["kept", "active", "deleted"] = switch(
        "kept",
        "A converted lead keeps its status, is stored as `active` with `converted_at`, or goes.",
        "3.5",
    )
    second_convert: Literal["refused", "repeated"] = switch(
        "refused", "Converting a lead again is a 422, or answered as the first time.", "3.5"
    )
    convert_status: Literal["200", "201"] = switch(
        "200", "The status that a convert is answered with.", "4.6"
    )
    convert_fields: Literal["record", "minimal"] = switch(
        "record", "A convert answers with the whole lead, or with the three fields shown.", "4.6"
    )
    # Errors and headers.
    error_bodies: Literal["full", "message", "empty"] = switch(
        "full",
        "Errors other than 422 carry `error` and `message`, `message` alone, or an empty object.",
        "7.3",
    )
    unknown_paths: Literal["json", "html"] = switch(
        "json", "An unknown path is a 404 with an error body, or with an HTML page.", "7.3"
    )
    rate_window: Literal["aligned", "first_request", "sliding"] = switch(
        "aligned", "A minute begins on the clock, with the first request, or slides.", "8.2"
    )
    rate_headers: Literal["always", "success_only", "never"] = switch(
        "always", "Every answer carries the rate headers, only successes do, or none.", "8.3"
    )
    month_reset: Literal["month", "minute"] = switch(
        "month",
        "When the month is spent, the reset shown is the next month's, or the next minute's.",
        "8.3",
    )
    retry_after: Literal["absent", "seconds", "timestamp"] = switch(
        "absent", "A 429 has no `Retry-After`, one in seconds, or one as a Unix time.", "8.3"
    )
    date_header: Literal["shown", "missing"] = switch(
        "shown", "Whether answers carry the `Date` header.", "8.3"
    )

    @classmethod
    def read(cls, given: Mapping[str, str] | Behaviours | None) -> Behaviours:
        """The behaviours of these names and values; the rest have their defaults.

        Raises `UnknownName` for a name or a value that does not exist, with those allowed.
        """
        if isinstance(given, Behaviours):
            return given
        for name, value in (given or {}).items():
            if name not in BEHAVIOURS:
                raise UnknownName("behaviour", name, BEHAVIOURS)
            if value not in BEHAVIOURS[name].values:
                raise UnknownName(f"value of {name}", value, BEHAVIOURS[name].values)
        return cls(**(given or {}))  # type: ignore[arg-type]  # each value was checked above

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Behaviours:
        """The behaviours of `NAME=VALUE` texts, as the command takes them.

        Raises `SettingsError` for a text without `=`, and what `read` raises.
        """
        given = {}
        for text in settings:
            name, equals, value = text.partition("=")
            if not equals:
                raise SettingsError(f"--behaviour takes NAME=VALUE, not {text!r}")
            given[name] = value
        return cls.read(given)


@dataclass(frozen=True, slots=True)
class Switch:
    """One behaviour as the registry holds it; the first of `values` is the default."""

    name: str
    values: tuple[str, ...]
    default: str
    about: str
    section: str


def _switches() -> Iterator[tuple[str, Switch]]:
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


BEHAVIOURS: Mapping[str, Switch] = dict(_switches())
"""Every switch by its name, in the order of the documents."""


def table() -> str:
    """Registry as docs/SANDBOX.md shows it; the first value of each is the default."""
    rows = [
        f"| `{each.name}` | {' · '.join(f'`{v}`' for v in each.values)} "
        f"| {each.about} | {each.section} |"
        for each in BEHAVIOURS.values()
    ]
    return "\n".join(("| Name | Values | What it decides | API |", "|---|---|---|---|", *rows))

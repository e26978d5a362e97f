"""Whom the personal fields of each resource tell of.

The class of a field stands in its declaration (`personal=`); whose it is stands here, since one
record can tell of several people: a booking has the candidate whom it is about, and the client's
own contact. A test holds that every personal field that answers show has an owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connector.catalog import CATALOG


@dataclass(frozen=True, slots=True)
class Group:
    """Fields of a record that tell of one person, and those by which that person is known.

    `about` is a sentence's end for people: whom they tell of. The person is known by an id in one
    of `ids` or by an address in one of `emails`. `phones` have numbers of theirs, and each of
    `names` is a set of fields that make a name: other people may have both as well. `is_whole` says
    that the record is that person, so that what nobody has declared in it is the person's as well.
    """

    about: str
    fields: tuple[str, ...]
    ids: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    is_whole: bool = False


def _personal(resource: str) -> tuple[str, ...]:
    fields = CATALOG[resource].fields.values()
    return tuple(each.name for each in fields if each.personal is not None)


def _one_person(resource: str, about: str) -> Group:
    """The one group of a resource whose records are people."""
    return Group(
        about,
        _personal(resource),
        ids=("id",),
        emails=("email",),
        phones=("phone", "mobile"),
        names=(("first_name", "last_name"),),
        is_whole=True,
    )


_MEETING = ("meeting_link", "meeting_id", "meeting_password", "meeting_join_url")
_SAID = ("title", "description", "contract_notes", "requirements", "internal_notes")

GROUPS: Mapping[str, tuple[Group, ...]] = {
    "candidates": (_one_person("candidates", "the candidate"),),
    "leads": (_one_person("leads", "the lead"),),
    "companies": (
        Group(
            "the company's contact",
            (
                *("primary_contact_name", "primary_contact_email", "primary_contact_phone"),
                "primary_contact_title",
            ),
            emails=("primary_contact_email",),
            phones=("primary_contact_phone",),
            names=(("primary_contact_name",),),
        ),
        # An office's address is one person's only where that very address is to be erased, and
        # no candidate or lead has it.
        Group("whoever has the address", ("email",), emails=("email",)),
        Group("whoever has the address", ("billing_email",), emails=("billing_email",)),
        Group(
            "the company, if its id is given",
            _personal("companies"),
            ids=("id",),
            phones=("phone",),
        ),
    ),
    "bookings": (
        Group(
            "the client's contact",
            ("contact_name", "contact_email", "contact_phone"),
            emails=("contact_email",),
            phones=("contact_phone",),
            names=(("contact_name",),),
        ),
        # What was agreed to be paid stays: invoices and fees rest on it, and without the person
        # it is a figure of the agency's contract with its client.
        Group(
            "the candidate or lead whom it is about",
            (*_SAID, *_MEETING, "cancellation_reason"),
            ids=("candidate_id", "lead_id"),
        ),
        Group("the booking, if its id is given", _personal("bookings"), ids=("id",)),
    ),
}
"""By resource, the groups of its personal fields. Other resources tell of nobody but in texts."""


def groups_of(resource: str) -> tuple[Group, ...]:
    """The groups of a resource; none where its fields tell of nobody."""
    return GROUPS.get(resource, ())

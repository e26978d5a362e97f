"""Sample data of an invented agency: records of every resource, with their relations and times.

The same seed, counts and day create the same records. Related records exist, imported records share
one timestamp, statuses are distributed as in a real agency, and every record is at least an hour
old. The words, and how most fields are made of them, are in `words.toml`. Other fields of the
catalog get values from their declaration.
"""

from __future__ import annotations

import json
import random as chance
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import NAMESPACE_DNS, UUID, uuid5

from connector.catalog import CATALOG, REFERENCES, REFERRED_FIRST
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.errors import SettingsError, UnknownName
from connector.sandbox.checks import Body, make_slug
from connector.sandbox.store import Store

T = TypeVar("T")
Times = tuple[datetime, datetime]
"""When a record was created, and when it was last changed."""

COUNTS_DEFAULT: Mapping[str, int] = MappingProxyType(
    {name: each.sandbox_count for name, each in CATALOG.items()}
)
"""Default number of sample records by resource."""

USERS = tuple(str(uuid5(NAMESPACE_DNS, f"user-{n}.example.com")) for n in range(8))
"""The consultants to whom records are assigned; users have no endpoint."""

LEAD_STATUSES = tuple(str(uuid5(NAMESPACE_DNS, f"lead-status-{n}.example.com")) for n in range(5))
"""The agency's own list of lead statuses; it has no endpoint."""

FIELD_TYPES: tuple[str, ...] = ContentTypeField.fields_declared["field_type"].values
"""Every `field_type` that the API names (API 2.6)."""


def _load_words() -> dict[str, Any]:
    """Return the lists of words by name. A value with a weight is repeated accordingly."""
    with (Path(__file__).parent / "words.toml").open("rb") as file:
        words = tomllib.load(file)
    for name, shares in words.pop("weights").items():
        words[name] = [value for value, share in shares.items() for _ in range(share)]
    return words


WORDS = _load_words()
RECORDS: Mapping[str, Mapping[str, str]] = WORDS.pop("records")
"""How the fields of a record are made, by name; `Draw.make` explains the texts."""
HANDLES = {
    name: make_slug(name).replace("untitled", WORDS["foreign_name"])
    for name in (*WORDS["first_names"], *WORDS["last_names"])
}
"""Each name in the form that email addresses have."""

_SHARE = re.compile(r"(\d+)% ")
_PART = re.compile(r"{([^{}:]+):?([^{}]*)}")
_DAYS = 730
_LATENESS = timedelta(hours=1)
_IMPORT_MIN = 150
_IMPORT_SHARE = 0.3
_EDIT_SHARE = 0.1
# Of the records that neither an import nor a bulk edit made, those never changed since.
_UNTOUCHED_SHARE = 0.35


def seed_store(store: Store, counts: Mapping[str, int], *, seed: int) -> None:
    """Fill an empty store with these numbers of sample records by resource.

    Raises:
        UnknownName: A resource does not exist.
        SettingsError: A number is negative, or content items have no content type.
    """
    for name, number in counts.items():
        if name not in CATALOG:
            raise UnknownName("resource", name, CATALOG)
        if number < 0:
            raise SettingsError(f"The number of {name} is {number}; it must be 0 or more.")
    if counts.get("content_items") and not counts.get("content_types"):
        raise SettingsError("Content items need at least one content type.")
    # A midnight, so that data of the same day is equal.
    anchor = (store.clock() - _LATENESS).replace(hour=0, minute=0, second=0, microsecond=0)
    # Not the store's own generator: the number of records must not change later ids.
    draw = Draw(chance.Random(seed), anchor)  # noqa: S311  # made-up people are no secrets
    for name in REFERRED_FIRST:
        times = _draw_times(draw, counts.get(name, 0))
        store.load(name, (_make_record(name, draw, n, *each) for n, each in enumerate(times)))


def _draw_times(draw: Draw, count: int) -> Sequence[Times]:
    """Draw the creation and change times of records, in order of creation.

    30 % of the records come from imports, which give a group the same times. 10 % were last changed
    by a bulk edit, which gives a group the same `updated_at`. Large groups fill more than a page.
    """
    first = draw.anchor - timedelta(days=_DAYS)
    span = _DAYS * 24 * 3600.0

    def moment(after: float = 0.0) -> float:
        return after + draw.random() * (span - after)

    seconds: list[tuple[float, float]] = []
    for size in _group_sizes(int(count * _IMPORT_SHARE)):
        seconds += [(at := moment(), at)] * size
    for size in _group_sizes(int(count * _EDIT_SHARE)):
        edited = moment(span / 2)
        seconds += [(draw.random() * edited, edited) for _ in range(size)]
    while len(seconds) < count:
        created = moment()
        is_untouched = draw.random() < _UNTOUCHED_SHARE
        seconds.append((created, created if is_untouched else moment(created)))
    seconds.sort()
    return [(first + timedelta(seconds=c), first + timedelta(seconds=u)) for c, u in seconds]


def _group_sizes(total: int) -> Iterator[int]:
    """Yield sizes of groups with the sum `total`: one group if it is small, else 150 and more."""
    while total > 0:
        size = total if total < 2 * _IMPORT_MIN else max(_IMPORT_MIN, total // 6)
        yield min(size, total)
        total -= size


class Draw:
    """Random values, and what was made so far of the agency, to which later records refer."""

    def __init__(self, source: chance.Random, anchor: datetime) -> None:
        self.anchor = anchor
        self.ids: dict[str, list[str]] = defaultdict(list)
        self.jobs: list[tuple[str, str | None]] = []
        self.types: list[tuple[str, list[Body]]] = []
        self.random = source.random
        self._bits = source.getrandbits
        self._emails: list[str] = []

    def choice(self, options: Sequence[T]) -> T:
        """Return a random option."""
        return options[int(self.random() * len(options))]

    def word(self, name: str) -> Any:
        """Return a random word of a list."""
        return self.choice(WORDS[name])

    def maybe(self, share: float, value: T) -> T | None:
        """Return the value with this probability, else None."""
        return value if self.random() < share else None

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + int(self.random() * (high - low + 1))

    def yes(self, share: float = 0.5) -> bool:
        """Return True with this probability."""
        return self.random() < share

    def user(self) -> str:
        """Return the id of a random consultant."""
        return self.choice(USERS)

    def id(self) -> str:
        """Return a random UUID."""
        return str(UUID(int=self._bits(128), version=4))

    def day(self, near: datetime, low: int, high: int) -> str:
        """Return a date between `low` and `high` days after `near`, as YYYY-MM-DD."""
        return (near.date() + timedelta(days=self.integer(low, high))).isoformat()

    def text(self) -> str | None:
        """Return one to three sentences, sometimes None, an empty or a very long text."""
        share = self.random()
        if share < 0.35:
            return None
        if share < 0.42:
            return ""
        if share > 0.985:
            return "\n\n".join(self.word("sentences") for _ in range(120))
        return " ".join(self.word("sentences") for _ in range(self.integer(1, 3)))

    def phone(self) -> str | None:
        """Return a telephone number in a common notation, an empty text or None."""
        number = self.integer(0, 999)
        form = self.choice(
            ("+44 7700 900{:03d}", "07700 900{:03d}", "(020) 7946 0{:03d}", "", None)
        )
        return form.format(number) if form else form

    def skill_list(self) -> str:
        """Return a few skills, with a random separator."""
        separator = self.choice((", ", "; ", " / ", "\n"))
        return separator.join(self.word("skills") for _ in range(self.integer(1, 5)))

    def email(self, first: str, last: str, number: int) -> str:
        """Return an email address. One in a hundred is that of an earlier record."""
        if self._emails and self.yes(0.01):
            return self.choice(self._emails)
        email = f"{HANDLES[first]}.{HANDLES[last]}{number}@{self.word('mail_domains')}"
        if self.yes(0.03):
            email = email.upper()
        self._emails.append(email)
        return email

    def record(self, kind: str, /, **known: Any) -> Body:
        """Return the fields that `RECORDS` describes, made in their order."""
        return {field: self.make(text, known) for field, text in RECORDS[kind].items()}

    def make(self, text: str, known: Mapping[str, Any]) -> Any:
        """Return a random value from its description.

        A description is a list of words, or a text with parts in braces. A part is a known value, a
        list of words, a range such as `1..5`, or a method of this class with its arguments. After
        `30% `, the value is None in 70 % of the records.
        """
        if share := _SHARE.match(text):
            value = self.make(text[share.end() :], known)
            return self.maybe(int(share[1]) / 100, value)
        if text in WORDS:
            return self.word(text)
        if (part := _PART.fullmatch(text)) and not part[2]:
            return self._make_part(part[1], known)
        return _PART.sub(lambda part: format(self._make_part(part[1], known), part[2]), text)

    def _make_part(self, part: str, known: Mapping[str, Any]) -> Any:
        if part in known:
            return known[part]() if callable(known[part]) else known[part]
        if part in WORDS:
            return self.word(part)
        if ".." in part:
            return self.integer(*map(int, part.split("..")))
        match part.split():
            case ["yes", share]:
                return self.yes(int(share) / 100)
            case ["day", near, low, high]:
                return self.day(known[near], int(low), int(high))
        return getattr(self, part)()


# -- Records ---------------------------------------------------------------------------------------
# The order of the draws decides the values: a new draw changes every record after it.


def _make_company(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    name = f"{draw.word('company_heads')} {draw.word('company_tails')}"
    first, last = draw.word("first_names"), draw.word("last_names")
    return draw.record(
        "company",
        name=name if number % 7 else f"{name} ({number})",
        plain_name=name,
        upper_name=name.upper(),
        slug=make_slug(name),
        domain=f"{make_slug(name)}-{number}.example",
        contact=f"{first} {last}",
        handle=f"{HANDLES[first]}.{HANDLES[last]}",
        created=created,
        anchor=draw.anchor,
    )


def _make_job(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    """Make a job, usually of a random company."""
    companies = draw.ids["companies"]
    title = draw.word("ranks") + draw.word("roles")
    status = draw.word("job_statuses")
    record = {
        **draw.record("job", title=title, number=number),
        **_make_pay(draw),
        **draw.record(
            "advert",
            title=title,
            number=number,
            status=status,
            fee=lambda: draw.integer(2000, 30000) + 0.75,
            published_at=None if status == "draft" else created,
            company_id=lambda: draw.choice(companies) if companies and draw.yes(0.96) else None,
            created=created,
        ),
    }
    record["description"] = record["description"] or "Our client is hiring. 'Great' team."
    record["slug"] = f"{make_slug(title)}-{record['id'][:8]}"
    draw.jobs.append((record["id"], record["company_id"]))
    return record


def _make_pay(draw: Draw) -> Body:
    salary = draw.integer(18, 120) * 1000
    rate = draw.integer(15, 90) * 10 + draw.choice((0, 0, 0.5))
    is_contract = draw.yes(0.3)
    return {
        "salary_min": None if is_contract else salary,
        "salary_max": None if is_contract else salary + draw.integer(0, 20) * 500.5,
        "salary_currency": None if is_contract else draw.word("currencies"),
        "salary_type": draw.maybe(0.7, draw.word("salary_types")),
        "show_salary": draw.maybe(0.8, draw.yes()),
        "day_rate_min": rate if is_contract else None,
        "day_rate_max": rate + 75 if is_contract else None,
        "rate_currency": draw.word("currencies") if is_contract else None,
    }


def _make_candidate(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    last, id = draw.word("last_names"), draw.id()
    first, cities = draw.word("first_names"), [draw.word("cities"), draw.word("cities")]
    person = draw.record(
        "person",
        first=first,
        last=last,
        number=number,
        email=lambda: draw.email(first, last, number),
        handle=f"{HANDLES[first]}-{HANDLES[last]}-{number}",
        district=number % 99,
        born=date(1955 + number % 50, 1 + number % 12, 1 + number % 28).isoformat(),
        cities=", ".join(cities),
    )
    salary, rate = draw.integer(16, 110) * 1000, draw.integer(12, 95) * 10
    is_contractor = draw.yes(0.35)
    work = draw.record(
        "work",
        salary=salary,
        expected_salary=salary * 1.125,
        rate=rate if is_contractor else None,
        expected_rate=rate + 25.5 if is_contractor else None,
        rate_currency=lambda: draw.word("currencies") if is_contractor else None,
        created=created,
    )
    candidate = draw.record("candidate", created=created, number=number, last=last)
    return {"id": id, **person, **work, **candidate}


def _make_lead(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    """Make a lead: a person, a business, or both."""
    first, last = draw.word("first_names"), draw.word("last_names")
    business = f"{draw.word('company_heads')} {draw.word('company_tails')}"
    form = draw.integer(0, 3)
    is_business = form in (0, 3)
    return draw.record(
        "lead",
        number=number,
        city=draw.word("cities"),
        address=f"{draw.integer(1, 240)} {draw.word('streets')}",
        email=lambda: draw.email(first, last, number),
        lead_status=lambda: draw.choice(LEAD_STATUSES),
        first_name=None if form == 0 else first,
        last_name=None if form in (0, 1) else last,
        company_name=lambda: business if is_business else draw.choice((None, "")),
        customer_type="business" if is_business else "individual",
        slug=make_slug(business),
        contacted=created + (updated - created) / 2,
    )


def _make_booking(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    """Make a booking; only one with all three relations is an interview, contract or placement."""
    companies, candidates, leads = (draw.ids[n] for n in ("companies", "candidates", "leads"))
    kind = draw.word("booking_types")
    job_id, company_id = draw.choice(draw.jobs) if draw.jobs else (None, None)
    if company_id is None and companies:
        company_id = draw.choice(companies)
    candidate_id = draw.choice(candidates) if candidates else None
    is_placed = kind in ("interview", "contract", "permanent")
    if is_placed and None in (job_id, company_id, candidate_id):
        kind, is_placed = "internal", False
    start = created + timedelta(days=draw.integer(1, 60), minutes=draw.integer(-20, 20) * 15)
    start = start.replace(second=0, microsecond=0)
    status = draw.word("past_statuses" if start < draw.anchor else "coming_statuses")
    booking = draw.record(
        "booking",
        number=number,
        kind=kind,
        kind_title=kind.replace("_", " ").title(),
        is_visit=kind == "site_visit",
        candidate_id=candidate_id if is_placed else None,
        job_id=job_id if is_placed else None,
        company_id=company_id if is_placed or kind == "site_visit" else None,
        lead_id=lambda: draw.choice(leads) if leads and kind == "consultation" else None,
        start=start,
        status=status,
        reason=lambda: draw.word("sentences") if status == "cancelled" else None,
    )
    of_type = dict.fromkeys(WORDS["fields_of_booking_types"])
    return booking | of_type | _make_fields_of_type(draw, kind, start)


def _make_fields_of_type(draw: Draw, kind: str, start: datetime) -> Body:
    if kind == "interview":
        meeting = draw.word("meeting_platforms")
        number = f"{draw.integer(0, 9_999_999_999):010d}"
        is_online = draw.yes(0.5)
        interview = draw.record(
            "interview",
            end=lambda: start + timedelta(minutes=draw.choice((30, 45, 60, 90))),
            form=lambda: "video" if is_online else draw.choice(("phone", "in_person")),
        )
        meet = {"platform": meeting, "number": number, "password": number[::-1][:6]}
        return interview | (draw.record("online", **meet) if is_online else {})
    if kind == "contract":
        days, rate = draw.integer(20, 220), draw.integer(20, 90) * 10 + 0.5
        end = start + timedelta(days=days)
        return draw.record("contract", end=end, rate=rate, value=rate * days)
    if kind == "permanent":
        salary = draw.integer(20, 120) * 1000
        return draw.record("permanent", start=start, salary=salary, fee=salary * 0.175)
    return {"end_datetime": draw.maybe(0.6, start + timedelta(hours=draw.integer(1, 8)))}


def _make_content_type(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    """Make a content type, with one field of every `field_type`."""
    names = WORDS["content_types"]
    name, slug, about, icon = names[number % len(names)]
    suffix = f" {number // len(names) + 1}" if number >= len(names) else ""
    fields = [_make_content_field(draw, field_type, n) for n, field_type in enumerate(FIELD_TYPES)]
    id = draw.id()
    draw.types.append((id, fields))
    return {
        "id": id,
        "name": name + suffix,
        "slug": slug + suffix.replace(" ", "-"),
        "description": about,
        "icon": draw.maybe(0.9, icon),
        "is_system": number == 0,
        "is_active": draw.yes(0.9),
        "fields": fields,
    }


def _make_content_field(draw: Draw, field_type: str, number: int) -> Body:
    name = field_type.replace("_", " ").capitalize()
    config: Body = {}
    if field_type in ("select", "multi_select"):
        config = {"options": WORDS["options"]}
    elif field_type in ("text", "textarea"):
        config = {"max_length": 500}
    return {
        "id": draw.id(),
        "name": f"{name} field",
        "field_key": f"{field_type}_value",
        "field_type": field_type,
        "is_required": field_type == "text",
        "is_title_field": field_type == "text",
        "placeholder": draw.maybe(0.5, f'e.g. "{name}"'),
        "help_text": draw.maybe(0.5, "Shown below the form's field; keep it short."),
        "config": json.dumps(config) if config else draw.choice(("{}", None)),
        "display_order": number,
    }


def _make_content_item(draw: Draw, number: int, created: datetime, updated: datetime) -> Body:
    """Make a content item of one of the types; every value fits its field."""
    _, fields = draw.types[number % len(draw.types)]
    title = f"{draw.word('item_titles')} #{number}"
    status = draw.word("content_states")
    values = {
        each["field_key"]: draw.make(RECORDS["values"][each["field_type"]], _special_values(draw))
        for each in fields
        if each["is_required"] or draw.yes(0.7)
    }
    return {
        "id": draw.id(),
        "title": title,
        "slug": make_slug(title),
        "status": status,
        "published_at": created if status == "published" else None,
        "fields": values,
    }


def _special_values(draw: Draw) -> dict[str, Callable[[], Any]]:
    """Return the values of content fields that no text can describe."""
    return {
        "options_chosen": lambda: [each for each in WORDS["options"] if draw.yes()],
        "true_or_none": lambda: draw.choice((True, False, None)),
    }


_MAKERS: Mapping[str, Callable[[Draw, int, datetime, datetime], Body]] = {
    "companies": _make_company,
    "jobs": _make_job,
    "candidates": _make_candidate,
    "leads": _make_lead,
    "bookings": _make_booking,
    "content_types": _make_content_type,
    "content_items": _make_content_item,
}


def _make_record(
    name: str, draw: Draw, number: int, created: datetime, updated: datetime
) -> tuple[Body, str | None]:
    """Make a record of any resource, and return it with the id of its content type, if any.

    Fields without a maker get values from their declaration.
    """
    parent = draw.types[number % len(draw.types)][0] if CATALOG[name].parent else None
    maker = _MAKERS.get(name)
    record: Body = maker(draw, number, created, updated) if maker else {"id": draw.id()}
    record |= {"created_at": created, "updated_at": updated}
    for each in CATALOG[name].fields.values():
        if each.name not in record and not each.is_computed:
            # Its own source, so that a new field changes no other value of the agency.
            own = Draw(chance.Random(f"{each.name} {record['id']}"), created)  # noqa: S311
            record[each.name] = _make_declared_value(each, own, draw.ids)
    draw.ids[name].append(record["id"])
    return record, parent


def _make_declared_value(declared: Field, draw: Draw, ids: Mapping[str, list[str]]) -> Any:
    if declared.nullable and draw.yes(0.2):
        return None
    if declared.values:
        return draw.choice(declared.values)
    if declared.name in REFERENCES:
        known = ids[REFERENCES[declared.name]]
        return draw.choice(known) if known else None
    return _DECLARED_VALUES[declared.format or declared.kind](draw)


_DECLARED_VALUES: Mapping[str, Callable[[Draw], Any]] = {
    "email": lambda draw: draw.make("{mail_boxes}@{mail_domains}", {}),
    "url": lambda draw: draw.make("https://{mail_domains}/{1..9999}", {}),
    "currency": lambda draw: draw.word("currencies"),
    "timezone": lambda draw: draw.word("timezones"),
    "json": lambda draw: json.dumps({"size": draw.integer(1, 9)}),
    Kind.UUID: Draw.user,
    Kind.STRING: lambda draw: draw.word("sentences"),
    Kind.NUMBER: lambda draw: draw.integer(0, 4000) / 4,
    Kind.INTEGER: lambda draw: draw.integer(0, 400),
    Kind.BOOL: lambda draw: draw.yes(),
    Kind.DATE: lambda draw: draw.day(draw.anchor, -100, 100),
    Kind.DATETIME: lambda draw: draw.anchor + timedelta(minutes=15 * draw.integer(-900, 900)),
    Kind.ARRAY: lambda draw: [],
    Kind.OBJECT: lambda draw: {},
}

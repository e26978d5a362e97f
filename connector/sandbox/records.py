"""Made-up records of each resource as stored: believable, awkward, consistent.

Each maker takes the draw, the agency so far, the record's number and its two times, and returns
the record with its content type's id, if it has one. A field that no maker knows, and all of a
resource without a maker, is made up from its declaration. How many records there are and when they
were made is `seed.py`'s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from connector.catalog import REFERENCES
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.sandbox import vocabulary as words
from connector.sandbox.random_values import (
    HANDLES,
    LEAD_STATUSES,
    USERS,
    AgencyContext,
    RandomValues,
)
from connector.sandbox.record_table import Stored
from connector.sandbox.validation import slug

Made = tuple[Stored, str | None]
"""A record, and the id of its content type: None for all resources but content items."""


def make_dates(draw: RandomValues, created: datetime, updated: datetime) -> Stored:
    """Make the fields that every record has (API 2)."""
    return {"id": draw.id(), "created_at": created, "updated_at": updated}


def make_company(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a client company."""
    name = f"{draw.choice(words.COMPANY_HEADS)} {draw.choice(words.COMPANY_TAILS)}"
    domain = f"{slug(name)}-{number}.example"
    first, last = draw.choice(words.FIRST_NAMES), draw.choice(words.LAST_NAMES)
    record = {
        **make_dates(draw, created, updated),
        "name": name if number % 7 else f"{name} ({number})",
        "email": f"office@{domain}",
        "legal_name": draw.maybe(0.6, name.upper()),
        "trading_name": draw.maybe(0.3, name),
        # Leading zeros matter.
        "company_number": draw.maybe(0.7, f"{draw.integer(0, 9_999_999):08d}"),
        "phone": draw.phone(),
        "website": draw.maybe(0.8, f"https://www.{domain}/"),
        "industry": draw.maybe(0.9, draw.choice(words.TRADES)),
        "description": draw.text(),
        "company_size": draw.maybe(0.8, draw.choice(words.COMPANY_SIZES)),
        "founded_year": draw.maybe(0.6, draw.integer(1871, 2023)),
        "primary_contact_name": draw.maybe(0.8, f"{first} {last}"),
        "primary_contact_email": draw.maybe(0.7, f"{HANDLES[first]}.{HANDLES[last]}@{domain}"),
        "primary_contact_phone": draw.phone(),
        "primary_contact_title": draw.maybe(0.5, draw.choice(words.ROLES)),
        "status": draw.choice(words.COMPANY_STATUSES),
        "billing_email": draw.maybe(0.5, f"accounts@{domain}"),
        "payment_terms": draw.maybe(0.7, draw.choice(words.PAYMENT_TERMS)),
        "contract_start_date": draw.maybe(0.5, draw.day(created, -200, 30)),
        "contract_end_date": draw.maybe(0.3, draw.day(agency.anchor, -100, 700)),
        "fee_percentage": draw.maybe(0.7, draw.choice((12.5, 15, 17.5, 20, 22.25, 25))),
        "fee_type": draw.maybe(0.7, draw.choice(("percentage", "percentage", "fixed", "retainer"))),
        "network_url": draw.maybe(0.4, f"https://network.example/company/{slug(name)}"),
        "social_url": draw.maybe(0.2, f"https://social.example/{slug(name)}"),
        "internal_notes": draw.text(),
        "tags": draw.maybe(0.5, draw.choice(words.TAGS)),
        "account_manager_id": draw.maybe(0.8, draw.choice(USERS)),
    }
    return record, None


def make_job(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a vacancy of a company, if there are companies."""
    companies = agency.ids["companies"]
    title = draw.choice(words.RANKS) + draw.choice(words.ROLES)
    status = draw.choice(words.JOB_STATUSES)
    record = {
        **make_dates(draw, created, updated),
        "title": title,
        "reference_code": draw.maybe(0.9, f"{draw.choice(('JOB', 'REF', '00'))}-{number:05d}"),
        "department": draw.maybe(0.5, draw.choice(words.DEPARTMENTS)),
        "location": draw.choice(words.CITIES),
        "remote_type": draw.maybe(0.8, draw.choice(("on_site", "remote", "hybrid", "hybrid"))),
        "employment_type": draw.choice(words.EMPLOYMENT_TYPES),
        "experience_level": draw.maybe(
            0.7, draw.choice(("entry", "mid", "mid", "senior", "lead", "executive"))
        ),
        **_pay(draw),
        "fee_type": draw.maybe(0.8, draw.choice(("percentage", "percentage", "fixed"))),
        "fee_percentage": draw.maybe(0.6, draw.choice((15, 17.5, 20, 33.333))),
        "placement_fee": draw.maybe(0.3, draw.integer(2000, 30000) + 0.75),
        "description": draw.text() or "Our client is hiring. 'Great' team.",
        "requirements": draw.text(),
        "responsibilities": draw.text(),
        "benefits": draw.text(),
        "positions_available": draw.maybe(0.8, draw.integer(1, 6)),
        "application_deadline": draw.maybe(0.5, draw.day(created, 10, 90)),
        "start_date": draw.maybe(0.5, draw.day(created, 30, 200)),
        "required_skills": draw.maybe(0.8, draw.skills()),
        "preferred_skills": draw.maybe(0.4, draw.skills()),
        "qualifications": draw.maybe(0.4, draw.choice(words.QUALIFICATIONS)),
        "status": status,
        "published_at": None if status == "draft" else created,
        "allow_applications": draw.maybe(0.9, draw.yes(0.8)),
        "enable_public_page": draw.maybe(0.9, draw.yes(0.7)),
        "company_id": draw.choice(companies) if companies and draw.yes(0.96) else None,
        "assigned_to": draw.maybe(0.85, draw.choice(USERS)),
        "application_email": draw.maybe(0.3, f"apply+{number}@example.com"),
        "application_url": draw.maybe(0.2, f"https://jobs.example.com/{number}/apply"),
        "enable_ai_matching": draw.maybe(0.4, draw.yes()),
        "meta_title": draw.maybe(0.2, title),
        "meta_description": draw.maybe(0.1, "Apply today!"),
        "featured": draw.maybe(0.5, draw.yes(0.1)),
        "internal_notes": draw.text(),
    }
    record["slug"] = f"{slug(title)}-{record['id'][:8]}"
    agency.jobs.append((record["id"], record["company_id"]))
    return record, None


def _pay(draw: RandomValues) -> Stored:
    """Make the pay of a job: a salary, or a day rate."""
    salary = draw.integer(18, 120) * 1000
    rate = draw.integer(15, 90) * 10 + draw.choice((0, 0, 0.5))
    is_contract = draw.yes(0.3)
    return {
        "salary_min": None if is_contract else salary,
        "salary_max": None if is_contract else salary + draw.integer(0, 20) * 500.5,
        "salary_currency": None if is_contract else draw.choice(words.CURRENCIES),
        "salary_type": draw.maybe(0.7, draw.choice(("annual", "annual", "monthly", "hourly"))),
        "show_salary": draw.maybe(0.8, draw.yes()),
        "day_rate_min": rate if is_contract else None,
        "day_rate_max": rate + 75 if is_contract else None,
        "rate_currency": draw.choice(words.CURRENCIES) if is_contract else None,
    }


def make_candidate(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a candidate."""
    last = draw.choice(words.LAST_NAMES)
    record = {
        **make_dates(draw, created, updated),
        **_person(draw, agency, number, last),
        **_work(draw, created),
        "cv_file_path": draw.maybe(0.6, f"cvs/{created.year}/{number:06d} {last}.pdf"),
        "status": draw.choice(words.CANDIDATE_STATUSES),
        "source": draw.maybe(0.85, draw.choice(words.SOURCES)),
        "rating": draw.maybe(0.5, draw.integer(1, 5)),
        "ir35_status": draw.maybe(
            0.3, draw.choice(("inside", "outside", "unknown", "not_applicable"))
        ),
        "umbrella_company": draw.maybe(0.08, "Brolly & Co Umbrella"),
        "limited_company_name": draw.maybe(0.08, f"{last} Consulting Ltd"),
        "notes": draw.text(),
        "internal_notes": draw.text(),
        "assigned_to": draw.maybe(0.8, draw.choice(USERS)),
    }
    return record, None


def _person(draw: RandomValues, agency: AgencyContext, number: int, last: str) -> Stored:
    """Make the candidate's personal fields."""
    first = draw.choice(words.FIRST_NAMES)
    handle = f"{HANDLES[first]}-{HANDLES[last]}-{number}"
    born = date(1955 + number % 50, 1 + number % 12, 1 + number % 28)
    cities = f"{draw.choice(words.CITIES)}, {draw.choice(words.CITIES)}"
    return {
        "first_name": first,
        "last_name": last,
        "email": agency.email(draw, first, last, number),
        "phone": draw.phone(),
        "mobile": draw.phone(),
        "address_line1": draw.maybe(0.5, f"{draw.integer(1, 240)} {draw.choice(words.STREETS)}"),
        "address_line2": draw.maybe(0.15, f"Flat {draw.integer(1, 40)}, 2/F"),
        "city": draw.maybe(0.7, draw.choice(words.CITIES)),
        "state_province": draw.maybe(0.4, draw.choice(words.COUNTIES)),
        "postal_code": draw.maybe(0.6, f"{draw.choice(('SW', 'M', 'BS', '0'))}{number % 99} 1AA"),
        "country": draw.maybe(0.7, draw.choice(words.COUNTRIES)),
        "network_url": draw.maybe(0.4, f"https://network.example/in/{handle}"),
        "code_host_url": draw.maybe(0.1, f"https://code.example/{handle}"),
        "portfolio_url": draw.maybe(0.1, f"http://{handle}.example/portfolio?lang=fr"),
        "date_of_birth": draw.maybe(0.3, born.isoformat()),
        "nationality": draw.maybe(0.4, draw.choice(words.NATIONALITIES)),
        "preferred_locations": draw.maybe(0.5, cities),
        "willing_to_relocate": draw.maybe(0.6, draw.yes(0.3)),
        "right_to_work": draw.maybe(0.6, draw.choice(("UK citizen", "Settled status", "Visa", ""))),
        "security_clearance": draw.maybe(0.15, draw.choice(("SC", "DV", "BPSS"))),
        "languages": draw.maybe(0.4, draw.choice(words.LANGUAGES)),
    }


def _work(draw: RandomValues, created: datetime) -> Stored:
    """Make the candidate's fields about work and pay."""
    salary = draw.integer(16, 110) * 1000
    rate = draw.integer(12, 95) * 10
    is_contractor = draw.yes(0.35)
    return {
        "employment_type": draw.choice(words.EMPLOYMENT_TYPES),
        "employment_status": draw.maybe(0.85, draw.choice(words.EMPLOYMENT_STATUSES)),
        "current_salary": draw.maybe(0.5, salary),
        "expected_salary": draw.maybe(0.5, salary * 1.125),
        "salary_currency": draw.maybe(0.5, draw.choice(words.CURRENCIES)),
        "current_day_rate": rate if is_contractor else None,
        "expected_day_rate": rate + 25.5 if is_contractor else None,
        "rate_currency": draw.choice(words.CURRENCIES) if is_contractor else None,
        "notice_period_days": draw.maybe(0.6, draw.choice((0, 7, 14, 28, 30, 60, 90))),
        "available_from": draw.maybe(0.5, draw.day(created, 0, 180)),
        "current_job_title": draw.maybe(0.85, draw.choice(words.RANKS) + draw.choice(words.ROLES)),
        "current_company": draw.maybe(0.75, draw.choice(words.COMPANY_HEADS)),
        "years_of_experience": draw.maybe(0.8, draw.integer(0, 41)),
        "industry": draw.maybe(0.8, draw.choice(words.TRADES)),
        "skills": draw.maybe(0.85, draw.skills()),
        "qualifications": draw.maybe(0.5, draw.choice(words.QUALIFICATIONS)),
    }


def make_lead(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a lead: a person, a business, or both."""
    first, last = draw.choice(words.FIRST_NAMES), draw.choice(words.LAST_NAMES)
    business = f"{draw.choice(words.COMPANY_HEADS)} {draw.choice(words.COMPANY_TAILS)}"
    form = draw.integer(0, 3)
    city = draw.choice(words.CITIES)
    address = f"{draw.integer(1, 240)} {draw.choice(words.STREETS)}"
    record = {
        **make_dates(draw, created, updated),
        "email": agency.email(draw, first, last, number),
        "lead_status_id": draw.choice(LEAD_STATUSES),
        "first_name": None if form == 0 else first,
        "last_name": None if form in (0, 1) else last,
        "company_name": business if form in (0, 3) else draw.choice((None, "")),
        "phone": draw.phone(),
        "mobile": draw.phone(),
        "customer_type": draw.maybe(0.8, "business" if form in (0, 3) else "individual"),
        "status": draw.choice(words.LEAD_STATES),
        "address": draw.maybe(0.5, address),
        "city": draw.maybe(0.6, city),
        "county": draw.maybe(0.3, draw.choice(words.COUNTIES)),
        "postcode": draw.maybe(0.5, f"LS{draw.integer(1, 28)} 4DY"),
        "country": draw.maybe(0.6, draw.choice(words.COUNTRIES)),
        "website": draw.maybe(0.4, f"https://www.{slug(business)}.example"),
        "network_url": draw.maybe(0.2, f"https://network.example/in/lead-{number}"),
        "billing_address": draw.maybe(0.2, f"{address}\nBilling dept."),
        "billing_city": draw.maybe(0.2, city),
        "billing_county": draw.maybe(0.1, draw.choice(words.COUNTIES)),
        "billing_postcode": draw.maybe(0.2, f"M{draw.integer(1, 60)} 2WD"),
        "billing_country": draw.maybe(0.2, draw.choice(words.COUNTRIES)),
        "industry": draw.maybe(0.6, draw.choice(words.TRADES)),
        "job_title": draw.maybe(0.5, draw.choice(words.ROLES)),
        "notes": draw.text(),
        "source": draw.maybe(0.85, draw.choice(words.SOURCES)),
        "tags": draw.maybe(0.4, draw.choice(words.TAGS)),
        "assigned_to": draw.maybe(0.8, draw.choice(USERS)),
        "last_contacted_at": draw.maybe(0.6, created + (updated - created) / 2),
    }
    return record, None


def make_booking(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a booking; only one with all three relations is an interview, contract or placement."""
    companies, candidates, leads = (agency.ids[n] for n in ("companies", "candidates", "leads"))
    kind = draw.choice(words.BOOKING_TYPES)
    job_id, company_id = draw.choice(agency.jobs) if agency.jobs else (None, None)
    if company_id is None and companies:
        company_id = draw.choice(companies)
    candidate_id = draw.choice(candidates) if candidates else None
    is_placed = kind in ("interview", "contract", "permanent")
    if is_placed and None in (job_id, company_id, candidate_id):
        kind, is_placed = "internal", False
    start = created + timedelta(days=draw.integer(1, 60), minutes=draw.integer(-20, 20) * 15)
    start = start.replace(second=0, microsecond=0)
    is_over = start < agency.anchor
    status = draw.choice(words.PAST_STATUSES if is_over else words.COMING_STATUSES)
    record = {
        **make_dates(draw, created, updated),
        **dict.fromkeys(_OF_KINDS),
        "booking_type": kind,
        "title": draw.maybe(0.9, f"{kind.replace('_', ' ').title()}: {draw.choice(words.ROLES)}"),
        "description": draw.text(),
        "candidate_id": candidate_id if is_placed else None,
        "job_id": job_id if is_placed else None,
        "company_id": company_id if is_placed or kind == "site_visit" else None,
        "lead_id": draw.choice(leads) if leads and kind == "consultation" else None,
        "start_datetime": start,
        "all_day": draw.maybe(0.7, kind == "site_visit"),
        "payment_terms": draw.maybe(0.3, draw.choice(words.PAYMENT_TERMS)),
        "status": status,
        "contact_name": draw.maybe(0.5, draw.choice(words.FIRST_NAMES)),
        "contact_email": draw.maybe(0.4, f"contact{number}@example.com"),
        "contact_phone": draw.phone(),
        "location": draw.maybe(0.5, draw.choice(words.CITIES)),
        "requirements": draw.text(),
        "internal_notes": draw.text(),
        "assigned_to": draw.maybe(0.85, draw.choice(USERS)),
        "timezone": draw.maybe(0.8, draw.choice(words.TIMEZONES)),
        "cancellation_reason": draw.choice(words.SENTENCES) if status == "cancelled" else None,
        **_details(draw, kind, start),
    }
    return record, None


_OF_KINDS = (
    *(
        "end_datetime",
        "interview_type",
        "interview_location",
        "interview_panel",
        "meeting_platform",
    ),
    *("meeting_link", "meeting_id", "meeting_password", "meeting_join_url", "contract_type"),
    *("day_rate", "contract_value", "contract_notes", "ir35_status", "notice_period_days"),
    *("offer_accepted_date", "annual_salary", "placement_fee", "probation_period_months"),
)
"""The fields that a booking has for being of some kind; of the others it is null."""


def _details(draw: RandomValues, kind: str, start: datetime) -> Stored:
    """Make the fields that depend on the kind of booking."""
    if kind == "interview":
        meeting = draw.choice(
            ("<meeting_platform_1>", "<meeting_platform_2>", "<meeting_platform_3>")
        )
        number = f"{draw.integer(0, 9_999_999_999):010d}"
        is_online = draw.yes(0.5)
        return {
            "end_datetime": start + timedelta(minutes=draw.choice((30, 45, 60, 90))),
            "interview_type": "video" if is_online else draw.choice(("phone", "in_person")),
            "interview_location": draw.maybe(0.4, draw.choice(words.CITIES)),
            "interview_panel": draw.maybe(0.5, f"{draw.choice(words.FIRST_NAMES)} & HR"),
            "meeting_platform": meeting if is_online else None,
            "meeting_link": f"https://meet.example.com/{number}" if is_online else None,
            "meeting_id": number if is_online else None,
            "meeting_password": number[::-1][:6] if is_online else None,
            "meeting_join_url": f"https://meet.example.com/j/{number}" if is_online else None,
        }
    if kind == "contract":
        days, rate = draw.integer(20, 220), draw.integer(20, 90) * 10 + 0.5
        return {
            "end_datetime": start + timedelta(days=days),
            "contract_type": draw.choice(("fixed_term", "temporary", "ongoing", "project_based")),
            "day_rate": rate,
            "contract_value": rate * days,
            "contract_notes": draw.text(),
            "ir35_status": draw.maybe(0.8, draw.choice(("inside", "outside", "not_applicable"))),
            "notice_period_days": draw.maybe(0.7, draw.choice((7, 14, 28))),
        }
    if kind == "permanent":
        salary = draw.integer(20, 120) * 1000
        return {
            "offer_accepted_date": draw.maybe(0.8, draw.day(start, -40, -1)),
            "annual_salary": salary,
            "placement_fee": salary * 0.175,
            "notice_period_days": draw.maybe(0.7, draw.choice((30, 60, 90))),
            "probation_period_months": draw.maybe(0.7, draw.choice((3, 6))),
        }
    return {"end_datetime": draw.maybe(0.6, start + timedelta(hours=draw.integer(1, 8)))}


# -- Content records -------------------------------------------------------------------------------
# Made-up content types and items: every kind of field occurs, and every value fits its field.
#
# The other resources are in `records.py`.


FIELD_TYPES: tuple[str, ...] = ContentTypeField.fields_declared["field_type"].values
"""Every `field_type` that the API names (API 2.6)."""


def make_content_type(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a content type, with one field of every `field_type`."""
    name, address, about, icon = words.CONTENT_TYPES[number % len(words.CONTENT_TYPES)]
    round = number // len(words.CONTENT_TYPES)
    suffix = f" {round + 1}" if round else ""
    fields = [_field(draw, field_type, n) for n, field_type in enumerate(FIELD_TYPES)]
    record = {
        **make_dates(draw, created, updated),
        "name": name + suffix,
        "slug": address + suffix.replace(" ", "-"),
        "description": about,
        "icon": draw.maybe(0.9, icon),
        "is_system": number == 0,
        "is_active": draw.yes(0.9),
        "fields": fields,
    }
    agency.types.append((record["id"], fields))
    return record, None


def _field(draw: RandomValues, field_type: str, number: int) -> dict[str, Any]:
    name = field_type.replace("_", " ").capitalize()
    config: dict[str, Any] = {}
    if field_type in ("select", "multi_select"):
        config = {"options": list(words.OPTIONS)}
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


def make_content_item(
    draw: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> Made:
    """Make a content item of one of the types."""
    type_id, fields = agency.types[number % len(agency.types)]
    title = f"{draw.choice(words.ITEM_TITLES)} #{number}"
    status = draw.choice(words.CONTENT_STATES)
    values = {
        each["field_key"]: _VALUES[each["field_type"]](draw)
        for each in fields
        if each["is_required"] or draw.yes(0.7)
    }
    record = {
        **make_dates(draw, created, updated),
        "title": title,
        "slug": slug(title),
        "status": status,
        "published_at": created if status == "published" else None,
        "fields": values,
    }
    return record, type_id


def _choices(draw: RandomValues) -> list[str]:
    return [each for each in words.OPTIONS if draw.yes()]


_VALUES: Mapping[str, Callable[[RandomValues], Any]] = {
    "text": lambda draw: draw.choice(words.ITEM_TITLES),
    "textarea": lambda draw: draw.text(),
    "rich_text": lambda draw: f"<p>{draw.choice(words.SENTENCES)}</p>\n<ul><li>&amp;</li></ul>",
    "number": lambda draw: draw.choice((0, 42, -7, 3.14, 1e6)),
    "select": lambda draw: draw.choice(words.OPTIONS),
    "multi_select": _choices,
    "date": lambda draw: f"20{draw.integer(10, 29)}-02-{draw.integer(1, 28):02d}",
    "datetime": lambda draw: f"2024-06-{draw.integer(1, 30):02d}T09:30:00Z",
    "boolean": lambda draw: draw.choice((True, False, None)),
    "image": lambda draw: f"https://cdn.example.com/img/{draw.integer(1, 999)}.png",
    "file": lambda draw: f"https://cdn.example.com/files/{draw.integer(1, 999)}%20final.pdf",
    "url": lambda draw: "https://example.com/a?b=c&d=é",
    "email": lambda draw: f"writer{draw.integer(1, 99)}@example.com",
    "phone": lambda draw: draw.phone(),
}


# -- Anything declared -----------------------------------------------------------------------------


_MAKERS: Mapping[str, Callable[[RandomValues, AgencyContext, int, datetime, datetime], Made]] = {
    "companies": make_company,
    "jobs": make_job,
    "candidates": make_candidate,
    "leads": make_lead,
    "bookings": make_booking,
    "content_types": make_content_type,
    "content_items": make_content_item,
}


def make_record(
    resource: Declaration,
    draw: RandomValues,
    agency: AgencyContext,
    number: int,
    moments: tuple[datetime, datetime],
) -> Made:
    """Make a record of any resource, with every field that is not computed."""
    if maker := _MAKERS.get(resource.name):
        record, parent = maker(draw, agency, number, *moments)
    else:
        record, parent = make_dates(draw, *moments), None
    for each in resource.fields.values():
        if each.name not in record and not each.is_computed:
            # Its own chance, so that a new field changes no other value of the agency.
            chance = Random(f"{each.name} {record['id']}")  # noqa: S311  # made-up values
            record[each.name] = _declared_value(each, RandomValues(chance), agency, moments[0])
    agency.ids[resource.name].append(record["id"])
    return record, parent


def _declared_value(
    declared: Field, draw: RandomValues, agency: AgencyContext, created: datetime
) -> Any:
    """Make a value from the declaration of a field."""
    if declared.nullable and draw.yes(0.2):
        return None
    if declared.values:
        return draw.choice(declared.values)
    if declared.name in REFERENCES:
        known = agency.ids[REFERENCES[declared.name]]
        return draw.choice(known) if known else None
    if declared.kind is Kind.UUID:
        return draw.choice(USERS)
    if declared.format is not None:
        return _BY_FORMAT[declared.format](draw)
    return _BY_KIND[declared.kind](draw, created)


_BY_FORMAT: Mapping[str, Callable[[RandomValues], str]] = {
    "email": lambda draw: f"{draw.choice(words.MAIL_BOXES)}@{draw.choice(words.MAIL_DOMAINS)}",
    "url": lambda draw: f"https://{draw.choice(words.MAIL_DOMAINS)}/{draw.integer(1, 9999)}",
    "currency": lambda draw: draw.choice(words.CURRENCIES),
    "timezone": lambda draw: draw.choice(words.TIMEZONES),
    "json": lambda draw: json.dumps({"size": draw.integer(1, 9)}),
}

_BY_KIND: Mapping[Kind, Callable[[RandomValues, datetime], Any]] = {
    Kind.STRING: lambda draw, _: draw.choice(words.SENTENCES),
    Kind.NUMBER: lambda draw, _: draw.integer(0, 4000) / 4,
    Kind.INTEGER: lambda draw, _: draw.integer(0, 400),
    Kind.BOOL: lambda draw, _: draw.yes(),
    Kind.DATE: lambda draw, created: draw.day(created, -100, 100),
    Kind.DATETIME: lambda draw, created: created + timedelta(minutes=15 * draw.integer(-900, 900)),
    Kind.PARTS: lambda _draw, _: [],
    Kind.VALUES: lambda _draw, _: {},
}

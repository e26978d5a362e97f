"""Sample records of each resource, in the format of the store.

Each function receives random values, the agency created so far, the record's number and its two
times. It returns the record, with the id of its content type if it has one. Other fields get values
from their declaration. `seed.py` decides the number of records and their times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from connector.catalog import REFERENCES
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.catalog.resource import Declaration
from connector.sandbox import vocabulary as words
from connector.sandbox.random_values import (
    HANDLES,
    LEAD_STATUSES,
    USERS,
    AgencyContext,
    RandomValues,
)
from connector.sandbox.record_table import StoredRecord
from connector.sandbox.validation import make_slug

SampleRecord = tuple[StoredRecord, str | None]
"""A record, and the id of its content type: None for all resources but content items."""


def make_common_fields(rng: RandomValues, created: datetime, updated: datetime) -> StoredRecord:
    """Make the id and the timestamps of a record (API 2)."""
    return {"id": rng.id(), "created_at": created, "updated_at": updated}


def make_company(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a client company."""
    name = f"{rng.choice(words.COMPANY_HEADS)} {rng.choice(words.COMPANY_TAILS)}"
    domain = f"{make_slug(name)}-{number}.example"
    first, last = rng.choice(words.FIRST_NAMES), rng.choice(words.LAST_NAMES)
    record = {
        **make_common_fields(rng, created, updated),
        "name": name if number % 7 else f"{name} ({number})",
        "email": f"office@{domain}",
        "legal_name": rng.maybe(0.6, name.upper()),
        "trading_name": rng.maybe(0.3, name),
        # Leading zeros matter.
        "company_number": rng.maybe(0.7, f"{rng.integer(0, 9_999_999):08d}"),
        "phone": rng.phone(),
        "website": rng.maybe(0.8, f"https://www.{domain}/"),
        "industry": rng.maybe(0.9, rng.choice(words.TRADES)),
        "description": rng.text(),
        "company_size": rng.maybe(0.8, rng.choice(words.COMPANY_SIZES)),
        "founded_year": rng.maybe(0.6, rng.integer(1871, 2023)),
        "primary_contact_name": rng.maybe(0.8, f"{first} {last}"),
        "primary_contact_email": rng.maybe(0.7, f"{HANDLES[first]}.{HANDLES[last]}@{domain}"),
        "primary_contact_phone": rng.phone(),
        "primary_contact_title": rng.maybe(0.5, rng.choice(words.ROLES)),
        "status": rng.choice(words.COMPANY_STATUSES),
        "billing_email": rng.maybe(0.5, f"accounts@{domain}"),
        "payment_terms": rng.maybe(0.7, rng.choice(words.PAYMENT_TERMS)),
        "contract_start_date": rng.maybe(0.5, rng.day(created, -200, 30)),
        "contract_end_date": rng.maybe(0.3, rng.day(agency.anchor, -100, 700)),
        "fee_percentage": rng.maybe(0.7, rng.choice((12.5, 15, 17.5, 20, 22.25, 25))),
        "fee_type": rng.maybe(0.7, rng.choice(("percentage", "percentage", "fixed", "retainer"))),
        "network_url": rng.maybe(0.4, f"https://network.example/company/{make_slug(name)}"),
        "social_url": rng.maybe(0.2, f"https://social.example/{make_slug(name)}"),
        "internal_notes": rng.text(),
        "tags": rng.maybe(0.5, rng.choice(words.TAGS)),
        "account_manager_id": rng.maybe(0.8, rng.choice(USERS)),
    }
    return record, None


def make_job(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a job, usually of a random company, and add it to the agency for later records."""
    companies = agency.ids["companies"]
    title = rng.choice(words.RANKS) + rng.choice(words.ROLES)
    status = rng.choice(words.JOB_STATUSES)
    record = {
        **make_common_fields(rng, created, updated),
        "title": title,
        "reference_code": rng.maybe(0.9, f"{rng.choice(('JOB', 'REF', '00'))}-{number:05d}"),
        "department": rng.maybe(0.5, rng.choice(words.DEPARTMENTS)),
        "location": rng.choice(words.CITIES),
        "remote_type": rng.maybe(0.8, rng.choice(("on_site", "remote", "hybrid", "hybrid"))),
        "employment_type": rng.choice(words.EMPLOYMENT_TYPES),
        "experience_level": rng.maybe(
            0.7, rng.choice(("entry", "mid", "mid", "senior", "lead", "executive"))
        ),
        **_make_pay(rng),
        "fee_type": rng.maybe(0.8, rng.choice(("percentage", "percentage", "fixed"))),
        "fee_percentage": rng.maybe(0.6, rng.choice((15, 17.5, 20, 33.333))),
        "placement_fee": rng.maybe(0.3, rng.integer(2000, 30000) + 0.75),
        "description": rng.text() or "Our client is hiring. 'Great' team.",
        "requirements": rng.text(),
        "responsibilities": rng.text(),
        "benefits": rng.text(),
        "positions_available": rng.maybe(0.8, rng.integer(1, 6)),
        "application_deadline": rng.maybe(0.5, rng.day(created, 10, 90)),
        "start_date": rng.maybe(0.5, rng.day(created, 30, 200)),
        "required_skills": rng.maybe(0.8, rng.skills()),
        "preferred_skills": rng.maybe(0.4, rng.skills()),
        "qualifications": rng.maybe(0.4, rng.choice(words.QUALIFICATIONS)),
        "status": status,
        "published_at": None if status == "draft" else created,
        "allow_applications": rng.maybe(0.9, rng.yes(0.8)),
        "enable_public_page": rng.maybe(0.9, rng.yes(0.7)),
        "company_id": rng.choice(companies) if companies and rng.yes(0.96) else None,
        "assigned_to": rng.maybe(0.85, rng.choice(USERS)),
        "application_email": rng.maybe(0.3, f"apply+{number}@example.com"),
        "application_url": rng.maybe(0.2, f"https://jobs.example.com/{number}/apply"),
        "enable_ai_matching": rng.maybe(0.4, rng.yes()),
        "meta_title": rng.maybe(0.2, title),
        "meta_description": rng.maybe(0.1, "Apply today!"),
        "featured": rng.maybe(0.5, rng.yes(0.1)),
        "internal_notes": rng.text(),
    }
    record["slug"] = f"{make_slug(title)}-{record['id'][:8]}"
    agency.jobs.append((record["id"], record["company_id"]))
    return record, None


def _make_pay(rng: RandomValues) -> StoredRecord:
    """Make a job's salary, or its day rate."""
    salary = rng.integer(18, 120) * 1000
    rate = rng.integer(15, 90) * 10 + rng.choice((0, 0, 0.5))
    is_contract = rng.yes(0.3)
    return {
        "salary_min": None if is_contract else salary,
        "salary_max": None if is_contract else salary + rng.integer(0, 20) * 500.5,
        "salary_currency": None if is_contract else rng.choice(words.CURRENCIES),
        "salary_type": rng.maybe(0.7, rng.choice(("annual", "annual", "monthly", "hourly"))),
        "show_salary": rng.maybe(0.8, rng.yes()),
        "day_rate_min": rate if is_contract else None,
        "day_rate_max": rate + 75 if is_contract else None,
        "rate_currency": rng.choice(words.CURRENCIES) if is_contract else None,
    }


def make_candidate(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a candidate."""
    last = rng.choice(words.LAST_NAMES)
    record = {
        **make_common_fields(rng, created, updated),
        **_make_personal_fields(rng, agency, number, last),
        **_make_work_fields(rng, created),
        "cv_file_path": rng.maybe(0.6, f"cvs/{created.year}/{number:06d} {last}.pdf"),
        "status": rng.choice(words.CANDIDATE_STATUSES),
        "source": rng.maybe(0.85, rng.choice(words.SOURCES)),
        "rating": rng.maybe(0.5, rng.integer(1, 5)),
        "ir35_status": rng.maybe(
            0.3, rng.choice(("inside", "outside", "unknown", "not_applicable"))
        ),
        "umbrella_company": rng.maybe(0.08, "Brolly & Co Umbrella"),
        "limited_company_name": rng.maybe(0.08, f"{last} Consulting Ltd"),
        "notes": rng.text(),
        "internal_notes": rng.text(),
        "assigned_to": rng.maybe(0.8, rng.choice(USERS)),
    }
    return record, None


def _make_personal_fields(
    rng: RandomValues, agency: AgencyContext, number: int, last: str
) -> StoredRecord:
    """Make the candidate's personal fields."""
    first = rng.choice(words.FIRST_NAMES)
    handle = f"{HANDLES[first]}-{HANDLES[last]}-{number}"
    born = date(1955 + number % 50, 1 + number % 12, 1 + number % 28)
    cities = f"{rng.choice(words.CITIES)}, {rng.choice(words.CITIES)}"
    return {
        "first_name": first,
        "last_name": last,
        "email": agency.make_email(rng, first, last, number),
        "phone": rng.phone(),
        "mobile": rng.phone(),
        "address_line1": rng.maybe(0.5, f"{rng.integer(1, 240)} {rng.choice(words.STREETS)}"),
        "address_line2": rng.maybe(0.15, f"Flat {rng.integer(1, 40)}, 2/F"),
        "city": rng.maybe(0.7, rng.choice(words.CITIES)),
        "state_province": rng.maybe(0.4, rng.choice(words.COUNTIES)),
        "postal_code": rng.maybe(0.6, f"{rng.choice(('SW', 'M', 'BS', '0'))}{number % 99} 1AA"),
        "country": rng.maybe(0.7, rng.choice(words.COUNTRIES)),
        "network_url": rng.maybe(0.4, f"https://network.example/in/{handle}"),
        "code_host_url": rng.maybe(0.1, f"https://code.example/{handle}"),
        "portfolio_url": rng.maybe(0.1, f"http://{handle}.example/portfolio?lang=fr"),
        "date_of_birth": rng.maybe(0.3, born.isoformat()),
        "nationality": rng.maybe(0.4, rng.choice(words.NATIONALITIES)),
        "preferred_locations": rng.maybe(0.5, cities),
        "willing_to_relocate": rng.maybe(0.6, rng.yes(0.3)),
        "right_to_work": rng.maybe(0.6, rng.choice(("UK citizen", "Settled status", "Visa", ""))),
        "security_clearance": rng.maybe(0.15, rng.choice(("SC", "DV", "BPSS"))),
        "languages": rng.maybe(0.4, rng.choice(words.LANGUAGES)),
    }


def _make_work_fields(rng: RandomValues, created: datetime) -> StoredRecord:
    """Make the candidate's fields about work and pay."""
    salary = rng.integer(16, 110) * 1000
    rate = rng.integer(12, 95) * 10
    is_contractor = rng.yes(0.35)
    return {
        "employment_type": rng.choice(words.EMPLOYMENT_TYPES),
        "employment_status": rng.maybe(0.85, rng.choice(words.EMPLOYMENT_STATUSES)),
        "current_salary": rng.maybe(0.5, salary),
        "expected_salary": rng.maybe(0.5, salary * 1.125),
        "salary_currency": rng.maybe(0.5, rng.choice(words.CURRENCIES)),
        "current_day_rate": rate if is_contractor else None,
        "expected_day_rate": rate + 25.5 if is_contractor else None,
        "rate_currency": rng.choice(words.CURRENCIES) if is_contractor else None,
        "notice_period_days": rng.maybe(0.6, rng.choice((0, 7, 14, 28, 30, 60, 90))),
        "available_from": rng.maybe(0.5, rng.day(created, 0, 180)),
        "current_job_title": rng.maybe(0.85, rng.choice(words.RANKS) + rng.choice(words.ROLES)),
        "current_company": rng.maybe(0.75, rng.choice(words.COMPANY_HEADS)),
        "years_of_experience": rng.maybe(0.8, rng.integer(0, 41)),
        "industry": rng.maybe(0.8, rng.choice(words.TRADES)),
        "skills": rng.maybe(0.85, rng.skills()),
        "qualifications": rng.maybe(0.5, rng.choice(words.QUALIFICATIONS)),
    }


def make_lead(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a lead: a person, a business, or both."""
    first, last = rng.choice(words.FIRST_NAMES), rng.choice(words.LAST_NAMES)
    business = f"{rng.choice(words.COMPANY_HEADS)} {rng.choice(words.COMPANY_TAILS)}"
    form = rng.integer(0, 3)
    city = rng.choice(words.CITIES)
    address = f"{rng.integer(1, 240)} {rng.choice(words.STREETS)}"
    record = {
        **make_common_fields(rng, created, updated),
        "email": agency.make_email(rng, first, last, number),
        "lead_status_id": rng.choice(LEAD_STATUSES),
        "first_name": None if form == 0 else first,
        "last_name": None if form in (0, 1) else last,
        "company_name": business if form in (0, 3) else rng.choice((None, "")),
        "phone": rng.phone(),
        "mobile": rng.phone(),
        "customer_type": rng.maybe(0.8, "business" if form in (0, 3) else "individual"),
        "status": rng.choice(words.LEAD_STATES),
        "address": rng.maybe(0.5, address),
        "city": rng.maybe(0.6, city),
        "county": rng.maybe(0.3, rng.choice(words.COUNTIES)),
        "postcode": rng.maybe(0.5, f"LS{rng.integer(1, 28)} 4DY"),
        "country": rng.maybe(0.6, rng.choice(words.COUNTRIES)),
        "website": rng.maybe(0.4, f"https://www.{make_slug(business)}.example"),
        "network_url": rng.maybe(0.2, f"https://network.example/in/lead-{number}"),
        "billing_address": rng.maybe(0.2, f"{address}\nBilling dept."),
        "billing_city": rng.maybe(0.2, city),
        "billing_county": rng.maybe(0.1, rng.choice(words.COUNTIES)),
        "billing_postcode": rng.maybe(0.2, f"M{rng.integer(1, 60)} 2WD"),
        "billing_country": rng.maybe(0.2, rng.choice(words.COUNTRIES)),
        "industry": rng.maybe(0.6, rng.choice(words.TRADES)),
        "job_title": rng.maybe(0.5, rng.choice(words.ROLES)),
        "notes": rng.text(),
        "source": rng.maybe(0.85, rng.choice(words.SOURCES)),
        "tags": rng.maybe(0.4, rng.choice(words.TAGS)),
        "assigned_to": rng.maybe(0.8, rng.choice(USERS)),
        "last_contacted_at": rng.maybe(0.6, created + (updated - created) / 2),
    }
    return record, None


def make_booking(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a booking; only one with all three relations is an interview, contract or placement."""
    companies, candidates, leads = (agency.ids[n] for n in ("companies", "candidates", "leads"))
    kind = rng.choice(words.BOOKING_TYPES)
    job_id, company_id = rng.choice(agency.jobs) if agency.jobs else (None, None)
    if company_id is None and companies:
        company_id = rng.choice(companies)
    candidate_id = rng.choice(candidates) if candidates else None
    is_placed = kind in ("interview", "contract", "permanent")
    if is_placed and None in (job_id, company_id, candidate_id):
        kind, is_placed = "internal", False
    start = created + timedelta(days=rng.integer(1, 60), minutes=rng.integer(-20, 20) * 15)
    start = start.replace(second=0, microsecond=0)
    is_over = start < agency.anchor
    status = rng.choice(words.PAST_STATUSES if is_over else words.COMING_STATUSES)
    record = {
        **make_common_fields(rng, created, updated),
        **dict.fromkeys(_OF_KINDS),
        "booking_type": kind,
        "title": rng.maybe(0.9, f"{kind.replace('_', ' ').title()}: {rng.choice(words.ROLES)}"),
        "description": rng.text(),
        "candidate_id": candidate_id if is_placed else None,
        "job_id": job_id if is_placed else None,
        "company_id": company_id if is_placed or kind == "site_visit" else None,
        "lead_id": rng.choice(leads) if leads and kind == "consultation" else None,
        "start_datetime": start,
        "all_day": rng.maybe(0.7, kind == "site_visit"),
        "payment_terms": rng.maybe(0.3, rng.choice(words.PAYMENT_TERMS)),
        "status": status,
        "contact_name": rng.maybe(0.5, rng.choice(words.FIRST_NAMES)),
        "contact_email": rng.maybe(0.4, f"contact{number}@example.com"),
        "contact_phone": rng.phone(),
        "location": rng.maybe(0.5, rng.choice(words.CITIES)),
        "requirements": rng.text(),
        "internal_notes": rng.text(),
        "assigned_to": rng.maybe(0.85, rng.choice(USERS)),
        "timezone": rng.maybe(0.8, rng.choice(words.TIMEZONES)),
        "cancellation_reason": rng.choice(words.SENTENCES) if status == "cancelled" else None,
        **_make_fields_of_booking_type(rng, kind, start),
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


def _make_fields_of_booking_type(rng: RandomValues, kind: str, start: datetime) -> StoredRecord:
    """Make the fields that depend on the booking's type."""
    if kind == "interview":
        meeting = rng.choice(
            ("<meeting_platform_1>", "<meeting_platform_2>", "<meeting_platform_3>")
        )
        number = f"{rng.integer(0, 9_999_999_999):010d}"
        is_online = rng.yes(0.5)
        return {
            "end_datetime": start + timedelta(minutes=rng.choice((30, 45, 60, 90))),
            "interview_type": "video" if is_online else rng.choice(("phone", "in_person")),
            "interview_location": rng.maybe(0.4, rng.choice(words.CITIES)),
            "interview_panel": rng.maybe(0.5, f"{rng.choice(words.FIRST_NAMES)} & HR"),
            "meeting_platform": meeting if is_online else None,
            "meeting_link": f"https://meet.example.com/{number}" if is_online else None,
            "meeting_id": number if is_online else None,
            "meeting_password": number[::-1][:6] if is_online else None,
            "meeting_join_url": f"https://meet.example.com/j/{number}" if is_online else None,
        }
    if kind == "contract":
        days, rate = rng.integer(20, 220), rng.integer(20, 90) * 10 + 0.5
        return {
            "end_datetime": start + timedelta(days=days),
            "contract_type": rng.choice(("fixed_term", "temporary", "ongoing", "project_based")),
            "day_rate": rate,
            "contract_value": rate * days,
            "contract_notes": rng.text(),
            "ir35_status": rng.maybe(0.8, rng.choice(("inside", "outside", "not_applicable"))),
            "notice_period_days": rng.maybe(0.7, rng.choice((7, 14, 28))),
        }
    if kind == "permanent":
        salary = rng.integer(20, 120) * 1000
        return {
            "offer_accepted_date": rng.maybe(0.8, rng.day(start, -40, -1)),
            "annual_salary": salary,
            "placement_fee": salary * 0.175,
            "notice_period_days": rng.maybe(0.7, rng.choice((30, 60, 90))),
            "probation_period_months": rng.maybe(0.7, rng.choice((3, 6))),
        }
    return {"end_datetime": rng.maybe(0.6, start + timedelta(hours=rng.integer(1, 8)))}


# -- Content records -------------------------------------------------------------------------------
# Sample content types and items: every kind of field occurs, and every value fits its field.
#
# The other resources are in `records.py`.


FIELD_TYPES: tuple[str, ...] = ContentTypeField.fields_declared["field_type"].values
"""Every `field_type` that the API names (API 2.6)."""


def make_content_type(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a content type, with one field of every `field_type`."""
    name, address, about, icon = words.CONTENT_TYPES[number % len(words.CONTENT_TYPES)]
    round = number // len(words.CONTENT_TYPES)
    suffix = f" {round + 1}" if round else ""
    fields = [_make_content_field(rng, field_type, n) for n, field_type in enumerate(FIELD_TYPES)]
    record = {
        **make_common_fields(rng, created, updated),
        "name": name + suffix,
        "slug": address + suffix.replace(" ", "-"),
        "description": about,
        "icon": rng.maybe(0.9, icon),
        "is_system": number == 0,
        "is_active": rng.yes(0.9),
        "fields": fields,
    }
    agency.types.append((record["id"], fields))
    return record, None


def _make_content_field(rng: RandomValues, field_type: str, number: int) -> dict[str, Any]:
    """Make a field of a content type."""
    name = field_type.replace("_", " ").capitalize()
    config: dict[str, Any] = {}
    if field_type in ("select", "multi_select"):
        config = {"options": list(words.OPTIONS)}
    elif field_type in ("text", "textarea"):
        config = {"max_length": 500}
    return {
        "id": rng.id(),
        "name": f"{name} field",
        "field_key": f"{field_type}_value",
        "field_type": field_type,
        "is_required": field_type == "text",
        "is_title_field": field_type == "text",
        "placeholder": rng.maybe(0.5, f'e.g. "{name}"'),
        "help_text": rng.maybe(0.5, "Shown below the form's field; keep it short."),
        "config": json.dumps(config) if config else rng.choice(("{}", None)),
        "display_order": number,
    }


def make_content_item(
    rng: RandomValues, agency: AgencyContext, number: int, created: datetime, updated: datetime
) -> SampleRecord:
    """Make a content item of one of the types."""
    type_id, fields = agency.types[number % len(agency.types)]
    title = f"{rng.choice(words.ITEM_TITLES)} #{number}"
    status = rng.choice(words.CONTENT_STATES)
    values = {
        each["field_key"]: _VALUES[each["field_type"]](rng)
        for each in fields
        if each["is_required"] or rng.yes(0.7)
    }
    record = {
        **make_common_fields(rng, created, updated),
        "title": title,
        "slug": make_slug(title),
        "status": status,
        "published_at": created if status == "published" else None,
        "fields": values,
    }
    return record, type_id


def _draw_choices(rng: RandomValues) -> list[str]:
    """Return a random selection of the options of a select field; it may be empty."""
    return [each for each in words.OPTIONS if rng.yes()]


_VALUES: Mapping[str, Callable[[RandomValues], Any]] = {
    "text": lambda rng: rng.choice(words.ITEM_TITLES),
    "textarea": lambda rng: rng.text(),
    "rich_text": lambda rng: f"<p>{rng.choice(words.SENTENCES)}</p>\n<ul><li>&amp;</li></ul>",
    "number": lambda rng: rng.choice((0, 42, -7, 3.14, 1e6)),
    "select": lambda rng: rng.choice(words.OPTIONS),
    "multi_select": _draw_choices,
    "date": lambda rng: f"20{rng.integer(10, 29)}-02-{rng.integer(1, 28):02d}",
    "datetime": lambda rng: f"2024-06-{rng.integer(1, 30):02d}T09:30:00Z",
    "boolean": lambda rng: rng.choice((True, False, None)),
    "image": lambda rng: f"https://cdn.example.com/img/{rng.integer(1, 999)}.png",
    "file": lambda rng: f"https://cdn.example.com/files/{rng.integer(1, 999)}%20final.pdf",
    "url": lambda rng: "https://example.com/a?b=c&d=é",
    "email": lambda rng: f"writer{rng.integer(1, 99)}@example.com",
    "phone": lambda rng: rng.phone(),
}


# -- Anything declared -----------------------------------------------------------------------------


_MAKERS: Mapping[
    str, Callable[[RandomValues, AgencyContext, int, datetime, datetime], SampleRecord]
] = {
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
    rng: RandomValues,
    agency: AgencyContext,
    number: int,
    moments: tuple[datetime, datetime],
) -> SampleRecord:
    """Make a record of any resource. `moments` are its creation and its last change.

    Fields without a maker get values from their declaration. Computed fields are omitted.
    """
    if maker := _MAKERS.get(resource.name):
        record, parent = maker(rng, agency, number, *moments)
    else:
        record, parent = make_common_fields(rng, *moments), None
    for each in resource.fields.values():
        if each.name not in record and not each.is_computed:
            # Its own chance, so that a new field changes no other value of the agency.
            chance = Random(f"{each.name} {record['id']}")  # noqa: S311  # made-up values
            record[each.name] = _make_declared_value(each, RandomValues(chance), agency, moments[0])
    agency.ids[resource.name].append(record["id"])
    return record, parent


def _make_declared_value(
    declared: Field, rng: RandomValues, agency: AgencyContext, created: datetime
) -> Any:
    """Make a random value that fits the declaration of a field."""
    if declared.nullable and rng.yes(0.2):
        return None
    if declared.values:
        return rng.choice(declared.values)
    if declared.name in REFERENCES:
        known = agency.ids[REFERENCES[declared.name]]
        return rng.choice(known) if known else None
    if declared.kind is Kind.UUID:
        return rng.choice(USERS)
    if declared.format is not None:
        return _BY_FORMAT[declared.format](rng)
    return _BY_KIND[declared.kind](rng, created)


_BY_FORMAT: Mapping[str, Callable[[RandomValues], str]] = {
    "email": lambda rng: f"{rng.choice(words.MAIL_BOXES)}@{rng.choice(words.MAIL_DOMAINS)}",
    "url": lambda rng: f"https://{rng.choice(words.MAIL_DOMAINS)}/{rng.integer(1, 9999)}",
    "currency": lambda rng: rng.choice(words.CURRENCIES),
    "timezone": lambda rng: rng.choice(words.TIMEZONES),
    "json": lambda rng: json.dumps({"size": rng.integer(1, 9)}),
}

_BY_KIND: Mapping[Kind, Callable[[RandomValues, datetime], Any]] = {
    Kind.STRING: lambda rng, _: rng.choice(words.SENTENCES),
    Kind.NUMBER: lambda rng, _: rng.integer(0, 4000) / 4,
    Kind.INTEGER: lambda rng, _: rng.integer(0, 400),
    Kind.BOOL: lambda rng, _: rng.yes(),
    Kind.DATE: lambda rng, created: rng.day(created, -100, 100),
    Kind.DATETIME: lambda rng, created: created + timedelta(minutes=15 * rng.integer(-900, 900)),
    Kind.ARRAY: lambda _draw, _: [],
    Kind.OBJECT: lambda _draw, _: {},
}

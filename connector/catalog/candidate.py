"""Candidates: profiles and applicant data (API 2.2, 3.2, 4.3)."""

from __future__ import annotations

from datetime import date
from typing import Literal

from connector.catalog.field import (
    REFUSED,
    REQUIRED,
    Uuid,
    field,
    one_of,
    person_subject,
    read_only,
)
from connector.catalog.job import EmploymentType
from connector.catalog.resource import Resource

CandidateStatus = Literal[
    "new_lead",
    "screening",
    "submitted",
    "interviewing",
    "offer_made",
    "offer_accepted",
    "placed",
    "rejected",
    "on_hold",
    "withdrawn",
]
EmploymentStatus = Literal[
    "actively_looking", "open_to_offers", "passive", "not_looking", "placed", "blacklisted"
]
CandidateIr35 = Literal["inside", "outside", "unknown", "not_applicable"]

# API 3.2: list items and update requests allow seven of the ten states.
_SHORT_STATUS = (
    "new_lead",
    "screening",
    "submitted",
    "interviewing",
    "offer_made",
    "placed",
    "rejected",
)


class Candidate(
    Resource,
    name="candidates",
    section="2.2",
    singular="candidate",
    path="/candidates",
    scope="candidates",
    natural_keys=(("email",),),
    found_by={
        "email": ("Candidate", "Candidate e-mail address", "Candidate name", "Contractor", "Worker")
    },
    subjects=(person_subject("the candidate"),),
    sandbox_count=1500,
    aliases={
        "address_line1": ("Address", "Street", "Street address", "Address 1", "Addr 1"),
        "address_line2": ("Address 2", "Addr 2"),
        "state_province": ("Province", "County", "Region", "State or province"),
        "postal_code": ("Postcode", "Post code", "Zip", "Zip code", "ZIP/postal code"),
        "code_host_url": ("Code profile", "Code hosting profile"),
        "portfolio_url": ("Portfolio", "Portfolio site", "Portfolio link"),
        "date_of_birth": ("DOB", "Birth date", "Birthday", "Born"),
        "nationality": ("Citizenship",),
        "employment_status": ("Job search status", "Jobseeker status"),
        "current_salary": ("Present salary", "Current sal"),
        "expected_salary": (
            "Desired salary",
            "Desired sal",
            "Salary expectation",
            "Salary expectations",
        ),
        "current_day_rate": ("Present day rate",),
        "expected_day_rate": ("Desired day rate", "Day rate", "Day rate expectation"),
        "available_from": (
            "Availability",
            "Available",
            "Availability date",
            "Date available",
            "Available date",
            "Start from",
        ),
        "current_job_title": ("Job title", "Current role", "Current position", "Current title"),
        "current_company": ("Current employer", "Employer", "Present employer"),
        "years_of_experience": ("Years experience", "Experience (years)", "Yrs experience"),
        "skills": ("Key skills", "Skill set", "Skillset"),
        "rating": ("Score", "Stars"),
        "preferred_locations": ("Preferred location", "Desired location", "Desired locations"),
        "willing_to_relocate": ("Relocate", "Will relocate", "Relocation"),
        "right_to_work": ("RTW", "Work permit", "Work authorisation", "Work authorization"),
        "security_clearance": ("Clearance", "Clearance level"),
        "languages": ("Languages spoken", "Language skills"),
        "umbrella_company": ("Umbrella",),
        "limited_company_name": ("Ltd company", "Limited company", "Ltd company name"),
    },
):
    """A person who looks for work, or might."""

    first_name: str = field(
        "Given name.", create=REQUIRED, listed=True, sortable=True, personal="identity"
    )
    last_name: str = field(
        "Family name.", create=REQUIRED, listed=True, sortable=True, personal="identity"
    )
    email: str = field(
        "Email address.",
        create=REQUIRED,
        listed=True,
        sortable=True,
        format="email",
        personal="contact",
    )
    phone: str | None = field("Telephone number.", listed=True, personal="contact")
    mobile: str | None = field("Mobile number.", personal="contact")
    address_line1: str | None = field("First line of the address.", personal="contact")
    address_line2: str | None = field("Second line of the address.", personal="contact")
    city: str | None = field("Town or city.", personal="contact")
    state_province: str | None = field("State, province or county.", personal="contact")
    postal_code: str | None = field("Postal code.", personal="contact")
    country: str | None = field("Country.", personal="contact")
    network_url: str | None = field(
        "Professional network profile.", format="url", personal="contact"
    )
    code_host_url: str | None = field("Code hosting profile.", format="url", personal="contact")
    portfolio_url: str | None = field("Portfolio page.", format="url", personal="contact")
    date_of_birth: date | None = field("Date of birth.", personal="identity")
    nationality: str | None = field("Nationality.", personal="identity")
    employment_type: EmploymentType = field(
        "Employment type that the candidate wants.",
        create=one_of("permanent", "contractor", "interim", required=True),
        listed=True,
        sortable=True,
    )
    employment_status: EmploymentStatus | None = field(
        "Status of the candidate's job search.",
        create=one_of("actively_looking", "open_to_offers", "passive", "not_looking"),
    )
    current_salary: float | None = field("Current salary.", personal="pay")
    expected_salary: float | None = field("Expected salary.", personal="pay")
    salary_currency: str | None = field("Currency code of the salaries.", format="currency")
    current_day_rate: float | None = field("Current day rate.", personal="pay")
    expected_day_rate: float | None = field("Expected day rate.", personal="pay")
    rate_currency: str | None = field("Currency code of the day rates.", format="currency")
    notice_period_days: int | None = field("Notice period in days.")
    available_from: date | None = field("First day of availability.", sortable=True)
    current_job_title: str | None = field(
        "Current job title.", listed=True, sortable=True, personal="identity"
    )
    current_company: str | None = field(
        "Current employer.", listed=True, sortable=True, personal="identity"
    )
    years_of_experience: int | None = field("Working experience, in years.")
    industry: str | None = field("Industry.")
    skills: str | None = field("Skills, as written.", personal="text")
    qualifications: str | None = field("Degrees and certificates, as written.", personal="text")
    cv_file_path: str | None = read_only("Path of the CV on the platform.", personal="identity")
    status: CandidateStatus | None = field(
        "Status of the candidate in the pipeline.",
        create=REFUSED,
        update=one_of(*_SHORT_STATUS),
        item=_SHORT_STATUS,
        listed=True,
        sortable=True,
        filterable=True,
    )
    source: str | None = field("Source of the candidate, as written.")
    rating: int | None = field("The agency's rating.")
    preferred_locations: str | None = field(
        "Preferred places of work, as written.", personal="text"
    )
    willing_to_relocate: bool | None = field("True if the candidate would move for a job.")
    right_to_work: str | None = field("Right to work, as written.", personal="identity")
    security_clearance: str | None = field("Security clearance, as written.", personal="identity")
    languages: str | None = field("Languages, as written.", personal="text")
    ir35_status: CandidateIr35 | None = field("Status under the IR35 tax rules.")
    umbrella_company: str | None = field(
        "Umbrella company that employs the contractor.", personal="identity"
    )
    limited_company_name: str | None = field("The contractor's own company.", personal="identity")
    notes: str | None = field("Notes.", personal="text")
    internal_notes: str | None = field("Notes for colleagues.", personal="text")
    assigned_to: Uuid | None = field(
        "Consultant in charge (user id; the API has no endpoint for users)."
    )

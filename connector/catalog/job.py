"""Jobs: postings and vacancies (API 2.1, 3.1, 4.2)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from connector.catalog.field import REQUIRED, DataSubject, Uuid, field, one_of, read_only
from connector.catalog.resource import Resource

EmploymentType = Literal[
    "permanent", "contractor", "interim", "contract_to_perm", "freelance", "temporary"
]
JobStatus = Literal["draft", "published", "closed", "filled", "on_hold", "cancelled"]
RemoteType = Literal["on_site", "remote", "hybrid"]
ExperienceLevel = Literal["entry", "mid", "senior", "lead", "executive"]
SalaryType = Literal["annual", "monthly", "hourly"]
FeeType = Literal["percentage", "fixed"]


class Job(
    Resource,
    name="jobs",
    section="2.1",
    singular="job",
    path="/jobs",
    scope="jobs",
    natural_keys=(("reference_code",), ("title", "company_id")),
    found_by={
        "reference_code": ("Job reference", "Job ref", "Vacancy reference", "Req no"),
        "title": ("Position held",),
    },
    subjects=(DataSubject("the contact", ("application_email",), emails=("application_email",)),),
    sandbox_count=200,
    aliases={
        "title": ("Job title", "Vacancy", "Position", "Vacancy title"),
        "reference_code": (
            *("Job reference", "Job ref", "Reference", "Ref", "Vacancy reference"),
            *("Req no", "Requisition no"),
        ),
        "department": ("Dept",),
        "remote_type": ("Remote", "Remote working", "Working model"),
        "experience_level": ("Seniority",),
        "salary_min": ("Minimum salary", "Min salary", "Salary from"),
        "salary_max": ("Maximum salary", "Max salary", "Salary to"),
        "salary_type": ("Salary period",),
        "day_rate_min": ("Minimum day rate", "Min day rate", "Day rate from"),
        "day_rate_max": ("Maximum day rate", "Max day rate", "Day rate to"),
        "description": ("Job description",),
        "positions_available": (
            "No of heads",
            "No. of heads",
            "Heads",
            "Openings",
            "Number of positions",
            "Vacancies",
            "Headcount",
        ),
        "application_deadline": ("Closing date", "Deadline", "Apply by"),
        "start_date": ("Job start date", "Starts on", "Start", "Start date"),
    },
):
    """A posting or vacancy."""

    title: str = field("Title of the job.", create=REQUIRED, listed=True, sortable=True)
    reference_code: str | None = field("The agency's own code for the job.", listed=True)
    slug: str | None = read_only("The job's name in the address of its public page.")
    department: str | None = field("Department of the client.")
    location: str = field("Place of work.", create=REQUIRED, listed=True, sortable=True)
    remote_type: RemoteType | None = field("Work on site, remote or both.")
    employment_type: EmploymentType = field(
        "Employment type.",
        create=one_of("permanent", "contractor", "interim", required=True),
        listed=True,
        sortable=True,
        filterable=True,
    )
    experience_level: ExperienceLevel | None = field("Required seniority.")
    salary_min: float | None = field("Lowest salary offered.", listed=True, sortable=True)
    salary_max: float | None = field("Highest salary offered.", listed=True, sortable=True)
    salary_currency: str | None = field("Currency code of the salary.", format="currency")
    salary_type: SalaryType | None = field(
        "Period of the salary.", create=one_of("annual", "monthly", "hourly")
    )
    show_salary: bool | None = field("True if the public page shows the salary.")
    day_rate_min: float | None = field("Lowest day rate offered.")
    day_rate_max: float | None = field("Highest day rate offered.")
    rate_currency: str | None = field("Currency code of the day rate.", format="currency")
    fee_type: FeeType | None = field("How the agency's fee is calculated.")
    fee_percentage: float | None = field("The agency's fee as a percentage of the salary.")
    placement_fee: float | None = field("The agency's fee as an amount.")
    description: str = field("Full description of the job.", create=REQUIRED, prose=True)
    requirements: str | None = field("Requirements for applicants.", prose=True)
    responsibilities: str | None = field("Tasks of the job.", prose=True)
    benefits: str | None = field("Benefits other than pay.", prose=True)
    positions_available: int | None = field("Number of people to hire.")
    application_deadline: date | None = field("The last day for applications.")
    start_date: date | None = field("The day on which the work begins.")
    required_skills: str | None = field("Required skills.", lines="many")
    preferred_skills: str | None = field("Preferred skills.", lines="many")
    qualifications: str | None = field("Required degrees and certificates.", lines="many")
    status: JobStatus | None = field(
        "Status of the job.",
        create=one_of("draft", "published"),
        listed=True,
        sortable=True,
        filterable=True,
    )
    published_at: datetime | None = field("When the job was published.", sortable=True)
    allow_applications: bool | None = field("True if candidates can apply.")
    enable_public_page: bool | None = field("True if the job has a public page.")
    company_id: Uuid | None = field("The client company (`companies.id`).")
    assigned_to: Uuid | None = field(
        "Consultant in charge (user id; the API has no endpoint for users)."
    )
    application_email: str | None = field(
        "Email address for applications.", write_only=True, format="email", personal="contact"
    )
    application_url: str | None = field(
        "The page where applications are made.", write_only=True, format="url"
    )
    enable_ai_matching: bool | None = field(
        "True if candidates are matched automatically.", write_only=True
    )
    meta_title: str | None = field("The public page's title for search engines.", write_only=True)
    meta_description: str | None = field(
        "The public page's summary for search engines.", write_only=True, prose=True
    )
    featured: bool | None = field("True if the job is listed first.", write_only=True)
    internal_notes: str | None = field("Notes for colleagues.", write_only=True, personal="text")

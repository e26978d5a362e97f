"""The shapes of jobs for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import date, datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.job import (
    EmploymentType,
    ExperienceLevel,
    FeeType,
    JobStatus,
    RemoteType,
    SalaryType,
)
from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem

JobCreateEmploymentType = Literal["permanent", "contractor", "interim"]
JobCreateStatus = Literal["draft", "published"]
JobSort = Literal[
    "created_at",
    "updated_at",
    "title",
    "location",
    "employment_type",
    "salary_min",
    "salary_max",
    "status",
    "published_at",
]


class JobItem(ListItem, Protocol):
    """A job as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def title(self) -> str:
        """The vacancy's title."""

    @property
    def reference_code(self) -> str | None:
        """The agency's own code for the job."""

    @property
    def location(self) -> str:
        """Where the work is done."""

    @property
    def employment_type(self) -> EmploymentType:
        """The kind of engagement."""

    @property
    def salary_min(self) -> float | None:
        """Lowest salary offered."""

    @property
    def salary_max(self) -> float | None:
        """Highest salary offered."""

    @property
    def status(self) -> JobStatus | None:
        """The job's state."""


class JobCreate(TypedDict, total=False):
    """What the create of a job may be given."""

    title: Required[str]
    reference_code: str
    department: str
    location: Required[str]
    remote_type: RemoteType
    employment_type: Required[JobCreateEmploymentType]
    experience_level: ExperienceLevel
    salary_min: float
    salary_max: float
    salary_currency: str
    salary_type: SalaryType
    show_salary: bool
    day_rate_min: float
    day_rate_max: float
    rate_currency: str
    fee_type: FeeType
    fee_percentage: float
    placement_fee: float
    description: Required[str]
    requirements: str
    responsibilities: str
    benefits: str
    positions_available: int
    application_deadline: date | str
    start_date: date | str
    required_skills: str
    preferred_skills: str
    qualifications: str
    status: JobCreateStatus
    published_at: datetime | str
    allow_applications: bool
    enable_public_page: bool
    company_id: str
    assigned_to: str
    application_email: str
    application_url: str
    enable_ai_matching: bool
    meta_title: str
    meta_description: str
    featured: bool
    internal_notes: str


class JobUpdate(TypedDict, total=False):
    """What the update of a job may be given."""

    title: str
    reference_code: str | None
    department: str | None
    location: str
    remote_type: RemoteType | None
    employment_type: EmploymentType
    experience_level: ExperienceLevel | None
    salary_min: float | None
    salary_max: float | None
    salary_currency: str | None
    salary_type: SalaryType | None
    show_salary: bool | None
    day_rate_min: float | None
    day_rate_max: float | None
    rate_currency: str | None
    fee_type: FeeType | None
    fee_percentage: float | None
    placement_fee: float | None
    description: str
    requirements: str | None
    responsibilities: str | None
    benefits: str | None
    positions_available: int | None
    application_deadline: date | str | None
    start_date: date | str | None
    required_skills: str | None
    preferred_skills: str | None
    qualifications: str | None
    status: JobStatus | None
    published_at: datetime | str | None
    allow_applications: bool | None
    enable_public_page: bool | None
    company_id: str | None
    assigned_to: str | None
    application_email: str | None
    application_url: str | None
    enable_ai_matching: bool | None
    meta_title: str | None
    meta_description: str | None
    featured: bool | None
    internal_notes: str | None


class JobFilters(TypedDict, total=False):
    """What narrows a list of jobs."""

    employment_type: EmploymentType
    status: JobStatus

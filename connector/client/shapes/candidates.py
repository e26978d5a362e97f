"""The shapes of candidates for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import date, datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.candidate import CandidateIr35, CandidateStatus, EmploymentStatus
from connector.catalog.job import EmploymentType
from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem

CandidateCreateEmploymentType = Literal["permanent", "contractor", "interim"]
CandidateCreateEmploymentStatus = Literal[
    "actively_looking", "open_to_offers", "passive", "not_looking"
]
CandidateUpdateStatus = Literal[
    "new_lead", "screening", "submitted", "interviewing", "offer_made", "placed", "rejected"
]
CandidateSort = Literal[
    "created_at",
    "updated_at",
    "first_name",
    "last_name",
    "email",
    "employment_type",
    "available_from",
    "current_job_title",
    "current_company",
    "status",
]


class CandidateItem(ListItem, Protocol):
    """A candidate as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def first_name(self) -> str:
        """Given name."""

    @property
    def last_name(self) -> str:
        """Family name."""

    @property
    def email(self) -> str:
        """Email address."""

    @property
    def phone(self) -> str | None:
        """Telephone number."""

    @property
    def employment_type(self) -> EmploymentType:
        """The kind of engagement sought."""

    @property
    def current_job_title(self) -> str | None:
        """Job title at present."""

    @property
    def current_company(self) -> str | None:
        """Employer at present."""

    @property
    def status(self) -> CandidateStatus | None:
        """The person's state in the pipeline."""


class CandidateCreate(TypedDict, total=False):
    """What the create of a candidate may be given."""

    first_name: Required[str]
    last_name: Required[str]
    email: Required[str]
    phone: str
    mobile: str
    address_line1: str
    address_line2: str
    city: str
    state_province: str
    postal_code: str
    country: str
    network_url: str
    code_host_url: str
    portfolio_url: str
    date_of_birth: date | str
    nationality: str
    employment_type: Required[CandidateCreateEmploymentType]
    employment_status: CandidateCreateEmploymentStatus
    current_salary: float
    expected_salary: float
    salary_currency: str
    current_day_rate: float
    expected_day_rate: float
    rate_currency: str
    notice_period_days: int
    available_from: date | str
    current_job_title: str
    current_company: str
    years_of_experience: int
    industry: str
    skills: str
    qualifications: str
    source: str
    rating: int
    preferred_locations: str
    willing_to_relocate: bool
    right_to_work: str
    security_clearance: str
    languages: str
    ir35_status: CandidateIr35
    umbrella_company: str
    limited_company_name: str
    notes: str
    internal_notes: str
    assigned_to: str


class CandidateUpdate(TypedDict, total=False):
    """What the update of a candidate may be given."""

    first_name: str
    last_name: str
    email: str
    phone: str | None
    mobile: str | None
    address_line1: str | None
    address_line2: str | None
    city: str | None
    state_province: str | None
    postal_code: str | None
    country: str | None
    network_url: str | None
    code_host_url: str | None
    portfolio_url: str | None
    date_of_birth: date | str | None
    nationality: str | None
    employment_type: EmploymentType
    employment_status: EmploymentStatus | None
    current_salary: float | None
    expected_salary: float | None
    salary_currency: str | None
    current_day_rate: float | None
    expected_day_rate: float | None
    rate_currency: str | None
    notice_period_days: int | None
    available_from: date | str | None
    current_job_title: str | None
    current_company: str | None
    years_of_experience: int | None
    industry: str | None
    skills: str | None
    qualifications: str | None
    status: CandidateUpdateStatus | None
    source: str | None
    rating: int | None
    preferred_locations: str | None
    willing_to_relocate: bool | None
    right_to_work: str | None
    security_clearance: str | None
    languages: str | None
    ir35_status: CandidateIr35 | None
    umbrella_company: str | None
    limited_company_name: str | None
    notes: str | None
    internal_notes: str | None
    assigned_to: str | None


class CandidateFilters(TypedDict, total=False):
    """What narrows a list of candidates."""

    status: CandidateStatus

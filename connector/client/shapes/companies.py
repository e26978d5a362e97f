"""The shapes of companies for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import date, datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.company import CompanyFeeType, CompanySize, CompanyStatus
from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem

CompanyCreateStatus = Literal["prospect", "active"]
CompanySort = Literal["created_at", "updated_at", "name", "industry", "status"]


class CompanyItem(ListItem, Protocol):
    """A company as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def name(self) -> str:
        """The company's name."""

    @property
    def email(self) -> str:
        """Email address."""

    @property
    def phone(self) -> str | None:
        """Telephone number."""

    @property
    def industry(self) -> str | None:
        """Industry."""

    @property
    def status(self) -> CompanyStatus | None:
        """The company's state."""

    @property
    def jobs_count(self) -> int | None:
        """Number of the company's jobs."""


class CompanyCreate(TypedDict, total=False):
    """What the create of a company may be given."""

    name: Required[str]
    email: Required[str]
    legal_name: str
    trading_name: str
    company_number: str
    phone: str
    website: str
    industry: str
    description: str
    company_size: CompanySize
    founded_year: int
    primary_contact_name: str
    primary_contact_email: str
    primary_contact_phone: str
    primary_contact_title: str
    status: CompanyCreateStatus
    billing_email: str
    payment_terms: str
    contract_start_date: date | str
    contract_end_date: date | str
    fee_percentage: float
    fee_type: CompanyFeeType
    network_url: str
    social_url: str
    internal_notes: str
    tags: str
    account_manager_id: str


class CompanyUpdate(TypedDict, total=False):
    """What the update of a company may be given."""

    name: str
    email: str
    legal_name: str | None
    trading_name: str | None
    company_number: str | None
    phone: str | None
    website: str | None
    industry: str | None
    description: str | None
    company_size: CompanySize | None
    founded_year: int | None
    primary_contact_name: str | None
    primary_contact_email: str | None
    primary_contact_phone: str | None
    primary_contact_title: str | None
    status: CompanyStatus | None
    billing_email: str | None
    payment_terms: str | None
    contract_start_date: date | str | None
    contract_end_date: date | str | None
    fee_percentage: float | None
    fee_type: CompanyFeeType | None
    network_url: str | None
    social_url: str | None
    internal_notes: str | None
    tags: str | None
    account_manager_id: str | None


class CompanyFilters(TypedDict, total=False):
    """What narrows a list of companies."""

    status: CompanyStatus

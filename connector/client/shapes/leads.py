"""The shapes of leads for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.lead import CustomerType, LeadStatus
from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem

LeadSort = Literal[
    "created_at",
    "updated_at",
    "email",
    "first_name",
    "last_name",
    "company_name",
    "status",
    "source",
    "last_contacted_at",
]


class LeadItem(ListItem, Protocol):
    """A lead as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def email(self) -> str:
        """Email address."""

    @property
    def first_name(self) -> str | None:
        """Given name."""

    @property
    def last_name(self) -> str | None:
        """Family name."""

    @property
    def company_name(self) -> str | None:
        """Company."""

    @property
    def phone(self) -> str | None:
        """Telephone number."""

    @property
    def status(self) -> LeadStatus | None:
        """The lead's state."""

    @property
    def source(self) -> str | None:
        """How the lead was found, as written."""


class LeadCreate(TypedDict, total=False):
    """What the create of a lead may be given."""

    email: Required[str]
    lead_status_id: Required[str]
    first_name: str
    last_name: str
    company_name: str
    phone: str
    mobile: str
    customer_type: CustomerType
    status: LeadStatus
    address: str
    city: str
    county: str
    postcode: str
    country: str
    website: str
    network_url: str
    billing_address: str
    billing_city: str
    billing_county: str
    billing_postcode: str
    billing_country: str
    industry: str
    job_title: str
    notes: str
    source: str
    tags: str
    assigned_to: str


class LeadUpdate(TypedDict, total=False):
    """What the update of a lead may be given."""

    email: str
    lead_status_id: str
    first_name: str | None
    last_name: str | None
    company_name: str | None
    phone: str | None
    mobile: str | None
    customer_type: CustomerType | None
    status: LeadStatus | None
    address: str | None
    city: str | None
    county: str | None
    postcode: str | None
    country: str | None
    website: str | None
    network_url: str | None
    billing_address: str | None
    billing_city: str | None
    billing_county: str | None
    billing_postcode: str | None
    billing_country: str | None
    industry: str | None
    job_title: str | None
    notes: str | None
    source: str | None
    tags: str | None
    assigned_to: str | None


class LeadFilters(TypedDict, total=False):
    """What narrows a list of leads."""

    status: LeadStatus
    source: str
    assigned_to: str

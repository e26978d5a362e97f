"""Leads: prospects in the sales pipeline (API 2.5, 3.5, 4.6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from connector.field import REFUSED, REQUIRED, AtLeastOneOf, field
from connector.resource import Resource
from connector.value import Uuid

CustomerType = Literal["individual", "business"]
LeadStatus = Literal["lead", "prospect"]


class Lead(
    Resource,
    name="leads",
    singular="lead",
    path="/leads",
    scope="leads",
    operations=("list", "get", "create", "update", "delete", "convert"),
    rules=(AtLeastOneOf(("first_name", "last_name", "company_name")),),
):
    """A prospect in the sales pipeline, who may be converted into a customer."""

    email: str = field(
        "Email address.", create=REQUIRED, listed=True, sortable=True, format="email"
    )
    lead_status_id: Uuid = field(
        "The lead's status in the agency's own list; it has no endpoint.", create=REQUIRED
    )
    first_name: str | None = field("Given name.", listed=True, sortable=True)
    last_name: str | None = field("Family name.", listed=True, sortable=True)
    company_name: str | None = field("Company.", listed=True, sortable=True)
    phone: str | None = field("Telephone number.", listed=True)
    mobile: str | None = field("Mobile number.")
    customer_type: CustomerType | None = field("Whether a person or a business.")
    status: LeadStatus | None = field(
        "The lead's state.", listed=True, sortable=True, filterable=True
    )
    address: str | None = field("Address.")
    city: str | None = field("Town or city.")
    county: str | None = field("County.")
    postcode: str | None = field("Postal code.")
    country: str | None = field("Country.")
    website: str | None = field("Website.", format="url")
    network_url: str | None = field("Professional network profile.", format="url")
    billing_address: str | None = field("Address for invoices.")
    billing_city: str | None = field("Town or city for invoices.")
    billing_county: str | None = field("County for invoices.")
    billing_postcode: str | None = field("Postal code for invoices.")
    billing_country: str | None = field("Country for invoices.")
    industry: str | None = field("Industry.")
    job_title: str | None = field("Job title.")
    notes: str | None = field("Notes.")
    source: str | None = field(
        "How the lead was found, as written.", listed=True, sortable=True, filterable=True
    )
    tags: str | None = field("Tags, as written.")
    assigned_to: Uuid | None = field(
        "The consultant in charge; users have no endpoint.", filterable=True
    )
    last_contacted_at: datetime | None = field(
        "When the lead was last contacted.", create=REFUSED, update=REFUSED, sortable=True
    )

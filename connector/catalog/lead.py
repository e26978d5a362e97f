"""Leads: prospects in the sales pipeline (API 2.5, 3.5, 4.6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from connector.catalog.field import REFUSED, REQUIRED, AtLeastOneOf, field
from connector.catalog.resource import Resource
from connector.catalog.value import Uuid

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
        "Email address.",
        create=REQUIRED,
        listed=True,
        sortable=True,
        format="email",
        personal="contact",
    )
    lead_status_id: Uuid = field(
        "The lead's status in the agency's own list; it has no endpoint.", create=REQUIRED
    )
    first_name: str | None = field("Given name.", listed=True, sortable=True, personal="identity")
    last_name: str | None = field("Family name.", listed=True, sortable=True, personal="identity")
    company_name: str | None = field("Company.", listed=True, sortable=True)
    phone: str | None = field("Telephone number.", listed=True, personal="contact")
    mobile: str | None = field("Mobile number.", personal="contact")
    customer_type: CustomerType | None = field("Whether a person or a business.")
    status: LeadStatus | None = field(
        "The lead's state.", listed=True, sortable=True, filterable=True
    )
    address: str | None = field("Address.", personal="contact")
    city: str | None = field("Town or city.", personal="contact")
    county: str | None = field("County.", personal="contact")
    postcode: str | None = field("Postal code.", personal="contact")
    country: str | None = field("Country.", personal="contact")
    website: str | None = field("Website.", format="url", personal="contact")
    network_url: str | None = field(
        "Professional network profile.", format="url", personal="contact"
    )
    billing_address: str | None = field("Address for invoices.", personal="contact")
    billing_city: str | None = field("Town or city for invoices.", personal="contact")
    billing_county: str | None = field("County for invoices.", personal="contact")
    billing_postcode: str | None = field("Postal code for invoices.", personal="contact")
    billing_country: str | None = field("Country for invoices.", personal="contact")
    industry: str | None = field("Industry.")
    job_title: str | None = field("Job title.", personal="identity")
    notes: str | None = field("Notes.", personal="text")
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

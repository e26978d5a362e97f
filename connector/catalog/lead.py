"""Leads: prospects in the sales pipeline (API 2.5, 3.5, 4.6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from connector.catalog.field import REFUSED, REQUIRED, AtLeastOneOf, Uuid, field, person_subject
from connector.catalog.resource import Resource

CustomerType = Literal["individual", "business"]
LeadStatus = Literal["lead", "prospect"]


class Lead(
    Resource,
    name="leads",
    section="2.5",
    singular="lead",
    path="/leads",
    scope="leads",
    operations=("list", "get", "create", "update", "delete", "convert"),
    rules=(AtLeastOneOf(("first_name", "last_name", "company_name")),),
    converted_status="active",
    natural_keys=(("email",),),
    found_by={"email": ()},
    subjects=(person_subject("the lead"),),
    sandbox_count=300,
    aliases={
        "lead_status_id": ("Lead status", "Interest level"),
        "company_name": ("Company", "Client", "Client name", "Client company"),
        "customer_type": ("Type of customer",),
        "address": ("Street", "Street address"),
        "county": ("State", "Province", "Region"),
        "postcode": ("Post code", "Postal code", "Zip", "Zip code"),
        "billing_address": ("Invoice address",),
        "billing_city": ("Invoice city", "Billing town"),
        "billing_county": ("Invoice county",),
        "billing_postcode": ("Invoice postcode", "Billing post code", "Billing postal code"),
        "billing_country": ("Invoice country",),
        "job_title": ("Position held", "Position", "Job role"),
    },
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
        "Status id in the agency's own list (the API has no endpoint for it).", create=REQUIRED
    )
    first_name: str | None = field("Given name.", listed=True, sortable=True, personal="identity")
    last_name: str | None = field("Family name.", listed=True, sortable=True, personal="identity")
    company_name: str | None = field("Company.", listed=True, sortable=True)
    phone: str | None = field("Telephone number.", listed=True, personal="contact")
    mobile: str | None = field("Mobile number.", personal="contact")
    customer_type: CustomerType | None = field("Kind of customer: a person or a business.")
    status: LeadStatus | None = field(
        "Status of the lead.", listed=True, sortable=True, filterable=True
    )
    address: str | None = field("Address.", personal="contact", lines="many")
    city: str | None = field("Town or city.", personal="contact")
    county: str | None = field("County.", personal="contact")
    postcode: str | None = field("Postal code.", personal="contact")
    country: str | None = field("Country.", personal="contact")
    website: str | None = field("Website.", format="url", personal="contact")
    network_url: str | None = field(
        "Professional network profile.", format="url", personal="contact"
    )
    billing_address: str | None = field("Address for invoices.", personal="contact", lines="many")
    billing_city: str | None = field("Town or city for invoices.", personal="contact")
    billing_county: str | None = field("County for invoices.", personal="contact")
    billing_postcode: str | None = field("Postal code for invoices.", personal="contact")
    billing_country: str | None = field("Country for invoices.", personal="contact")
    industry: str | None = field("Industry.")
    job_title: str | None = field("Job title.", personal="identity")
    notes: str | None = field("Notes.", personal="text")
    source: str | None = field(
        "Source of the lead, as written.", listed=True, sortable=True, filterable=True
    )
    tags: str | None = field("Tags, as written.", lines="many")
    assigned_to: Uuid | None = field(
        "Consultant in charge (user id; the API has no endpoint for users).", filterable=True
    )
    last_contacted_at: datetime | None = field(
        "When the lead was last contacted.", create=REFUSED, update=REFUSED, sortable=True
    )

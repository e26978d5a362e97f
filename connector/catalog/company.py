"""Companies: the agency's clients (API 2.3, 3.3, 4.4)."""

from __future__ import annotations

from datetime import date
from typing import Literal

from connector.catalog.field import REQUIRED, DataSubject, Uuid, field, one_of, read_only
from connector.catalog.resource import Resource

CompanySize = Literal["1-10", "11-50", "51-200", "201-500", "501-1000", "1000+"]
CompanyStatus = Literal["prospect", "active", "inactive", "on_hold", "archived"]
CompanyFeeType = Literal["percentage", "fixed", "retainer"]


class Company(
    Resource,
    name="companies",
    section="2.3",
    singular="company",
    path="/companies",
    scope="companies",
    natural_keys=(("email",), ("name",)),
    found_by={
        "name": ("Company", "Client", "Client name", "Client company"),
        "email": ("Client email",),
    },
    subjects=(
        DataSubject(
            "the company's contact",
            (
                *("primary_contact_name", "primary_contact_email", "primary_contact_phone"),
                "primary_contact_title",
            ),
            emails=("primary_contact_email",),
            phones=("primary_contact_phone",),
            names=(("primary_contact_name",),),
        ),
        DataSubject("the person with this address", ("email",), emails=("email",)),
        DataSubject("the person with this address", ("billing_email",), emails=("billing_email",)),
        DataSubject("the company, if its id is given", ids=("id",), phones=("phone",)),
    ),
    sandbox_count=80,
    aliases={
        "name": (
            "Company name",
            "Company",
            "Client",
            "Client name",
            "Organisation",
            "Organization",
            *("Firma", "Firmenname", "Unternehmen", "Kunde", "Entreprise", "Société", "Empresa"),
            *("Raison sociale", "Razón social", "Bedrijf", "Bedrijfsnaam", "Klant", "Azienda"),
        ),
        "legal_name": ("Registered name",),
        "trading_name": ("Trading as", "T/A"),
        "company_number": ("Company no", "Registration number", "Company reg no"),
        "description": ("About", "About the company"),
        "company_size": ("Employees", "Number of employees", "Headcount", "Size"),
        "founded_year": ("Founded", "Year founded"),
        "primary_contact_name": ("Contact", "Contact name", "Main contact"),
        "primary_contact_email": ("Contact email", "Main contact email"),
        "primary_contact_phone": ("Contact phone", "Contact number", "Main contact phone"),
        "primary_contact_title": ("Contact job title", "Contact title"),
        "billing_email": ("Invoice email", "Accounts email", "Invoicing email"),
        "contract_start_date": ("Contract start", "Contract from"),
        "contract_end_date": ("Contract end", "Contract until"),
        "social_url": ("Social profile", "Social media"),
    },
):
    """A client company."""

    name: str = field("The company's name.", create=REQUIRED, listed=True, sortable=True)
    email: str = field(
        "Email address.", create=REQUIRED, listed=True, format="email", personal="contact"
    )
    legal_name: str | None = field("Name in the company register.")
    trading_name: str | None = field("Trading name.")
    company_number: str | None = field("Number in the company register.")
    phone: str | None = field("Telephone number.", listed=True, personal="contact")
    website: str | None = field("Website.", format="url")
    industry: str | None = field("Industry.", listed=True, sortable=True)
    description: str | None = field("Description of the company.", prose=True)
    company_size: CompanySize | None = field("Number of employees, as a range.")
    founded_year: int | None = field("Year in which the company was founded.")
    primary_contact_name: str | None = field("Name of the first contact.", personal="identity")
    primary_contact_email: str | None = field(
        "Email of the first contact.", format="email", personal="contact"
    )
    primary_contact_phone: str | None = field("Telephone of the first contact.", personal="contact")
    primary_contact_title: str | None = field(
        "Job title of the first contact.", personal="identity"
    )
    status: CompanyStatus | None = field(
        "Status of the company.",
        create=one_of("prospect", "active"),
        listed=True,
        sortable=True,
        filterable=True,
    )
    billing_email: str | None = field(
        "Email address for invoices.", format="email", personal="contact"
    )
    payment_terms: str | None = field("Terms of payment.")
    contract_start_date: date | None = field("First day of the contract.")
    contract_end_date: date | None = field("Last day of the contract.")
    fee_percentage: float | None = field("The agency's fee as a percentage of the salary.")
    fee_type: CompanyFeeType | None = field("How the agency's fee is calculated.")
    network_url: str | None = field("Professional network profile.", format="url")
    social_url: str | None = field("Social media profile.", format="url")
    internal_notes: str | None = field("Notes for colleagues.", personal="text")
    tags: str | None = field("Tags, as written.", lines="many")
    account_manager_id: Uuid | None = field(
        "Consultant in charge (user id; the API has no endpoint for users)."
    )
    jobs_count: int | None = read_only("Number of the company's jobs.", listed=True)
    active_jobs_count: int | None = read_only("Number of the company's open jobs.")
    placements_count: int | None = read_only("Number of placements with the company.")

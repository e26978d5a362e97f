"""Bookings: interviews, placements and other scheduled events (API 2.4, 3.4, 4.5)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from connector.catalog.field import (
    REFUSED,
    REQUIRED,
    AcceptedWhen,
    DataSubject,
    Filter,
    Kind,
    RequiredWhen,
    Uuid,
    field,
    one_of,
    read_only,
)
from connector.catalog.resource import Resource

BookingType = Literal[
    "interview", "contract", "permanent", "internal", "consultation", "site_visit"
]
BookingStatus = Literal[
    "draft", "scheduled", "confirmed", "in_progress", "completed", "cancelled", "rescheduled"
]
InterviewType = Literal["phone", "video", "in_person"]
MeetingPlatform = Literal["<meeting_platform_1>", "<meeting_platform_2>", "<meeting_platform_3>"]
ContractType = Literal["fixed_term", "temporary", "ongoing", "project_based"]
BookingIr35 = Literal["inside", "outside", "not_applicable"]


class Booking(
    Resource,
    name="bookings",
    section="2.4",
    singular="booking",
    path="/bookings",
    scope="bookings",
    rules=(
        RequiredWhen(
            ("candidate_id", "job_id", "company_id"),
            on="booking_type",
            values=("interview", "contract", "permanent"),
        ),
        RequiredWhen(("end_datetime",), on="booking_type", values=("interview", "contract")),
        AcceptedWhen("cancellation_reason", on="status", values=("cancelled",)),
    ),
    # API 4.5 does not say which datetime these are compared with, or whether bounds are inclusive.
    filters=(Filter("start_date", Kind.DATE), Filter("end_date", Kind.DATE)),
    natural_keys=(("booking_type", "start_datetime", "candidate_id"),),
    subjects=(
        DataSubject(
            "the client's contact",
            ("contact_name", "contact_email", "contact_phone"),
            emails=("contact_email",),
            phones=("contact_phone",),
            names=(("contact_name",),),
        ),
        # Agreed payments are kept because invoices and fees depend on them. Without the person they
        # are figures of the agency's contract with its client.
        DataSubject(
            "the candidate or lead whom it is about",
            (
                *("title", "description", "contract_notes", "requirements", "internal_notes"),
                *("meeting_link", "meeting_id", "meeting_password", "meeting_join_url"),
                "cancellation_reason",
            ),
            ids=("candidate_id", "lead_id"),
        ),
        DataSubject("the booking, if its id is given", ids=("id",)),
    ),
    sandbox_count=500,
    aliases={
        "booking_type": ("Event type", "Type of booking"),
        "title": ("Event", "Event title", "Subject"),
        "job_id": ("Job record id",),
        "start_datetime": ("Start", "Start date", "Starts at", "Start time", "Start date and time"),
        "end_datetime": ("End", "End date", "Ends at", "End time", "End date and time"),
        "day_rate": ("Rate per day",),
        "internal_notes": ("Comments", "Notes"),
        "annual_salary": ("Salary per year", "Yearly salary"),
        "timezone": ("Time zone",),
    },
):
    """An interview, placement or other scheduled event."""

    booking_type: BookingType = field(
        "Kind of event.", create=REQUIRED, listed=True, sortable=True, filterable=True
    )
    title: str | None = field(
        "Title of the event.", listed=True, sortable=True, personal="text", lines="one"
    )
    description: str | None = field("Description of the event.", personal="text")
    candidate_id: Uuid | None = field("The candidate (`candidates.id`).", listed=True)
    job_id: Uuid | None = field("The job (`jobs.id`).", listed=True)
    company_id: Uuid | None = field("The client company (`companies.id`).", listed=True)
    lead_id: Uuid | None = field("The lead (`leads.id`), for consultations.")
    start_datetime: datetime = field(
        "Start of the event.", create=REQUIRED, listed=True, sortable=True
    )
    end_datetime: datetime | None = field("End of the event.", listed=True, sortable=True)
    all_day: bool | None = field("True if the event takes whole days.")
    interview_type: InterviewType | None = field("Form of the interview.")
    interview_location: str | None = field("Place of the interview.", personal="contact")
    interview_panel: str | None = field(
        "Names of the interviewers.", personal="identity", lines="many"
    )
    meeting_link: str | None = field(
        "Address of the online meeting.", format="url", personal="contact"
    )
    meeting_platform: MeetingPlatform | None = field("Platform of the online meeting.")
    meeting_id: str | None = read_only("The platform's number for the meeting.", personal="contact")
    meeting_password: str | None = read_only("The meeting's password.", personal="contact")
    meeting_join_url: str | None = read_only("Link to join the online meeting.", personal="contact")
    contract_type: ContractType | None = field("Kind of contract.")
    day_rate: float | None = field("Day rate of the contract.", personal="pay")
    contract_value: float | None = field("Value of the contract.", personal="pay")
    payment_terms: str | None = field("Terms of payment.")
    contract_notes: str | None = field("Notes on the contract.", personal="text")
    ir35_status: BookingIr35 | None = field("Status under the IR35 tax rules.")
    offer_accepted_date: date | None = read_only("Day on which the offer was accepted.")
    annual_salary: float | None = field("Yearly salary of a permanent placement.", personal="pay")
    placement_fee: float | None = field("The agency's fee for the placement.")
    notice_period_days: int | None = field("Notice period in days.")
    probation_period_months: int | None = field("Probation period in months.")
    status: BookingStatus | None = field(
        "Status of the booking.",
        create=one_of("draft", "scheduled", "confirmed"),
        listed=True,
        sortable=True,
        filterable=True,
    )
    contact_name: str | None = field("Name of the client's contact.", personal="identity")
    contact_email: str | None = field("The contact's email.", format="email", personal="contact")
    contact_phone: str | None = field("The contact's telephone.", personal="contact")
    location: str | None = field("Place of the event.", personal="contact")
    requirements: str | None = field("Things to prepare for the event.", personal="text")
    internal_notes: str | None = field("Notes for colleagues.", personal="text")
    assigned_to: Uuid | None = field(
        "Consultant in charge (user id; the API has no endpoint for users)."
    )
    timezone: str | None = field("Time zone of the event.", format="timezone")
    cancellation_reason: str | None = field(
        "Reason for the cancellation.", create=REFUSED, personal="text"
    )

"""The shapes of bookings for type checkers.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from datetime import date, datetime
from typing import Literal, Protocol, Required, TypedDict

from connector.catalog.booking import (
    BookingIr35,
    BookingStatus,
    BookingType,
    ContractType,
    InterviewType,
    MeetingPlatform,
)
from connector.catalog.value import Uuid
from connector.client.shapes.item import ListItem

BookingCreateStatus = Literal["draft", "scheduled", "confirmed"]
BookingSort = Literal[
    "created_at", "updated_at", "booking_type", "title", "start_datetime", "end_datetime", "status"
]


class BookingItem(ListItem, Protocol):
    """A booking as lists show it."""

    @property
    def id(self) -> Uuid:
        """Identifies the record."""

    @property
    def created_at(self) -> datetime:
        """When the record was created."""

    @property
    def booking_type(self) -> BookingType:
        """What kind of event it is."""

    @property
    def title(self) -> str | None:
        """The event's title."""

    @property
    def candidate_id(self) -> Uuid | None:
        """The candidate (`candidates.id`)."""

    @property
    def job_id(self) -> Uuid | None:
        """The job (`jobs.id`)."""

    @property
    def company_id(self) -> Uuid | None:
        """The client company (`companies.id`)."""

    @property
    def start_datetime(self) -> datetime:
        """When it begins."""

    @property
    def end_datetime(self) -> datetime | None:
        """When it ends."""

    @property
    def status(self) -> BookingStatus | None:
        """The booking's state."""


class BookingCreate(TypedDict, total=False):
    """What the create of a booking may be given."""

    booking_type: Required[BookingType]
    title: str
    description: str
    candidate_id: str
    job_id: str
    company_id: str
    lead_id: str
    start_datetime: Required[datetime | str]
    end_datetime: datetime | str
    all_day: bool
    interview_type: InterviewType
    interview_location: str
    interview_panel: str
    meeting_link: str
    meeting_platform: MeetingPlatform
    contract_type: ContractType
    day_rate: float
    contract_value: float
    payment_terms: str
    contract_notes: str
    ir35_status: BookingIr35
    annual_salary: float
    placement_fee: float
    notice_period_days: int
    probation_period_months: int
    status: BookingCreateStatus
    contact_name: str
    contact_email: str
    contact_phone: str
    location: str
    requirements: str
    internal_notes: str
    assigned_to: str
    timezone: str


class BookingUpdate(TypedDict, total=False):
    """What the update of a booking may be given."""

    booking_type: BookingType
    title: str | None
    description: str | None
    candidate_id: str | None
    job_id: str | None
    company_id: str | None
    lead_id: str | None
    start_datetime: datetime | str
    end_datetime: datetime | str | None
    all_day: bool | None
    interview_type: InterviewType | None
    interview_location: str | None
    interview_panel: str | None
    meeting_link: str | None
    meeting_platform: MeetingPlatform | None
    contract_type: ContractType | None
    day_rate: float | None
    contract_value: float | None
    payment_terms: str | None
    contract_notes: str | None
    ir35_status: BookingIr35 | None
    annual_salary: float | None
    placement_fee: float | None
    notice_period_days: int | None
    probation_period_months: int | None
    status: BookingStatus | None
    contact_name: str | None
    contact_email: str | None
    contact_phone: str | None
    location: str | None
    requirements: str | None
    internal_notes: str | None
    assigned_to: str | None
    timezone: str | None
    cancellation_reason: str | None


class BookingFilters(TypedDict, total=False):
    """What narrows a list of bookings."""

    booking_type: BookingType
    status: BookingStatus
    start_date: date | str
    end_date: date | str

"""The resources that a client offers, each with its operations and types.

Generated from `connector.catalog` by `make generate`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from connector.catalog.booking import Booking
from connector.catalog.candidate import Candidate
from connector.catalog.company import Company
from connector.catalog.content import ContentItem, ContentType
from connector.catalog.job import Job
from connector.catalog.lead import Lead
from connector.client.endpoint import Changeable, Convertible, Endpoint, Readable, Sender

if TYPE_CHECKING:
    from connector.client import shapes


class Resources(Sender):
    """Whoever sends requests, with the resources of the workspace."""

    @property
    def jobs(
        self,
    ) -> Changeable[
        Job, shapes.JobItem, shapes.JobSort, shapes.JobFilters, shapes.JobCreate, shapes.JobUpdate
    ]:
        """Jobs (API 2.1)."""
        return Endpoint(self, Job)

    @property
    def candidates(
        self,
    ) -> Changeable[
        Candidate,
        shapes.CandidateItem,
        shapes.CandidateSort,
        shapes.CandidateFilters,
        shapes.CandidateCreate,
        shapes.CandidateUpdate,
    ]:
        """Candidates (API 2.2)."""
        return Endpoint(self, Candidate)

    @property
    def companies(
        self,
    ) -> Changeable[
        Company,
        shapes.CompanyItem,
        shapes.CompanySort,
        shapes.CompanyFilters,
        shapes.CompanyCreate,
        shapes.CompanyUpdate,
    ]:
        """Companies (API 2.3)."""
        return Endpoint(self, Company)

    @property
    def bookings(
        self,
    ) -> Changeable[
        Booking,
        shapes.BookingItem,
        shapes.BookingSort,
        shapes.BookingFilters,
        shapes.BookingCreate,
        shapes.BookingUpdate,
    ]:
        """Bookings (API 2.4)."""
        return Endpoint(self, Booking)

    @property
    def leads(
        self,
    ) -> Convertible[
        Lead,
        shapes.LeadItem,
        shapes.LeadSort,
        shapes.LeadFilters,
        shapes.LeadCreate,
        shapes.LeadUpdate,
    ]:
        """Leads (API 2.5)."""
        return Endpoint(self, Lead)

    @property
    def content_types(
        self,
    ) -> Readable[ContentType, shapes.ContentTypeItem, Never, shapes.ContentTypeFilters]:
        """Content types (API 2.6)."""
        return Endpoint(self, ContentType)

    def content_items(
        self, type: str
    ) -> Changeable[
        ContentItem,
        shapes.ContentItemItem,
        shapes.ContentItemSort,
        shapes.ContentItemFilters,
        shapes.ContentItemCreate,
        shapes.ContentItemUpdate,
    ]:
        """Content items of one content type, by its slug or id (API 2.7)."""
        return Endpoint(self, ContentItem, type)

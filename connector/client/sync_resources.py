"""The resources of a client without asyncio, each with its operations and types.

Generated from `resources.py` and `endpoint.py` by `make generate`; not to be edited.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Never, Protocol

from connector.catalog.booking import Booking
from connector.catalog.candidate import Candidate
from connector.catalog.company import Company
from connector.catalog.content import ContentItem, ContentType
from connector.catalog.job import Job
from connector.catalog.lead import Lead
from connector.catalog.page import PER_PAGE_MAX, I_co, Order, Page
from connector.client.endpoint import C_contra, F_contra, R_co, S_contra, U_contra, Written
from connector.client.resources import Resources

if TYPE_CHECKING:
    from connector.client import shapes


class SyncReadable(Protocol[R_co, I_co, S_contra, F_contra]):
    """Resource that can be listed and read, for type checkers; see `Endpoint`."""

    def list(
        self,
        *,
        page: int = 1,
        per_page: int = PER_PAGE_MAX,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> Page[I_co]:
        """One page, 1 being the first, of at most 100 items."""

    def pages(
        self,
        *,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> Iterator[Page[I_co]]:
        """Every page, from the first to the last."""

    def iterate(
        self,
        *,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> Iterator[I_co]:
        """Every list item, page after page."""

    def get(self, id: str) -> R_co:
        """The record with all its fields."""


class SyncCreatable(
    SyncReadable[R_co, I_co, S_contra, F_contra], Protocol[R_co, I_co, S_contra, F_contra, C_contra]
):
    """A resource that can be created as well."""

    def create(self, fields: C_contra) -> Written[R_co]:
        """Create a record."""


class SyncChangeable(
    SyncCreatable[R_co, I_co, S_contra, F_contra, C_contra],
    Protocol[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
):
    """A resource that can be updated and deleted as well."""

    def update(self, id: str, fields: U_contra) -> Written[R_co]:
        """Change the fields that are given, and no others."""

    def delete(self, id: str) -> str | None:
        """Delete the record; the API's message, if it gave one."""


class SyncConvertible(
    SyncChangeable[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
    Protocol[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
):
    """A resource whose records can be converted as well: a lead."""

    def convert(self, id: str) -> Written[R_co]:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""


class SyncResources:
    """Whoever waits for answers, with the resources of the workspace."""

    _resources: Resources

    def _waiting(self, endpoint: Any) -> Any:
        """The endpoint without asyncio: its methods return when they are done."""
        raise NotImplementedError

    @property
    def jobs(
        self,
    ) -> SyncChangeable[
        Job, shapes.JobItem, shapes.JobSort, shapes.JobFilters, shapes.JobCreate, shapes.JobUpdate
    ]:
        """Jobs (API 2.1)."""
        return self._waiting(self._resources.jobs)

    @property
    def candidates(
        self,
    ) -> SyncChangeable[
        Candidate,
        shapes.CandidateItem,
        shapes.CandidateSort,
        shapes.CandidateFilters,
        shapes.CandidateCreate,
        shapes.CandidateUpdate,
    ]:
        """Candidates (API 2.2)."""
        return self._waiting(self._resources.candidates)

    @property
    def companies(
        self,
    ) -> SyncChangeable[
        Company,
        shapes.CompanyItem,
        shapes.CompanySort,
        shapes.CompanyFilters,
        shapes.CompanyCreate,
        shapes.CompanyUpdate,
    ]:
        """Companies (API 2.3)."""
        return self._waiting(self._resources.companies)

    @property
    def bookings(
        self,
    ) -> SyncChangeable[
        Booking,
        shapes.BookingItem,
        shapes.BookingSort,
        shapes.BookingFilters,
        shapes.BookingCreate,
        shapes.BookingUpdate,
    ]:
        """Bookings (API 2.4)."""
        return self._waiting(self._resources.bookings)

    @property
    def leads(
        self,
    ) -> SyncConvertible[
        Lead,
        shapes.LeadItem,
        shapes.LeadSort,
        shapes.LeadFilters,
        shapes.LeadCreate,
        shapes.LeadUpdate,
    ]:
        """Leads (API 2.5)."""
        return self._waiting(self._resources.leads)

    @property
    def content_types(
        self,
    ) -> SyncReadable[ContentType, shapes.ContentTypeItem, Never, shapes.ContentTypeFilters]:
        """Content types (API 2.6)."""
        return self._waiting(self._resources.content_types)

    def content_items(
        self, type: str
    ) -> SyncChangeable[
        ContentItem,
        shapes.ContentItemItem,
        shapes.ContentItemSort,
        shapes.ContentItemFilters,
        shapes.ContentItemCreate,
        shapes.ContentItemUpdate,
    ]:
        """Content items of one content type, by its slug or id (API 2.7)."""
        return self._waiting(self._resources.content_items(type))

"""The shapes of requests and list items for type checkers, by resource.

Generated from `connector.catalog` by `make generate`; not to be edited.
A name is a resource's singular and `Item`, `Create`, `Update`, `Sort` or `Filters`.
"""

from __future__ import annotations

from connector.client.shapes.bookings import (
    BookingCreate,
    BookingFilters,
    BookingItem,
    BookingSort,
    BookingUpdate,
)
from connector.client.shapes.candidates import (
    CandidateCreate,
    CandidateFilters,
    CandidateItem,
    CandidateSort,
    CandidateUpdate,
)
from connector.client.shapes.companies import (
    CompanyCreate,
    CompanyFilters,
    CompanyItem,
    CompanySort,
    CompanyUpdate,
)
from connector.client.shapes.content_items import (
    ContentItemCreate,
    ContentItemFilters,
    ContentItemItem,
    ContentItemSort,
    ContentItemUpdate,
)
from connector.client.shapes.content_types import ContentTypeFilters, ContentTypeItem
from connector.client.shapes.jobs import JobCreate, JobFilters, JobItem, JobSort, JobUpdate
from connector.client.shapes.leads import LeadCreate, LeadFilters, LeadItem, LeadSort, LeadUpdate

__all__ = [
    "BookingCreate",
    "BookingFilters",
    "BookingItem",
    "BookingSort",
    "BookingUpdate",
    "CandidateCreate",
    "CandidateFilters",
    "CandidateItem",
    "CandidateSort",
    "CandidateUpdate",
    "CompanyCreate",
    "CompanyFilters",
    "CompanyItem",
    "CompanySort",
    "CompanyUpdate",
    "ContentItemCreate",
    "ContentItemFilters",
    "ContentItemItem",
    "ContentItemSort",
    "ContentItemUpdate",
    "ContentTypeFilters",
    "ContentTypeItem",
    "JobCreate",
    "JobFilters",
    "JobItem",
    "JobSort",
    "JobUpdate",
    "LeadCreate",
    "LeadFilters",
    "LeadItem",
    "LeadSort",
    "LeadUpdate",
]

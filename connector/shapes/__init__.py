"""The shapes of requests and list items for type checkers, by resource.

Generated from `connector.catalog` by `python -m connector.shapes.generate`; not to be edited.
A name is a resource's singular and `Item`, `Create`, `Update`, `Sort` or `Filters`.
"""

from __future__ import annotations

from connector.shapes.bookings import (
    BookingCreate,
    BookingFilters,
    BookingItem,
    BookingSort,
    BookingUpdate,
)
from connector.shapes.candidates import (
    CandidateCreate,
    CandidateFilters,
    CandidateItem,
    CandidateSort,
    CandidateUpdate,
)
from connector.shapes.companies import (
    CompanyCreate,
    CompanyFilters,
    CompanyItem,
    CompanySort,
    CompanyUpdate,
)
from connector.shapes.content_items import (
    ContentItemCreate,
    ContentItemFilters,
    ContentItemItem,
    ContentItemSort,
    ContentItemUpdate,
)
from connector.shapes.content_types import ContentTypeFilters, ContentTypeItem
from connector.shapes.jobs import JobCreate, JobFilters, JobItem, JobSort, JobUpdate
from connector.shapes.leads import LeadCreate, LeadFilters, LeadItem, LeadSort, LeadUpdate

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

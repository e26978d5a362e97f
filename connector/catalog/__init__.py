"""All resources of the API, as declared, in the API's own order.

`CATALOG` maps a resource's name to its declaration; the classes are the types of its records.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from connector.catalog.booking import Booking
from connector.catalog.candidate import Candidate
from connector.catalog.company import Company
from connector.catalog.content import ContentItem, ContentType, ContentTypeField
from connector.catalog.job import Job
from connector.catalog.lead import Lead
from connector.catalog.resource import Declaration, Resource
from connector.errors import UnknownName

_RESOURCES: tuple[type[Resource], ...] = (
    Job,
    Candidate,
    Company,
    Booking,
    Lead,
    ContentType,
    ContentItem,
)

CATALOG: Mapping[str, Declaration] = MappingProxyType(
    {each.declaration.name: each.declaration for each in _RESOURCES}
)
"""Every declaration by its resource's name, in the API's order."""


def declaration(name: str) -> Declaration:
    """The declaration of the resource of that name. Raises `UnknownName` with the names allowed."""
    if name not in CATALOG:
        raise UnknownName("resource", name, CATALOG)
    return CATALOG[name]


__all__ = [
    "CATALOG",
    "Booking",
    "Candidate",
    "Company",
    "ContentItem",
    "ContentType",
    "ContentTypeField",
    "Job",
    "Lead",
    "declaration",
]

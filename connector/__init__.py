"""The Recruitment Connector: the public names, and nothing else.

A name is imported when it is first asked for, so that what needs little of the connector loads
little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connector.advice import difference, explain, may_repeat
    from connector.catalog import (
        CATALOG,
        Booking,
        Candidate,
        Company,
        ContentItem,
        ContentType,
        Job,
        Lead,
    )
    from connector.client import Client
    from connector.endpoint import Page, Written
    from connector.errors import (
        ConnectorError,
        Forbidden,
        InDoubt,
        NotFound,
        QuotaSpent,
        RateLimited,
        Stopped,
        TryAgain,
        Unauthorized,
        ValidationFailed,
    )
    from connector.outcome import PullReport, Watch
    from connector.resource import Declaration
    from connector.run import pull
    from connector.settings import Settings, load_settings
    from connector.warehouse import ResourceRun, Warehouse
    from connector.warehouse.query import count_by
    from connector.warehouse.schema import Column, columns

_HOMES = {
    "advice": (
        "difference",
        "explain",
        "may_repeat",
    ),
    "catalog": (
        "CATALOG",
        "Booking",
        "Candidate",
        "Company",
        "ContentItem",
        "ContentType",
        "Job",
        "Lead",
    ),
    "client": ("Client",),
    "endpoint": (
        "Page",
        "Written",
    ),
    "errors": (
        "ConnectorError",
        "Forbidden",
        "InDoubt",
        "NotFound",
        "QuotaSpent",
        "RateLimited",
        "Stopped",
        "TryAgain",
        "Unauthorized",
        "ValidationFailed",
    ),
    "outcome": (
        "PullReport",
        "Watch",
    ),
    "resource": ("Declaration",),
    "run": ("pull",),
    "settings": (
        "Settings",
        "load_settings",
    ),
    "warehouse": (
        "ResourceRun",
        "Warehouse",
    ),
    "warehouse.query": ("count_by",),
    "warehouse.schema": (
        "Column",
        "columns",
    ),
}
"""The module of each public name, below `connector`."""

__all__ = [
    "CATALOG",
    "Booking",
    "Candidate",
    "Client",
    "Column",
    "Company",
    "ConnectorError",
    "ContentItem",
    "ContentType",
    "Declaration",
    "Forbidden",
    "InDoubt",
    "Job",
    "Lead",
    "NotFound",
    "Page",
    "PullReport",
    "QuotaSpent",
    "RateLimited",
    "ResourceRun",
    "Settings",
    "Stopped",
    "TryAgain",
    "Unauthorized",
    "ValidationFailed",
    "Warehouse",
    "Watch",
    "Written",
    "columns",
    "count_by",
    "difference",
    "explain",
    "load_settings",
    "may_repeat",
    "pull",
]


if not TYPE_CHECKING:  # A checker would take any name whatever to be here.

    def __getattr__(name: str) -> object:
        """Import a public name from its home."""
        for home, names in _HOMES.items():
            if name in names:
                found = getattr(import_module(f"{__name__}.{home}"), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

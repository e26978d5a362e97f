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
        UnknownName,
        ValidationFailed,
    )
    from connector.inbox import Delivered, Inbox, Waiting, deliver
    from connector.outcome import PullReport, Watch
    from connector.preview import Asked
    from connector.push import ORDER, Manner, PushReport, Watches
    from connector.resource import Declaration
    from connector.run import pull
    from connector.settings import Settings, load_settings
    from connector.spreadsheet.mapping_file import load_map
    from connector.spreadsheet.problems import PROBLEMS
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
        "UnknownName",
        "ValidationFailed",
    ),
    "inbox": (
        "Delivered",
        "Inbox",
        "Waiting",
        "deliver",
    ),
    "outcome": (
        "PullReport",
        "Watch",
    ),
    "preview": ("Asked",),
    "push": (
        "ORDER",
        "Manner",
        "PushReport",
        "Watches",
    ),
    "resource": ("Declaration",),
    "run": ("pull",),
    "settings": (
        "Settings",
        "load_settings",
    ),
    "spreadsheet.mapping_file": ("load_map",),
    "spreadsheet.problems": ("PROBLEMS",),
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
    "ORDER",
    "PROBLEMS",
    "Asked",
    "Booking",
    "Candidate",
    "Client",
    "Column",
    "Company",
    "ConnectorError",
    "ContentItem",
    "ContentType",
    "Declaration",
    "Delivered",
    "Forbidden",
    "InDoubt",
    "Inbox",
    "Job",
    "Lead",
    "Manner",
    "NotFound",
    "Page",
    "PullReport",
    "PushReport",
    "QuotaSpent",
    "RateLimited",
    "ResourceRun",
    "Settings",
    "Stopped",
    "TryAgain",
    "Unauthorized",
    "UnknownName",
    "ValidationFailed",
    "Waiting",
    "Warehouse",
    "Watch",
    "Watches",
    "Written",
    "columns",
    "count_by",
    "deliver",
    "difference",
    "explain",
    "load_map",
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

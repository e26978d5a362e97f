"""The Recruitment Connector: the public names, and nothing else.

A name is imported when it is first asked for, so that what needs little of the connector loads
little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connector.accounts import Configured, configured_accounts
    from connector.advice import difference, explain, may_repeat
    from connector.alerts import JobRun, check_alerts
    from connector.alerts.silence import Proof, proof_of
    from connector.asking import PUSH_OPTIONS, PushOptions
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
        LeaseHeld,
        NotFound,
        PublishingRefused,
        QuotaSpent,
        RateLimited,
        Stopped,
        TryAgain,
        Unauthorized,
        UnknownName,
        ValidationFailed,
    )
    from connector.frame import read
    from connector.inbox import Delivered, Inbox, Waiting, deliver
    from connector.models import (
        Building,
        Built,
        Checked,
        ModelBuilt,
        Project,
        Shown,
        inventory_of,
        load_project,
    )
    from connector.outcome import PullReport, Watch
    from connector.preview import Asked
    from connector.publication import Prepared, Published, prepare, publish
    from connector.push import ORDER, Manner, PushReport, Watches
    from connector.resource import Declaration
    from connector.run import PullManner, pull
    from connector.schedule_settings import OFF
    from connector.settings import Settings, load_settings
    from connector.spreadsheet.mapping_file import load_map
    from connector.spreadsheet.problems import PROBLEMS
    from connector.warehouse import ResourceRun, Warehouse
    from connector.warehouse.schema import Column, columns

_HOMES = {
    "accounts": (
        "Configured",
        "configured_accounts",
    ),
    "alerts": (
        "JobRun",
        "check_alerts",
    ),
    "alerts.silence": (
        "Proof",
        "proof_of",
    ),
    "advice": (
        "difference",
        "explain",
        "may_repeat",
    ),
    "asking": (
        "PUSH_OPTIONS",
        "PushOptions",
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
        "LeaseHeld",
        "NotFound",
        "PublishingRefused",
        "QuotaSpent",
        "RateLimited",
        "Stopped",
        "TryAgain",
        "Unauthorized",
        "UnknownName",
        "ValidationFailed",
    ),
    "frame": ("read",),
    "inbox": (
        "Delivered",
        "Inbox",
        "Waiting",
        "deliver",
    ),
    "models": (
        "Building",
        "Built",
        "Checked",
        "ModelBuilt",
        "Project",
        "Shown",
        "inventory_of",
        "load_project",
    ),
    "outcome": (
        "PullReport",
        "Watch",
    ),
    "preview": ("Asked",),
    "publication": (
        "Prepared",
        "Published",
        "prepare",
        "publish",
    ),
    "push": (
        "ORDER",
        "Manner",
        "PushReport",
        "Watches",
    ),
    "resource": ("Declaration",),
    "run": (
        "PullManner",
        "pull",
    ),
    "schedule_settings": ("OFF",),
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
    "warehouse.schema": (
        "Column",
        "columns",
    ),
}
"""The module of each public name, below `connector`."""

__all__ = [
    "CATALOG",
    "OFF",
    "ORDER",
    "PROBLEMS",
    "PUSH_OPTIONS",
    "Asked",
    "Booking",
    "Building",
    "Built",
    "Candidate",
    "Checked",
    "Client",
    "Column",
    "Company",
    "Configured",
    "ConnectorError",
    "ContentItem",
    "ContentType",
    "Declaration",
    "Delivered",
    "Forbidden",
    "InDoubt",
    "Inbox",
    "Job",
    "JobRun",
    "Lead",
    "LeaseHeld",
    "Manner",
    "ModelBuilt",
    "NotFound",
    "Page",
    "Prepared",
    "Project",
    "Proof",
    "Published",
    "PublishingRefused",
    "PullManner",
    "PullReport",
    "PushOptions",
    "PushReport",
    "QuotaSpent",
    "RateLimited",
    "ResourceRun",
    "Settings",
    "Shown",
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
    "check_alerts",
    "columns",
    "configured_accounts",
    "deliver",
    "difference",
    "explain",
    "inventory_of",
    "load_map",
    "load_project",
    "load_settings",
    "may_repeat",
    "prepare",
    "proof_of",
    "publish",
    "pull",
    "read",
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

"""Public names of the Recruitment Connector.

A name is imported when it is first used, so that programs only load the parts that they need.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connector.catalog import CATALOG as CATALOG
    from connector.catalog.booking import Booking as Booking
    from connector.catalog.candidate import Candidate as Candidate
    from connector.catalog.company import Company as Company
    from connector.catalog.content import ContentItem as ContentItem
    from connector.catalog.content import ContentType as ContentType
    from connector.catalog.job import Job as Job
    from connector.catalog.lead import Lead as Lead
    from connector.catalog.resource import Declaration as Declaration
    from connector.catalog.resource import Page as Page
    from connector.client.client import Client as Client
    from connector.client.client import Endpoint as Endpoint
    from connector.errors import *  # noqa: F403 # every error is public
    from connector.errors_api import *  # noqa: F403 # as above
    from connector.operations.alert_check import check_alerts as check_alerts
    from connector.operations.findings import JobRun as JobRun
    from connector.operations.findings import Proof as Proof
    from connector.operations.findings import proof_of as proof_of
    from connector.publishing.dictionary import ModelDescription as ModelDescription
    from connector.publishing.dictionary import describe_models as describe_models
    from connector.publishing.exports import read as read
    from connector.publishing.exports import sql as sql
    from connector.publishing.project import BuildObserver as BuildObserver
    from connector.publishing.project import BuildResult as BuildResult
    from connector.publishing.project import BuiltModel as BuiltModel
    from connector.publishing.project import CheckResult as CheckResult
    from connector.publishing.project import Project as Project
    from connector.publishing.project import Severity as Severity
    from connector.publishing.project_loader import load_project as load_project
    from connector.publishing.publication import PublishResult as PublishResult
    from connector.publishing.publication import publish as publish
    from connector.pulls.outcome import Progress as Progress
    from connector.pulls.outcome import PullReport as PullReport
    from connector.pulls.outcome import Watch as Watch
    from connector.pulls.outcome import can_retry as can_retry
    from connector.pulls.outcome import describe_row_difference as describe_row_difference
    from connector.pulls.outcome import explain as explain
    from connector.pulls.outcome import explain_together as explain_together
    from connector.pulls.resource_pull import PullOptions as PullOptions
    from connector.pulls.run import pull as pull
    from connector.pushes.batch import look_up_unconfirmed_rows as look_up_unconfirmed_rows
    from connector.pushes.dry_run import PushFile as PushFile
    from connector.pushes.inbox import DeliveryResult as DeliveryResult
    from connector.pushes.inbox import Inbox as Inbox
    from connector.pushes.inbox import WaitingFile as WaitingFile
    from connector.pushes.inbox import deliver as deliver
    from connector.pushes.options import PUSH_OPTIONS as PUSH_OPTIONS
    from connector.pushes.options import PushOptions as PushOptions
    from connector.pushes.push import ORDER as ORDER
    from connector.pushes.push import PushReport as PushReport
    from connector.pushes.push import PushRunOptions as PushRunOptions
    from connector.pushes.query_file import file_from_query as file_from_query
    from connector.settings.model import ConfiguredAccount as ConfiguredAccount
    from connector.settings.model import Settings as Settings
    from connector.settings.model import configured_accounts as configured_accounts
    from connector.settings.model import load_settings as load_settings
    from connector.settings.model import refuse_shared_credentials as refuse_shared_credentials
    from connector.settings.values import OFF as OFF
    from connector.spreadsheet.mapping_file import load_map as load_map
    from connector.spreadsheet.problems import PROBLEMS as PROBLEMS
    from connector.warehouse.published_file import query as query
    from connector.warehouse.runs import ResourceRun as ResourceRun
    from connector.warehouse.schema import Column as Column
    from connector.warehouse.schema import landing_columns as landing_columns
    from connector.warehouse.warehouse import Warehouse as Warehouse

# The list above is the only one: the text of this file is read for it, since what a checker is
# shown is not executed.
_IMPORTS = re.findall(r"^    from (\S+) import (\w+) as", Path(__file__).read_text("utf-8"), re.M)
_HOMES = {name: module for module, name in _IMPORTS}
for _home in ("errors", "errors_api"):
    _text = (Path(__file__).parent / f"{_home}.py").read_text("utf-8")
    _HOMES |= dict.fromkeys(re.findall(r"^class ([A-Z]\w+)", _text, re.M), f"connector.{_home}")

__all__ = list(_HOMES)


if not TYPE_CHECKING:  # A checker would take any name whatever to be here.

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """The public names."""
        return sorted(_HOMES)

"""Public names of the Recruitment Connector.

A name's module is imported when the name is first used, so that `connector --help` starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from connector.errors import BackupError as BackupError
    from connector.errors import ConnectorError as ConnectorError
    from connector.errors import DamagedLog as DamagedLog
    from connector.errors import DamagedSpreadsheet as DamagedSpreadsheet
    from connector.errors import EncodingUnknown as EncodingUnknown
    from connector.errors import LedgerError as LedgerError
    from connector.errors import MartsMissing as MartsMissing
    from connector.errors import Misused as Misused
    from connector.errors import ModelError as ModelError
    from connector.errors import ModelFailed as ModelFailed
    from connector.errors import NotAWarehouse as NotAWarehouse
    from connector.errors import NotDelivered as NotDelivered
    from connector.errors import NothingPublished as NothingPublished
    from connector.errors import PublishingRefused as PublishingRefused
    from connector.errors import ReferenceUnknown as ReferenceUnknown
    from connector.errors import ReportRefused as ReportRefused
    from connector.errors import SettingsError as SettingsError
    from connector.errors import SheetUnknown as SheetUnknown
    from connector.errors import SpreadsheetChanged as SpreadsheetChanged
    from connector.errors import SpreadsheetError as SpreadsheetError
    from connector.errors import UnknownName as UnknownName
    from connector.errors import UnusableId as UnusableId
    from connector.errors import WarehouseBusy as WarehouseBusy
    from connector.errors import WarehouseError as WarehouseError
    from connector.errors_api import AnswerBroken as AnswerBroken
    from connector.errors_api import Answered as Answered
    from connector.errors_api import AnswerTooLarge as AnswerTooLarge
    from connector.errors_api import BudgetSpent as BudgetSpent
    from connector.errors_api import Denied as Denied
    from connector.errors_api import Forbidden as Forbidden
    from connector.errors_api import InDoubt as InDoubt
    from connector.errors_api import InvalidRequest as InvalidRequest
    from connector.errors_api import LeaseHeld as LeaseHeld
    from connector.errors_api import LeaseLost as LeaseLost
    from connector.errors_api import NoAnswer as NoAnswer
    from connector.errors_api import NotFound as NotFound
    from connector.errors_api import NotTheApi as NotTheApi
    from connector.errors_api import QuotaSpent as QuotaSpent
    from connector.errors_api import RateLimited as RateLimited
    from connector.errors_api import Redirected as Redirected
    from connector.errors_api import Refused as Refused
    from connector.errors_api import ServerFailed as ServerFailed
    from connector.errors_api import Stopped as Stopped
    from connector.errors_api import TryAgain as TryAgain
    from connector.errors_api import Unauthorized as Unauthorized
    from connector.errors_api import UnexpectedStatus as UnexpectedStatus
    from connector.errors_api import Unreachable as Unreachable
    from connector.errors_api import UnreadableAnswer as UnreadableAnswer
    from connector.errors_api import ValidationFailed as ValidationFailed
    from connector.models.exports import read as read
    from connector.models.exports import sql as sql
    from connector.models.project import Check as Check
    from connector.models.project import Project as Project
    from connector.models.project import load_project as load_project
    from connector.models.publish import PublishResult as PublishResult
    from connector.models.publish import publish as publish
    from connector.models.runner import BuildResult as BuildResult
    from connector.models.runner import BuiltModel as BuiltModel
    from connector.models.runner import CheckResult as CheckResult
    from connector.models.runner import describe as describe
    from connector.operations.notify import notify as notify
    from connector.operations.problems import Problem as Problem
    from connector.operations.problems import find_problems as find_problems
    from connector.operations.problems import read_state as read_state
    from connector.operations.problems import settings_problem as settings_problem
    from connector.pulls.outcome import Progress as Progress
    from connector.pulls.outcome import PullReport as PullReport
    from connector.pulls.outcome import Watch as Watch
    from connector.pulls.outcome import can_retry as can_retry
    from connector.pulls.outcome import describe_row_difference as describe_row_difference
    from connector.pulls.outcome import explain as explain
    from connector.pulls.outcome import explain_together as explain_together
    from connector.pulls.reading import PullOptions as PullOptions
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
    from connector.spreadsheet.problems import PROBLEMS as PROBLEMS
    from connector.warehouse.published_file import query as query
    from connector.warehouse.runs import ResourceRun as ResourceRun
    from connector.warehouse.schema import Column as Column
    from connector.warehouse.schema import landing_columns as landing_columns
    from connector.warehouse.warehouse import Warehouse as Warehouse

_MODULES = {
    "CATALOG": "catalog",
    "Booking": "catalog.booking",
    "Candidate": "catalog.candidate",
    "Company": "catalog.company",
    "ContentItem": "catalog.content",
    "ContentType": "catalog.content",
    "Job": "catalog.job",
    "Lead": "catalog.lead",
    "Declaration": "catalog.resource",
    "Page": "catalog.resource",
    "Client": "client.client",
    "Endpoint": "client.client",
    "BackupError": "errors",
    "ConnectorError": "errors",
    "DamagedLog": "errors",
    "DamagedSpreadsheet": "errors",
    "EncodingUnknown": "errors",
    "LedgerError": "errors",
    "MartsMissing": "errors",
    "Misused": "errors",
    "ModelError": "errors",
    "ModelFailed": "errors",
    "NotAWarehouse": "errors",
    "NotDelivered": "errors",
    "NothingPublished": "errors",
    "PublishingRefused": "errors",
    "ReferenceUnknown": "errors",
    "ReportRefused": "errors",
    "SettingsError": "errors",
    "SheetUnknown": "errors",
    "SpreadsheetChanged": "errors",
    "SpreadsheetError": "errors",
    "UnknownName": "errors",
    "UnusableId": "errors",
    "WarehouseBusy": "errors",
    "WarehouseError": "errors",
    "AnswerBroken": "errors_api",
    "Answered": "errors_api",
    "AnswerTooLarge": "errors_api",
    "BudgetSpent": "errors_api",
    "Denied": "errors_api",
    "Forbidden": "errors_api",
    "InDoubt": "errors_api",
    "InvalidRequest": "errors_api",
    "LeaseHeld": "errors_api",
    "LeaseLost": "errors_api",
    "NoAnswer": "errors_api",
    "NotFound": "errors_api",
    "NotTheApi": "errors_api",
    "QuotaSpent": "errors_api",
    "RateLimited": "errors_api",
    "Redirected": "errors_api",
    "Refused": "errors_api",
    "ServerFailed": "errors_api",
    "Stopped": "errors_api",
    "TryAgain": "errors_api",
    "Unauthorized": "errors_api",
    "UnexpectedStatus": "errors_api",
    "Unreachable": "errors_api",
    "UnreadableAnswer": "errors_api",
    "ValidationFailed": "errors_api",
    "read": "models.exports",
    "sql": "models.exports",
    "Check": "models.project",
    "Project": "models.project",
    "load_project": "models.project",
    "PublishResult": "models.publish",
    "publish": "models.publish",
    "BuildResult": "models.runner",
    "BuiltModel": "models.runner",
    "CheckResult": "models.runner",
    "describe": "models.runner",
    "notify": "operations.notify",
    "Problem": "operations.problems",
    "find_problems": "operations.problems",
    "read_state": "operations.problems",
    "settings_problem": "operations.problems",
    "Progress": "pulls.outcome",
    "PullReport": "pulls.outcome",
    "Watch": "pulls.outcome",
    "can_retry": "pulls.outcome",
    "describe_row_difference": "pulls.outcome",
    "explain": "pulls.outcome",
    "explain_together": "pulls.outcome",
    "PullOptions": "pulls.reading",
    "pull": "pulls.run",
    "look_up_unconfirmed_rows": "pushes.batch",
    "PushFile": "pushes.dry_run",
    "DeliveryResult": "pushes.inbox",
    "Inbox": "pushes.inbox",
    "WaitingFile": "pushes.inbox",
    "deliver": "pushes.inbox",
    "PUSH_OPTIONS": "pushes.options",
    "PushOptions": "pushes.options",
    "ORDER": "pushes.push",
    "PushReport": "pushes.push",
    "PushRunOptions": "pushes.push",
    "file_from_query": "pushes.query_file",
    "ConfiguredAccount": "settings.model",
    "Settings": "settings.model",
    "configured_accounts": "settings.model",
    "load_settings": "settings.model",
    "refuse_shared_credentials": "settings.model",
    "OFF": "settings.values",
    "PROBLEMS": "spreadsheet.problems",
    "query": "warehouse.published_file",
    "ResourceRun": "warehouse.runs",
    "Column": "warehouse.schema",
    "landing_columns": "warehouse.schema",
    "Warehouse": "warehouse.warehouse",
}
"""Module of each public name, below `connector`."""


if not TYPE_CHECKING:
    # Type checkers would take any name for a public one.

    def __getattr__(name: str) -> Any:
        """Import a public name, and keep it for the next use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_MODULES)

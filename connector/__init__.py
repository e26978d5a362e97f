"""Public names of the Recruitment Connector.

A name's module is imported when the name is first used, so that `connector --help` starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connector.catalog import CATALOG as CATALOG
    from connector.client.client import Client as Client
    from connector.errors import ConnectorError as ConnectorError
    from connector.errors import Forbidden as Forbidden
    from connector.errors import InDoubt as InDoubt
    from connector.errors import NotFound as NotFound
    from connector.errors import RateLimited as RateLimited
    from connector.errors import Refused as Refused
    from connector.errors import SettingsError as SettingsError
    from connector.errors import Unauthorized as Unauthorized
    from connector.errors import Unreachable as Unreachable
    from connector.errors import ValidationFailed as ValidationFailed
    from connector.errors import WarehouseError as WarehouseError
    from connector.models.exports import read as read
    from connector.models.exports import sql as sql
    from connector.models.publish import PublishResult as PublishResult
    from connector.models.publish import publish as publish
    from connector.pulls.ports import PullOptions as PullOptions
    from connector.pulls.report import PullReport as PullReport
    from connector.pulls.run import pull as pull
    from connector.settings import Settings as Settings
    from connector.settings import configured_accounts as configured_accounts
    from connector.settings import load_settings as load_settings
    from connector.warehouse.user_query import query as query

_MODULES = {
    "CATALOG": "catalog",
    "Client": "client.client",
    "ConnectorError": "errors",
    "SettingsError": "errors",
    "WarehouseError": "errors",
    "Forbidden": "errors",
    "InDoubt": "errors",
    "NotFound": "errors",
    "RateLimited": "errors",
    "Refused": "errors",
    "Unauthorized": "errors",
    "Unreachable": "errors",
    "ValidationFailed": "errors",
    "read": "models.exports",
    "sql": "models.exports",
    "PublishResult": "models.publish",
    "publish": "models.publish",
    "PullReport": "pulls.report",
    "PullOptions": "pulls.ports",
    "pull": "pulls.run",
    "Settings": "settings",
    "configured_accounts": "settings",
    "load_settings": "settings",
    "query": "warehouse.user_query",
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

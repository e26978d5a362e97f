"""Settings of one account: from options, the environment, the project file and defaults."""

from connector.settings.accounts import (
    UNNAMED,
    ConfiguredAccount,
    configured_accounts,
    refuse_shared_credentials,
    require_account,
)
from connector.settings.loading import CONFIG_NAME, CONFIG_VARIABLE, OPEN_TO_OTHERS, load_settings
from connector.settings.model import ENVIRONMENT, Connection, Settings, Treatment

__all__ = [
    "CONFIG_NAME",
    "CONFIG_VARIABLE",
    "ENVIRONMENT",
    "OPEN_TO_OTHERS",
    "UNNAMED",
    "ConfiguredAccount",
    "Connection",
    "Settings",
    "Treatment",
    "configured_accounts",
    "load_settings",
    "refuse_shared_credentials",
    "require_account",
]

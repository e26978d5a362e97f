"""Settings of one account: from options, the environment, the project file and defaults."""

from connector.settings.loading import CONFIG_NAME as CONFIG_NAME
from connector.settings.loading import CONFIG_VARIABLE as CONFIG_VARIABLE
from connector.settings.loading import OPEN_TO_OTHERS as OPEN_TO_OTHERS
from connector.settings.loading import UNNAMED as UNNAMED
from connector.settings.loading import ConfiguredAccount as ConfiguredAccount
from connector.settings.loading import configured_accounts as configured_accounts
from connector.settings.loading import load_settings as load_settings
from connector.settings.loading import refuse_shared_credentials as refuse_shared_credentials
from connector.settings.loading import require_account as require_account
from connector.settings.model import ENVIRONMENT as ENVIRONMENT
from connector.settings.model import Settings as Settings
from connector.settings.model import Treatment as Treatment

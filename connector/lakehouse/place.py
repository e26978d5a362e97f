"""Which lakehouse is meant, and whose part of it: what the settings say, and nothing opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import SecretStr

from connector.errors import SettingsError
from connector.settings import Settings

UNNAMED = "_unnamed"
"""What the unnamed account is called in the lakehouse: no account can be named so."""


@dataclass(frozen=True, slots=True)
class Place:
    """The catalog's connection string, where the files are, and the account that publishes.

    `source` is the address that the account's records come from, None where it is not set: by it
    two accounts of the same name are told apart.
    """

    catalog: SecretStr
    data: str
    account: str
    source: str | None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """As the settings say; None where there is no lakehouse."""
        catalog, data = settings.lakehouse.value, settings.lakehouse_data.value
        if catalog is None or data is None:
            return None
        account = settings.account.value or UNNAMED
        return cls(catalog, data, account, settings.base_url.value)

    @classmethod
    def asked_of(cls, settings: Settings) -> Self:
        """As the settings say. Raises `SettingsError` where there is no lakehouse."""
        found = cls.of(settings)
        if found is None:
            raise SettingsError(
                "there is no lakehouse: lakehouse and lakehouse_data are not set",
                action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA;"
                " docs/LAKEHOUSE.md shows how.",
            )
        return found

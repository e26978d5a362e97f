"""Component and resource for the projects of other teams in the same Dagster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from connector.warehouse.file import open_read_only
from connector.warehouse.user_query import require_published
from connector.warehouse.warehouse import Warehouse
from pipelines.accounts import Account
from pipelines.definitions import define


class RecruitmentConnectorComponent(dg.Component, dg.Model, dg.Resolvable):
    """Assets and jobs of the Recruitment Connector, from the settings of the environment.

    Attributes:
        key_prefix: First parts of every asset key.
        schedules: Include the schedules and sensors, which are stopped at first.
        folder: Folder of connector.toml. Default: the working folder of Dagster.
    """

    key_prefix: Sequence[str] = ()
    schedules: bool = True
    folder: str | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the configured accounts."""
        folder = None if self.folder is None else (context.path / self.folder).resolve()
        return define(Account(cwd=folder), key_prefix=self.key_prefix, schedules=self.schedules)


class PublishedFile(dg.ConfigurableResource[Any]):
    """Resource for assets that read marts.

    Attributes:
        folder: Folder of connector.toml. Default: the working folder of Dagster.
    """

    folder: str | None = None

    @contextmanager
    def connect(self, account: str | None = None) -> Iterator[Any]:
        """Yield a read-only DuckDB connection to the published file of an account.

        Args:
            account: Name of the account, which is the partition key. None without partitions.
        """
        cwd = None if self.folder is None else Path(self.folder).resolve()
        settings = Account(cwd=cwd).settings(account)
        with open_read_only(require_published(Warehouse(settings.folder).published)) as connection:
            yield connection

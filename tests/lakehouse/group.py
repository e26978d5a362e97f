"""Group of agencies, each an account with its own folder, that share a lakehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from connector.publishing.lakehouse_connection import (
    LakehouseAccount,
    open_for_change,
    open_for_reading,
)
from connector.publishing.publication import PublishResult, publish
from connector.settings.model import Settings, load_settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.warehouse import Warehouse
from tests.lakehouse.server import PostgresServer


class AccountGroup:
    """Accounts that publish to one lakehouse, with `given` as their common settings."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.database = server.create_database()
        self.data = folder / "lake"
        self.shared_environ = {
            "CONNECTOR_DATA_DIR": str(folder / "data"),
            "CONNECTOR_MODELS": "off",
            "CONNECTOR_LAKEHOUSE": server.connection_string(self.database),
            "CONNECTOR_LAKEHOUSE_DATA": str(self.data),
        }

    def environ(self, account: str, **more: str) -> dict[str, str]:
        """Return the environment of an account."""
        return {**self.shared_environ, "CONNECTOR_ACCOUNT": account, **more}

    def settings(self, account: str, **more: str) -> Settings:
        """Return the settings of an account, with additional variables."""
        return load_settings({}, self.environ(account, **more), self.folder)

    def publish(self, account: str, **more: str) -> PublishResult:
        """Publish to the local file and to the lakehouse."""
        return publish(self.settings(account, **more))

    def insert_rows(self, account: str, table: str, *records: Mapping[str, Any]) -> None:
        """Insert records into a landing table, or into another table with its schema."""
        name = table if "." in table else f"landing.{table}"
        warehouse = self._warehouse(account)
        with open_file(warehouse.work) as connection:
            for each in records:
                marks = ", ".join("?" for _ in each)
                connection.execute(
                    f"INSERT INTO {name} ({', '.join(each)}) VALUES ({marks})", list(each.values())
                )

    def run_sql(self, account: str, *statements: str) -> None:
        """Change the account's work file."""
        with open_file(self._warehouse(account).work) as connection:
            for each in statements:
                connection.execute(each)

    def published_file(self, account: str) -> Path:
        """Return the path of the account's published file."""
        return Warehouse(self.settings(account).folder).published

    @contextmanager
    def open_read_only(self, account: str = "reader") -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection that reads the lakehouse with the connector's own role."""
        with open_for_reading(LakehouseAccount.require(self.settings(account))) as connection:
            yield connection

    @contextmanager
    def open_for_change(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection that can change the lakehouse."""
        place = LakehouseAccount.require(self.settings("intruder"))
        with open_for_change(place) as connection:
            yield connection

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Query the lakehouse, whose catalog is `lake`."""
        with self.open_read_only() as connection:
            return connection.execute(sql).fetchall()

    def latest_snapshot(self) -> int:
        """Return the number of the latest snapshot."""
        ((number,),) = self.server.query(
            self.database, "SELECT max(snapshot_id) FROM ducklake_snapshot"
        )
        return int(number)

    def list_parquet_files(self) -> set[str]:
        """Return the Parquet files of the lakehouse."""
        return {str(each.relative_to(self.data)) for each in self.data.rglob("*.parquet")}

    @cached_property
    def _warehouses(self) -> dict[str, Warehouse]:
        return {}

    def _warehouse(self, account: str) -> Warehouse:
        if account not in self._warehouses:
            found = self._warehouses[account] = Warehouse(self.settings(account).folder)
            found.prepare()
        return self._warehouses[account]

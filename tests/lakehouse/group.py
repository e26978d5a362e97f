"""Accounts with separate folders that share a lakehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from tests.publishing.agency import insert_rows


class AccountGroup:
    """Accounts that publish to one new lakehouse. All use the variables of `shared_environ`."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.database = server.create_database()
        self.data = folder / "lake"
        self._warehouses: dict[str, Warehouse] = {}
        self.shared_environ = {
            "CONNECTOR_DATA_DIR": str(folder / "data"),
            "CONNECTOR_MODELS": "off",
            "CONNECTOR_LAKEHOUSE": server.connection_string(self.database),
            "CONNECTOR_LAKEHOUSE_DATA": str(self.data),
        }

    def environ(self, account: str, **more: str) -> dict[str, str]:
        """Return the environment variables of an account, and those in `more`."""
        return {**self.shared_environ, "CONNECTOR_ACCOUNT": account, **more}

    def settings(self, account: str, **more: str) -> Settings:
        """Return the settings of an account, with the environment variables in `more`."""
        return load_settings({}, self.environ(account, **more), self.folder)

    def publish(self, account: str, **more: str) -> PublishResult:
        """Publish the account to its local file and to the lakehouse."""
        return publish(self.settings(account, **more))

    def insert_rows(self, account: str, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows into a landing table of the account's work file, or into `schema.table`."""
        insert_rows(self._warehouse(account).work, table, *rows)

    def run_sql(self, account: str, *statements: str) -> None:
        """Run SQL statements in the account's work file."""
        with open_file(self._warehouse(account).work) as connection:
            for each in statements:
                connection.execute(each)

    def published_file(self, account: str) -> Path:
        """Return the path of the account's published file."""
        return Warehouse(self.settings(account).folder).published

    @contextmanager
    def open_read_only(self, account: str = "reader") -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection that can only read the lakehouse, with the settings of an account."""
        with open_for_reading(LakehouseAccount.require(self.settings(account))) as connection:
            yield connection

    @contextmanager
    def open_for_change(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection that can change the lakehouse, as an account outside the group."""
        place = LakehouseAccount.require(self.settings("intruder"))
        with open_for_change(place) as connection:
            yield connection

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the lakehouse, whose catalog is `lake`."""
        with self.open_read_only() as connection:
            return connection.execute(sql).fetchall()

    def latest_snapshot(self) -> int:
        """Return the number of the latest snapshot."""
        ((number,),) = self.server.query(
            self.database, "SELECT max(snapshot_id) FROM ducklake_snapshot"
        )
        return int(number)

    def list_parquet_files(self) -> set[str]:
        """Return the paths of the lakehouse's Parquet files, relative to its data folder."""
        return {str(each.relative_to(self.data)) for each in self.data.rglob("*.parquet")}

    def _warehouse(self, account: str) -> Warehouse:
        """Return the account's warehouse, which is prepared at the first call."""
        if account not in self._warehouses:
            found = self._warehouses[account] = Warehouse(self.settings(account).folder)
            found.prepare()
        return self._warehouses[account]

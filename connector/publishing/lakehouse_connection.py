"""Connections to the lakehouse, which has the name `lake` in DuckDB, and its transactions.

The extensions of DuckDB are packages of the extra `lakehouse`, so nothing is downloaded. No error
shows the password of the catalog.
"""

from __future__ import annotations

import importlib
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import unquote

import duckdb
from pydantic import SecretStr

from connector.errors import ConnectorError, LakehouseError, NothingPublished, SettingsError
from connector.extras import extra_missing
from connector.settings.model import Settings
from connector.settings.values import OBJECT_STORAGE
from connector.warehouse.duckdb_file import SESSION, literal, transaction

T = TypeVar("T")

UNNAMED = "_unnamed"
"""Name of the unnamed account in the lakehouse; no account can have this name."""

LAKE = "lake"
"""Name of the lakehouse in a connection."""

CATALOG = "lake_catalog"
"""Name of the lakehouse's PostgreSQL database in a connection."""

EXTENSIONS = ("ducklake", "postgres_scanner")
STORAGE_EXTENSION = "httpfs"
"""Extension for object storage. It reads Amazon's environment variables, and its own variables."""

ENDPOINT, URL_STYLE = "DUCKDB_S3_ENDPOINT", "DUCKDB_S3_URL_STYLE"
"""Environment variables: the address of storage other than Amazon's, and the part of an address
that names the bucket (path or host). The extension reads the first one.
"""

WAIT_SECONDS = 900.0
"""Time for which a transaction is repeated while other processes change the lakehouse."""

CONNECT_SECONDS = 10

_PAUSE_SECONDS_MAX = 5.0
_FOLDER_MODE = 0o700
_CONFLICT = re.compile(
    r"conflict|could not serialize|deadlock|duplicate key"
    # Two processes create the lakehouse, or one lists files that the other removes.
    r'|relation "ducklake_\w+" already exists'
    r"|Failed to get files scheduled for deletion.*No such file",
    re.IGNORECASE | re.DOTALL,
)
_OFFLINE = re.compile(r"connect|server closed|terminat|timed? ?out", re.IGNORECASE)
_REACHED = re.compile(r"connection to server|could not translate host name|timeout")
"""Messages of libpq about a server. Its other messages contain the connection string."""

_PASSWORD = re.compile(r"//[^:@/]*:([^@/]+)@|password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s&']+))")


@dataclass(frozen=True, slots=True)
class LakehouseAccount:
    """Account with a lakehouse, as configured.

    Attributes:
        catalog: Connection string of the PostgreSQL database.
        data: Folder or storage address of the Parquet files.
        account: Name in the lakehouse.
        source: Address of the account's API; None if it is not set. It distinguishes two accounts
            of the same name.
    """

    catalog: SecretStr
    data: str
    account: str
    source: str | None

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """Return the account; None if no lakehouse is configured."""
        catalog, data = settings.lakehouse.value, settings.lakehouse_data.value
        if catalog is None or data is None:
            return None
        return cls(catalog, data, settings.account.value or UNNAMED, settings.base_url.value)

    @classmethod
    def require(cls, settings: Settings) -> Self:
        """Return the account. Raises `SettingsError` if no lakehouse is configured."""
        if (found := cls.from_settings(settings)) is not None:
            return found
        raise SettingsError(
            "no lakehouse is configured: lakehouse and lakehouse_data are not set",
            action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA;"
            " docs/LAKEHOUSE.md shows how.",
        )


# -- Connections -----------------------------------------------------------------------------------


@contextmanager
def open_for_reading(lakehouse: LakehouseAccount) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only connection. Raises `NothingPublished` and `LakehouseError`."""
    with _connect(lakehouse) as connection:
        attach_lakehouse(connection, lakehouse, reads_only=True)
        yield connection


@contextmanager
def open_for_change(
    lakehouse: LakehouseAccount, *, published: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection that may change the lakehouse, and create the lakehouse if it is missing.

    The file `published` is attached under this name. Raises `LakehouseError`.
    """
    with _connect(lakehouse) as connection:
        folder = None if lakehouse.data.startswith(OBJECT_STORAGE) else Path(lakehouse.data)
        if folder is not None and not folder.exists():
            # An existing folder keeps its mode: its owner may share it with analysts.
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        retry_conflicts(lambda: attach_lakehouse(connection, lakehouse, reads_only=False))
        if published is not None:
            connection.execute(f"ATTACH {literal(str(published))} AS published (READ_ONLY)")
        yield connection


@contextmanager
def _connect(lakehouse: LakehouseAccount) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory with the extensions; convert its errors."""
    is_storage = lakehouse.data.startswith(OBJECT_STORAGE)
    extensions = (*EXTENSIONS, STORAGE_EXTENSION) if is_storage else EXTENSIONS
    with _convert_errors(lakehouse), connect_with_extensions(extensions) as connection:
        yield connection


def connect_with_extensions(extensions: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """Open a database in memory with the extensions. Raises `LakehouseError`."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false"
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        for name in extensions:
            _load_extension(connection, name)
        if STORAGE_EXTENSION in extensions:
            # For every session: each cursor has separate settings.
            connection.execute(
                f"SET GLOBAL s3_url_style = {literal(storage_url_style(os.environ))}"
            )
        connection.execute(SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


def storage_url_style(environ: Mapping[str, str]) -> str:
    """Return the style of bucket addresses: `vhost` for Amazon, `path` for other storage.

    DUCKDB_S3_URL_STYLE takes precedence. Raises `SettingsError` if it has another value.
    """
    style = environ.get(URL_STYLE) or ("path" if environ.get(ENDPOINT) else "vhost")
    if style not in ("path", "vhost"):
        raise SettingsError(
            f"{URL_STYLE} is {style!r}", action="Set it to path or to vhost, or remove it."
        )
    return style


def _load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension of DuckDB or of its Python package. Raises `LakehouseError`."""
    with suppress(duckdb.Error):
        connection.execute(f"LOAD {name}")
        return
    try:
        package = importlib.import_module(f"duckdb_extension_{name}")
    except ImportError as error:
        missing = extra_missing("the lakehouse requires", "lakehouse", error)
        raise LakehouseError(str(missing), action=missing.action) from None
    folder = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}")
    connection.execute(f"LOAD {literal(str(folder / f'{name}.duckdb_extension'))}")


def attach_lakehouse(
    connection: duckdb.DuckDBPyConnection, lakehouse: LakehouseAccount, *, reads_only: bool
) -> None:
    """Attach the lakehouse as `lake`. Raises `NothingPublished` if it must not be created."""
    # Rows stay out of the catalog, so that an erasure only has to search files.
    options = f"DATA_PATH {literal(lakehouse.data + '/')}, DATA_INLINING_ROW_LIMIT 0"
    mode = ", READ_ONLY" if reads_only else ""
    try:
        connection.execute(
            f"ATTACH {literal('ducklake:postgres:' + _connection_string(lakehouse))} AS {LAKE} "
            f"({options}, METADATA_CATALOG {literal(CATALOG)}{mode})"
        )
    except duckdb.Error as error:
        if "creating a new DuckLake is explicitly disabled" in str(error):
            raise NothingPublished(
                "nothing has been published to the lakehouse yet",
                action="Run 'connector lakehouse publish'.",
            ) from None
        raise


def _connection_string(lakehouse: LakehouseAccount) -> str:
    """Return PostgreSQL's connection string, with a time limit for connecting."""
    given = lakehouse.catalog.get_secret_value()
    if "connect_timeout" in given:
        return given
    before = " " if "://" not in given else "&" if "?" in given else "?"
    return f"{given}{before}connect_timeout={CONNECT_SECONDS}"


# -- Transactions ----------------------------------------------------------------------------------


def run_transaction(connection: duckdb.DuckDBPyConnection, act: Callable[[], T]) -> T:
    """Call `act` in one transaction, and repeat it after a conflict.

    DuckLake rejects the later of two transactions that change the same table. Raises
    `LakehouseError` if conflicts continue for too long.
    """

    def attempt() -> T:
        with transaction(connection):
            return act()

    return retry_conflicts(attempt)


def retry_conflicts(act: Callable[[], T]) -> T:
    """Call `act`, and repeat it while it conflicts with another process, for at most 15 minutes.

    Raises `LakehouseError` after that time.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    for number in count():
        try:
            return act()
        except duckdb.Error as error:
            if not (isinstance(error, duckdb.TransactionException) or _CONFLICT.search(str(error))):
                raise
            if time.monotonic() > deadline:
                break
        # Processes that conflict must not retry after the same pause.
        time.sleep(random.uniform(0, min(_PAUSE_SECONDS_MAX, 0.05 * 2**number)))  # noqa: S311
    raise LakehouseError(
        f"other processes changed the lakehouse at each attempt for {WAIT_SECONDS:.0f} seconds",
        code="lakehouse_busy",
    )


# -- Errors ----------------------------------------------------------------------------------------


@contextmanager
def _convert_errors(lakehouse: LakehouseAccount) -> Iterator[None]:
    """Convert errors of DuckDB and of the file system to those of the lakehouse."""
    try:
        yield
    except ConnectorError:
        raise
    except duckdb.Error as error:
        raise _to_lakehouse_error(lakehouse, str(error)) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LakehouseError(
            f"{lakehouse.data} cannot be used: {reason}", code="lakehouse_offline"
        ) from None


def _to_lakehouse_error(lakehouse: LakehouseAccount, message: str) -> LakehouseError:
    """Return the error for a message of DuckDB or PostgreSQL, without passwords."""
    shown = _without_secrets(lakehouse, message)
    _, refused, reason = shown.rpartition('Unable to connect to Postgres at "[catalog]": ')
    if refused and not _REACHED.search(reason):
        return LakehouseError(
            "the connection string of the lakehouse cannot be read",
            action="Correct CONNECTOR_LAKEHOUSE_FILE; docs/LAKEHOUSE.md shows an example.",
        )
    if refused:
        return LakehouseError(
            f"the lakehouse's database cannot be used: {reason}", code="lakehouse_offline"
        )
    if "DATA_PATH" in message:
        return LakehouseError(
            "the catalog of the lakehouse names another place for its files than "
            f"{lakehouse.data}: {shown}",
            action="Set CONNECTOR_LAKEHOUSE_DATA to the place that the catalog names.",
        )
    if _CONFLICT.search(message):
        return LakehouseError(
            f"another process changed the lakehouse: {shown}", code="lakehouse_busy"
        )
    if _OFFLINE.search(message) or message.startswith(("IO Error", "HTTP Error")):
        return LakehouseError(f"the lakehouse cannot be used: {shown}", code="lakehouse_offline")
    return LakehouseError(f"the lakehouse cannot be used: {shown}")


def _without_secrets(lakehouse: LakehouseAccount, text: str) -> str:
    """Return the first line of a message, without the connection string and its password."""
    given = lakehouse.catalog.get_secret_value()
    shown = text.strip().partition("\n")[0]
    for each in (_connection_string(lakehouse), given):
        shown = shown.replace(each, "[catalog]")
    for found in _PASSWORD.findall(given):
        for word in found:
            for each in (word, unquote(word)):
                shown = shown.replace(each, "[password]") if each else shown
    return shown

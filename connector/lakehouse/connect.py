"""Connections to the lakehouse: PostgreSQL, and DuckDB that has it as `lake`.

The extensions come with the packages of the extra `lakehouse`, so that nothing is fetched. The
password reaches DuckDB as a secret, and stands in no address that it shows.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import duckdb
from pydantic import SecretStr

from connector.errors import (
    ConnectorError,
    LakehouseBusy,
    LakehouseError,
    LakehouseOffline,
    NothingPublished,
    SettingsError,
)
from connector.settings.model import Settings
from connector.settings.values import OBJECT_STORAGE
from connector.warehouse.duckdb_file import SESSION, literal

if TYPE_CHECKING:
    from psycopg import Connection

UNNAMED = "_unnamed"
"""The name of the unnamed account in the lakehouse: no account can be named so."""


@dataclass(frozen=True, slots=True)
class LakehouseAccount:
    """An account of a lakehouse, whose catalog is in PostgreSQL.

    `source` is the address that the account's records come from, None where it is not set: by it
    two accounts of the same name are told apart.
    """

    catalog: SecretStr
    data: str
    account: str
    source: str | None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The account that the settings name; None where there is no lakehouse."""
        catalog, data = settings.lakehouse.value, settings.lakehouse_data.value
        if catalog is None or data is None:
            return None
        return cls(catalog, data, settings.account.value or UNNAMED, settings.base_url.value)

    @classmethod
    def required(cls, settings: Settings) -> Self:
        """As `of`. Raises `SettingsError` where there is no lakehouse."""
        if (found := cls.of(settings)) is not None:
            return found
        raise SettingsError(
            "there is no lakehouse: lakehouse and lakehouse_data are not set",
            action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA;"
            " docs/LAKEHOUSE.md shows how.",
        )


# -- PostgreSQL ------------------------------------------------------------------------------------
# Publishers take turns under a lock that belongs to a connection: it is free again as soon as the
# process that holds it has ended, however that came about.

WAIT_SECONDS = 900.0
"""How long one publisher waits for the others."""

CONNECT_SECONDS = 10

_LOCK = 0x6C616B65686F7573
"""The lock's number, by which publishers know each other in a database that others use too."""

# A machine that is gone says nothing: without these its lock would stay for two hours.
_KEEPALIVES = {"idle": 30, "interval": 10, "count": 3}


def _driver() -> ModuleType:
    try:
        import psycopg  # noqa: PLC0415 # an extra: who has no lakehouse need not have it
    except ImportError as error:
        raise LakehouseError(
            f"the lakehouse needs the package {error.name}, which is not installed",
            action="Install the extra: pip install 'recruitment-connector[lakehouse]'.",
        ) from None
    return psycopg


def _connection_words(place: LakehouseAccount) -> dict[str, str]:
    """The connection string by its words. No error shows any of it."""
    psycopg = _driver()
    try:
        parts: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(
            place.catalog.get_secret_value()
        )
    except psycopg.Error:
        raise LakehouseError("the connection string of the lakehouse cannot be read") from None
    return {"connect_timeout": str(CONNECT_SECONDS), **{k: str(v) for k, v in parts.items()}}


def _without_secrets(place: LakehouseAccount, text: str) -> str:
    """The first line of a library's message, without the password."""
    shown = text.strip().partition("\n")[0].replace(place.catalog.get_secret_value(), "[catalog]")
    with suppress(LakehouseError):
        if password := _connection_words(place).get("password"):
            shown = shown.replace(password, "[password]")
    return shown


@contextmanager
def naming_postgres_errors(place: LakehouseAccount) -> Iterator[None]:
    """Raise `LakehouseError` and its kinds for the driver's errors."""
    psycopg = _driver()
    try:
        yield
    except psycopg.errors.LockNotAvailable:
        raise LakehouseBusy(
            "the lakehouse has been held by others for longer than the connector waits"
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        said = _without_secrets(place, str(error))
        raise LakehouseOffline(f"the lakehouse's database cannot be used: {said}") from None
    except psycopg.Error as error:
        said = _without_secrets(place, str(error))
        raise LakehouseError(f"the lakehouse's database refuses what is asked: {said}") from None


@contextmanager
def connected(place: LakehouseAccount) -> Iterator[Connection[Any]]:
    """A connection to the database, each statement its own transaction.

    Raises `LakehouseOffline` where there is none or where it breaks off, `LakehouseError`
    where the database refuses what is asked.
    """
    words = _connection_words(place)
    words |= {f"keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()}
    words.setdefault("application_name", f"recruitment-connector {place.account}")
    with naming_postgres_errors(place), _driver().connect(**words, autocommit=True) as connection:
        for name, value in _KEEPALIVES.items():
            connection.execute(f"SET tcp_keepalives_{name} = {value}")
        yield connection


@contextmanager
def alone(place: LakehouseAccount, wait_seconds: float = WAIT_SECONDS) -> Iterator[Connection[Any]]:
    """Be the only one who changes the lakehouse; readers are never kept waiting.

    Raises `LakehouseBusy` after `wait_seconds`, and what `connected` raises.
    """
    with connected(place) as connection:
        connection.execute(f"SET lock_timeout = {max(1, round(wait_seconds * 1000))}")
        connection.execute(f"SELECT pg_advisory_lock({_LOCK})")
        connection.execute("SET lock_timeout = 0")
        yield connection
        # Closing the connection frees the lock as well.


# -- DuckDB ----------------------------------------------------------------------------------------

LAKE = "lake"
"""The name that the lakehouse has in a connection."""

EXTENSIONS = ("ducklake", "postgres_scanner")
STORAGE_EXTENSION = "httpfs"
"""What reaches object storage. It reads Amazon's variables, and some of its own, by itself."""

ENDPOINT, URL_STYLE = "DUCKDB_S3_ENDPOINT", "DUCKDB_S3_URL_STYLE"
"""Where storage is that is not Amazon's, and whether a bucket's name is part of an address' path or
of its host. The extension reads the first.
"""

_FOLDER_MODE = 0o700
_CONFLICT = re.compile(r"conflict|could not serialize|deadlock", re.IGNORECASE)
_OFFLINE = re.compile(r"connect|connection|server closed|terminat|timed? ?out", re.IGNORECASE)


@contextmanager
def reading(place: LakehouseAccount) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the lakehouse attached as `lake`, to read.

    Raises `NothingPublished` where there is none yet, and `LakehouseError` and its kinds.
    """
    with _loaded(place) as connection:
        # An error on the way there is told better by the driver than by DuckDB.
        with connected(place):
            attach(connection, place, reads_only=True)
        yield connection


@contextmanager
def changing(
    place: LakehouseAccount, *, wait_seconds: float = WAIT_SECONDS, published: Path | None = None
) -> Iterator[tuple[Connection[Any], duckdb.DuckDBPyConnection]]:
    """The catalog under its lock, and a connection with the lakehouse as `lake`.

    The lakehouse is made if it is not there, and the published file is attached as `published`. It
    is attached under the lock, since what DuckLake remembers of a catalog is as old as that. Raises
    `LakehouseBusy` after `wait_seconds`, and `LakehouseError` and its other kinds.
    """
    with _loaded(place) as connection, alone(place, wait_seconds) as catalog:
        folder = None if place.data.startswith(OBJECT_STORAGE) else Path(place.data)
        if folder is not None and not folder.exists():
            # One that is there keeps its mode: whoever shares it with analysts has set it.
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        attach(connection, place, reads_only=False)
        if published is not None:
            connection.execute(f"ATTACH {literal(str(published))} AS published (READ_ONLY)")
        yield catalog, connection


@contextmanager
def _loaded(place: LakehouseAccount) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the extensions; nobody holds the lock while they are loaded."""
    is_storage = place.data.startswith(OBJECT_STORAGE)
    extensions = (*EXTENSIONS, STORAGE_EXTENSION) if is_storage else EXTENSIONS
    with _naming_errors(place), extended(extensions) as connection:
        yield connection


def extended(extensions: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A database in memory that has the extensions. Raises `LakehouseError`."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false"
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        for name in extensions:
            _load(connection, name)
        if STORAGE_EXTENSION in extensions:
            # For every session: a cursor has settings of its own.
            connection.execute(f"SET GLOBAL s3_url_style = {literal(url_style(os.environ))}")
        connection.execute(SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


def url_style(environ: Mapping[str, str]) -> str:
    """How a bucket is addressed: by path unless the storage is Amazon's.

    Most others have one host for all buckets. Raises `SettingsError`.
    """
    style = environ.get(URL_STYLE) or ("path" if environ.get(ENDPOINT) else "vhost")
    if style not in ("path", "vhost"):
        raise SettingsError(
            f"{URL_STYLE} is {style!r}", action="Set it to path or to vhost, or take it away."
        )
    return style


def _load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension: DuckDB's own, else the package's, else a fetched one."""
    with suppress(duckdb.Error):
        connection.execute(f"LOAD {name}")
        return
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in () if package is None else package.submodule_search_locations or ():
        with suppress(duckdb.Error):
            ((version,),) = connection.execute("SELECT version()").fetchall()
            file = Path(folder, "extensions", version, f"{name}.duckdb_extension")
            connection.execute(f"LOAD {literal(str(file))}")
            return
    try:
        connection.execute(f"INSTALL {name}")
        connection.execute(f"LOAD {name}")
    except duckdb.Error:
        raise LakehouseError(
            f"DuckDB {duckdb.__version__} has no extension {name} here, and could not fetch it",
            action="Install the extra 'lakehouse' of recruitment-connector: its packages must be of"
            " DuckDB's own version.",
        ) from None


def attach(
    connection: duckdb.DuckDBPyConnection, place: LakehouseAccount, *, reads_only: bool
) -> None:
    """Attach the lakehouse as `lake`. Raises `NothingPublished`."""
    words = _connection_words(place)
    options = [f"DATA_PATH {literal(place.data + '/')}", "DATA_INLINING_ROW_LIMIT 0"]
    if (password := words.pop("password", None)) is not None:
        connection.execute(
            f"CREATE OR REPLACE SECRET lakehouse (TYPE postgres, PASSWORD {literal(password)})"
        )
        options.append("META_SECRET 'lakehouse'")
    if reads_only:
        options.append("READ_ONLY")
    escaped = {name: re.sub(r"([\\'])", r"\\\1", value) for name, value in words.items()}
    address = " ".join(f"{name}='{value}'" for name, value in escaped.items())
    try:
        connection.execute(
            f"ATTACH {literal('ducklake:postgres:' + address)} AS {LAKE} ({', '.join(options)})"
        )
    except duckdb.Error as error:
        if reads_only and "does not exist" in str(error):
            raise NothingPublished(
                "nothing was ever published to the lakehouse",
                action="Run 'connector lakehouse publish'.",
            ) from None
        raise


def is_conflict(error: duckdb.Error) -> bool:
    """Whether somebody else has changed the same tables meanwhile."""
    return isinstance(error, duckdb.TransactionException) or bool(_CONFLICT.search(str(error)))


@contextmanager
def _naming_errors(place: LakehouseAccount) -> Iterator[None]:
    """Turn errors of DuckDB and of the file system into those of the lakehouse."""
    try:
        yield
    except ConnectorError:
        raise
    except duckdb.Error as error:
        raise _named(place, str(error)) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LakehouseOffline(f"{place.data} cannot be used: {reason}") from None


def _named(place: LakehouseAccount, message: str) -> LakehouseError:
    said = _without_secrets(place, message)
    if "DATA_PATH" in message:
        return LakehouseError(
            f"the lakehouse's files are not at {place.data}: {said}",
            action="Set CONNECTOR_LAKEHOUSE_DATA to where its catalog says that its files are.",
        )
    if _CONFLICT.search(message):
        return LakehouseBusy(f"the lakehouse was changed by others meanwhile: {said}")
    if _OFFLINE.search(message) or message.startswith(("IO Error", "HTTP Error")):
        return LakehouseOffline(f"the lakehouse cannot be used: {said}")
    return LakehouseError(f"the lakehouse cannot be used: {said}")

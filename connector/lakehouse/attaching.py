"""DuckLake in DuckDB: its extensions, and the lakehouse attached as `lake`.

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
from connector.warehouse.duckdb_file import literal

if TYPE_CHECKING:
    from psycopg import Connection

if TYPE_CHECKING:
    from psycopg import Connection


# -- Place -----------------------------------------------------------------------------------------
# Which lakehouse is meant, and whose part of it: what the settings say, and nothing opened.


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


# -- Catalog ---------------------------------------------------------------------------------------
# The lakehouse's catalog as a database of PostgreSQL: reaching it, and taking turns in it.
#
# The lock is the database's own, and belongs to the connection: it is free again as soon as the
# process that holds it has ended, however that came about.


WAIT_SECONDS = 900.0
"""For how long one publisher waits for the others."""

CONNECT_SECONDS = 10
"""For how long a database that does not answer is waited for."""

_LOCK = 0x6C616B65686F7573
"""The number of the lock, by which publishers know each other in a database that others use too."""

# A machine that is gone says nothing: without these its lock would stay for two hours.
_KEEPALIVES = {"idle": 30, "interval": 10, "count": 3}


def psycopg_of() -> ModuleType:
    """The driver. Raises `LakehouseError` where it is not installed."""
    try:
        import psycopg  # noqa: PLC0415 # an extra: who has no lakehouse need not have it
    except ImportError as error:
        raise LakehouseError(
            f"the lakehouse needs a package that is not here ({error.name})",
            action="Install the extra 'lakehouse' of recruitment-connector.",
        ) from None
    return psycopg


def parts_of(place: Place) -> dict[str, str]:
    """The connection string by its words, the password among them. Raises `LakehouseError`, whose
    text holds nothing of it.
    """
    psycopg = psycopg_of()
    try:
        parts: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(
            place.catalog.get_secret_value()
        )
    except psycopg.Error:
        raise LakehouseError("the connection string of the lakehouse cannot be read") from None
    return {"connect_timeout": str(CONNECT_SECONDS), **{k: str(v) for k, v in parts.items()}}


def without_secrets(place: Place, text: str) -> str:
    """The first line of what a library says, without the connection string and its password."""
    shown = text.strip().partition("\n")[0].replace(place.catalog.get_secret_value(), "[catalog]")
    with suppress(LakehouseError):
        password = parts_of(place).get("password")
        if password:
            shown = shown.replace(password, "[password]")
    return shown


@contextmanager
def connected(place: Place) -> Iterator[Connection[Any]]:
    """A connection to the database, each statement its own transaction.

    Raises `LakehouseOffline` where there is none or where it breaks off, `LakehouseError`
    where the database refuses what is asked.
    """
    psycopg = psycopg_of()
    words = parts_of(place)
    words |= {f"keepalives_{name}": str(value) for name, value in _KEEPALIVES.items()}
    words.setdefault("application_name", f"recruitment-connector {place.account}")
    try:
        with psycopg.connect(**words, autocommit=True) as connection:
            for name, value in _KEEPALIVES.items():
                connection.execute(f"SET tcp_keepalives_{name} = {value}")
            yield connection
    except psycopg.errors.LockNotAvailable:
        raise LakehouseBusy(
            "the lakehouse has been held by others for longer than the connector waits"
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        said = without_secrets(place, str(error))
        raise LakehouseOffline(f"the lakehouse's database cannot be used: {said}") from None
    except psycopg.Error as error:
        said = without_secrets(place, str(error))
        raise LakehouseError(f"the lakehouse's database refuses what is asked: {said}") from None


@contextmanager
def alone(place: Place, wait_seconds: float = WAIT_SECONDS) -> Iterator[Connection[Any]]:
    """Be the only one who changes the lakehouse; readers are never kept waiting.

    Raises `LakehouseBusy` after `wait_seconds`, and what `connected` raises.
    """
    with connected(place) as connection:
        connection.execute(f"SET lock_timeout = {max(1, round(wait_seconds * 1000))}")
        connection.execute(f"SELECT pg_advisory_lock({_LOCK})")
        connection.execute("SET lock_timeout = 0")
        yield connection
        # Closing the connection frees the lock as well.


# -- Attaching -------------------------------------------------------------------------------------
#


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


def needed(place: Place) -> tuple[str, ...]:
    """The extensions that this lakehouse needs."""
    is_storage = place.data.startswith(OBJECT_STORAGE)
    return (*EXTENSIONS, STORAGE_EXTENSION) if is_storage else EXTENSIONS


@contextmanager
def reading(place: Place) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the lakehouse attached as `lake`, to read. Raises `NothingPublished` where
    there is none yet, and `LakehouseError` and its kinds.
    """
    with _loaded(place) as connection:
        with connected(place):
            # What is wrong with the way there is better told by who asks for nothing else.
            _attach(connection, place, reads_only=True)
        yield connection


@contextmanager
def changing(
    place: Place, *, wait_seconds: float = WAIT_SECONDS, published: Path | None = None
) -> Iterator[tuple[Connection[Any], duckdb.DuckDBPyConnection]]:
    """The catalog, under its lock, and a connection with the lakehouse attached as `lake`, made if
    it is not there, and the published file, if one is given, as `published`.

    It is attached under the lock, since what DuckLake remembers of a catalog is as old as that.
    Raises `LakehouseBusy` after `wait_seconds`, and `LakehouseError` and its other kinds.
    """
    with _loaded(place) as connection, alone(place, wait_seconds) as catalog:
        if not place.data.startswith(OBJECT_STORAGE):
            _make_folder(place)
        _attach(connection, place, reads_only=False)
        if published is not None:
            connection.execute(f"ATTACH {literal(str(published))} AS published (READ_ONLY)")
        yield catalog, connection


@contextmanager
def _loaded(place: Place) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the extensions that are needed; nobody waits for their being loaded."""
    with naming_errors(place), extended(needed(place)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            yield connection
        finally:
            for name in (LAKE, "published"):
                with suppress(duckdb.Error):
                    connection.execute(f"DETACH DATABASE IF EXISTS {name}")


def extended(extensions: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A connection to a database in memory that has the extensions. Raises `LakehouseError`."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false"
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        for name in extensions:
            load(connection, name)
        if STORAGE_EXTENSION in extensions:
            # For every session: a cursor has settings of its own.
            connection.execute(f"SET GLOBAL s3_url_style = {literal(url_style(os.environ))}")
        # Where nobody watches, it would stand among what a command prints.
        connection.execute("SET enable_progress_bar = false")
    except BaseException:
        connection.close()
        raise
    return connection


def url_style(environ: Mapping[str, str]) -> str:
    """How a bucket is addressed: by path where the storage is not Amazon's, since most have one
    host for all buckets, unless it is said. Raises `SettingsError`.
    """
    style = environ.get(URL_STYLE) or ("path" if environ.get(ENDPOINT) else "vhost")
    if style not in ("path", "vhost"):
        raise SettingsError(
            f"{URL_STYLE} is {style!r}", action="Set it to path or to vhost, or take it away."
        )
    return style


@contextmanager
def naming_errors(place: Place) -> Iterator[None]:
    """Turn errors of DuckDB, and of the system that the files are on, into those of the lakehouse,
    without the password. What is wrong with a statement of ours stays as it is.
    """
    try:
        yield
    except ConnectorError:
        raise
    except duckdb.Error as error:
        raise _named(place, str(error)) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LakehouseOffline(f"{place.data} cannot be used: {reason}") from None


def is_conflict(error: duckdb.Error) -> bool:
    """Whether somebody else has changed the same tables meanwhile, so that all of it is to be done
    again.
    """
    return isinstance(error, duckdb.TransactionException) or bool(_CONFLICT.search(str(error)))


def load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension: one that is installed for DuckDB, else that of its package, else what
    DuckDB fetches itself. Raises `LakehouseError`.
    """
    with suppress(duckdb.Error):
        connection.execute(f"LOAD {name}")
        return
    with suppress(duckdb.Error):
        if (file := _packaged(connection, name)) is not None:
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


def _packaged(connection: duckdb.DuckDBPyConnection, name: str) -> Path | None:
    """The extension's file in its package, if that is installed and of this version."""
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    if found is None or not found.submodule_search_locations:
        return None
    ((version,),) = connection.execute("SELECT version()").fetchall()
    file = Path(
        found.submodule_search_locations[0], "extensions", version, f"{name}.duckdb_extension"
    )
    return file if file.exists() else None


def _make_folder(place: Place) -> None:
    folder = Path(place.data)
    if not folder.exists():
        # One that is there stays as it is: whoever shares it with analysts has set its mode.
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)


def _attach(connection: duckdb.DuckDBPyConnection, place: Place, *, reads_only: bool) -> None:
    words = parts_of(place)
    password = words.pop("password", None)
    options = [f"DATA_PATH {literal(place.data + '/')}", "DATA_INLINING_ROW_LIMIT 0"]
    if password is not None:
        connection.execute(
            f"CREATE OR REPLACE SECRET lakehouse (TYPE postgres, PASSWORD {literal(password)})"
        )
        options.append("META_SECRET 'lakehouse'")
    if reads_only:
        options.append("READ_ONLY")
    address = " ".join(f"{name}={_word(value)}" for name, value in words.items())
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


def _word(value: str) -> str:
    """A value of a connection string, quoted."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _named(place: Place, message: str) -> LakehouseError:
    """The error that DuckDB's message stands for."""
    said = without_secrets(place, message)
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

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import (
    ConnectorError,
    LakehouseBusy,
    LakehouseError,
    LakehouseOffline,
    NothingPublished,
    SettingsError,
)
from connector.lakehouse.catalog import (
    WAIT_SECONDS,
    alone,
    connected,
    parts_of,
    without_secrets,
)
from connector.lakehouse.place import Place
from connector.lakehouse_settings import OBJECT_STORAGE
from connector.warehouse.quoting import literal

if TYPE_CHECKING:
    from psycopg import Connection

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

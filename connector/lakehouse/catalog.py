"""The lakehouse's catalog as a database of PostgreSQL: reaching it, and taking turns in it.

The lock is the database's own, and belongs to the connection: it is free again as soon as the
process that holds it has ended, however that came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from connector.errors import LakehouseBusy, LakehouseError, LakehouseOffline
from connector.lakehouse.place import Place

if TYPE_CHECKING:
    from psycopg import Connection

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

"""Push claims: the part of the journal of pushes that several data folders share.

A table in the lakehouse's PostgreSQL, in a schema of its own. A row's key is claimed, and the claim
is committed, before its create is sent; a row that another folder has claimed is not sent. All else
stays in each folder's ledger, which also says whose a claim is: a claim belongs to the folder whose
ledger has its batch, so that a folder that has lost its ledger is another folder.

The table has no values of rows. A key is an HMAC with SHA-256 of the API's address and the row's
identity; its secret is drawn when the table is made, and is in the same database.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from connector.engine.push_commands import Claimant, Move
from connector.engine.push_plan import fingerprint, subject
from connector.engine.push_states import State, Task
from connector.errors import LakehouseError, PushJournalUnreached, SettingsError
from connector.lakehouse.connect import LakehouseAccount, connected, naming_postgres_errors
from connector.settings.model import Settings

if TYPE_CHECKING:
    from psycopg import Connection

KEEP_DAYS = 30
"""For how long the claim of a record that was made is kept: by then every folder has pulled it."""

_LOCK = 0x70757368636C616D
"""The number of the lock under which the tables are made: two folders may come first at once."""

_TABLES = (
    "CREATE SCHEMA connector_push",
    "CREATE TABLE connector_push.secret (secret text NOT NULL)",
    "CREATE TABLE connector_push.claims (key text PRIMARY KEY, batch text NOT NULL,"
    " number integer NOT NULL, holder text NOT NULL, claimed_at timestamptz NOT NULL,"
    " record_id text)",
)
_NOT_APPLIED: tuple[State, ...] = ("rejected", "invalid", "dropped")
"""States of a create that certainly made no record, or that a person gave up."""

_DONE: tuple[State, ...] = ("applied", "not_applied")

Key = tuple[str, int]


class PushClaims:
    """Claims of one run; every method is one transaction of its own.

    All raise `PushJournalUnreached`. They are called from several threads.
    """

    def __init__(self, connection: Connection[Any], place: LakehouseAccount, holder: str) -> None:
        self._connection, self._place, self._holder = connection, place, holder
        with _naming_unreached(place):
            self._secret = _prepared(connection)

    def claim(self, task: Task, key: Key, may_take: Callable[[str, bool], bool]) -> Claimant | None:
        """Claim a create for the row; returns who has claimed it before.

        `may_take` says of a claim that is there, by its batch and by whether its record was made,
        whether the row may take it over.
        """
        name = self._name(task)
        with _naming_unreached(self._place):
            while True:
                claimed = self._connection.execute(
                    "INSERT INTO connector_push.claims (key, batch, number, holder, claimed_at)"
                    " VALUES (%s, %s, %s, %s, now()) ON CONFLICT (key) DO NOTHING RETURNING key",
                    (name, *key, self._holder),
                ).fetchone()
                if claimed is not None:
                    return None
                found = self._connection.execute(
                    "SELECT batch, number, holder, claimed_at AT TIME ZONE 'UTC', record_id"
                    " FROM connector_push.claims WHERE key = %s",
                    (name,),
                ).fetchone()
                if found is None:
                    continue  # Its holder has given it up meanwhile.
                batch, number, holder, since, record_id = found
                if not may_take(batch, record_id is not None):
                    return Claimant(holder, since, record_id)
                taken = self._connection.execute(
                    "UPDATE connector_push.claims SET batch = %s, number = %s, holder = %s,"
                    " claimed_at = now(), record_id = NULL"
                    " WHERE key = %s AND batch = %s AND number = %s RETURNING key",
                    (*key, self._holder, name, batch, number),
                ).fetchone()
                if taken is not None:
                    return None

    def moved(self, task: Task, key: Key, move: Move, state: State) -> None:
        """Note a create's record, or give up the claim of one that made none."""
        mine = (self._name(task), *key)
        with _naming_unreached(self._place):
            if state in _NOT_APPLIED:
                self._connection.execute(
                    "DELETE FROM connector_push.claims"
                    " WHERE key = %s AND batch = %s AND number = %s AND record_id IS NULL",
                    mine,
                )
            elif state in _DONE or move.event == "begun":
                self._connection.execute(
                    "UPDATE connector_push.claims SET record_id = coalesce(%s, record_id)"
                    " WHERE key = %s AND batch = %s AND number = %s",
                    (move.record_id, *mine),
                )

    def _name(self, task: Task) -> str:
        """The row's key: the same in every folder, and nothing can be read from it."""
        text = json.dumps([self._place.source, subject(task) or fingerprint(task)])
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


@contextmanager
def sharing(settings: Settings) -> Iterator[PushClaims | None]:
    """The claims that the settings name; None where a folder pushes by itself.

    Raises `PushJournalUnreached`, and `SettingsError` where there is no lakehouse.
    """
    if settings.push_journal.value == "folder":
        yield None
        return
    place = LakehouseAccount.of(settings)
    if place is None:
        raise SettingsError(
            f"push_journal is 'lakehouse' (from {settings.push_journal.origin}), and there is no"
            " lakehouse",
            action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA, or set"
            " CONNECTOR_PUSH_JOURNAL to folder.",
        )
    holder = f"{socket.gethostname()}:{settings.folder.absolute()}"
    with _naming_unreached(place), connected(place) as connection:
        yield PushClaims(connection, place, holder)


def _prepared(connection: Connection[Any]) -> bytes:
    """Make the tables if they are not there, remove old claims, and return the secret."""
    # A claim that a crash of the database could take back would be none.
    connection.execute("SET synchronous_commit = on")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        made = connection.execute("SELECT to_regclass('connector_push.claims')").fetchone()
        if made == (None,):
            for statement in _TABLES:
                connection.execute(statement.encode())
            secret = secrets.token_hex(32)
            connection.execute("INSERT INTO connector_push.secret VALUES (%s)", (secret,))
    connection.execute(
        "DELETE FROM connector_push.claims WHERE record_id IS NOT NULL"
        " AND claimed_at < now() - make_interval(days => %s)",
        (KEEP_DAYS,),
    )
    ((secret,),) = connection.execute("SELECT secret FROM connector_push.secret").fetchall()
    return bytes.fromhex(secret)


@contextmanager
def _naming_unreached(place: LakehouseAccount) -> Iterator[None]:
    try:
        with naming_postgres_errors(place):
            yield
    except LakehouseError as error:
        raise PushJournalUnreached(str(error)) from None

"""Changed bytes at any place of the ledger: every command ends with a documented error."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.ledger.backups import Backups
from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger
from connector.ledger.quota import Allowance
from connector.privacy import unfinished_purges
from connector.pushes.undo_report import read_undo_plan
from connector.sandbox.server import Sandbox
from tests.seeds import SEED, seeded_random
from tests.support.command import call, variables
from tests.support.kill_points import SHARES, sample_points
from tests.tiers import first_fast

EMAIL = "olwen.zz@mail.example"
PERSON = {"first_name": "O", "last_name": "Z", "email": EMAIL, "employment_type": "permanent"}
POINTS = 200
FLIPPED_BYTES = 4
MALFORMED = (
    "UPDATE push_batches SET terms = 'no JSON'",
    "UPDATE push_rows SET task = CAST(x'ff00fe' AS TEXT)",
    "UPDATE push_rows SET task = '[1]'",
    "UPDATE push_rows SET state = 'no state'",
    "UPDATE push_rows SET record_id = NULL",
    "UPDATE push_rows SET code = x'ff00fe'",
    "UPDATE push_rows SET change = 'no number'",
    "UPDATE push_attempts SET body = CAST('no JSON' AS BLOB)",
    "UPDATE server SET offset_seconds = 'no number'",
    "ALTER TABLE push_rows RENAME COLUMN moved_at TO moved",
)
"""Changes of values and of a table, as a flipped byte or an edit may cause them."""

AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXT, BYTES = "nobody wrote this", b"\xff\x00\xfe"
WRONG: Mapping[str, Sequence[object]] = {
    "TEXT": (BYTES,),
    "INTEGER": (TEXT, BYTES, 98765.5),
    "REAL": (TEXT, BYTES),
    "BLOB": (TEXT,),
}
"""Values of a wrong type, by column type. SQLite converts numbers in text columns to text."""

READINGS: tuple[Callable[[Ledger, str], object], ...] = (
    lambda ledger, batch: [*Journal(ledger).rows(batch)],
    lambda ledger, batch: [*Journal(ledger).rows_to_push(batch)],
    lambda ledger, batch: Journal(ledger).row_with_task((batch, 2)),
    lambda ledger, batch: Journal(ledger).batches(),
    lambda ledger, batch: Journal(ledger).attempts(batch),
    lambda ledger, batch: Journal(ledger).before_images(batch),
    lambda ledger, batch: Journal(ledger).unconfirmed_rows(),
    lambda ledger, batch: Journal(ledger).undone_updates("an id"),
    lambda ledger, batch: Journal(ledger).find_earlier_rows(
        [f"print {number}" for number in (3, 4, 6)]
    ),
    lambda ledger, batch: Journal(ledger).open_rows_by_subject(),
    lambda ledger, batch: Journal(ledger).previewed_at("d", "jobs"),
    lambda ledger, batch: Journal(ledger).records_of_others((batch, 2), ("an id",)),
    lambda ledger, batch: Journal(ledger).other_open_creates((batch, 3)),
    lambda ledger, batch: [*Journal(ledger).changes_since(0)],
    lambda ledger, batch: Journal(ledger).push_health(),
    lambda ledger, batch: read_undo_plan(Journal(ledger), batch),
    lambda ledger, batch: ledger.status(Allowance(None, 0, 1), AT),
    lambda ledger, batch: ledger.read_month(Allowance(None, 0, 1), AT.date()),
    lambda ledger, batch: ledger.read_uses(),
    lambda ledger, batch: ledger.identity(),
    lambda ledger, batch: unfinished_purges(ledger),
    lambda ledger, batch: Backups(ledger).latest_backups(),
    lambda ledger, batch: Backups(ledger).latest_restore(),
)
"""Every read of the ledger that returns its values."""

_A = f"'{AT.isoformat()}'"
_ROW = (
    "INSERT INTO push_rows SELECT batch, {number}, {operation}, 'print {number}', 'about {number}',"
    " '{state}', code, 0, 0, 0, 'an id', {at}, {same}, {at}, {at}, change, task FROM push_rows"
    " WHERE number = 2"
)
FILLED = (
    _ROW.format(number=3, operation="'create'", state="intent", same="NULL, NULL", at=_A),
    _ROW.format(number=4, operation="'update'", state="applied", same="NULL, NULL", at=_A),
    _ROW.format(number=5, operation="NULL", state="follows", same="batch, 2", at=_A),
    _ROW.format(number=6, operation="'create'", state="held", same="NULL, NULL", at=_A),
    "INSERT INTO push_attempts SELECT batch, 3, 1, 'first', 'POST', '/', body, intended_at,"
    " sent_after, NULL, NULL, 'lost', NULL, change FROM push_attempts WHERE number = 2",
    "INSERT INTO push_before SELECT batch, number, 'first', '{\"updated_at\": \"then\"}', moved_at,"
    " 1 FROM push_rows",
    "INSERT INTO push_problems SELECT batch, number, 1, 'c', 'm', 'f', 'h', 'r', 'f', 'a', 'x', 1"
    " FROM push_rows",
    f"INSERT INTO blocks VALUES (1, 'r', 'pull', '{AT:%Y-%m-%d}', 5)",
    f"INSERT INTO exhaustion VALUES (1, {_A}, '2027-01-01T00:00:00+00:00', 1)",
    f"INSERT INTO leases VALUES ('pull', 'r', 'pull', 1, '1', 'h', 'b', 's', {_A}, {_A}, 3)",
    f"INSERT INTO purges VALUES ({_A}, '[]', NULL, NULL)",
    f"INSERT INTO backups VALUES ({_A}, {_A}, '/f', 9, 'm')",
    f"INSERT INTO restores VALUES ({_A}, {_A}, '{{}}')",
    f"INSERT INTO push_people SELECT batch, 'sent', 'Ann', {_A} FROM push_batches",
    f"INSERT INTO previews VALUES ('d', 'jobs', {_A})",
)
"""Rows for the tables that are empty in the account."""

UNREAD = (
    "blocks.id blocks.run_id"
    " exhaustion.only identity.only previews.digest previews.resource"
    " purges.ended_at purges.rows push_changes.only"
    " push_people.action push_people.at push_people.batch push_problems.batch"
    " push_problems.change push_problems.number push_problems.place push_rows.fingerprint"
    " server.only"
)
"""Columns that no command reads, or only in conditions of queries."""


class DamagedLedgerAccount:
    """Account with a push and a file to push. Tests damage copies of its folder."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        sandbox.store.create("candidates", PERSON)
        first, self.file = self._write_file("first"), self._write_file("second")
        base = folder / "base"
        create = ("--mode", "create", "--apply")
        for words in (("pull", "candidates"), ("push", "candidates", str(first), *create)):
            assert 0 == self.call(base, *words)[0]
        with closing(sqlite3.connect(base / "ledger.sqlite")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.commands = (
            ("status",),
            ("pull", "candidates"),
            ("push", "candidates", str(self.file), "--no-pull", *create),
            ("undo", "last", "--apply"),
            ("resolve",),
        )

    def _write_file(self, name: str) -> Path:
        """Write a file with one candidate to push, and return its path."""
        path = self._folder / f"{name}.csv"
        head = "first_name,last_name,email,employment_type"
        path.write_text(f"{head}\nA,L,{name}@x.example,permanent\n", encoding="utf-8")
        return path

    def copy(self) -> Path:
        """Make a new copy and return its folder."""
        target = self._folder / "damaged"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._folder / "base", target)
        for each in target.glob("ledger.sqlite-*"):
            each.unlink()
        return target

    def call(self, folder: Path, *words: str) -> tuple[int, str]:
        """Run a command on a copy, and return its exit status and its combined output."""
        environ = variables(self._sandbox.base_url, folder, self._sandbox.key)
        called = call(words, environ | {"CONNECTOR_MODELS": "off"})
        return called.status, f"{called.out}{called.err}"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedLedgerAccount]:
    """An account with a push and an erasure, shared by all tests."""
    with Sandbox(counts={"candidates": 3}) as sandbox:
        yield DamagedLedgerAccount(sandbox, tmp_path_factory.mktemp("site"))


@pytest.mark.slow
@pytest.mark.parametrize("share", first_fast(range(SHARES)))
def test_flipped_bytes_in_the_ledger_cause_no_unexpected_error(
    account: DamagedLedgerAccount, share: int
) -> None:
    for point in sample_points(range(POINTS), 10, share):
        chance = seeded_random(f"damaged ledger {point}")
        folder = account.copy()
        content = bytearray((folder / "ledger.sqlite").read_bytes())
        at = chance.randrange(len(content) - FLIPPED_BYTES)
        for place in range(at, at + FLIPPED_BYTES):
            content[place] ^= chance.randrange(1, 256)
        (folder / "ledger.sqlite").write_bytes(content)
        words = chance.choice(account.commands)
        status, output = account.call(folder, *words)
        details = (words, at, SEED, output)
        assert "unexpected" not in output, details
        assert "Traceback" not in output, details
        assert status in (0, 1, 3), details


@pytest.mark.parametrize("damage", first_fast(MALFORMED))
def test_malformed_values_are_reported_as_a_damaged_ledger(
    account: DamagedLedgerAccount, damage: str
) -> None:
    codes = set()
    for words in account.commands:
        folder = account.copy()
        with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as ledger:
            ledger.execute(damage)
        status, output = account.call(folder, *words)
        assert "unexpected" not in output, (words, output)
        if status == 1:
            codes.add("damaged" if "ledger.sqlite is damaged" in output else output)
    assert {"damaged"} == codes


@pytest.mark.slow
def test_values_of_a_wrong_type_in_the_ledger_are_rejected(account: DamagedLedgerAccount) -> None:
    path = account.copy() / "ledger.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as filling:
        ((batch,),) = filling.execute("SELECT batch FROM push_batches").fetchall()
        for statement in FILLED:
            filling.execute(statement)
        columns = filling.execute(
            "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
        ).fetchall()
    whole, refused, leaks = path.read_bytes(), set(), []
    with Ledger(path.parent) as ledger:
        assert all(repr(read(ledger, batch)) for read in READINGS)
    for (table, column, _), value in [(c, v) for c in columns for v in WRONG[c[2]]]:
        path.write_bytes(whole)
        damaging = sqlite3.connect(path, isolation_level=None)
        # Some tables refuse some of the values.
        with closing(damaging), suppress(sqlite3.IntegrityError):
            damaging.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ?', (value,))
        with Ledger(path.parent) as ledger:
            for read in READINGS:
                try:
                    found = repr(read(ledger, batch))
                except WarehouseError:
                    refused.add(f"{table}.{column}")
                else:
                    if repr(value).strip("b'") in found:
                        leaks.append((table, column, value, found))
    assert [] == [each[:3] for each in leaks]
    every = {f"{table}.{column}" for table, column, _ in columns}
    assert UNREAD == " ".join(sorted(every - refused))

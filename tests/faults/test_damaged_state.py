"""Malformed values in the state: every command ends with a documented error."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.support.command import call, variables
from tests.tiers import first_fast

EMAIL = "olwen.zz@mail.example"
PERSON = {"first_name": "O", "last_name": "Z", "email": EMAIL, "employment_type": "permanent"}
MALFORMED = (
    "UPDATE batches SET policy = 'no JSON'",
    "UPDATE batches SET policy = '[1]'",
    "UPDATE batches SET begun_at = 'no time'",
    "UPDATE rows SET after = CAST(x'ff00fe' AS TEXT)",
    "UPDATE rows SET after = '[1]'",
    "UPDATE rows SET answer = '{}'",
    "UPDATE rows SET moved_at = 'no time'",
    "UPDATE rows SET code = CAST(x'ff00fe' AS TEXT)",
    "UPDATE facts SET value = 'no JSON'",
    "ALTER TABLE rows RENAME COLUMN moved_at TO moved",
)
"""Changes of values and of a table, as a flipped byte or an edit may cause them."""


class DamagedAccount:
    """Account with a push and a file to push. Tests damage copies of its folder."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        sandbox.store.create("candidates", PERSON)
        first, self.file = self._write_file("first"), self._write_file("second")
        base = folder / "base"
        create = ("--mode", "create", "--apply")
        for words in (("pull", "candidates"), ("push", "candidates", str(first), *create)):
            assert 0 == self.call(base, *words)[0]
        with closing(sqlite3.connect(base / "state.sqlite")) as connection:
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
        for each in target.glob("state.sqlite-*"):
            each.unlink()
        return target

    def call(self, folder: Path, *words: str) -> tuple[int, str]:
        """Run a command on a copy, and return its exit status and its combined output."""
        environ = variables(self._sandbox.base_url, folder, self._sandbox.key)
        called = call(words, environ | {"CONNECTOR_MODELS": "off"})
        return called.status, f"{called.out}{called.err}"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedAccount]:
    """An account with a push, shared by all tests."""
    with Sandbox(counts={"candidates": 3}) as sandbox:
        yield DamagedAccount(sandbox, tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("damage", first_fast(MALFORMED))
def test_malformed_values_are_reported_as_damage(account: DamagedAccount, damage: str) -> None:
    codes = set()
    for words in account.commands:
        folder = account.copy()
        with closing(sqlite3.connect(folder / "state.sqlite", isolation_level=None)) as state:
            state.execute(damage)
        status, output = account.call(folder, *words)
        assert "unexpected" not in output, (words, output)
        if status == 1:
            codes.add("damaged" if "state.sqlite is damaged" in output else output)
    assert {"damaged"} == codes

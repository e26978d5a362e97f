"""Bytes of the ledger are changed at any place: every command ends with a sentence."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.cli.calling import call, variables
from tests.faults.amount import SEED, SHARES, chosen, drawn

EMAIL = "olwen.zz@mail.example"
PERSON = {"first_name": "O", "last_name": "Z", "email": EMAIL, "employment_type": "permanent"}
POINTS = 200
FLIPPED_BYTES = 4
MALFORMED = (
    "UPDATE push_batches SET terms = 'no JSON'",
    "UPDATE push_batches SET begun_at = x'ff00fe'",
    "UPDATE push_rows SET task = CAST(x'ff00fe' AS TEXT)",
    "UPDATE push_rows SET task = '[1]'",
    "UPDATE push_batches SET change = x'ff00fe'",
    "UPDATE push_rows SET number = 'no number'",
    "UPDATE push_rows SET state = 'no state'",
    "UPDATE spent SET requests = x'ff00fe'",
    "UPDATE server SET offset_seconds = 'no number'",
    "ALTER TABLE push_rows RENAME COLUMN moved_at TO moved",
)
"""What a changed byte may make of values and of a table."""


class Site:
    """An account with a push, an erasure and a file to push, and copies of it to be damaged."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        sandbox.store.create("candidates", PERSON)
        first, self.file = self._table("first"), self._table("second")
        base = folder / "base"
        create = ("--mode", "create", "--apply")
        for words in (
            ("pull", "candidates"),
            ("push", "candidates", str(first), *create),
            ("erase", EMAIL, "--apply"),
        ):
            assert 0 == self.call(base, *words)[0]
        with closing(sqlite3.connect(base / "ledger.sqlite")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.commands = (
            ("status",),
            ("pull", "candidates"),
            ("push", "candidates", str(self.file), *create),
            ("undo", "last", "--apply"),
            ("resolve",),
        )

    def _table(self, name: str) -> Path:
        path = self._folder / f"{name}.csv"
        head = "first_name,last_name,email,employment_type"
        path.write_text(f"{head}\nA,L,{name}@x.example,permanent\n", encoding="utf-8")
        return path

    def copy(self) -> Path:
        """A fresh copy; returns its folder."""
        target = self._folder / "damaged"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._folder / "base", target)
        for each in target.glob("ledger.sqlite-*"):
            each.unlink()
        return target

    def call(self, folder: Path, *words: str) -> tuple[int, str]:
        """Call a command; its exit status and all that it says."""
        environ = variables(self._sandbox.base_url, folder, self._sandbox.key)
        called = call(words, environ | {"CONNECTOR_MODELS": "off"})
        return called.status, f"{called.out}{called.err}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The account."""
    with Sandbox(counts={"candidates": 3}) as sandbox:
        yield Site(sandbox, tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("share", range(SHARES))
def test_flipped_bytes_are_no_unexpected_error(site: Site, share: int) -> None:
    """Four bytes are changed at a place of the seed's own, and one command after another is tried:
    none ends in an unexpected error, and each that fails says what to do.
    """
    for point in chosen(range(POINTS), 10, share):
        chance = drawn(f"damaged ledger {point}")
        folder = site.copy()
        content = bytearray((folder / "ledger.sqlite").read_bytes())
        at = chance.randrange(len(content) - FLIPPED_BYTES)
        for place in range(at, at + FLIPPED_BYTES):
            content[place] ^= chance.randrange(1, 256)
        (folder / "ledger.sqlite").write_bytes(content)
        words = chance.choice(site.commands)
        status, said = site.call(folder, *words)
        told = (words, at, SEED, said)
        assert "unexpected" not in said, told
        assert "Traceback" not in said, told
        assert status in (0, 1, 3), told


@pytest.mark.parametrize("damage", MALFORMED)
def test_malformed_values_are_a_damaged_ledger(site: Site, damage: str) -> None:
    """A value or a table that the connector did not write is told as a damaged ledger by whatever
    reads it, with an action; what does not read it goes on.
    """
    codes = set()
    for words in site.commands:
        folder = site.copy()
        with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as ledger:
            ledger.execute(damage)
        status, said = site.call(folder, *words)
        assert "unexpected" not in said, (words, said)
        if status == 1:
            codes.add("damaged" if "ledger.sqlite is damaged" in said else said)
    assert {"damaged"} == codes

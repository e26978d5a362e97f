"""The ledger's file: its permissions, its durability, and its errors."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.ledger import sqlite_file as file
from connector.ledger.ledger import Ledger
from connector.ledger.request_budget import RequestBudget
from tests.ledger.account import (
    LIST,
    make_spender,
    read_used_requests,
    spend_requests,
    start_program,
)
from tests.support.clock import START, Clock
from tests.support.errors import has_code

OPEN = """
import sys
from pathlib import Path
from connector.ledger.ledger import Ledger
sys.stdin.readline()
with Ledger(Path(sys.argv[1])) as ledger:
    print(len(ledger.leases()))
"""


def make_ledger(folder: Path) -> Path:
    """Create a ledger with one counted request, and return its path."""
    with Ledger(folder) as ledger:
        spend_requests(RequestBudget(ledger, make_spender(), now=Clock()), LIST)
        return ledger.path


def test_the_ledger_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        spend_requests(RequestBudget(ledger, make_spender(), now=Clock()), LIST)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}

    names = ("ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal")
    assert dict.fromkeys(names, 0o600) == modes


def test_several_processes_can_create_the_ledger_at_the_same_time(tmp_path: Path) -> None:
    processes = [start_program(OPEN, tmp_path) for _ in range(4)]
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()

    assert [("0\n", 0)] * 4 == [
        (each.communicate(timeout=60)[0], each.returncode) for each in processes
    ]


def write_non_database(path: Path) -> None:
    """Write a file that is not a database."""
    path.write_text("Dear reader, " * 1000)


def write_foreign_database(path: Path) -> None:
    """Write the database of another program."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sales (amount)")
    connection.close()


def write_newer_ledger(path: Path) -> None:
    """Write a ledger whose version is newer than the connector supports."""
    make_ledger(path.parent)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("write", "message", "action"),
    [
        (write_non_database, "is not an SQLite database", "restore a backup"),
        (write_foreign_database, "another program", "restore a backup"),
        (
            write_newer_ledger,
            "a newer version",
            "Install that version, or restore a backup of this version",
        ),
    ],
)
def test_a_foreign_ledger_file_is_reported_and_left_unchanged(
    tmp_path: Path, write: Callable[[Path], None], message: str, action: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    write(path)
    before = path.read_bytes()

    with (
        pytest.raises(WarehouseError, match=message, check=has_code("not_a_ledger")) as caught,
        Ledger(tmp_path) as ledger,
    ):
        ledger.leases()

    assert str(path) in str(caught.value)
    assert action in caught.value.action
    assert before == path.read_bytes()


def test_a_damaged_ledger_is_reported(tmp_path: Path) -> None:
    path = make_ledger(tmp_path)
    size = path.stat().st_size
    with path.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(b"\xff" * (size - 4096))

    with (
        pytest.raises(
            WarehouseError, match="is damaged", check=has_code("ledger_damaged")
        ) as caught,
        Ledger(tmp_path) as ledger,
    ):
        ledger.read_uses()

    assert "backup" in caught.value.action


def test_a_locked_ledger_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(make_ledger(tmp_path), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with (
            pytest.raises(
                WarehouseError, match="another process has used", check=has_code("warehouse_busy")
            ),
            Ledger(tmp_path) as ledger,
        ):
            spend_requests(RequestBudget(ledger, make_spender(), now=Clock()), LIST)
    finally:
        holder.close()


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    path = make_ledger(tmp_path)
    connection = file.connect_to_ledger(path)
    try:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with (
            pytest.raises(WarehouseError, match="disk is full", check=has_code("disk_full")),
            file.convert_sqlite_errors(path),
            file.transaction(connection),
        ):
            connection.executemany(
                "INSERT INTO spent VALUES ('2026-11-20', ?, 'list', 1)",
                [(f"{n:01000d}",) for n in range(100)],
            )
    finally:
        connection.close()

    with Ledger(tmp_path) as ledger:
        assert 50 == read_used_requests(ledger, START)


def test_a_data_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(WarehouseError, match=r"ledger\.sqlite cannot be used") as caught:
        Ledger(tmp_path / "data").leases()

    assert "CONNECTOR_DATA_DIR" in caught.value.action

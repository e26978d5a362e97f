"""Erasure in the lakehouse: rows, files, earlier snapshots, and statistics of the catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.ledger.person import Person
from connector.privacy.erase import erase
from connector.privacy.person_locations import locate_person
from connector.publishing.lakehouse_erasure import find_in_lakehouse
from connector.publishing.publication import publish
from connector.settings.model import Settings
from tests.lakehouse.group import AccountGroup
from tests.lakehouse.server import PostgresServer
from tests.privacy.populated_agency import (
    EMAIL,
    NOW,
    TRACES,
    PopulatedAgency,
    copy_populated_agency,
    load_folder_settings,
)

pytestmark = pytest.mark.slow

OTHER = "bystander@mail.example"


def load_lakehouse_settings(folder: Path, group: AccountGroup, **more: str) -> Settings:
    """Return the settings of the agency in the folder, with the group's lakehouse."""
    lake = {name: value for name, value in group.shared_environ.items() if "LAKEHOUSE" in name}
    return load_folder_settings(folder, **{**lake, **more})


def find_traces(server: PostgresServer, group: AccountGroup) -> Iterator[str]:
    """Yield the files of the lakehouse and of its database whose bytes contain the person.

    The write-ahead log of the database is excluded.
    """
    server.query(group.database, "CHECKPOINT")
    needles = [each.lower().encode() for each in TRACES]
    for root in (group.data, server.folder / "base"):
        for path in root.rglob("*"):
            if path.is_file() and any(n in path.read_bytes().lower() for n in needles):
                yield str(path)


def test_erasing_a_person_removes_every_trace_from_the_lakehouse(
    group: AccountGroup, tmp_path: Path
) -> None:
    home = tmp_path / "agency"
    made: PopulatedAgency = copy_populated_agency(home)
    settings = load_lakehouse_settings(home, group)
    group.insert_rows("globex", "candidates", {"id": "c9", "email": OTHER, "last_name": "Aardvark"})
    group.publish("globex")
    publish(settings)
    made.settings = settings
    group.server.query(group.database, "ANALYZE")
    orphan = group.data / "landing" / "candidates" / "account=_unnamed" / "ducklake-cut-off.parquet"
    orphan.write_bytes(f"half of a file with {EMAIL}".encode())
    os.utime(orphan, (0, 0))
    assert list(find_traces(group.server, group))
    places = {place.table: place.rows for place in locate_person(settings, EMAIL).places}
    assert places["landing.candidates"]

    away = load_lakehouse_settings(
        home, group, CONNECTOR_LAKEHOUSE=group.server.connection_string(group.database, "no")
    )
    done = erase(away, EMAIL, applies=True, now=lambda: NOW)

    assert 3 == done.exit_status
    (receipt,) = done.receipts
    assert "The lakehouse" in receipt.waiting[0]
    assert "Not done yet" in receipt.as_text()
    assert 1 == erase(away, None).interrupted

    done = erase(settings, None, applies=True, now=lambda: NOW)

    (again,) = done.receipts
    assert receipt.erasure == again.erasure
    assert () == again.waiting
    assert () == again.left
    assert {"landing.candidates"} <= {e.table for e in again.removed if e.file == "lakehouse"}
    assert 0 == erase(settings, None).interrupted
    assert [] == list(find_traces(group.server, group))
    assert not orphan.exists()
    assert not find_in_lakehouse(settings, Person(emails=frozenset((EMAIL.lower(),)))).rows
    assert [("c9", OTHER)] == group.query(
        "SELECT id, email FROM lake.landing.candidates WHERE account = 'globex'"
    )
    # DuckDB skips files by the statistics, which still cover the rows that are left.
    assert [(1,)] == group.query(
        f"SELECT count(*) FROM lake.landing.candidates WHERE email >= '{OTHER}' AND email <= "
        f"'{OTHER}'"
    )

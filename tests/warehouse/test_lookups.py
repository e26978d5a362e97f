"""Lookups find the records that have a value, and no others."""

from __future__ import annotations

from pathlib import Path

from connector.warehouse.file import open_file
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

RECORDS = 2**16 + 1
"""More than a digest of 16 bits can tell apart."""


def test_a_lookup_never_finds_the_record_of_another_value(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.prepare()
    with open_file(warehouse.work) as connection:
        connection.execute(
            "INSERT INTO landing.candidates BY NAME SELECT n::VARCHAR AS id, "
            "n || '@people.example' AS email, now() AS _hydrated_at, 'run' AS _run_id, "
            f"'{{}}' AS _record FROM range({RECORDS}) AS numbers(n)"
        )
    with WarehouseLookups(warehouse, str.casefold) as lookups:
        asked = [(f"{n}@people.example",) for n in range(RECORDS)]
        found = lookups.find_ids("candidates", ("email",), asked)

    assert [(str(n),) for n in range(RECORDS)] == list(found)

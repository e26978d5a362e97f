"""Readers in other processes, while the file is published again and again and publishers are
killed in the middle of it.
"""

from __future__ import annotations

import signal
from pathlib import Path

from connector.warehouse.duckdb_file import opened, transaction
from connector.warehouse.runs import published_in
from tests.faults.amount import IS_ALL, SEED
from tests.publishing.agency import Agency
from tests.publishing.nursery import Nursery, Reader

PUBLICATIONS = 50 if IS_ALL else 4
KILLS = 20 if IS_ALL else 4


def change(agency: Agency, number: int) -> None:
    """Change two tables of the work file; a file that shows one change without the other is mixed
    of two states.
    """
    with opened(agency.warehouse.work) as connection, transaction(connection):
        connection.execute("INSERT INTO landing.jobs (id) VALUES (?)", [f"{number:04}"])
        connection.execute("INSERT INTO sync.events (detail) VALUES (?)", [f"{number:04}"])


def test_readers_meet_no_error_and_no_mixed_state(tmp_path: Path) -> None:
    """Whoever opens the file sees one state, whole, and never one older than before; whoever keeps
    it open sees the state that they opened. A publisher that is killed at any step leaves the old
    file or the new one, and the next one cleans up after it.
    """
    agency = Agency(tmp_path, CONNECTOR_MODELS="off")
    change(agency, 0)
    agency.publish()
    number = 0
    with (
        Nursery() as nursery,
        Reader(agency.file, stays=False) as coming,
        Reader(agency.file, stays=True) as staying,
    ):
        steps = 0
        for _ in range(PUBLICATIONS):
            number += 1
            change(agency, number)
            coming.look()
            staying.look()
            status, steps = nursery.publish(agency.given)
            assert 0 == status
        for place in range(KILLS):
            number += 1
            change(agency, number)
            coming.look()
            staying.look()
            dies_at = 1 + (place * steps // KILLS + SEED) % steps
            assert -signal.SIGKILL == nursery.publish(agency.given, dies_at)[0]
            shown = published_in(agency.file)
            assert shown is not None, f"killed at step {dies_at} of {steps}"
        assert 0 == nursery.publish(agency.given)[0]

    states = [f"{each:04}" for each in range(number + 1)]
    assert [["0000", "0000"]] == staying.seen
    assert all(one == other and one in states for one, other in coming.seen)
    assert sorted(coming.seen) == coming.seen
    assert len(coming.seen) > 2
    assert [] == agency.leftovers()
    last, *before = agency.warehouse.publications(1000)
    assert (f"{number:04}", "published") == (
        agency.rows("SELECT max(id) AS id FROM landing.jobs")[0]["id"],
        last.outcome,
    )
    outcomes = [each.outcome for each in before]
    assert {"published", "interrupted"} >= set(outcomes)
    assert PUBLICATIONS + 1 <= outcomes.count("published")

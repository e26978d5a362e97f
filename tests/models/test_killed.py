"""A publisher is killed while it builds, checks or masks models."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests.models.agency import PublishingAccount
from tests.models.killable_publisher import PublisherForkServer
from tests.seeds import SEED
from tests.support.kill_points import IS_ALL, SHARES
from tests.support.recorded import last_publications

KEY = "planted-hash-key-77aa"
NAME = "Zebediah"
LAST = 40
"""Number of last steps of a publication, in which files are recorded and renamed."""

_STATE = """
    SELECT (SELECT count(*) FROM landing.jobs) AS landed, (SELECT count(*) FROM marts.fct_jobs)
    AS made, (SELECT count(*) FROM marts.dim_people) AS people
"""


def choose_kill_points(steps: int, share: int) -> list[int]:
    """Return steps at which to kill a publisher: two random ones, the second near the end.

    With FAULTS=all, return every `SHARES`-th step, starting with this share.
    """
    if IS_ALL:
        return [*range(1 + share, steps + 1, SHARES)]
    chance = random.Random(f"published {SEED}")
    return [chance.randint(1, steps - LAST), chance.randint(steps - LAST + 1, steps)]


# What is masked was built before, so that a few deaths try both.
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES if IS_ALL else 1))
@pytest.mark.parametrize("personal", ["keep", "hash"] if IS_ALL else ["hash"])
def test_a_killed_publication_leaves_the_old_or_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, personal: str, share: int
) -> None:
    """The file has landing and marts of one publication, and no name that must be masked. The next
    publication succeeds and leaves no other file.
    """
    given = {"CONNECTOR_PUBLISH_PERSONAL": personal, "CONNECTOR_PUBLISH_HASH_KEY": KEY}
    agency = PublishingAccount(tmp_path, **given)
    agency.use_project(monkeypatch)
    agency.insert_rows("candidates", {"id": "c1", "first_name": NAME, "status": "active"})
    agency.insert_rows("jobs", {"id": "j0", "title": "Nurse"})
    project = agency.project_folder
    with PublisherForkServer() as fork_server:
        status, steps = fork_server.publish(agency.environ, project=project)
        assert 0 == status
        for jobs, point in enumerate(choose_kill_points(steps, share), 2):
            message = f"killed at step {point} of {steps}"
            agency.insert_rows("jobs", {"id": f"j{jobs}", "title": "Cook"})
            assert -signal.SIGKILL == fork_server.publish(agency.environ, point, project)[0], (
                message
            )
            assert_consistent_file(agency, personal, (jobs - 1, jobs), message)
            agency.publish()
            assert_consistent_file(agency, personal, (jobs,), message)
            assert [] == agency.list_leftover_files(), message

    last, *before = [each.outcome for each in last_publications(agency.warehouse.folder, 1000)]
    assert "published" == last
    assert {"published", "interrupted"} >= {*before}


def assert_consistent_file(
    agency: PublishingAccount, personal: str, jobs: tuple[int, ...], message: str
) -> None:
    """Assert that landing and mart have one of these numbers of jobs, and no unmasked name."""
    (state,) = agency.query(_STATE)
    assert state["landed"] in jobs, message
    assert (state["landed"], 1) == (state["made"], state["people"]), message
    if personal == "hash":
        assert NAME.encode() not in agency.published_file.read_bytes(), message

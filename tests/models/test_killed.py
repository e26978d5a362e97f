"""A publisher is killed while it builds, checks or masks models."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests.models.account import Account
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
    account = Account(tmp_path, (), **given)
    account.use_project(monkeypatch)
    account.insert("candidates", {"id": "c1", "first_name": NAME, "status": "active"})
    account.insert("jobs", {"id": "j0", "title": "Nurse"})
    people = "select id as candidate_id, first_name from {{ source('landing', 'candidates') }}"
    account.write("marts/dim_people.sql", people)
    project = account.project
    with PublisherForkServer() as fork_server:
        status, steps = fork_server.publish(account.environ, project=project)
        assert 0 == status
        for jobs, point in enumerate(choose_kill_points(steps, share), 2):
            message = f"killed at step {point} of {steps}"
            account.insert("jobs", {"id": f"j{jobs}", "title": "Cook"})
            assert -signal.SIGKILL == fork_server.publish(account.environ, point, project)[0], (
                message
            )
            assert_consistent_file(account, personal, (jobs - 1, jobs), message)
            account.publish()
            assert_consistent_file(account, personal, (jobs,), message)
            assert [] == account.leftovers(), message

    last, *before = [each.outcome for each in last_publications(account.warehouse.folder, 1000)]
    assert "published" == last
    assert {"published", "interrupted"} >= {*before}


def assert_consistent_file(
    account: Account, personal: str, jobs: tuple[int, ...], message: str
) -> None:
    """Assert that landing and mart have one of these numbers of jobs, and no unmasked name."""
    ((landed, made, people),) = account.query(_STATE)
    assert landed in jobs, message
    assert (landed, 1) == (made, people), message
    if personal == "hash":
        assert NAME.encode() not in account.file.read_bytes(), message

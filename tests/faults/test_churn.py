"""Records change between every two requests of a pull. The next pull without changes is exact."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from connector.pulls.reading import PullOptions
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.support.agency import differences, published
from tests.support.clock import Time, pulled

ACCEPTED = PullOptions(accepts_deletes=True)
"""More records are deleted than a pull deletes without consent."""

COUNTS = {"later pull": 104, "first load": 130}


class CandidateChanges:
    """Updates three candidates, deletes one and creates one at each call."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.calls = 0

    def __call__(self, store: Store) -> None:
        """Change the records."""
        self.calls += 1
        ids = sorted(store.records("candidates"))
        *updated, deleted = self._chance.sample(ids, 4)
        for id in updated:
            store.update("candidates", id, {"city": f"City {self.calls}"})
        store.delete("candidates", deleted)
        person = {"first_name": "Zoë", "last_name": "Müller", "employment_type": "permanent"}
        email = f"zoe.{self.calls}@people.example"
        store.create("candidates", {**person, "email": email})


@pytest.mark.parametrize("when", [*COUNTS])
def test_a_pull_without_changes_is_exact_after_pulls_during_changes(
    tmp_path: Path, when: str
) -> None:
    time = Time()
    # Many equal timestamps in a random order are the hardest; the simulations have the others.
    behaviours = {"timestamp_precision": "seconds", "ties": "random"}
    with Sandbox(
        counts={"candidates": COUNTS[when]}, clock=time.server_now, behaviours=behaviours
    ) as sandbox:
        if when == "later pull":
            assert "done" == pulled(sandbox, tmp_path, "candidates", time=time).outcome
            time.pass_minutes(10)
        churn = CandidateChanges(seed=13)
        if when == "later pull":
            for _ in range(10):
                churn(sandbox.store)
        before, served = churn.calls, len(sandbox.log)
        sandbox.between = churn
        report = pulled(sandbox, tmp_path, "candidates", time=time, options=ACCEPTED)
        sandbox.between = None
        assert report.outcome in ("done", "partial"), report.as_json()
        # The sandbox changes records after every response except a 404.
        answers = Counter(each.status == 404 for each in sandbox.log[served:])
        assert churn.calls - before >= answers[False] - 1 > 0
        time.pass_minutes(10)
        quiet = pulled(sandbox, tmp_path, "candidates", time=time, options=ACCEPTED)

        assert "done" == quiet.outcome, quiet.as_json()
        assert [] == differences(sandbox, published(tmp_path))

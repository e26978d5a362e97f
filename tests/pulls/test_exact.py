"""Pulls make an exact copy with few requests for every behaviour of the server."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.pulls.report import PullReport
from connector.sandbox.behaviour import SWITCHES
from connector.sandbox.server import Sandbox
from tests.support.agency import COUNTS, SMALL, differences, published, pulled
from tests.tiers import first_fast

RESOURCES = tuple(COUNTS)


def max_first_load_requests(
    sandbox: Sandbox, name: str, per_page: int = 100, sweeps: int = 1
) -> int:
    """Return the maximum requests of a first load: each record once, and each list page per sweep.

    Content items have a list for each of their types.
    """
    held = sandbox.store.records(name)
    pages = max(1, math.ceil(len(held) / per_page))
    if name == "content_items":
        types = sandbox.store.records("content_types")
        pages = sum(
            max(1, math.ceil(len(sandbox.store.records(name, type=type)) / per_page))
            for type in types
        )
    return len(held) + (sweeps + 1) * pages + 2


def expected_quiet_requests(name: str, types: int, *, is_dated: bool = True) -> int:
    """Return the requests of a pull without changes, for `types` content types.

    Usually one list and one detail. Content items have one list per type. Content types are one
    list, and without a date in it also one detail each.
    """
    return {"content_types": 1 if is_dated else 1 + types, "content_items": types}.get(name, 2)


def change_records(sandbox: Sandbox) -> None:
    """Update fifty candidates, create ten, and remove the fields of a content type."""
    now = sandbox.store.clock()
    types = list(sandbox.store.records("content_types"))[:1]
    sandbox.store.touch("content_types", types, {"fields": []}, updated_at=now)
    ids = sorted(sandbox.store.records("candidates"))
    for id in random.Random(4).sample(ids, 50):
        sandbox.store.update("candidates", id, {"city": "Zürich", "notes": 'a "quote"\n\ttab'})
    for number in range(10):
        sandbox.store.create(
            "candidates",
            {
                "first_name": "Zoë",
                "last_name": f"O'Neill-{number}",
                "email": f"zoe.{number}@people.example",
                "employment_type": "permanent",
            },
        )


def assert_all_verified(report: PullReport) -> None:
    """Assert that every resource is done and verified, with no record left to read."""
    assert "done" == report.outcome, report.as_json()
    for each in report.resources.values():
        assert (True, 0) == (each.proven, each.pending), each
        assert each.total == each.live, each


@pytest.mark.slow
def test_first_quiet_and_changed_pulls_are_exact_with_few_requests(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        report = pulled(sandbox, tmp_path)

        assert_all_verified(report)
        assert [] == differences(sandbox, published(tmp_path))
        for name, each in report.resources.items():
            assert each.requests <= max_first_load_requests(sandbox, name), each
            assert each.new == COUNTS[name]

        quiet = pulled(sandbox, tmp_path)

        assert_all_verified(quiet)
        for name, each in quiet.resources.items():
            assert expected_quiet_requests(name, 3) == each.requests, each
            assert (0, 0) == (each.new, each.changed)

        change_records(sandbox)
        changed = pulled(sandbox, tmp_path)

        assert_all_verified(changed)
        assert changed.resources["candidates"].requests <= 64
        assert (10, 50) == (
            changed.resources["candidates"].new,
            changed.resources["candidates"].changed,
        )
        assert [] == differences(sandbox, published(tmp_path))
        assert len(sandbox.log) == report.requests + quiet.requests + changed.requests


COMBINATIONS = 5
PREVENTS_SCANS = ("sorting", "ignored")
"""Behaviour and value with which no list shows the changed records first."""


def make_combinations() -> Iterator[dict[str, str]]:
    """Return servers that combine all behaviours, with each value several times.

    The combinations are drawn from one seed, so that failures can be reproduced.
    """
    chance = random.Random(20)
    drawn: list[dict[str, str]] = [{} for _ in range(COMBINATIONS)]
    for switch in SWITCHES.values():
        values = [v for v in switch.values if (switch.name, v) != PREVENTS_SCANS]
        shares = (values * COMBINATIONS)[:COMBINATIONS]
        chance.shuffle(shares)
        for combination, value in zip(drawn, shares, strict=True):
            combination[switch.name] = value
    yield from drawn


@pytest.mark.parametrize(
    "behaviours", first_fast(list(make_combinations()), 0), ids=range(COMBINATIONS)
)
def test_every_behaviour_gives_an_exact_copy_with_few_requests(
    tmp_path: Path, behaviours: dict[str, str]
) -> None:
    # A change within the second of the last list would cause another list request, so two
    # seconds pass before each pull.
    passed = timedelta(0)
    with Sandbox(
        counts=SMALL, behaviours=behaviours, clock=lambda: datetime.now(UTC) + passed
    ) as sandbox:
        per_page = int(behaviours["per_page_max"])
        report = pulled(sandbox, tmp_path)
        assert [] == differences(sandbox, published(tmp_path))
        passed = timedelta(seconds=2)
        quiet = pulled(sandbox, tmp_path)
        passed = timedelta(seconds=4)
        change_records(sandbox)
        changed = pulled(sandbox, tmp_path)

        assert [] == differences(sandbox, published(tmp_path))
        for each in (report, quiet, changed):
            assert_all_verified(each)
        for name, done in report.resources.items():
            # With random ties, a sweep may miss a record and is then repeated.
            sweeps = 12 if behaviours["ties"] == "random" else 1
            most = max_first_load_requests(sandbox, name, per_page, sweeps)
            assert done.requests <= most, done
        for name, done in quiet.resources.items():
            is_dated = behaviours["content_type_items"] == "declared"
            assert expected_quiet_requests(name, 3, is_dated=is_dated) == done.requests, done
        if per_page == 100:
            assert changed.resources["candidates"].requests <= 64
        elif behaviours["ties"] == "stable":
            # Small pages can hide the order of changes: a binary search then reads more details.
            details = 61 + math.ceil(math.log2(61)) + 1
            most = details + math.ceil(details / per_page)
            assert changed.resources["candidates"].requests <= most

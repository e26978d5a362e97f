"""The pull's promise: an exact copy for the least requests, whatever the API leaves open."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from connector.outcome import PullReport
from connector.sandbox import Behaviours, Sandbox
from tests.pull.landed import COUNTS, SMALL, differences, published, pulled

RESOURCES = tuple(COUNTS)


def first_load_requests_max(sandbox: Sandbox, name: str, per_page: int = 100) -> int:
    """N + 2P + 2 (content: of each type's list, since each type has its own)."""
    held = sandbox.store.records(name)
    pages = max(1, math.ceil(len(held) / per_page))
    if name == "content_items":
        types = sandbox.store.records("content_types")
        pages = sum(
            max(1, math.ceil(len(sandbox.store.records(name, type=type)) / per_page))
            for type in types
        )
    return len(held) + 2 * pages + 2


def quiet_requests(name: str, types: int) -> int:
    """One list and one detail; content shows its cursor in the list; types are listed."""
    return {"content_types": 1, "content_items": types}.get(name, 2)


def change_candidates(sandbox: Sandbox) -> None:
    """Update fifty candidates and create ten."""
    for id in sorted(sandbox.store.records("candidates"))[:50]:
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


def assert_all_proven(report: PullReport) -> None:
    """Every resource is done, proven, with nothing left to read."""
    assert "done" == report.outcome, report.as_json()
    for each in report.resources.values():
        assert (True, 0) == (each.proven, each.pending), each
        assert each.total == each.live, each


def test_first_quiet_and_changed_pulls_are_exact_and_cheap(tmp_path: Path) -> None:
    """A first pull lands every field of every record for N + 2P + 2 requests, a quiet one spends
    two, and sixty changed records cost at most four more than their details.
    """
    with Sandbox(counts=COUNTS) as sandbox:
        report = pulled(sandbox, tmp_path)

        assert_all_proven(report)
        assert [] == differences(sandbox, published(tmp_path))
        for name, each in report.resources.items():
            assert each.requests <= first_load_requests_max(sandbox, name), each
            assert each.new == COUNTS[name]

        quiet = pulled(sandbox, tmp_path)

        assert_all_proven(quiet)
        for name, each in quiet.resources.items():
            assert quiet_requests(name, 3) == each.requests, each
            assert (0, 0) == (each.new, each.changed)

        change_candidates(sandbox)
        changed = pulled(sandbox, tmp_path)

        assert_all_proven(changed)
        assert changed.resources["candidates"].requests <= 64
        assert (10, 50) == (
            changed.resources["candidates"].new,
            changed.resources["candidates"].changed,
        )
        assert [] == differences(sandbox, published(tmp_path))
        assert len(sandbox.log) == report.requests + quiet.requests + changed.requests


def switches() -> Iterator[tuple[str, str]]:
    """Every value of every behaviour switch."""
    hints = get_type_hints(Behaviours)
    for field in dataclasses.fields(Behaviours):
        for value in get_args(hints[field.name]):
            yield field.name, value


FORBIDS_A_CHEAP_WALK = {("sorting", "ignored")}
"""Where the server does not sort, two requests cannot show that nothing changed."""


@pytest.mark.parametrize(("switch", "value"), list(switches()))
def test_every_behaviour_gives_an_exact_copy(tmp_path: Path, switch: str, value: str) -> None:
    """What the API leaves open changes neither the copy nor, unless it forbids it, its price."""
    with Sandbox(counts=SMALL, behaviours={switch: value}) as sandbox:
        per_page = int(value) if switch == "per_page_max" else 100
        is_cheap = (switch, value) not in FORBIDS_A_CHEAP_WALK
        report = pulled(sandbox, tmp_path)
        assert [] == differences(sandbox, published(tmp_path))
        quiet = pulled(sandbox, tmp_path)
        change_candidates(sandbox)
        changed = pulled(sandbox, tmp_path)

        assert [] == differences(sandbox, published(tmp_path))
        if is_cheap:
            for each in (report, quiet, changed):
                assert_all_proven(each)
            for name, done in report.resources.items():
                assert done.requests <= first_load_requests_max(sandbox, name, per_page), done
            for name, done in quiet.resources.items():
                assert quiet_requests(name, 3) == done.requests, done
            lists = math.ceil(61 / per_page)
            assert changed.resources["candidates"].requests <= 63 + lists

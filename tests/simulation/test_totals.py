"""Totals that are always wrong by one do not hide a missing or deleted record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.catalog.resource import Page, Resource
from connector.pulls.ports import PullResult
from connector.pulls.pull import TOO_FEW
from connector.warehouse.stream import DeletionProof, Outcome
from tests.simulation.checkers import check_commit, find_differences
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import ORDINARY, PullScenario
from tests.simulation.world import PullWorld

_QUIET = PullScenario("nothing happens of itself", ORDINARY, per_page_max=10, tied_share=0.0)


def _make_mirror(records: int, total_offset: int) -> Mirror:
    """Return an empty mirror of a server whose totals are wrong by `total_offset`."""
    scenario = replace(_QUIET, records=records, total_offset=total_offset)
    return Mirror(PullWorld(0, scenario), check_commit=check_commit)


@pytest.mark.parametrize("total_offset", [-1, 0, 1])
@pytest.mark.parametrize("records", [10, 11, 41])
def test_pulls_with_totals_off_by_one_are_exact(records: int, total_offset: int) -> None:
    mirror = _make_mirror(records, total_offset)
    world = mirror.world
    ended = mirror.pull()

    assert {} == find_differences(mirror)
    if total_offset == 0:
        pages, is_full = -(-records // 10), records % 10 == 0
        assert world.requests <= records + 2 * pages + 2 + is_full
    world.pass_time(3600)
    world.server.change(sorted(world.server.created_at), {"notes": "migrated"}, world.server_now())
    world.pass_time(3600)
    ended = mirror.pull()
    assert {} == find_differences(mirror)
    assert ended.pulled is not None
    if total_offset >= 0:
        assert ended.pulled.is_proven


def test_records_that_are_counted_and_never_listed_are_named_at_every_pull() -> None:
    """The server removes records after it has cut the list into pages. The other records are
    loaded, also changes of several pages, but the copy is not verified.
    """
    mirror = Mirror(PullWorld(0, replace(_QUIET, records=45)))
    mirror.pull()
    world, list_page, read_detail = mirror.world, mirror.world.list_page, mirror.world.read_detail
    hidden = set(sorted(world.server.created_at)[::9])

    def read_shown(record: str) -> Outcome:
        return DeletionProof(world.server_now()) if record in hidden else read_detail(record)

    def hide(page: int, sort: str | None, order: str) -> Page[Resource]:
        shown = list_page(page, sort, order)
        return replace(shown, items=tuple(e for e in shown.items if e.id not in hidden))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world, "list_page", hide)
        patched.setattr(world, "read_detail", read_shown)
        for changed in (0, 3, 38):
            seen = sorted(world.server.created_at.keys() - hidden)[:changed]
            world.server.change(seen, {"notes": f"change {changed}"}, world.server_now())
            world.pass_time(3600)
            ended = mirror.pull()
            assert ended.pulled == PullResult(False, f"{TOO_FEW}: {len(hidden)} more", 45)
            details = world.server.all_details()
            live = {id: row.raw for id, row in mirror.rows.items() if not row.is_deleted}
            assert live == {id: raw for id, raw in details.items() if id not in hidden}
    world.pass_time(3600)
    ended = mirror.pull()
    assert ended.pulled is not None
    assert ended.pulled.is_proven
    assert {} == find_differences(mirror)


@pytest.mark.slow
def test_one_deletion_costs_at_most_nine_requests() -> None:
    mirror = Mirror(
        PullWorld(0, replace(_QUIET, records=0, per_page_max=100)), check_commit=check_commit
    )
    world, server = mirror.world, mirror.world.server
    for number in range(2_000):
        world.changes.create_record(is_late_allowed=False)
        if not (380 <= number < 520 or 1_390 <= number < 1_520):
            world.pass_time(1)
    world.pass_time(3600)
    mirror.copy_server()
    spent = []
    for number in range(60):
        order = sorted(server.created_at, key=lambda each: (server.created_at[each], each))
        server.remove(order[number * 32])
        world.pass_time(3600)
        before = world.requests
        mirror.pull()
        spent.append(world.requests - before)

    assert {} == find_differences(mirror)
    assert 9 == max(spent), spent

"""One bad answer of each kind, then quiet days: the copy becomes exact and verified by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from connector.catalog.resource import Page, Resource
from connector.warehouse.stream import DeletionProof, Outcome, UnreadableDetail
from tests.simulation.checkers import find_differences
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import PullScenario
from tests.simulation.world import PullWorld

DAYS = 30
DAY_SECONDS = 86_400.0
HEALED_AFTER_MAX = 2
"""Days after which a bad answer has no effect any more."""

STRAY = "00000000/X"

_CHURN = {"update": 6.0, "create": 2.0, "delete": 1.0}
_SCENARIO = PullScenario("one bad answer", _CHURN, records=45, accepts_deletes=False)

BadPage = Callable[[Page[Resource]], Page[Resource]]


def _with_stray(page: Page[Resource]) -> Page[Resource]:
    """An item with an id that no request can contain."""
    first = page.items[0]
    stray = type(first)({**first.raw, "id": STRAY}, is_item=True, served_at=first.served_at)
    return replace(page, items=(stray, *page.items[1:]))


def _without_first(page: Page[Resource]) -> Page[Resource]:
    """A record is not listed, and the total does not count it."""
    return replace(page, items=page.items[1:], total=page.total - 1)


def _reversed(page: Page[Resource]) -> Page[Resource]:
    """The items are in the opposite order."""
    return replace(page, items=page.items[::-1])


def _total_of(change: int) -> BadPage:
    """A total that is wrong."""
    return lambda page: replace(page, total=max(0, page.total + change))


PAGES: dict[str, BadPage] = {
    "a stray id": _with_stray,
    "a record that is not listed": _without_first,
    "the opposite order": _reversed,
    "an empty list": lambda page: replace(page, items=(), total=0, total_pages=0),
    "a total that is too low by one": _total_of(-1),
    "a total that is too high by one": _total_of(1),
    "a total that is too high by a million": _total_of(10**6),
}

DETAILS: dict[str, Callable[[Outcome], Outcome]] = {
    "a detail that fails": lambda found: UnreadableDetail("server_failed"),
    "a detail that is not found": lambda found: DeletionProof(found.served_at),  # type: ignore[union-attr]
}


def _mirror(seed: int) -> Mirror:
    """Return a mirror that has loaded everything, and a world with some changes since."""
    world = PullWorld(seed, _SCENARIO)
    mirror = Mirror(world, check_commit=None)
    for _ in range(2):
        world.pass_time(60)
        mirror.pull()
    assert {} == find_differences(mirror)
    world.is_busy = True
    world.pass_time(20)
    world.is_busy = False
    return mirror


def _days_until_healed(mirror: Mirror) -> int | None:
    """Pull daily, and return the number of days until every later pull is exact and verified."""
    healed: int | None = None
    for day in range(DAYS):
        mirror.world.pass_time(DAY_SECONDS)
        ended = mirror.pull()
        assert ended.error is None, ended.error
        is_right = not find_differences(mirror)
        # A run reports a resource with a queue as not verified.
        is_verified = ended.pulled is not None and ended.pulled.is_proven and not mirror.queue
        # An answer that hides exactly one real deletion cannot be noticed on the same day.
        assert day == 0 or is_right or not is_verified, "verified while different"
        if not (is_right and is_verified):
            healed = None
        elif healed is None:
            healed = day
    return healed


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", PAGES)
def test_a_bad_list_answer_heals(kind: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = _mirror(seed=number)
    whole, turns = mirror.world.list_page, count(1)

    def list_page(page: int, sort: str | None, order: str) -> Page[Resource]:
        answer = whole(page, sort, order)
        return PAGES[kind](answer) if next(turns) == number and answer.items else answer

    monkeypatch.setattr(mirror.world, "list_page", list_page)
    _without_request_for_stray(mirror, monkeypatch)
    healed = _days_until_healed(mirror)

    assert healed is not None
    assert healed <= HEALED_AFTER_MAX


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("kind", DETAILS)
def test_a_bad_detail_heals(kind: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = _mirror(seed=number)
    whole, turns = mirror.world.read_detail, count(1)

    def read_detail(id: str) -> Outcome:
        answer = whole(id)
        return DETAILS[kind](answer) if next(turns) == number else answer

    monkeypatch.setattr(mirror.world, "read_detail", read_detail)
    healed = _days_until_healed(mirror)

    assert healed is not None
    assert healed <= HEALED_AFTER_MAX


def _without_request_for_stray(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer for an id that no path can contain, as the client does."""
    whole = mirror.world.read_detail
    unusable = UnreadableDetail("unusable_id", "no path can contain the id")

    def read_detail(id: str) -> Outcome:
        return unusable if id == STRAY else whole(id)

    monkeypatch.setattr(mirror.world, "read_detail", read_detail)

"""A simulated world: records that change while time passes, and a server with the scenario's
faults.

Every random decision is drawn from the seed. The world has three clocks: the true time, the
server's (which may step) and the connector's (which may be wrong).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from connector.catalog.resource import Page, Resource
from connector.client.fit import misfit_of_id
from connector.errors import NoAnswer, ServerFailed, UnreadableAnswer
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, UnreadableDetail
from tests.simulation.churn import RandomChanges
from tests.simulation.harness import LateWrite, WorldClock
from tests.simulation.scenario import PullScenario
from tests.simulation.server import CURRENT_VIEW, ServerView, SimulatedServer

WARM_SECONDS = 7200.0
ANSWER_SECONDS = 0.02
HUGE_TOTALS = (300, 1_000, 100_000, 20_000_000, 10**12)


class PullWorld(WorldClock):
    """The API's side of one run. `requests` counts the requests received.

    Records change while `is_busy`, requests fail while `is_faulty`, and the key sees fewer records
    while `is_blind`.
    """

    def __init__(self, seed: int, scenario: PullScenario) -> None:
        super().__init__(scenario.own_clock_ahead)
        self.chance = random.Random(seed)
        self.scenario = scenario
        self.is_busy = self.is_faulty = self.is_blind = False
        self.requests = 0
        self._late: list[LateWrite] = []
        self._mutation_at: datetime | None = None
        served = random.Random(seed + 1)
        self.server = SimulatedServer(scenario, lambda: self.now, served)
        self.server.interlude = lambda: self.pass_time(0.05)
        self.changes = RandomChanges(
            scenario, self.server, self.chance,
            now=self.server_now, advance=self._advance, later=self._commit_later,
        )  # fmt: skip
        for _ in range(scenario.records):
            self.changes.create_record(is_late_allowed=False)
            # Without a pause, the next record has the same timestamps.
            if self.chance.random() > scenario.tied_share:
                self.pass_time(self.chance.expovariate(1.0))
        # Updates make the order of changes differ from the order of creation.
        for _ in range(scenario.records // 2):
            self.pass_time(self.chance.expovariate(1.0))
            self.changes.update_any_record(is_late_allowed=False)
        self.pass_time(WARM_SECONDS)

    # -- time -------------------------------------------------------------------------------------

    def _advance(self, by: timedelta) -> None:
        """Move the true time forward."""
        self.now += by

    def pass_time(self, seconds: float) -> None:
        """Let time pass. Records change if the world is busy, and late writes are applied."""
        end = self.now + timedelta(seconds=seconds)
        while self.is_busy:
            # The time of the next change does not depend on how time is divided.
            at = self._mutation_at or self._draw_mutation_time()
            if at > end:
                break
            self._mutation_at = None
            self._commit_late_writes(at)
            self.now = max(self.now, at)
            self.changes.mutate()
        if not self.is_busy:
            self._mutation_at = None
        if self._late:
            self._commit_late_writes(end)
        self.now = max(self.now, end)

    def _draw_mutation_time(self) -> datetime:
        """Draw and return the time of the next change."""
        wait = self.chance.expovariate(self.scenario.mutations_per_second)
        self._mutation_at = self.now + timedelta(seconds=wait)
        return self._mutation_at

    def _commit_late_writes(self, until: datetime) -> None:
        """Apply the late writes that are due, each at its own time."""
        for each in sorted(self._late, key=lambda late: (late.due, late.id)):
            if each.due <= until:
                self._late.remove(each)
                self.now = max(self.now, each.due)
                each.commit()

    def _commit_later(self, seconds: float, id: str, commit: Callable[[], None]) -> None:
        """Schedule a late write."""
        self._late.append(LateWrite(self.now + timedelta(seconds=seconds), id, commit))

    def become_quiet(self) -> None:
        """Stop all changes and faults, and let time pass until every late write is applied."""
        self.is_busy = self.is_faulty = self.is_blind = False
        self.pass_time(self.scenario.quiet_seconds)
        assert not self._late

    # -- requests ---------------------------------------------------------------------------------

    def _draw_fault(self, share: float) -> bool:
        """Return True with this probability, and never while the world is not faulty."""
        return self.is_faulty and share > 0 and self.chance.random() < share

    def _send_request(self) -> datetime:
        """Let a request reach the server. Return when it was sent, or raise `ServerFailed`."""
        scenario = self.scenario
        self.requests += 1
        if self._draw_fault(scenario.limited_share):
            self.pass_time(self.chance.random() * 60)
        sent_at = self.now
        self.pass_time(0.05 + self.chance.random() * 0.2)
        if self._draw_fault(scenario.error_share):
            raise ServerFailed("The server failed.", status=503)
        return sent_at

    def _step_clock(self) -> None:
        """Set the server's clock forward, back or right, by chance.

        Done only before lists, whose responses show the change (docs/PULL.md).
        """
        scenario = self.scenario
        if self._draw_fault(scenario.clock_step_share):
            steps = (-1, 1) if not self._step else (0,)
            self._step = timedelta(seconds=scenario.clock_step_seconds) * self.chance.choice(steps)

    def _receive_answer(self) -> None:
        """Let a response arrive. Raises `NoAnswer` if it is lost by chance."""
        self.pass_time(ANSWER_SECONDS)
        if self._draw_fault(self.scenario.drop_share):
            raise NoAnswer("the request", "no whole answer in time")

    def _draw_view(self, *, is_list: bool) -> ServerView:
        """Draw the state that the next response shows."""
        at = sees = None
        if self.scenario.lag_seconds_max and not (is_list and self.scenario.lists_are_fresh):
            least, most = self.scenario.lag_seconds_min, self.scenario.lag_seconds_max
            lag = least + self.chance.random() * (most - least)
            at = self.now - timedelta(seconds=lag)
        if self.is_blind:
            sees = {"empty": _sees_nothing, "half": _sees_half, "details": None}[
                self.scenario.blind
            ]
        return CURRENT_VIEW if at is None and sees is None else ServerView(at, sees)

    def _served_at(self) -> datetime:
        """Return the time that dates a response: its `Date`, or else the connector's clock."""
        return (
            self.server_now().replace(microsecond=0)
            if self.scenario.has_date
            else self.connector_now()
        )

    def list_page(self, page: int, sort: str | None, order: str) -> Page[Resource]:
        """Serve one list page. Raises `ServerFailed` or `NoAnswer` by chance."""
        self._step_clock()
        sent_at = self._send_request()
        answer = self.server.list_page(page, sort, order, self._draw_view(is_list=True))
        served_at = self._served_at()
        self._receive_answer()
        total = answer.total
        if self._draw_fault(self.scenario.huge_share):
            total = self.chance.choice(HUGE_TOTALS)
        return Page(
            items=tuple(_with_date(each, served_at) for each in answer.items),
            page=answer.page,
            per_page=answer.per_page,
            total=total,
            total_pages=-(-total // answer.per_page),
            served_at=served_at if self.scenario.has_date else None,
            round_trip_seconds=(self.now - sent_at).total_seconds(),
            received_at=self.connector_now(),
        )

    def read_detail(self, id: str) -> Outcome:
        """Serve one detail. A response with another record counts as unreadable."""
        scenario = self.scenario
        try:
            self._send_request()
            record = self.server.read_detail(id, self._draw_view(is_list=False))
            served_at = self._served_at()
            self._receive_answer()
        except (ServerFailed, NoAnswer) as error:
            return UnreadableDetail(error.code)
        is_denied = self._draw_fault(scenario.false_gone_share)
        if record is None or is_denied or (self.is_blind and scenario.blind == "details"):
            return DeletionProof(served_at)
        if self._draw_fault(scenario.crossed_share):
            record = (
                self.server.read_detail(self.chance.choice(sorted(self.server.created_at)))
                or record
            )
        if misfit_of_id(id, record.raw) is not None:
            return UnreadableDetail(UnreadableAnswer.code)
        return FoundDetail(record, served_at)


def _with_date(item: Resource, served_at: datetime) -> Resource:
    """Return the list item dated with the time of its response."""
    return type(item)(item.raw, is_item=True, served_at=served_at)


def _sees_nothing(id: str) -> bool:
    """Return False for every id: a key that sees no record."""
    return False


def _sees_half(id: str) -> bool:
    """Return True for half of all ids: a key that sees every second record."""
    return int(id, 16) % 2 == 0

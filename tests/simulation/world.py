"""A world of one seed: records that change while time passes, and a server that answers as the
scenario has it.

Everything that chance decides is drawn from the seed. There are three clocks: the true one,
the server's (which may step) and the connector's own (which may be wrong).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from connector.catalog.resource import Page, Resource
from connector.client.answer_fit import misfit_of_id
from connector.errors_api import NoAnswer, ServerFailed, UnreadableAnswer
from connector.warehouse.pull_commands import DeletionProof, FoundDetail, Outcome, UnreadableDetail
from tests.simulation.churn import WorldChanges
from tests.simulation.harness import LateWrite, WorldClock
from tests.simulation.scenario import PullScenario
from tests.simulation.twin import WHOLE, ServerView, StoreServer, TwinServer

WARM_SECONDS = 7200.0
ANSWER_SECONDS = 0.02
HUGE_TOTALS = (300, 1_000, 100_000, 20_000_000, 10**12)


class PullWorld(WorldClock):
    """The API's side of one run.

    `is_busy`: people work. `is_faulty`: requests go wrong as the scenario says. `is_blind`: the
    key has lost sight of records. `requests` counts what was sent.
    """

    def __init__(
        self, seed: int, scenario: PullScenario, *, through: Literal["twin", "store"] = "twin"
    ) -> None:
        super().__init__(scenario.own_clock_ahead)
        self.chance = random.Random(seed)
        self.scenario = scenario
        self.is_busy = self.is_faulty = self.is_blind = False
        self.requests = 0
        self._late: list[LateWrite] = []
        self._mutation_at: datetime | None = None
        served = random.Random(seed + 1)
        self.server: TwinServer | StoreServer
        if through == "store":
            self.server = StoreServer(scenario, self.server_now, served)
        else:
            self.server = TwinServer(scenario, lambda: self.now, served)
        self.server.interlude = lambda: self.pass_time(0.05)
        self.churn = WorldChanges(
            scenario, self.server, self.chance,
            now=self.server_now, advance=self._advance, later=self._postpone,
        )  # fmt: skip
        for _ in range(scenario.records):
            self.churn.create(is_late_allowed=False)
            if (
                self.chance.random() > scenario.tied_share
            ):  # Otherwise the next one shares its stamp.
                self.pass_time(self.chance.expovariate(1.0))
        # So that the order of changes is not the order of creation.
        for _ in range(scenario.records // 2):
            self.pass_time(self.chance.expovariate(1.0))
            self.churn.update(is_late_allowed=False)
        self.pass_time(WARM_SECONDS)

    # -- time -------------------------------------------------------------------------------------

    def _advance(self, by: timedelta) -> None:
        self.now += by

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with what people do in it if the world is busy, and what they did
        becoming visible when it is due.
        """
        end = self.now + timedelta(seconds=seconds)
        while self.is_busy:
            # What happens next does not depend on how long nothing has.
            at = self._mutation_at or self._drawn_mutation()
            if at > end:
                break
            self._mutation_at = None
            self._commit_late(at)
            self.now = max(self.now, at)
            self.churn.mutate()
        if not self.is_busy:
            self._mutation_at = None
        if self._late:
            self._commit_late(end)
        self.now = max(self.now, end)

    def _drawn_mutation(self) -> datetime:
        wait = self.chance.expovariate(self.scenario.mutations_per_second)
        self._mutation_at = self.now + timedelta(seconds=wait)
        return self._mutation_at

    def _commit_late(self, until: datetime) -> None:
        """Everything due, each at its own moment."""
        for each in sorted(self._late, key=lambda late: (late.due, late.id)):
            if each.due <= until:
                self._late.remove(each)
                self.now = max(self.now, each.due)
                each.commit()

    def _postpone(self, seconds: float, id: str, commit: Callable[[], None]) -> None:
        self._late.append(LateWrite(self.now + timedelta(seconds=seconds), id, commit))

    def settle(self) -> None:
        """Nobody works and nothing goes wrong any more; what is late becomes visible."""
        self.is_busy = self.is_faulty = self.is_blind = False
        self.pass_time(self.scenario.quiet_seconds)
        assert not self._late

    # -- requests ---------------------------------------------------------------------------------

    def _happens(self, share: float) -> bool:
        return self.is_faulty and share > 0 and self.chance.random() < share

    def _send(self) -> datetime:
        """Let a request reach the server; returns when it was sent.

        Raises what the client raises once its own tries are used up.
        """
        scenario = self.scenario
        self.requests += 1
        if self._happens(scenario.limited_share):
            self.pass_time(self.chance.random() * 60)
        sent_at = self.now
        self.pass_time(0.05 + self.chance.random() * 0.2)
        if self._happens(scenario.error_share):
            raise ServerFailed("The server failed.", status=503)
        return sent_at

    def _step_clock(self) -> None:
        """Set the server's clock, now and then: only where a list shows it (docs/PULL.md)."""
        scenario = self.scenario
        if self._happens(scenario.clock_step_share):
            steps = (-1, 1) if not self._step else (0,)
            self._step = timedelta(seconds=scenario.clock_step_seconds) * self.chance.choice(steps)

    def _receive(self) -> None:
        """Let an answer arrive, or lose it."""
        self.pass_time(ANSWER_SECONDS)
        if self._happens(self.scenario.drop_share):
            raise NoAnswer("the request", "no whole answer in time")

    def _sight(self, *, is_list: bool) -> ServerView:
        """Draw the state that the next answer is made from."""
        at = sees = None
        if self.scenario.lag_seconds_max and not (is_list and self.scenario.lists_are_fresh):
            least, most = self.scenario.lag_seconds_min, self.scenario.lag_seconds_max
            lag = least + self.chance.random() * (most - least)
            at = self.now - timedelta(seconds=lag)
        if self.is_blind:
            sees = {"empty": _nothing, "half": _half, "details": None}[self.scenario.blind]
        return WHOLE if at is None and sees is None else ServerView(at, sees)

    def _served_at(self) -> datetime:
        """Return the time that dates an answer: its `Date`, or the connector's clock."""
        return (
            self.server_now().replace(microsecond=0) if self.scenario.has_date else self.own_now()
        )

    def list(self, page: int, sort: str | None, order: str) -> Page[Resource]:
        """One page, some time later. Raises `ServerFailed` or `NoAnswer`."""
        self._step_clock()
        sent_at = self._send()
        answer = self.server.page(page, sort, order, self._sight(is_list=True))
        served_at = self._served_at()
        self._receive()
        total = answer.total
        if self._happens(self.scenario.huge_share):
            total = self.chance.choice(HUGE_TOTALS)
        return Page(
            items=tuple(_dated(each, served_at) for each in answer.items),
            page=answer.page,
            per_page=answer.per_page,
            total=total,
            total_pages=-(-total // answer.per_page),
            served_at=served_at if self.scenario.has_date else None,
            round_trip_seconds=(self.now - sent_at).total_seconds(),
            received_at=self.own_now(),
        )

    def read(self, id: str) -> Outcome:
        """One record's detail, some time later; another one's is as good as none."""
        scenario = self.scenario
        try:
            self._send()
            record = self.server.detail(id, self._sight(is_list=False))
            served_at = self._served_at()
            self._receive()
        except (ServerFailed, NoAnswer) as error:
            return UnreadableDetail(error.code)
        is_denied = self._happens(scenario.false_gone_share)
        if record is None or is_denied or (self.is_blind and scenario.blind == "details"):
            return DeletionProof(served_at)
        if self._happens(scenario.crossed_share):
            record = self.server.detail(self.chance.choice(sorted(self.server.born))) or record
        if misfit_of_id(id, record.raw) is not None:
            return UnreadableDetail(UnreadableAnswer.code)
        return FoundDetail(record, served_at)


def _dated(item: Resource, served_at: datetime) -> Resource:
    return type(item)(item.raw, is_item=True, served_at=served_at)


def _nothing(id: str) -> bool:
    return False


def _half(id: str) -> bool:
    return int(id, 16) % 2 == 0

"""One run of one scenario and seed: busy pulls, then quiet ones, and the verdict."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from typing import Literal

from connector.pulls.verification_pass import DETAILS_PER_WINDOW
from tests.simulation.account import life
from tests.simulation.checkers import differences, judge, quiet_requests, quiet_requests_due
from tests.simulation.harness import Trace, Verdict, collect_failures
from tests.simulation.history import backward, landing, untrue
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import PullScenario, scenario_of
from tests.simulation.twin import TwinServer
from tests.simulation.world import PullWorld

REQUESTS_PER_RECORD_MAX = 12
"""A pull that sends more requests than this for each record that there ever was does not end."""

MODULE = "tests.simulation"
"""Module whose command replays a run."""

IDS_SHOWN_MAX = 6

ACCOUNT = "account"
"""The scenario that plays a whole account, with erasures, undo, lost files and restores."""

ANOMALIES = frozenset(("late", "silent"))
"""Events that tell of writes that the API's own dates could not show."""

BLIND_PULLS = (3, 4)
"""The pulls of a run during which the key has lost sight of records, where the scenario says so."""


def run(
    name: str,
    seed: int,
    *,
    scenario: PullScenario | None = None,
    through: Literal["twin", "store"] = "twin",
    trace: Trace | None = None,
    lands: bool = False,
) -> Verdict:
    """Run the scenario of that name (or another under that name) with that seed; it `lands` in a
    real warehouse as well, if asked.
    """
    if name == ACCOUNT:
        wrong, requests = life(seed, trace)
        figures = Counter(requests=requests)
        return Verdict(MODULE, name, seed, [wrong] if wrong else [], figures)
    world = PullWorld(seed, scenario or scenario_of(name), through=through)
    mirror = Mirror(world, judge=judge)
    with landing(world.server) if lands else nullcontext() as landed:
        if landed is not None:
            mirror.histories.append(landed)
        return _run(mirror, Verdict(MODULE, name, seed), trace)


def _run(mirror: Mirror, verdict: Verdict, trace: Trace | None) -> Verdict:
    world = mirror.world
    mirror.trace = world.server.told = trace
    with collect_failures(verdict.wrong):
        _busy(world, mirror, verdict)
        world.settle()
        _say(trace, "quiet")
        _quiet(mirror, verdict)
        verdict.wrong += _untrue_histories(mirror)
    verdict.figures["requests"] = world.requests
    verdict.figures["unproven"] = int(verdict.reason is not None)
    verdict.figures["anomalies"] = sum(each.kind in ANOMALIES for each in mirror.events)
    return verdict


def _untrue_histories(mirror: Mirror) -> list[str]:
    """Return the versions that contradict the world's history, if its answers can be dated."""
    server, (remembered, *others) = mirror.world.server, mirror.histories
    wrong = ["history: the warehouse keeps another"] * any(
        each.chains != remembered.chains for each in others
    )
    if ids := backward(remembered.chains):
        wrong.append(f"history runs backwards: {_shown(ids)}")
    if isinstance(server, TwinServer) and mirror.world.scenario.dates_answers:
        found = untrue(server, remembered.chains)
        wrong += [f"history, {what}: {_shown(ids)}" for what, ids in found.items()]
    return wrong


def _shown(ids: set[str]) -> str:
    """Format the number of ids, and the first of them."""
    return f"{len(ids)} ({' '.join(sorted(ids)[:IDS_SHOWN_MAX])})"


def _say(trace: Trace | None, what: str) -> None:
    if trace is not None:
        trace(f"--- {what}")


def _busy(world: PullWorld, mirror: Mirror, verdict: Verdict) -> None:
    for number in range(1, world.scenario.pulls + 1):
        world.is_busy = world.is_faulty = True
        # The first pull is cut short as often as the others, but from the start it sees all.
        world.is_blind = world.scenario.blind != "none" and number in BLIND_PULLS
        world.pass_time(world.chance.random() * world.scenario.pause_seconds_max)
        _say(mirror.trace, f"busy pull {number}{', blind' if world.is_blind else ''}")
        buried = {id for id, row in mirror.rows.items() if row.is_deleted}
        mirror.requests_max = REQUESTS_PER_RECORD_MAX * (len(world.server.born) + 60)
        ended = mirror.pull()
        verdict.figures["busy unproven"] += ended.pulled is None or not ended.pulled.is_proven
        if world.is_blind:
            _check_no_tombstones(world, mirror, buried, verdict)


def _check_no_tombstones(
    world: PullWorld, mirror: Mirror, before: set[str], verdict: Verdict
) -> None:
    """A key that lost sight of records is no evidence that they are gone."""
    buried = {id for id, row in mirror.rows.items() if row.is_deleted and id in world.server.born}
    if falsely := buried - before:
        verdict.wrong.append(f"blind: tombstones of {_shown(falsely)}")


def scrub_bound(mirror: Mirror) -> int:
    """The pulls after which a scrub has looked at everything once, windows and details."""
    scenario, rows = mirror.world.scenario, len(mirror.rows)
    windows = scenario.verification_requests // (DETAILS_PER_WINDOW + 1)
    details = scenario.verification_requests - windows
    return max(-(-rows // details), -(-rows // (scenario.per_page_max * windows)))


def _quiet(mirror: Mirror, verdict: Verdict) -> None:
    scenario = mirror.world.scenario
    mirror.requests_max = REQUESTS_PER_RECORD_MAX * (len(mirror.world.server.born) + 60)
    ended = mirror.pull()
    if scenario.verification_requests:
        mirror.options = replace(
            mirror.options, verification_requests=scenario.verification_requests
        )
        for _ in range(scrub_bound(mirror)):
            mirror.world.pass_time(60)
            ended = mirror.pull()
        mirror.options = replace(mirror.options, verification_requests=0)
    assert ended.error is None, ended.error
    assert ended.pulled is not None, "a quiet pull was cut short"
    verdict.reason = ended.pulled.reason
    found = differences(mirror)
    if scenario.promise == "exact" or ended.pulled.is_proven:
        verdict.wrong += [f"{promise}: {_shown(ids)}" for promise, ids in found.items()]
    if scenario.promise == "exact" and not found:
        if not ended.pulled.is_proven:
            verdict.wrong.append(f"not proven: {ended.pulled.reason}")
        elif mirror.world.server.declaration.sortable:
            sent, due = quiet_requests(mirror), quiet_requests_due(mirror)
            if sent != due:
                verdict.wrong.append(f"cost: a quiet pull sent {sent} requests, {due} are due")
            verdict.wrong += [f"{each}, quiet" for each in differences(mirror)]

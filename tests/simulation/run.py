"""One run of a scenario with a seed: busy pulls, then quiet pulls, and the verdict."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from tests.simulation.checkers import (
    check_commit,
    count_requests_of_quiet_pull,
    expected_requests_of_quiet_pull,
    find_differences,
)
from tests.simulation.harness import Trace, Verdict, collect_failures
from tests.simulation.history import (
    find_false_versions,
    find_overlapping_versions,
    open_warehouse_copy,
)
from tests.simulation.mirror import Mirror
from tests.simulation.scenario import PullScenario, get_scenario
from tests.simulation.world import PullWorld

REQUESTS_PER_RECORD_MAX = 12
"""Requests per record after which a pull counts as endless."""

MODULE = "tests.simulation"
"""Module whose command replays a run."""

IDS_SHOWN_MAX = 6

BLIND_PULLS = (3, 4)
"""Pulls of a run during which the key sees fewer records, in scenarios with `blind`."""


def run(
    name: str,
    seed: int,
    *,
    scenario: PullScenario | None = None,
    trace: Trace | None = None,
    with_warehouse: bool = False,
) -> Verdict:
    """Run a scenario with a seed, and return the verdict.

    Args:
        name: Name of the scenario.
        seed: Seed of every random decision.
        scenario: Scenario to run instead of the one with that name.
        trace: Receives a line for each step.
        with_warehouse: Keep the history in a real warehouse, too.
    """
    world = PullWorld(seed, scenario or get_scenario(name))
    mirror = Mirror(world, check_commit=check_commit)
    with open_warehouse_copy(world.server) if with_warehouse else nullcontext() as landed:
        mirror.landed = landed
        return _play(mirror, Verdict(MODULE, name, seed), trace)


def _play(mirror: Mirror, verdict: Verdict, trace: Trace | None) -> Verdict:
    """Run busy and quiet pulls, and fill in the verdict."""
    world = mirror.world
    mirror.trace = world.server.trace = trace
    with collect_failures(verdict.wrong):
        _run_busy_pulls(world, mirror, verdict)
        world.become_quiet()
        _trace_heading(trace, "quiet")
        _run_quiet_pulls(mirror, verdict)
        verdict.wrong += _find_history_errors(mirror)
    verdict.figures["requests"] = world.requests
    verdict.figures["unproven"] = int(verdict.reason is not None)
    verdict.figures["anomalies"] = sum(each.kind == "late" for each in mirror.events)
    return verdict


def _find_history_errors(mirror: Mirror) -> list[str]:
    """Return a line for each kind of error in the stored histories.

    Versions are compared with the server's true history only if its responses can be dated.
    """
    server, remembered, landed = mirror.world.server, mirror.history, mirror.landed
    wrong = list[str]()
    if landed is not None and landed.chains != remembered.chains:
        wrong.append("history: the warehouse keeps another")
    if landed is not None and landed.bookmark != mirror.bookmark:
        wrong.append("bookmark: the warehouse keeps another")
    if ids := find_overlapping_versions(remembered.chains):
        wrong.append(f"history runs backwards: {_format_ids(ids)}")
    if mirror.world.scenario.is_date_exact:
        found = find_false_versions(server, remembered.chains)
        wrong += [f"history, {what}: {_format_ids(ids)}" for what, ids in found.items()]
    return wrong


def _format_ids(ids: set[str]) -> str:
    """Format the number of ids, and the first of them."""
    return f"{len(ids)} ({' '.join(sorted(ids)[:IDS_SHOWN_MAX])})"


def _trace_heading(trace: Trace | None, what: str) -> None:
    """Pass a heading to `trace`, if there is one."""
    if trace is not None:
        trace(f"--- {what}")


def _run_busy_pulls(world: PullWorld, mirror: Mirror, verdict: Verdict) -> None:
    """Pull while records change and requests fail."""
    for number in range(1, world.scenario.pulls + 1):
        world.is_busy = world.is_faulty = True
        # The first pull is killed as often as the others, but it sees all records.
        world.is_blind = world.scenario.blind != "none" and number in BLIND_PULLS
        world.pass_time(world.chance.random() * world.scenario.pause_seconds_max)
        _trace_heading(mirror.trace, f"busy pull {number}{', blind' if world.is_blind else ''}")
        buried = {id for id, row in mirror.rows.items() if row.is_deleted}
        mirror.requests_max = REQUESTS_PER_RECORD_MAX * (len(world.server.created_at) + 60)
        ended = mirror.pull()
        verdict.figures["busy unproven"] += ended.pulled is None or not ended.pulled.is_proven
        if world.is_blind:
            _check_blind_pull(world, mirror, buried, verdict)


def _check_blind_pull(world: PullWorld, mirror: Mirror, before: set[str], verdict: Verdict) -> None:
    """Add to the verdict the existing records that a pull marked as deleted because its key lost
    access.

    `before` are the ids that were marked as deleted before the pull.
    """
    buried = {
        id for id, row in mirror.rows.items() if row.is_deleted and id in world.server.created_at
    }
    if falsely := buried - before:
        verdict.wrong.append(f"blind: tombstones of {_format_ids(falsely)}")


def count_pulls_to_verify_all(mirror: Mirror) -> int:
    """Return the number of pulls in which re-verification reads every record once."""
    return -(-len(mirror.rows) // mirror.world.scenario.verification_requests)


def _run_quiet_pulls(mirror: Mirror, verdict: Verdict) -> None:
    """Pull without changes or faults; add what is not exact, proven or cheap to the verdict."""
    scenario = mirror.world.scenario
    mirror.requests_max = REQUESTS_PER_RECORD_MAX * (len(mirror.world.server.created_at) + 60)
    ended = mirror.pull()
    if scenario.verification_requests:
        mirror.options = replace(
            mirror.options, verification_requests=scenario.verification_requests
        )
        for _ in range(count_pulls_to_verify_all(mirror)):
            mirror.world.pass_time(60)
            ended = mirror.pull()
        mirror.options = replace(mirror.options, verification_requests=0)
    assert ended.error is None, ended.error
    assert ended.pulled is not None, "a quiet pull was cut short"
    verdict.reason = ended.pulled.reason
    found = find_differences(mirror)
    if scenario.promise == "exact" or ended.pulled.is_proven:
        verdict.wrong += [f"{promise}: {_format_ids(ids)}" for promise, ids in found.items()]
    if scenario.promise == "exact" and not found:
        if not ended.pulled.is_proven:
            verdict.wrong.append(f"not proven: {ended.pulled.reason}")
        elif mirror.world.server.declaration.sortable:
            sent, due = (
                count_requests_of_quiet_pull(mirror),
                expected_requests_of_quiet_pull(mirror),
            )
            if sent != due:
                verdict.wrong.append(f"cost: a quiet pull sent {sent} requests, {due} are due")
            verdict.wrong += [f"{each}, quiet" for each in find_differences(mirror)]

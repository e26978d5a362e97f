"""One play of a scenario with a seed: processes push a file until it is finished, with checks after
every commit. Then the file is pushed again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

from connector.pushes.row import done_outcome
from connector.sandbox.seed import LEAD_STATUSES
from connector.state.journal import Plan
from connector.state.row import Policy, Row
from tests.simulation.harness import BrokenPromise, Trace, Verdict, collect_failures
from tests.simulation.push.chance import Chance
from tests.simulation.push.checkers import PushChecks
from tests.simulation.push.pusher import MemoryDatabase, ProcessKilled, PushProcess, reverse_rows
from tests.simulation.push.scenario import SCENARIOS, PushScenario
from tests.simulation.push.world import PushWorld

MODULE = "tests.simulation.push"
"""Module whose command replays a run."""

BUSY_PROCESSES = 6
"""Processes with faults, each of which may be killed."""

REPLAYED = 8
"""One play in this number really sends its file again."""

QUIET_PROCESSES = 4
"""Processes without faults after which no row may be unfinished."""


def run(
    name: str, seed: int, *, scenario: PushScenario | None = None, trace: Trace | None = None
) -> Verdict:
    """Play a scenario with a seed. `scenario` replaces the one with that name."""
    verdict = Verdict(MODULE, name, seed)
    world = PushWorld(seed, scenario or SCENARIOS[name], Chance(f"{name} {seed}"))
    world.trace = trace
    play_plan(world, verdict, draw_plan(world, world.chance))
    return verdict


def play_plan(world: PushWorld, verdict: Verdict, plan: Plan) -> None:
    """Push the plan in the world, and add broken promises and figures to the verdict."""
    with collect_failures(verdict.wrong):
        try:
            PushPlay(world, verdict, plan).run()
        except sqlite3.IntegrityError as error:
            # The tables enforce P2, too.
            raise BrokenPromise("P2", str(error)) from error
    verdict.figures["writes"], verdict.figures["reads"] = len(world.log), world.reads


class PushPlay:
    """One play: the processes that push a plan, their state, and the checks."""

    def __init__(self, world: PushWorld, verdict: Verdict, plan: Plan) -> None:
        self.world, self.chance, self.scenario = world, world.chance, world.scenario
        self.database = MemoryDatabase()
        self.checks = PushChecks(world, self.database)
        self._verdict, self._processes = verdict, 0
        self.policy = Policy()
        self.plan = plan

    def run(self) -> None:
        """Push with faults, finish without faults, and check the result.

        Raises:
            BrokenPromise: A promise is broken.
        """
        batches = self._push_with_faults(self.plan)
        if self.scenario.other_file:
            other = reverse_rows(self.plan, "digest-b")
            for row in other.rows if self.scenario.fewer_fields else ():
                row.fields = {name: each for name, each in row.fields.items() if name != "city"}
            batches += self._push_with_faults(other)
        if self.scenario.again:
            self.policy = replace(self.policy, resend=True)
            batches += self._push_with_faults(self.plan)
        self.world.apply_late_writes()
        batches = list(dict.fromkeys(batches))
        self._finish_batches(batches)
        if self.scenario.person:
            self._decide_held_rows()
            self._finish_batches(batches)
        self.world.apply_late_writes()
        self._check_end(batches)
        self._check_second_push()

    def _push_with_faults(self, plan: Plan) -> list[str]:
        """Push until a process survives or `BUSY_PROCESSES` were started. Return the batch IDs."""
        batches = []
        for _ in range(BUSY_PROCESSES):
            self.world.is_faulty = True
            process = self._start_process()
            try:
                batches.append(process.push(plan, self.policy, self.landed_ids()))
                break
            except ProcessKilled:
                self._verdict.figures["kills"] += 1
                batches += [each.batch for each in process.journal.batches()]
                self.world.pass_time(self.chance.pause(400))
        return batches

    def _finish_batches(self, batches: list[str]) -> None:
        """Resume the batches without faults until no row is unfinished."""
        self.world.is_faulty = False
        for _ in range(QUIET_PROCESSES):
            process = self._start_process()
            for batch in batches:
                process.resume(batch)
            if not any(
                row.state in ("planned", "sent") and row.code != "in_doubt_elsewhere"
                for batch in batches
                for row in process.journal.rows(batch)
            ):
                break

    def _decide_held_rows(self) -> None:
        """Make a random user decision on every held row."""
        process = self._start_process()
        for row in process.journal.unconfirmed():
            match self.chance.pick(4):
                case 0:
                    row.state, row.problems = "sent", ()
                case 1:
                    row.end("refused", "not_sent", "dropped")
                case 2:
                    self.checks.resent.add(row.key)
                    row.state, row.problems = "planned", ()
                case _:
                    row.record_id = row.record_id or "chosen"
                    self.checks.decided.add(row.key)
                    row.end("done", done_outcome(row), "declared")
            process.save(row)

    def _check_end(self, batches: list[str]) -> None:
        """Run the final checks, and count the outcomes in the verdict."""
        checks = self.checks
        journal = self._start_process().journal
        for batch in batches:
            rows = tuple(journal.rows(batch))
            numbers = {row.number for row in self.plan.rows}
            checks.check_every_row_has_one_outcome(rows, numbers)
            if not self.scenario.person:
                checks.check_outcomes(rows)
            for row in rows:
                self._verdict.figures[row.outcome] += 1
        checks.check_nothing_is_created_twice()
        checks.check_attempts_arrive_once()
        if self.scenario.edited:
            self._check_edited_rows(tuple(journal.rows(batches[0])))

    def _check_edited_rows(self, rows: tuple[Row, ...]) -> None:
        """Check that a row whose fields others changed is a conflict and is not sent."""
        tasks = {row.number: row for row in self.plan.rows}
        for row in rows:
            task = tasks[row.number]
            touched = {name for name, _ in self.world.edited.get(task.record_id or "", ())}
            if touched & task.fields.keys() and row.outcome not in ("conflict", "duplicate"):
                raise BrokenPromise("conflict", f"row {row.number} is {row.outcome}")
            if row.outcome == "conflict" and row.attempts:
                raise BrokenPromise("conflict", f"row {row.number} was sent")

    def _check_second_push(self) -> None:
        """P6: check that pushing the file again sends no applied or open row.

        One play in `REPLAYED` really sends the file; the others check which rows would be sent.
        """
        self.policy = replace(self.policy, resend=False)
        before = len(self.world.log)
        process = self._start_process()
        known = process.journal.earlier(self.checks.read_fingerprints().values())
        if self._verdict.seed % REPLAYED == 0:
            batch = process.push(self.plan, self.policy, self.landed_ids())
            written = {write.key for write in self.world.log[before:]}
        else:
            batch = process.begin(self.plan, self.policy, frozenset())
            written = {row.key for row in process.journal.rows(batch) if row.state == "planned"}
        prints = self.checks.read_fingerprints()
        for key in written:
            done = known.get(prints[key])
            # An update is sent again if its record changed after it.
            if key[0] == batch and done is not None and done.operation != "update":
                raise BrokenPromise("P6", f"row {key[1]} was written again")
        self.checks.check_attempts_arrive_once()

    def landed_ids(self) -> frozenset[str]:
        """Return the ids of other users' records that existed before the first push."""
        if not self._processes:
            return frozenset()
        return frozenset(
            id
            for id, maker in self.world.made_by.items()
            if maker is None and id in self._landed_first
        )

    def _start_process(self) -> PushProcess:
        """Return a new process, whose commits are checked."""
        if not self._processes:
            self._landed_first = frozenset(self.world.made_by)
        self._processes += 1
        return PushProcess(
            self.world,
            self.database,
            f"run-{self._processes}",
            lambda _, key: self.checks.check_commit(key),
        )


# -- files ----------------------------------------------------------------------------------------


def draw_plan(world: PushWorld, chance: Chance) -> Plan:
    """Return a random plan of a few rows, some of them equal or about the same record."""
    scenario, tasks = world.scenario, list[Row]()
    least, most = scenario.rows
    # An existing record that resembles the one that the first row creates.
    if chance.happens(0.3):
        world.insert_as_other_user(_make_fields(world, 2))
        world.pass_time(30)
    for number in range(2, 2 + least + chance.pick(most - least + 1)):
        if tasks and chance.happens(scenario.repeats):
            model = tasks[chance.pick(len(tasks))]
            changed = dict(model.fields)
            if model.operation == "create" and "city" in changed:
                match chance.pick(3):
                    case 0:
                        changed["city"] = f"Otherville {number}"
                    case 1:
                        # A record of the complete row would match this row, too.
                        del changed["city"]
            tasks.append(replace(model, number=number, fields=changed))
        else:
            tasks.append(_draw_task(world, chance, number))
    world.pass_time(chance.pause(600))
    if scenario.edited:
        for task in tasks:
            if task.record_id is not None and chance.happens(0.5):
                world.edit_as_other_user(task.record_id)
    return Plan(scenario.resource, "upsert", "file.csv", "digest-a" + "0" * 56, tasks)


def _draw_task(world: PushWorld, chance: Chance, number: int) -> Row:
    """Return a random row. For an update or a conversion, its record is created first."""
    operations = world.scenario.operations
    operation = operations[chance.pick(len(operations))]
    fields = _make_fields(world, number)
    if operation in ("create", "afterwards"):
        if chance.happens(0.1):
            fields[_REFUSED[world.scenario.resource][0]] = _REFUSED[world.scenario.resource][1]
        identity = {
            n: fields[n]
            for n in _IDENTITY[world.scenario.resource]
            if chance.happens(world.scenario.identified)
        }
        return Row(
            number,
            world.scenario.resource,
            "create",
            world.parent,
            fields,
            {"status": "screening"} if operation == "afterwards" else {},
            identity=identity,
        )
    id = world.insert_as_other_user(fields)
    record = world.store.records(world.scenario.resource)[id]
    if operation == "convert":
        return Row(number, world.scenario.resource, "convert", record_id=id)
    wanted = dict(_WANTED[world.scenario.resource])
    if chance.happens(0.2):
        wanted = {name: record[name] for name in wanted}
    return Row(
        number,
        world.scenario.resource,
        "update",
        world.parent,
        wanted,
        base={name: record[name] for name in wanted},
        record_id=id,
    )


def _make_fields(world: PushWorld, number: int) -> dict[str, Any]:
    """Return valid fields of a row with this number."""
    match world.scenario.resource:
        case "candidates":
            return {
                "first_name": " Ann",
                "last_name": "Lee",
                "email": f"Ann{number}@example.com",
                "employment_type": "permanent",
                "phone": "" if number % 3 == 0 else f"+44 20 {number:04d}",
                "city": "Leeds",
                "expected_salary": 50000 + number,
                "available_from": "2026-03-01",
            }
        case "leads":
            return {
                "email": f"lead{number}@example.com",
                "lead_status_id": LEAD_STATUSES[0],
                "company_name": f"Company {number}",
                "phone": "020 1",
            }
        case "content_items":
            return {
                "title": f"News {number}",
                "slug": f"news-{number}",
                "status": "draft",
                "fields": {"body": f"Text {number}", "kind": "a"},
            }


_IDENTITY = {"candidates": ("email",), "leads": ("email",), "content_items": ("slug",)}
_REFUSED = {
    "candidates": ("employment_type", "never"),
    "leads": ("email", "no email"),
    "content_items": ("status", "never"),
}
_WANTED: dict[str, dict[str, Any]] = {
    "candidates": {"phone": "+44 1", "city": "York"},
    "leads": {"phone": "+44 1", "company_name": "Renamed"},
    "content_items": {"title": "New title", "fields": {"body": "New text"}},
}

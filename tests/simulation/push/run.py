"""One play of one scenario and seed: a file pushed by process after process until it has ended,
judged on the way, then pushed once more.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from connector.ledger import journal as journal_module
from connector.ledger.journal_records import UNFINISHED, RowRecord, Transition
from connector.ledger.push_plan import PushPlan, PushPolicy
from connector.ledger.push_states import Task
from connector.sandbox.random_values import LEAD_STATUSES
from tests.simulation.harness import Broken, Trace, Verdict, collect_failures
from tests.simulation.push.chance import Chance, RandomChance
from tests.simulation.push.checkers import PushChecks
from tests.simulation.push.pusher import MemoryLedger, ProcessKilled, PushProcess, renumbered
from tests.simulation.push.scenario import SCENARIOS, PushScenario
from tests.simulation.push.world import PushWorld

MODULE = "tests.simulation.push"
"""Module whose command replays a run."""

BUSY_PROCESSES = 6
"""Processes that may die before things go quiet."""

REPLAYED = 8
"""Of so many plays one sends its file once more in earnest."""

QUIET_PROCESSES = 4
"""Processes in quiet times after which nothing may be left to do."""


def run(
    name: str, seed: int, *, scenario: PushScenario | None = None, trace: Trace | None = None
) -> Verdict:
    """Play the scenario of that name (or another under that name) with that seed."""
    verdict = Verdict(MODULE, name, seed)
    world = PushWorld(seed, scenario or SCENARIOS[name], RandomChance(f"{name} {seed}"))
    world.told = trace
    # Files of a few rows have several portions then, as those of a million have.
    with patch.object(journal_module, "ROWS_AT_ONCE", 2):
        push_plan(world, verdict, draw_plan(world, world.chance))
    return verdict


def push_plan(world: PushWorld, verdict: Verdict, plan: PushPlan) -> None:
    """Push the plan in that world, and add to the verdict."""
    with collect_failures(verdict.wrong):
        try:
            PushPlay(world, verdict, plan).through()
        except sqlite3.IntegrityError as error:
            # The tables themselves enforce P2, if nothing else does.
            raise Broken("P2", str(error)) from error
    verdict.figures["writes"], verdict.figures["reads"] = len(world.log), world.reads


class PushPlay:
    """One play under way."""

    def __init__(self, world: PushWorld, verdict: Verdict, plan: PushPlan) -> None:
        self.world, self.chance, self.scenario = world, world.chance, world.scenario
        self.ledger = MemoryLedger()
        self.checks = PushChecks(world, self.ledger)
        self._verdict, self._processes = verdict, 0
        self.terms = PushPolicy(self.scenario.policy, marker_field=self.scenario.marker_field)
        self.plan = plan

    def through(self) -> None:
        """Play it to its end. Raises what is broken."""
        batches = self._busy(self.plan)
        if self.scenario.other_file:
            batches += self._busy(renumbered(self.plan, "digest-b"))
        if self.scenario.again:
            self.terms = replace(self.terms, resend=True)
            batches += self._busy(self.plan)
        self.world.finish()
        batches = list(dict.fromkeys(batches))
        self._quiet(batches)
        if self.scenario.person:
            self._settle_by_hand()
            self._quiet(batches)
        self.world.finish()
        self._judge_end(batches)
        self._replay()

    def _busy(self, plan: PushPlan) -> list[str]:
        """Push while things go wrong, until a process lives to its end or enough have died."""
        batches = []
        for _ in range(BUSY_PROCESSES):
            self.world.is_faulty = True
            process = self._pushing()
            try:
                batches.append(process.push(plan, self.terms, self.landed()))
                if not self.scenario.pulls:
                    break
            except ProcessKilled:
                self._verdict.figures["deaths"] += 1
                batches += [each.batch for each in process.journal.batches()]
                self.world.pass_time(self.chance.within(400))
            if self.scenario.pulls:
                with suppress(ProcessKilled):
                    self._pushing().settle()
        return batches

    def _quiet(self, batches: list[str]) -> None:
        """Nothing goes wrong any more: every batch is brought to its end."""
        self.world.is_faulty = False
        for _ in range(QUIET_PROCESSES):
            process = self._pushing()
            for batch in batches:
                process.resume(batch)
            if not any(
                row.state in UNFINISHED and row.code != "in_doubt_elsewhere"
                for batch in batches
                for row in process.journal.rows(batch)
            ):
                break

    def _settle_by_hand(self) -> None:
        """A person decides on every row that is held."""
        process = self._pushing()
        for row in process.journal.unconfirmed_rows():
            key = (row.batch, row.number)
            match self.chance.pick(4):
                case 0:
                    process.journal.record_transition(key, Transition("looked_again", "in_doubt"))
                case 1:
                    process.journal.record_transition(key, Transition("dropped", "dropped"))
                case 2:
                    self.checks.resent.add(key)
                    process.journal.record_transition(key, Transition("resent"))
                case _:
                    id = row.record_id or "chosen"
                    self.checks.settled.add(key)
                    process.journal.record_transition(
                        key, Transition("declared_applied", record_id=id)
                    )
            self.checks.judge(key)

    def _judge_end(self, batches: list[str]) -> None:
        checks = self.checks
        journal = self._pushing().journal
        for batch in batches:
            rows = tuple(journal.rows(batch))
            numbers = {task.number for task in self.plan.tasks}
            checks.p4_every_row_has_one_outcome(rows, numbers)
            if not self.scenario.person:
                checks.the_report_is_right(rows)
            for row in rows:
                self._verdict.figures[row.outcome] += 1
        checks.p5_nothing_is_created_twice()
        checks.p7_nothing_below_repeats_a_write()
        if self.scenario.edited:
            self._edited_rows_conflict(tuple(journal.rows(batches[0])))

    def _edited_rows_conflict(self, rows: tuple[RowRecord, ...]) -> None:
        """A field that others changed since the pull is a conflict, and is not sent."""
        tasks = {task.number: task for task in self.plan.tasks}
        for row in rows:
            task = tasks[row.number]
            touched = {name for name, _ in self.world.edited.get(task.record_id or "", ())}
            if touched & task.fields.keys() and row.outcome not in ("conflict", "duplicate"):
                raise Broken("conflict", f"row {row.number} is {row.outcome}")
            if (
                row.outcome == "conflict"
                and self.ledger.connection.execute(
                    "SELECT 1 FROM push_attempts WHERE batch = ? AND number = ?",
                    (row.batch, row.number),
                ).fetchone()
            ):
                raise Broken("conflict", f"row {row.number} was sent")

    def _replay(self) -> None:
        """P6: the same file again sends nothing for a row that was applied or is open. Every few
        plays it is really sent; what is left planned tells as much.
        """
        self.terms = replace(self.terms, resend=False)
        before = len(self.world.log)
        process = self._pushing()
        known = process.journal.find_earlier_rows(self.checks.fingerprints().values())
        if self._verdict.seed % REPLAYED == 0:
            batch = process.push(self.plan, self.terms, self.landed())
            written = {write.key for write in self.world.log[before:]}
        else:
            batch = process.journal.create_batch(self.plan, self.terms)
            rows = process.journal.rows(batch)
            written = {(row.batch, row.number) for row in rows if row.state == "planned"}
        prints = self.checks.fingerprints()
        for key in written:
            done = known.get(prints[key])
            # An update whose record was changed after it is a new one.
            if key[0] == batch and done is not None and done.operation != "update":
                raise Broken("P6", f"row {key[1]} was written again")
        self.checks.p7_nothing_below_repeats_a_write()

    def landed(self) -> frozenset[str]:
        """Return the ids of the records of others that were landed before the push."""
        if not self._processes:
            return frozenset()
        return frozenset(
            id
            for id, maker in self.world.made_by.items()
            if maker is None and id in self._landed_first
        )

    def _pushing(self) -> PushProcess:
        if not self._processes:
            self._landed_first = frozenset(self.world.made_by)
        self._processes += 1
        return PushProcess(
            self.world, self.ledger, f"run-{self._processes}", lambda _, key: self.checks.judge(key)
        )


# -- files ----------------------------------------------------------------------------------------


def draw_plan(world: PushWorld, chance: Chance) -> PushPlan:
    """A file of a few rows, of which some are the same, or about the same thing."""
    scenario, tasks = world.scenario, list[Task]()
    least, most = scenario.rows
    # Something that was there before, and looks like what the first row creates.
    if chance.yes(0.3):
        world.insert(_fields(world, 2))
        world.pass_time(30)
    for number in range(2, 2 + least + chance.pick(most - least + 1)):
        if tasks and chance.yes(scenario.repeats):
            model = tasks[chance.pick(len(tasks))]
            changed = dict(model.fields)
            if model.operation == "create" and "city" in changed:
                match chance.pick(3):
                    case 0:
                        changed["city"] = f"Otherville {number}"
                    case 1:
                        # A record of the whole row would pass for one of this.
                        del changed["city"]
            tasks.append(replace(model, number=number, fields=changed))
        else:
            tasks.append(_task(world, chance, number))
    world.pass_time(chance.within(600))
    if scenario.edited:
        for task in tasks:
            if task.record_id is not None and chance.yes(0.5):
                world.edit(task.record_id)
    return PushPlan(scenario.resource, "upsert", "file.csv", "digest-a" + "0" * 56, tuple(tasks))


def _task(world: PushWorld, chance: Chance, number: int) -> Task:
    operations = world.scenario.operations
    operation = operations[chance.pick(len(operations))]
    fields = _fields(world, number)
    if operation in ("create", "afterwards"):
        if chance.yes(0.1):
            fields[_REFUSED[world.scenario.resource][0]] = _REFUSED[world.scenario.resource][1]
        identity = {
            n: fields[n]
            for n in _IDENTITY[world.scenario.resource]
            if chance.yes(world.scenario.identified)
        }
        return Task(
            number=number,
            operation="create",
            resource=world.scenario.resource,
            fields=fields,
            parent=world.parent,
            afterwards={"status": "screening"} if operation == "afterwards" else {},
            identity=identity,
        )
    id = world.insert(fields)
    record = world.store.records(world.scenario.resource)[id]
    if operation == "convert":
        return Task(number, "convert", world.scenario.resource, {}, record_id=id)
    wanted = dict(_WANTED[world.scenario.resource])
    if chance.yes(0.2):
        wanted = {name: record[name] for name in wanted}
    return Task(
        number=number,
        operation="update",
        resource=world.scenario.resource,
        fields=wanted,
        parent=world.parent,
        record_id=id,
        base={name: record[name] for name in wanted},
    )


def _fields(world: PushWorld, number: int) -> dict[str, Any]:
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

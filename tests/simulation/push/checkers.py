"""What a play is judged by, each checker named for the obligation that it holds the push to.

P1 to P3 and P8 are judged at every commit of the journal and at every write; the others when all
is over, against the server's own log.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from connector.ledger.journal_records import RowKey, RowRecord
from connector.ledger.ledger_schema import OPEN
from connector.ledger.push_plan import fingerprint, task_from_json
from connector.ledger.push_states import IN_DOUBT, TERMINAL, State
from tests.simulation.harness import Broken
from tests.simulation.push.pusher import MemoryLedger
from tests.simulation.push.world import PushWorld, Write


class PushChecks:
    """Checks of a play. `resent` are the rows that a person sent again at their own risk."""

    def __init__(self, world: PushWorld, ledger: MemoryLedger) -> None:
        self.world, self.ledger = world, ledger
        self.resent: set[RowKey] = set()
        self.settled: set[RowKey] = set()
        self._ended: dict[RowKey, State] = {}
        self._checked = 0

    # -- at every commit --------------------------------------------------------------------------

    def judge(self, key: RowKey | None) -> None:
        """All that must hold at any moment."""
        self.p1_nothing_is_sent_that_is_not_written_down()
        self.p2_no_write_is_open_twice()
        self.p3_what_has_ended_stays_ended(key)

    def p1_nothing_is_sent_that_is_not_written_down(self) -> None:
        """P1 and P8: each write that reached the server is an attempt of the journal, with the very
        bytes of its body.
        """
        for write in self.world.log[self._checked :]:
            found = self.ledger.connection.execute(
                "SELECT body, method, path FROM push_attempts"
                " WHERE batch = ? AND number = ? AND attempt = ?",
                (*write.key, write.attempt),
            ).fetchone()
            if found is None:
                raise Broken("P1", f"{write.key} was sent without an intent")
            if found[0] != write.body or found[2] != write.path:
                raise Broken("P8", f"{write.key} was sent otherwise than written down")
        self._checked = len(self.world.log)

    def p2_no_write_is_open_twice(self) -> None:
        """P2: of one fingerprint at most one row is open."""
        found = self.ledger.connection.execute(
            f"SELECT fingerprint FROM push_rows WHERE {OPEN} GROUP BY 1 HAVING count(*) > 1"
        ).fetchall()
        if found:
            raise Broken("P2", f"{len(found)} writes are open twice")

    def p3_what_has_ended_stays_ended(self, key: RowKey | None) -> None:
        """P3: a terminal state is never left."""
        if key is None:
            return
        ((state,),) = self.ledger.connection.execute(
            "SELECT state FROM push_rows WHERE batch = ? AND number = ?", key
        ).fetchall()
        if key in self._ended and self._ended[key] != state:
            raise Broken("P3", f"{key} was {self._ended[key]} and is {state}")
        if state in TERMINAL:
            self._ended[key] = state

    # -- in the end -------------------------------------------------------------------------------

    def p4_every_row_has_one_outcome(self, rows: tuple[RowRecord, ...], numbers: set[int]) -> None:
        """P4: the outcomes are as many as the rows, each row's own; nothing is left unfinished."""
        if Counter(row.number for row in rows) != Counter(numbers):
            raise Broken("P4", f"{len(rows)} outcomes for {len(numbers)} rows")
        for row in rows:
            blocked = row.state == "planned" and row.code == "in_doubt_elsewhere"
            if row.state in ("intent", "unknown", "settling") or (
                row.state == "planned" and not blocked
            ):
                raise Broken("P4", f"row {row.number} is left {row.state}")

    def p5_nothing_is_created_twice(self) -> None:
        """P5: no row has made two records, nor have two rows of one fingerprint; a lead is
        converted once. Where a repeat was asked for, once for each time.
        """
        made: Counter[str] = Counter()
        allowed: Counter[str] = Counter()
        for key, print_ in self.fingerprints().items():
            effects = [w for w in self._effects(key) if w.operation in ("create", "convert")]
            made[print_] += len(effects)
            if key in self.resent:
                allowed[print_] += 3
        for print_, count in made.items():
            most = allowed[print_] + (2 if self.world.scenario.again else 1)
            if count > most:
                raise Broken("P5", f"one write had its effect {count} times")

    def p7_nothing_below_repeats_a_write(self) -> None:
        """P7: an attempt reaches the server once at most."""
        times = Counter((write.key, write.attempt) for write in self.world.log)
        if any(count > 1 for count in times.values()):
            raise Broken("P7", "an attempt was received twice")

    def the_report_is_right(self, rows: tuple[RowRecord, ...]) -> None:
        """Compare each row's outcome with the server's log."""
        for row in rows:
            key = (row.batch, row.number)
            effects = self._effects(key)
            if row.state in ("applied", "not_applied"):
                self._done_is_true(row, effects)
            elif row.outcome in ("not_sent", "invalid", "duplicate", "unchanged", "rejected"):
                if effects:
                    raise Broken("report", f"row {row.number} is {row.outcome} and was applied")
            elif row.outcome == "held" and row.state in IN_DOUBT:
                attempts = [a for a in self._attempts(key) if a in ("lost", None)]
                if not attempts:
                    raise Broken("report", f"row {row.number} is held and was never in doubt")
            elif row.outcome == "conflict" and effects and "lost" not in self._attempts(key):
                raise Broken("report", f"row {row.number} is a conflict and was applied")

    def _done_is_true(self, row: RowRecord, effects: list[Write]) -> None:
        key = (row.batch, row.number)
        mine = [write for write in effects if write.operation == row.operation]
        foreign = "twin" in self.world.scenario.others and not self.world.scenario.marker_field
        if key in self.settled:
            return  # By a person's word.
        if not mine and not (row.operation == "create" and foreign):
            raise Broken("report", f"row {row.number} is {row.outcome} and never had an effect")
        if row.operation == "create":
            ids = {write.record_id for write in mine}
            if row.record_id not in ids and not foreign:
                raise Broken("report", f"row {row.number} names a record that is not its own")
            if row.outcome == "created":
                self._created_is_whole(row)

    def _created_is_whole(self, row: RowRecord) -> None:
        """A created row whose update followed has that as well."""
        ((text,),) = self.ledger.connection.execute(
            "SELECT task FROM push_rows WHERE batch = ? AND number = ?", (row.batch, row.number)
        ).fetchall()
        record = self.world.store.records(self.world.scenario.resource).get(row.record_id or "")
        for name, value in task_from_json(text).afterwards.items():
            if record is not None and record[name] != value:
                raise Broken("report", f"row {row.number} is created without its {name}")

    def fingerprints(self) -> dict[RowKey, str]:
        rows = self.ledger.connection.execute(
            "SELECT batch, number, task FROM push_rows WHERE task IS NOT NULL"
        ).fetchall()
        return {(batch, number): fingerprint(task_from_json(task)) for batch, number, task in rows}

    def _effects(self, key: RowKey) -> list[Write]:
        return [w for w in self.world.log if w.key == key and w.committed_at is not None]

    def _attempts(self, key: RowKey) -> list[Any]:
        rows = self.ledger.connection.execute(
            "SELECT fate FROM push_attempts WHERE batch = ? AND number = ?", key
        )
        return [fate for (fate,) in rows]

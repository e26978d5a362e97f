"""Checks of a simulated push, one for each promise of docs/CORRECTNESS.md.

P1, P2, P3 and P8 are checked at every commit of the journal and at every write, the others at the
end, against the server's own log.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from connector.state.row import Row, RowKey, State, fingerprint, from_columns
from tests.simulation.harness import BrokenPromise
from tests.simulation.push.pusher import MemoryDatabase
from tests.simulation.push.world import PushWorld, Write

APPLIED = ("created", "updated", "converted", "not_applied")


class PushChecks:
    """Checks of a play. Each raises `BrokenPromise`.

    The simulated user sent the rows `resent` again, and declared the rows `decided` as applied.
    """

    def __init__(self, world: PushWorld, database: MemoryDatabase) -> None:
        self.world, self.database = world, database
        self.resent: set[RowKey] = set()
        self.decided: set[RowKey] = set()
        self._ended: dict[RowKey, State] = {}
        self._checked = 0

    # -- at every commit --------------------------------------------------------------------------

    def check_commit(self, key: RowKey | None) -> None:
        """Run the checks that must pass at any time. `key` is the row that the commit changed."""
        self.check_writes_are_in_the_journal()
        self.check_no_write_is_open_twice()
        self.check_final_state_is_kept(key)

    def check_writes_are_in_the_journal(self) -> None:
        """P1 and P8: each write that reached the server is in the journal with the same body."""
        for write in self.world.log[self._checked :]:
            made = self._read_row(write.key).attempts
            if len(made) < write.attempt:
                raise BrokenPromise("P1", f"{write.key} was sent without an intent")
            attempt = made[write.attempt - 1]
            body = None if attempt.body is None else attempt.body.encode()
            if body != write.body or attempt.path != write.path:
                raise BrokenPromise("P8", f"{write.key} was sent otherwise than written down")
        self._checked = len(self.world.log)

    def check_no_write_is_open_twice(self) -> None:
        """P2: at most one row of each fingerprint is open."""
        found = self.database.rows(
            "SELECT fingerprint FROM rows WHERE is_open GROUP BY 1 HAVING count(*) > 1"
        )
        if found:
            raise BrokenPromise("P2", f"{len(found)} writes are open twice")

    def check_final_state_is_kept(self, key: RowKey | None) -> None:
        """P3: a row never leaves a final state."""
        if key is None:
            return
        state = self._read_row(key).state
        if key in self._ended and self._ended[key] != state:
            raise BrokenPromise("P3", f"{key} was {self._ended[key]} and is {state}")
        if state in ("done", "refused"):
            self._ended[key] = state

    # -- in the end -------------------------------------------------------------------------------

    def check_every_row_has_one_outcome(self, rows: tuple[Row, ...], numbers: set[int]) -> None:
        """P4: the journal has one finished row for each row number of the file."""
        if Counter(row.number for row in rows) != Counter(numbers):
            raise BrokenPromise("P4", f"{len(rows)} outcomes for {len(numbers)} rows")
        for row in rows:
            blocked = row.state == "planned" and row.code == "in_doubt_elsewhere"
            if row.state == "sent" or (row.state == "planned" and not blocked):
                raise BrokenPromise("P4", f"row {row.number} is left {row.state}")

    def check_nothing_is_created_twice(self) -> None:
        """P5: no fingerprint was created or converted more often than the user allowed."""
        made: Counter[str] = Counter()
        allowed: Counter[str] = Counter()
        for key, print_ in self.read_fingerprints().items():
            effects = [
                w for w in self._committed_writes(key) if w.operation in ("create", "convert")
            ]
            made[print_] += len(effects)
            if key in self.resent:
                allowed[print_] += 3
        for print_, count in made.items():
            most = allowed[print_] + (2 if self.world.scenario.again else 1)
            if count > most:
                raise BrokenPromise("P5", f"one write had its effect {count} times")

    def check_attempts_arrive_once(self) -> None:
        """P7: each attempt reaches the server at most once."""
        times = Counter((write.key, write.attempt) for write in self.world.log)
        if any(count > 1 for count in times.values()):
            raise BrokenPromise("P7", "an attempt was received twice")

    def check_outcomes(self, rows: tuple[Row, ...]) -> None:
        """Compare each row's outcome with the server's log."""
        for row in rows:
            key = (row.batch, row.number)
            effects = self._committed_writes(key)
            if row.outcome in APPLIED and row.state == "done":
                self._check_applied_row(row, effects)
            elif row.outcome in ("not_sent", "invalid", "duplicate", "unchanged", "rejected"):
                if effects:
                    raise BrokenPromise(
                        "report", f"row {row.number} is {row.outcome} and was applied"
                    )
            elif row.outcome == "held" and row.state in ("sent", "held"):
                attempts = [a for a in self._read_attempt_fates(key) if a in ("lost", None)]
                if not attempts:
                    raise BrokenPromise(
                        "report", f"row {row.number} is held and was never in doubt"
                    )
            elif (
                row.outcome == "conflict"
                and effects
                and "lost" not in self._read_attempt_fates(key)
            ):
                raise BrokenPromise("report", f"row {row.number} is a conflict and was applied")

    def _check_applied_row(self, row: Row, writes: list[Write]) -> None:
        """Check that an applied row had an effect, and that a create names its own record."""
        key = (row.batch, row.number)
        mine = [write for write in writes if write.operation == row.operation]
        if key in self.decided:
            return  # The user decided.
        if not mine:
            raise BrokenPromise(
                "report", f"row {row.number} is {row.outcome} and never had an effect"
            )
        if row.operation == "create":
            ids = {write.record_id for write in mine}
            if row.record_id not in ids:
                raise BrokenPromise(
                    "report", f"row {row.number} names a record that is not its own"
                )
            if row.outcome == "created":
                self._check_update_after_create(row)

    def _check_update_after_create(self, row: Row) -> None:
        """Check that a created record has the fields that the row sets in a second request."""
        record = self.world.store.records(self.world.scenario.resource).get(row.record_id or "")
        for name, value in row.then.items():
            if record is not None and record[name] != value:
                raise BrokenPromise("report", f"row {row.number} is created without its {name}")

    def read_fingerprints(self) -> dict[RowKey, str]:
        """Return the fingerprint of each row in the journal."""
        rows = map(from_columns, self.database.rows("SELECT * FROM rows"))
        return {row.key: str(fingerprint(row)) for row in rows if row.operation is not None}

    def _committed_writes(self, key: RowKey) -> list[Write]:
        """Return the row's writes that had an effect on the server."""
        return [w for w in self.world.log if w.key == key and w.committed_at is not None]

    def _read_attempt_fates(self, key: RowKey) -> list[Any]:
        """Return the journal's fate of each attempt of the row; None while it is unknown."""
        return [each.fate for each in self._read_row(key).attempts]

    def _read_row(self, key: RowKey) -> Row:
        """Return the row as the journal has it."""
        (found,) = self.database.rows("SELECT * FROM rows WHERE batch = ? AND number = ?", *key)
        return from_columns(found)

"""One row under way: where it stands, how it moves, and one attempt at a write.

What is common to creates, updates and conversions (`push_create`, `push_update`, `push_convert`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from connector.engine.ask import Found
from connector.engine.push_asks import (
    Answer,
    Attempt,
    Fate,
    Intend,
    Lost,
    Move,
    Send,
    Steps,
    Unfit,
    Unsent,
)
from connector.engine.push_plan import Terms
from connector.engine.push_states import IN_DOUBT, State, after
from connector.engine.push_told import unfit_problem
from connector.engine.task import Operation, Task
from connector.resource import Declaration, Resource

ATTEMPTS_MAX = 3
"""Attempts of one step that may end in doubt before the row is kept for a person."""

UNSENT_MAX = 3
"""Attempts of one run that may come back unsent before the row is left to a later push."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a row stands, as the journal remembers it.

    `is_begun`: its record is created, and the update after it is not done. `is_in_doubt`: the fate
    of one of the `attempts` of the present step is unknown. `is_altered`: the API showed other
    values than were sent. `before` is the record before the present step's first attempt.
    """

    state: State
    is_begun: bool = False
    is_in_doubt: bool = False
    is_altered: bool = False
    record_id: str | None = None
    before: Mapping[str, Any] | None = None
    attempts: tuple[Attempt, ...] = ()


class Row:
    """One row under way. `marker` is its mark, or empty.

    `seen` is what was just read of the record, so that it is not read again.
    """

    def __init__(
        self,
        resource: Declaration,
        task: Task,
        terms: Terms,
        marker: Mapping[str, str],
        standing: Standing,
    ) -> None:
        self.resource, self.task, self.terms, self.marker = resource, task, terms, marker
        self.state = standing.state
        self.is_begun, self.is_in_doubt = standing.is_begun, standing.is_in_doubt
        self.is_altered, self.before = standing.is_altered, standing.before
        self.attempts = list(standing.attempts)
        self.record_id = standing.record_id or task.record_id
        self.seen: Found | None = None
        self._unsent = 0

    @property
    def id(self) -> str:
        """The id of the record that is changed."""
        assert self.record_id is not None, "an update or a conversion names no record"
        return self.record_id

    @property
    def doubts(self) -> int:
        """Attempts of this step whose fate is unknown."""
        return sum(each.fate in (None, "lost") for each in self.attempts)

    @property
    def settled_at(self) -> datetime:
        """When no attempt is expected to have an effect any more, by our own clock."""
        last = max(each.intended_at for each in self.attempts)
        return last + timedelta(seconds=self.terms.settle_seconds)

    @property
    def is_open(self) -> bool:
        """Whether its write may have happened, or has half happened, and is not settled."""
        is_half_done = self.is_begun or self.is_in_doubt
        return self.state in IN_DOUBT or (self.state == "planned" and is_half_done)

    @property
    def can_repeat(self) -> bool:
        """Whether a refusal to send says nothing against another try in this run."""
        return self._unsent < UNSENT_MAX

    def move(self, move: Move, record: Resource | None = None) -> Steps[None]:
        """Record a transition that the table has, with what the API showed of the record."""
        if record is not None:
            updated_at = record.raw.get("updated_at")
            move = replace(
                move,
                record_id=record.id,
                updated_at=updated_at if isinstance(updated_at, str) else None,
                shown=record,
            )
        self.state = after(self.state, move.event)
        if move.fate is not None:
            self.attempts[-1] = replace(self.attempts[-1], fate=move.fate)
        yield move

    def applied(self, move: Move, record: Resource) -> Steps[None]:
        """The row is done, as it was sent or, by what the API showed, otherwise."""
        self.is_altered |= any(each.code == "values_differ" for each in move.problems)
        if self.is_altered:
            move = replace(move, event="altered", code="values_differ")
        yield from self.move(move, record)

    def attempt(
        self,
        operation: Operation,
        fields: Mapping[str, Any] | None,
        before: Mapping[str, Any] | None = None,
    ) -> Steps[Answer | None]:
        """Write ahead and send. An answer of the API is the caller's to record; silence and what
        was not sent are recorded here. None: it was no request, and the row has ended.
        """
        record_id = None if operation == "create" else self.id
        attempt = yield Intend(operation, fields, record_id, before)
        if isinstance(attempt, Unfit):
            problems = (unfit_problem(attempt.reason),)
            if self.is_begun:
                yield from self.move(Move("refused_afterwards", "unfit", problems))
            else:
                yield from self.move(Move("refused_here", "unfit", problems))
            return None
        assert isinstance(attempt, Attempt)
        self.state = after(self.state, "intended")
        self.attempts.append(attempt)
        self.before = self.before if before is None else before
        answer: Answer = yield Send()
        if isinstance(answer, Unsent):
            self._unsent += 1
            fate: Fate = "limited" if answer.is_limited else "unsent"
            yield from self.move(Move("unsent", fate=fate, reason=answer.reason))
        elif isinstance(answer, Lost):
            self.is_in_doubt = True
            yield from self.move(Move("lost", "in_doubt", fate="lost", reason=answer.reason))
        return answer

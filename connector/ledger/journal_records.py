"""What the journal of pushes records of a row: its attempts, its transitions, its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from connector.catalog.resource import Resource
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import RowEvent, State, Step

Fate = Literal["accepted", "refused", "limited", "unsent", "lost"]
"""How an attempt ended. `limited` and `unsent` had no effect for certain; a 429 is no attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as it stands in the journal. `intended_at` is our own clock before a
    byte left, `sent_after` the server's, as far as it was known. `fate` is None where none was
    recorded, and `reason` says why it is unknown. `answer` is the answer that came, without the
    API's own words, if the fate is unknown.
    """

    number: int
    step: Step
    intended_at: datetime
    sent_after: datetime
    fate: Fate | None = None
    reason: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """Record a transition. Answered with None once it is on the disk.

    `code` says more than the state does. `record_id` and `updated_at` are those that the API
    showed. `before` is the record before what comes next. `shown` is an answer to land, whole if
    `is_detail`. `fate`, `reason` and `answer` end the open attempt.
    """

    event: RowEvent
    code: str = ""
    problems: tuple[Problem, ...] = ()
    record_id: str | None = None
    updated_at: str | None = None
    before: Mapping[str, Any] | None = None
    shown: Resource | None = None
    is_detail: bool = False
    fate: Fate | None = None
    reason: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class RowStatus:
    """Status of a row by the journal.

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

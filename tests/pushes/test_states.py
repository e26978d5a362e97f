"""The table of row transitions is complete, and each state has an outcome."""

from __future__ import annotations

from typing import get_args

import pytest

from connector.ledger.push_states import (
    IN_DOUBT,
    TRANSITIONS,
    RowEvent,
    RowOutcome,
    State,
    next_state,
    outcome_of,
    outcome_of_follower,
)

STATES: tuple[State, ...] = get_args(State)


def test_every_row_state_is_reachable_and_every_event_is_used() -> None:
    reached = {to for following in TRANSITIONS.values() for to in following.values()}

    assert {*STATES} == reached | {"read"}
    assert {*get_args(RowEvent)} == {event for each in TRANSITIONS.values() for event in each}


def test_a_row_in_doubt_is_planned_again_only_after_an_explicit_event() -> None:
    back = {
        event for state in IN_DOUBT for event, to in TRANSITIONS[state].items() if to == "planned"
    }

    assert {"unsent", "begun", "unapplied", "resent"} == back


def test_an_event_that_is_not_allowed_in_a_state_raises() -> None:
    with pytest.raises(AssertionError, match="a row that is applied cannot be intended"):
        next_state("applied", "intended")


def test_every_row_state_has_a_documented_outcome() -> None:
    named = {
        outcome_of(state, "create", is_begun=begun, is_in_doubt=doubt)
        for state in STATES
        if state not in ("read", "follows")
        for begun in (False, True)
        for doubt in (False, True)
    }
    done = {outcome_of("applied", "update"), outcome_of("applied", "convert")}

    assert {*get_args(RowOutcome)} == named | done


def test_a_sent_row_never_has_the_outcome_not_sent() -> None:
    assert "not_sent" == outcome_of("planned", "create")
    assert "held" == outcome_of("planned", "create", is_in_doubt=True)
    assert "not_applied" == outcome_of("planned", "create", is_begun=True)
    assert {"held"} == {outcome_of(state, "create") for state in IN_DOUBT}


def test_the_outcome_of_a_duplicate_row_follows_the_first_row() -> None:
    called = {outcome: outcome_of_follower(outcome) for outcome in get_args(RowOutcome)}

    done = {"created": "unchanged", "updated": "unchanged", "converted": "unchanged"}
    assert {outcome: done.get(outcome, outcome) for outcome in get_args(RowOutcome)} == called

"""The table of a row's transitions: it is whole, and everything is called by it."""

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


def test_every_state_is_reached_and_every_event_used() -> None:
    reached = {to for following in TRANSITIONS.values() for to in following.values()}

    assert {*STATES} == reached | {"read"}
    assert {*get_args(RowEvent)} == {event for each in TRANSITIONS.values() for event in each}


def test_what_may_have_been_sent_is_never_planned_again_by_silence() -> None:
    back = {
        event for state in IN_DOUBT for event, to in TRANSITIONS[state].items() if to == "planned"
    }

    assert {"unsent", "begun", "unapplied", "retried", "resent"} == back


def test_an_event_that_a_state_has_not_is_refused() -> None:
    with pytest.raises(AssertionError, match="a row that is applied cannot be intended"):
        next_state("applied", "intended")


def test_every_state_has_an_outcome_that_people_know() -> None:
    named = {
        outcome_of(state, "create", is_begun=begun, is_in_doubt=doubt)
        for state in STATES
        if state not in ("read", "follows")
        for begun in (False, True)
        for doubt in (False, True)
    }
    done = {outcome_of("applied", "update"), outcome_of("applied", "convert")}

    assert {*get_args(RowOutcome)} == named | done


def test_a_row_that_was_sent_is_never_called_not_sent() -> None:
    assert "not_sent" == outcome_of("planned", "create")
    assert "held" == outcome_of("planned", "create", is_in_doubt=True)
    assert "not_applied" == outcome_of("planned", "create", is_begun=True)
    assert {"held"} == {outcome_of(state, "create") for state in IN_DOUBT}


def test_a_row_that_follows_is_called_by_what_came_of_the_other() -> None:
    called = {outcome: outcome_of_follower(outcome) for outcome in get_args(RowOutcome)}

    done = {"created": "unchanged", "updated": "unchanged", "converted": "unchanged"}
    assert {outcome: done.get(outcome, outcome) for outcome in get_args(RowOutcome)} == called

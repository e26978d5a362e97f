"""The limiter's single rules: what is asked, what is answered, what follows.

Those on 429s are in test_rate_limiter_refusals.py.
"""

from __future__ import annotations

import math

import pytest

from connector.client.rate_limiter import Go, RateHeaders, Wait
from tests.client.rate_limiter_hand import NOW, ManualLimiter


def test_one_goes_first() -> None:
    hand = ManualLimiter()
    first = hand.go(0)
    assert Wait(None, "probe") == hand.wait(0)

    hand.heard(1, first, 7)

    assert 7 == len(hand.go_all(1))
    assert Wait(50.0, "window") == hand.wait(1)
    assert (10, 7, 50.0) == (hand.limiter.limit, hand.limiter.remaining, hand.limiter.resets_in(1))


def test_remaining_only_falls() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    early, late, *_ = hand.go_all(1)

    hand.heard(2, late, 3)
    hand.heard(3, early, 8)

    assert 3 == hand.limiter.remaining


def test_a_clock_that_stands_still_is_no_rate() -> None:
    hand = ManualLimiter()
    hand.heard(0, hand.go(0), 9)

    hand.heard(0, hand.go(0), 6)

    assert 6 == hand.limiter.remaining
    assert Go is type(hand.limiter.acquire(60))


def test_what_is_in_flight_is_taken_off() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    tickets = [hand.go(1) for _ in range(5)]

    hand.heard(2, tickets[0], 8)

    assert 4 == len(hand.go_all(2))


def test_an_answer_of_an_earlier_window_says_nothing() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    late = hand.go(1)
    hand.heard(53, hand.go(52), 8, 110)

    hand.heard(54, late, 0)

    assert 8 == hand.limiter.remaining
    # It may have been counted behind the back of that 8.
    assert 7 == len(hand.go_all(54))


@pytest.mark.parametrize(
    ("reset", "date", "seconds"),
    [
        (NOW + 30, NOW, 31),
        (NOW - 600 + 30, NOW - 600, 31),
        (NOW + 30, NOW + 0.9, 30.1),
        (NOW + 59, NOW, 60),
        (NOW + 90, NOW, 60),
        (NOW + 2400, NOW, 60),
        (NOW, NOW, 1),
        (NOW - 0.9, NOW, 0.1),
        (NOW - 1000, NOW, 60),
        (30, NOW, 31),
        (30, None, 31),
        (-30, NOW, 60),
        (NOW + 30, None, 60),
        (None, NOW, 60),
        (math.inf, NOW, 60),
        (math.nan, NOW, 60),
    ],
)
def test_a_window_ends_by_the_servers_own_clock(
    reset: float | None, date: float | None, seconds: float
) -> None:
    hand = ManualLimiter()
    hand.limiter.record_response(1, hand.go(0), RateHeaders(10, 0, reset), date)

    assert "window" == hand.wait(1).reason
    assert pytest.approx(seconds) == hand.seconds(1)
    assert isinstance(hand.limiter.acquire(1 + seconds + 0.001), Go)


def test_a_spent_window_opens_with_one_request() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 0)

    probe = hand.go(51)

    assert Wait(None, "probe") == hand.wait(51)
    hand.heard(51.5, probe, 9, 110)
    assert 9 == len(hand.go_all(51.5))


def test_what_was_left_may_go_on_after_the_reset() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)

    assert 9 == len(hand.go_all(52))


def test_a_reserve_is_left_for_people() -> None:
    hand = ManualLimiter(reserve=4)
    hand.heard(1, hand.go(0), 9)
    assert 5 == len(hand.go_all(1))

    hand = ManualLimiter(reserve=1000)
    hand.heard(1, hand.go(0), 9)
    assert "window" == hand.wait(1).reason
    assert isinstance(hand.limiter.acquire(52), Go)


def test_a_request_that_never_left_takes_no_place() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 3)
    tickets = hand.go_all(1)
    assert 3 == len(tickets)

    hand.limiter.record_unsent(2, tickets[0])
    assert 1 == len(hand.go_all(2))

    hand.limiter.record_lost(3, tickets[1])
    assert [] == hand.go_all(3)


def test_a_later_answer_settles_what_was_lost() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 5)
    hand.limiter.record_lost(2, hand.go(1))

    hand.heard(4, hand.go(3), 4)

    assert 4 == len(hand.go_all(4))


def test_what_is_given_back_twice_is_noticed() -> None:
    hand = ManualLimiter()
    ticket = hand.go(0)
    hand.limiter.record_lost(1, ticket)

    with pytest.raises(AssertionError, match="more requests ended"):
        hand.limiter.record_lost(2, ticket)


def test_an_answer_without_figures_may_have_been_counted() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 5)
    hand.heard(2, hand.go(1), None, None)

    assert 4 == len(hand.go_all(2))


def test_answers_of_one_window_agree_on_its_end() -> None:
    hand = ManualLimiter()
    first = hand.go(0)
    hand.limiter.record_response(1.9, first, RateHeaders(10, 9, NOW + 50), NOW + 1)
    second, third = hand.go(1.9), hand.go(1.9)
    hand.limiter.record_response(2.0, second, RateHeaders(10, 8, NOW + 50), NOW + 2)
    hand.limiter.record_response(2.8, third, RateHeaders(10, 7, NOW + 50), NOW + 2)

    assert 51.0 == 2.8 + (hand.limiter.resets_in(2.8) or 0)


def test_what_others_took_before_us_is_believed() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    hand.heard(71, hand.go(70), 2, 120)
    hand.heard(72, hand.go(71), 1, 120)
    hand.heard(73, hand.go(72), 0, 120)

    assert "window" == hand.wait(73).reason

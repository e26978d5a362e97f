"""Single rules of the rate limiter: a response, and the wait that follows."""

from __future__ import annotations

import math

import pytest

from connector.client.rate_limiter import Go, RateHeaders, Wait
from tests.client.manual_rate_limiter import NOW, ManualLimiter


def test_the_first_request_is_sent_alone_as_a_probe() -> None:
    hand = ManualLimiter()
    first = hand.acquire(0)
    assert Wait(None, "probe") == hand.expect_wait(0)

    hand.record_success(1, first, 7)

    assert 7 == len(hand.acquire_all(1))
    assert Wait(50.0, "window") == hand.expect_wait(1)
    assert (10, 7, 50.0) == (hand.limiter.limit, hand.limiter.remaining, hand.limiter.resets_in(1))


def test_a_late_response_does_not_raise_remaining() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    early, late, *_ = hand.acquire_all(1)

    hand.record_success(2, late, 3)
    hand.record_success(3, early, 8)

    assert 3 == hand.limiter.remaining


def test_responses_at_the_same_time_update_remaining() -> None:
    hand = ManualLimiter()
    hand.record_success(0, hand.acquire(0), 9)

    hand.record_success(0, hand.acquire(0), 6)

    assert 6 == hand.limiter.remaining
    assert Go is type(hand.limiter.acquire(60))


def test_requests_in_flight_are_subtracted_from_remaining() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    tickets = [hand.acquire(1) for _ in range(5)]

    hand.record_success(2, tickets[0], 8)

    assert 4 == len(hand.acquire_all(2))


def test_a_response_of_an_earlier_window_does_not_change_remaining() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    late = hand.acquire(1)
    hand.record_success(53, hand.acquire(52), 8, 110)

    hand.record_success(54, late, 0)

    assert 8 == hand.limiter.remaining
    # It may have been counted behind the back of that 8.
    assert 7 == len(hand.acquire_all(54))


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
def test_a_window_ends_by_the_servers_clock(
    reset: float | None, date: float | None, seconds: float
) -> None:
    hand = ManualLimiter()
    hand.limiter.record_response(1, hand.acquire(0), RateHeaders(10, 0, reset), date)

    assert "window" == hand.expect_wait(1).reason
    assert pytest.approx(seconds) == hand.expect_wait_seconds(1)
    assert isinstance(hand.limiter.acquire(1 + seconds + 0.001), Go)


def test_the_window_after_a_used_up_one_starts_with_one_probe() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 0)

    probe = hand.acquire(51)

    assert Wait(None, "probe") == hand.expect_wait(51)
    hand.record_success(51.5, probe, 9, 110)
    assert 9 == len(hand.acquire_all(51.5))


def test_unused_requests_can_be_sent_after_the_reset() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)

    assert 9 == len(hand.acquire_all(52))


def test_a_reserve_of_each_window_is_kept_for_other_clients() -> None:
    hand = ManualLimiter(reserve=4)
    hand.record_success(1, hand.acquire(0), 9)
    assert 5 == len(hand.acquire_all(1))

    hand = ManualLimiter(reserve=1000)
    hand.record_success(1, hand.acquire(0), 9)
    assert "window" == hand.expect_wait(1).reason
    assert isinstance(hand.limiter.acquire(52), Go)


def test_an_unsent_request_is_returned_and_a_lost_one_stays_counted() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 3)
    tickets = hand.acquire_all(1)
    assert 3 == len(tickets)

    hand.limiter.record_unsent(2, tickets[0])
    assert 1 == len(hand.acquire_all(2))

    hand.limiter.record_lost(3, tickets[1])
    assert [] == hand.acquire_all(3)


def test_a_later_response_shows_that_a_lost_request_was_not_counted() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 5)
    hand.limiter.record_lost(2, hand.acquire(1))

    hand.record_success(4, hand.acquire(3), 4)

    assert 4 == len(hand.acquire_all(4))


def test_ending_the_same_request_twice_is_an_error() -> None:
    hand = ManualLimiter()
    ticket = hand.acquire(0)
    hand.limiter.record_lost(1, ticket)

    with pytest.raises(AssertionError, match="more requests ended"):
        hand.limiter.record_lost(2, ticket)


def test_a_response_without_figures_counts_as_one_request() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 5)
    hand.record_success(2, hand.acquire(1), None, None)

    assert 4 == len(hand.acquire_all(2))


def test_responses_of_one_window_narrow_down_its_end() -> None:
    hand = ManualLimiter()
    first = hand.acquire(0)
    hand.limiter.record_response(1.9, first, RateHeaders(10, 9, NOW + 50), NOW + 1)
    second, third = hand.acquire(1.9), hand.acquire(1.9)
    hand.limiter.record_response(2.0, second, RateHeaders(10, 8, NOW + 50), NOW + 2)
    hand.limiter.record_response(2.8, third, RateHeaders(10, 7, NOW + 50), NOW + 2)

    assert 51.0 == 2.8 + (hand.limiter.resets_in(2.8) or 0)


def test_a_remaining_of_zero_stops_requests_although_others_used_them() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    hand.record_success(71, hand.acquire(70), 2, 120)
    hand.record_success(72, hand.acquire(71), 1, 120)
    hand.record_success(73, hand.acquire(72), 0, 120)

    assert "window" == hand.expect_wait(73).reason

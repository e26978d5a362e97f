"""Rules of the rate limiter for 429s: one wait for all requests, growing waits, and the end of the
month.
"""

from __future__ import annotations

import pytest

from connector.client.rate_limiter import Go, QuotaExhausted, RateHeaders, Wait
from tests.client.manual_rate_limiter import NOW, ManualLimiter


def test_a_429_of_an_earlier_window_does_not_stop_requests() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    late = hand.acquire(1)
    hand.record_success(53, hand.acquire(52), 8, 110)

    hand.record_429(54, late, 56)

    assert 8 == len(hand.acquire_all(54))


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.99])
def test_a_429_stops_all_requests_until_the_reset(jitter: float) -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    hand.record_429(2, hand.acquire(1), 30, jitter=jitter)

    assert "backoff" == hand.expect_wait(2).reason
    assert pytest.approx(29 + 3 * jitter) == hand.expect_wait_seconds(2)
    opens_at = 2 + hand.expect_wait_seconds(2)
    hand.acquire(opens_at)
    assert Wait(None, "probe") == hand.expect_wait(opens_at)


def test_requests_in_flight_grow_slowly_after_a_429() -> None:
    hand = ManualLimiter(limit=600)
    first = hand.acquire(0)
    hand.record_429(1, first, 30)
    hand.record_success(34, hand.acquire(33), 9, 90)

    tickets = hand.acquire_all(34)
    assert 2 == len(tickets)
    assert Wait(None, "ramp") == hand.expect_wait(34)

    hand.record_success(35, tickets[0], 8, 90)
    assert 2 == len(hand.acquire_all(35))


def test_429s_without_a_reset_double_the_wait() -> None:
    hand, now = ManualLimiter(), 0.0
    waits = []
    for _ in range(3):
        hand.record_429(now, hand.acquire(now))
        waits.append(hand.expect_wait_seconds(now))
        now += waits[-1]

    assert [15, 30, 60] == waits
    hand.record_429(now, hand.acquire(now))
    assert QuotaExhausted(None) == hand.limiter.acquire(now)
    assert QuotaExhausted(None) == hand.limiter.acquire(now + 1e7)


def test_simultaneous_429s_count_as_one() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9, None)
    tickets = hand.acquire_all(1)
    for number, ticket in enumerate(tickets):
        hand.record_429(2 + number / 100, ticket, 20)

    assert 9 == len(tickets)
    assert "backoff" == hand.expect_wait(2.08).reason
    assert pytest.approx(19 - 0.08) == hand.expect_wait_seconds(2.08)


def test_each_429_after_the_announced_wait_lengthens_the_next_wait() -> None:
    hand, now = ManualLimiter(), 0.0
    waits = []
    for _ in range(4):
        hand.record_429(now, hand.acquire(now), now)
        waits.append(hand.expect_wait_seconds(now))
        now += waits[-1]

    assert [1, 15, 30, 60] == waits


def test_a_429_without_figures_keeps_the_reset_of_the_last_response() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)

    hand.record_429(2, hand.acquire(1))

    # 50 - 1 and the second of resolution of either answer.
    assert Wait(50.0, "backoff") == hand.expect_wait(2)


def test_429s_between_successes_do_not_count_as_a_used_up_month() -> None:
    hand = ManualLimiter()
    for minute in range(0, 6060, 101):
        hand.record_429(minute, hand.acquire(minute), minute + 30)
        hand.record_success(minute + 40, hand.acquire(minute + 40), 9, minute + 90)
        hand.record_success(minute + 99, hand.acquire(minute + 99), 9, minute + 99)

    assert isinstance(hand.limiter.acquire(6060), Go)


@pytest.mark.parametrize("reset", [NOW + 2400, 2400.0])
def test_a_reset_far_in_the_future_is_the_end_of_the_month(reset: float) -> None:
    hand = ManualLimiter()
    hand.limiter.record_refusal(1, hand.acquire(0), RateHeaders(10, 0, reset), NOW, 0.5)

    assert QuotaExhausted(NOW + 2400) == hand.limiter.acquire(1)
    assert QuotaExhausted(NOW + 2400) == hand.limiter.acquire(2399)
    probe = hand.acquire(2402)
    assert Wait(None, "probe") == hand.expect_wait(2402)
    hand.record_success(2403, probe, 9, 2450)
    assert 2 == len(hand.acquire_all(2403))


def test_a_reset_in_two_minutes_is_a_wait_and_not_a_used_up_month() -> None:
    hand = ManualLimiter()
    hand.record_429(1, hand.acquire(0), 120)

    assert Wait(120.0, "backoff") == hand.expect_wait(1)


def test_a_later_response_does_not_shorten_the_wait_after_a_429() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    tickets = hand.acquire_all(1)
    hand.record_429(2, tickets[0], 40)
    hand.record_429(3, tickets[1], 20)
    hand.record_429(4, tickets[2], jitter=0.9)
    hand.record_success(5, tickets[3], 0, 20)

    assert Wait(41.0 - 5, "backoff") == hand.expect_wait(5)


def test_responses_to_requests_sent_before_a_429_do_not_end_the_slow_start() -> None:
    hand = ManualLimiter(limit=600)
    hand.record_success(1, hand.acquire(0), 9)
    tickets = hand.acquire_all(1)
    hand.record_429(2, tickets[0], 30)
    for ticket in tickets[1:]:
        hand.record_success(3, ticket, 0, 30)

    hand.record_success(32, hand.acquire(32), 9, 90)

    assert 2 == len(hand.acquire_all(32))


def test_after_another_client_is_detected_only_the_servers_figures_count() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    hand.record_success(71, hand.acquire(70), 2, 120)

    # Our own last minute would leave nine.
    assert 2 == len(hand.acquire_all(71))
    assert "window" == hand.expect_wait(71).reason


@pytest.mark.parametrize(("seen_at", "free"), [(71, 5), (171, 0)])
def test_another_client_is_forgotten_after_some_minutes(seen_at: int, free: int) -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    hand.record_success(seen_at, hand.acquire(seen_at - 1), 2, seen_at + 50)
    for start, left in ((400, 10), (450, 5)):
        for number in range(1, 6):
            hand.record_success(start, hand.acquire(start), left - number, start + 60)

    # The five requests of 400 have left our own minute; the server's figure is still 0.
    assert free == len(hand.acquire_all(461))


def test_a_used_up_month_is_not_reopened_by_later_responses() -> None:
    hand = ManualLimiter()
    hand.record_success(1, hand.acquire(0), 9)
    tickets = hand.acquire_all(1)
    hand.record_429(2, tickets[0], 86_400)
    hand.record_429(3, tickets[1], 50)
    hand.record_success(4, tickets[2], 5)

    assert QuotaExhausted(NOW + 86_400) == hand.limiter.acquire(60)


def test_a_429_after_the_month_has_ended_is_an_ordinary_wait() -> None:
    hand = ManualLimiter()
    hand.record_429(1, hand.acquire(0), 30)
    hand.record_429(33, hand.acquire(32), 2_000)
    assert QuotaExhausted(NOW + 2_000) == hand.limiter.acquire(34)

    hand.record_429(2_002, hand.acquire(2_002), 2_030)

    assert Wait(29.0, "backoff") == hand.expect_wait(2_002)

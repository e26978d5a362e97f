"""The limiter's rules on 429s: one gate for all, longer and longer waits, and the month's end."""

from __future__ import annotations

import pytest

from connector.client.rate_limiter import Go, QuotaExhausted, RateHeaders, Wait
from tests.client.rate_limiter_hand import NOW, ManualLimiter


def test_a_late_refusal_closes_nothing() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    late = hand.go(1)
    hand.heard(53, hand.go(52), 8, 110)

    hand.refused(54, late, 56)

    assert 8 == len(hand.go_all(54))


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.99])
def test_a_refusal_closes_the_gate_for_everybody(jitter: float) -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    hand.refused(2, hand.go(1), 30, jitter=jitter)

    assert "backoff" == hand.wait(2).reason
    assert pytest.approx(29 + 3 * jitter) == hand.seconds(2)
    opens_at = 2 + hand.seconds(2)
    hand.go(opens_at)
    assert Wait(None, "probe") == hand.wait(opens_at)


def test_after_a_refusal_the_number_in_flight_grows_slowly() -> None:
    hand = ManualLimiter(limit=600)
    first = hand.go(0)
    hand.refused(1, first, 30)
    hand.heard(34, hand.go(33), 9, 90)

    tickets = hand.go_all(34)
    assert 2 == len(tickets)
    assert Wait(None, "ramp") == hand.wait(34)

    hand.heard(35, tickets[0], 8, 90)
    assert 2 == len(hand.go_all(35))


def test_untold_refusals_make_longer_and_longer_waits() -> None:
    hand, now = ManualLimiter(), 0.0
    waits = []
    for _ in range(3):
        hand.refused(now, hand.go(now))
        waits.append(hand.seconds(now))
        now += waits[-1]

    assert [15, 30, 60] == waits
    hand.refused(now, hand.go(now))
    assert QuotaExhausted(None) == hand.limiter.acquire(now)
    assert QuotaExhausted(None) == hand.limiter.acquire(now + 1e7)


def test_requests_refused_together_are_one_refusal() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9, None)
    tickets = hand.go_all(1)
    for number, ticket in enumerate(tickets):
        hand.refused(2 + number / 100, ticket, 20)

    assert 9 == len(tickets)
    assert "backoff" == hand.wait(2.08).reason
    assert pytest.approx(19 - 0.08) == hand.seconds(2.08)


def test_a_refusal_after_waiting_as_told_is_believed_less() -> None:
    hand, now = ManualLimiter(), 0.0
    waits = []
    for _ in range(4):
        hand.refused(now, hand.go(now), now)
        waits.append(hand.seconds(now))
        now += waits[-1]

    assert [1, 15, 30, 60] == waits


def test_a_refusal_without_figures_keeps_what_was_told() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)

    hand.refused(2, hand.go(1))

    # 50 - 1 and the second of resolution of either answer.
    assert Wait(50.0, "backoff") == hand.wait(2)


def test_success_between_refusals_is_no_spent_month() -> None:
    hand = ManualLimiter()
    for minute in range(0, 6060, 101):
        hand.refused(minute, hand.go(minute), minute + 30)
        hand.heard(minute + 40, hand.go(minute + 40), 9, minute + 90)
        hand.heard(minute + 99, hand.go(minute + 99), 9, minute + 99)

    assert isinstance(hand.limiter.acquire(6060), Go)


@pytest.mark.parametrize("reset", [NOW + 2400, 2400.0])
def test_a_reset_far_away_is_the_months(reset: float) -> None:
    hand = ManualLimiter()
    hand.limiter.record_refusal(1, hand.go(0), RateHeaders(10, 0, reset), NOW, 0.5)

    assert QuotaExhausted(NOW + 2400) == hand.limiter.acquire(1)
    assert QuotaExhausted(NOW + 2400) == hand.limiter.acquire(2399)
    probe = hand.go(2402)
    assert Wait(None, "probe") == hand.wait(2402)
    hand.heard(2403, probe, 9, 2450)
    assert 2 == len(hand.go_all(2403))


def test_two_minutes_are_no_month() -> None:
    hand = ManualLimiter()
    hand.refused(1, hand.go(0), 120)

    assert Wait(120.0, "backoff") == hand.wait(1)


def test_a_later_word_does_not_open_the_gate() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    tickets = hand.go_all(1)
    hand.refused(2, tickets[0], 40)
    hand.refused(3, tickets[1], 20)
    hand.refused(4, tickets[2], jitter=0.9)
    hand.heard(5, tickets[3], 0, 20)

    assert Wait(41.0 - 5, "backoff") == hand.wait(5)


def test_what_was_under_way_proves_nothing_about_a_refusal() -> None:
    hand = ManualLimiter(limit=600)
    hand.heard(1, hand.go(0), 9)
    tickets = hand.go_all(1)
    hand.refused(2, tickets[0], 30)
    for ticket in tickets[1:]:
        hand.heard(3, ticket, 0, 30)

    hand.heard(32, hand.go(32), 9, 90)

    assert 2 == len(hand.go_all(32))


def test_after_another_client_was_seen_only_the_servers_figures_count() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    hand.heard(71, hand.go(70), 2, 120)

    # Our own last minute would leave nine.
    assert 2 == len(hand.go_all(71))
    assert "window" == hand.wait(71).reason


@pytest.mark.parametrize(("seen_at", "free"), [(71, 5), (171, 0)])
def test_another_client_is_forgotten_in_time(seen_at: int, free: int) -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    hand.heard(seen_at, hand.go(seen_at - 1), 2, seen_at + 50)
    for start, left in ((400, 10), (450, 5)):
        for number in range(1, 6):
            hand.heard(start, hand.go(start), left - number, start + 60)

    # The five requests of 400 have left our own minute; the server's figure is still 0.
    assert free == len(hand.go_all(461))


def test_a_spent_month_stays_spent() -> None:
    hand = ManualLimiter()
    hand.heard(1, hand.go(0), 9)
    tickets = hand.go_all(1)
    hand.refused(2, tickets[0], 86_400)
    hand.refused(3, tickets[1], 50)
    hand.heard(4, tickets[2], 5)

    assert QuotaExhausted(NOW + 86_400) == hand.limiter.acquire(60)


def test_a_new_month_forgets_the_old() -> None:
    hand = ManualLimiter()
    hand.refused(1, hand.go(0), 30)
    hand.refused(33, hand.go(32), 2_000)
    assert QuotaExhausted(NOW + 2_000) == hand.limiter.acquire(34)

    hand.refused(2_002, hand.go(2_002), 2_030)

    assert Wait(29.0, "backoff") == hand.wait(2_002)

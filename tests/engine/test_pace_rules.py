"""The pace's single rules, each played by hand: what is asked, what is answered, what follows."""

from __future__ import annotations

import math

import pytest

from connector.engine.pace import Go, Mode, Pace, RateHeaders, Spent, Ticket, Wait

NOW = 1_700_000_000.0
"""The server's Unix time at our moment 0."""


class Hand:
    """A pace, played by hand at moments that are given; the server's clock runs with ours."""

    def __init__(self, *, mode: Mode = "burst", reserve: int = 0) -> None:
        self.pace = Pace(mode=mode, reserve=reserve)

    def seconds(self, now: float) -> float:
        """Ask for one that must wait for a while."""
        seconds = self.wait(now).seconds
        assert seconds is not None
        return seconds

    def go(self, now: float) -> Ticket:
        """Send one that must be let go."""
        went = self.pace.ask(now)
        assert isinstance(went, Go), went
        return went.ticket

    def go_all(self, now: float) -> list[Ticket]:
        """Send all that are let go."""
        tickets = []
        while isinstance(went := self.pace.ask(now), Go):
            tickets.append(went.ticket)
        return tickets

    def wait(self, now: float) -> Wait:
        """Ask for one that must wait."""
        wait = self.pace.ask(now)
        assert isinstance(wait, Wait), wait
        return wait

    def heard(
        self, now: float, ticket: Ticket, remaining: int | None, reset: float | None = 50, /
    ) -> None:
        """Answer with a `Remaining` of 10; `reset` is in seconds of our clock."""
        moment = None if reset is None else NOW + reset
        rate = RateHeaders(10 if remaining is not None else None, remaining, moment)
        self.pace.heard(now, ticket, rate, NOW + now)

    def refused(
        self, now: float, ticket: Ticket, reset: float | None = None, /, *, jitter: float = 0
    ) -> None:
        """Answer with a 429; without a `reset`, it has no figures."""
        rate = RateHeaders() if reset is None else RateHeaders(10, 0, NOW + reset)
        self.pace.refused(now, ticket, rate, NOW + now, jitter)


def test_one_goes_first() -> None:
    """Until the first answer one request leaves; then as many as it says remain."""
    hand = Hand()
    first = hand.go(0)
    assert Wait(None, "probe") == hand.wait(0)

    hand.heard(1, first, 7)

    assert 7 == len(hand.go_all(1))
    assert Wait(50.0, "window") == hand.wait(1)
    assert (10, 7, 50.0) == (hand.pace.limit, hand.pace.remaining, hand.pace.resets_in(1))


def test_remaining_only_falls() -> None:
    """Answers that arrive out of their order raise nothing."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)
    early, late, *_ = hand.go_all(1)

    hand.heard(2, late, 3)
    hand.heard(3, early, 8)

    assert 3 == hand.pace.remaining


def test_what_is_in_flight_is_taken_off() -> None:
    """An answer's figure counts only what the server had seen by then."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)
    tickets = [hand.go(1) for _ in range(5)]

    hand.heard(2, tickets[0], 8)

    assert 4 == len(hand.go_all(2))


def test_an_answer_of_an_earlier_window_says_nothing() -> None:
    """Neither its figure is believed, nor is its request taken to be uncounted."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)
    late = hand.go(1)
    hand.heard(53, hand.go(52), 8, 110)

    hand.heard(54, late, 0)

    assert 8 == hand.pace.remaining
    # It may have been counted behind the back of that 8.
    assert 7 == len(hand.go_all(54))


def test_a_late_refusal_closes_nothing() -> None:
    """A 429 to a request of an earlier window is no reason to wait in this one."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)
    late = hand.go(1)
    hand.heard(53, hand.go(52), 8, 110)

    hand.refused(54, late, 56)

    assert 8 == len(hand.go_all(54))


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
    """`Reset - Date` and a second, at most a minute; a minute where that makes no sense."""
    hand = Hand()
    hand.pace.heard(1, hand.go(0), RateHeaders(10, 0, reset), date)

    assert "window" == hand.wait(1).reason
    assert pytest.approx(seconds) == hand.seconds(1)
    assert isinstance(hand.pace.ask(1 + seconds + 0.001), Go)


def test_a_spent_window_opens_with_one_request() -> None:
    """After the reset one request asks what the new window holds."""
    hand = Hand()
    hand.heard(1, hand.go(0), 0)

    probe = hand.go(51)

    assert Wait(None, "probe") == hand.wait(51)
    hand.heard(51.5, probe, 9, 110)
    assert 9 == len(hand.go_all(51.5))


def test_what_was_left_may_go_on_after_the_reset() -> None:
    """A reset takes nothing away, so nobody waits for the new figures if some are left."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)

    assert 9 == len(hand.go_all(52))


def test_a_reserve_is_left_for_people() -> None:
    """The last requests of each window are not ours, but one may always ask."""
    hand = Hand(reserve=4)
    hand.heard(1, hand.go(0), 9)
    assert 5 == len(hand.go_all(1))

    hand = Hand(reserve=1000)
    hand.heard(1, hand.go(0), 9)
    assert "window" == hand.wait(1).reason
    assert isinstance(hand.pace.ask(52), Go)


def test_a_request_that_never_left_takes_no_place() -> None:
    """It is given back; one that may have arrived is not, until a later answer settles it."""
    hand = Hand()
    hand.heard(1, hand.go(0), 3)
    tickets = hand.go_all(1)
    assert 3 == len(tickets)

    hand.pace.unsent(2, tickets[0])
    assert 1 == len(hand.go_all(2))

    hand.pace.lost(3, tickets[1])
    assert [] == hand.go_all(3)


def test_a_later_answer_settles_what_was_lost() -> None:
    """Its figure has counted the lost request, if that ever arrived."""
    hand = Hand()
    hand.heard(1, hand.go(0), 5)
    hand.pace.lost(2, hand.go(1))

    hand.heard(4, hand.go(3), 4)

    assert 4 == len(hand.go_all(4))


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.99])
def test_a_refusal_closes_the_gate_for_everybody(jitter: float) -> None:
    """Until the reset that it tells, and chance only lengthens that; then one may try."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)
    hand.refused(2, hand.go(1), 30, jitter=jitter)

    assert "backoff" == hand.wait(2).reason
    assert pytest.approx(29 + 3 * jitter) == hand.seconds(2)
    opens_at = 2 + hand.seconds(2)
    hand.go(opens_at)
    assert Wait(None, "probe") == hand.wait(opens_at)


def test_after_a_refusal_the_number_in_flight_grows_slowly() -> None:
    """One, then two, then one more with each answer."""
    hand = Hand()
    first = hand.go(0)
    hand.refused(1, first, 30)
    hand.heard(33, hand.go(33), 9, 90)

    tickets = hand.go_all(33)
    assert 2 == len(tickets)
    assert Wait(None, "ramp") == hand.wait(33)

    hand.heard(34, tickets[0], 8, 90)
    assert 2 == len(hand.go_all(34))


def test_untold_refusals_make_longer_and_longer_waits() -> None:
    """15, 30 and 60 seconds; refused again after more than a window, the month is spent."""
    hand, now = Hand(), 0.0
    waits = []
    for _ in range(3):
        hand.refused(now, hand.go(now))
        waits.append(hand.seconds(now))
        now += waits[-1]

    assert [15, 30, 60] == waits
    hand.refused(now, hand.go(now))
    assert Spent(None) == hand.pace.ask(now)
    assert Spent(None) == hand.pace.ask(now + 1e7)


def test_requests_refused_together_are_one_refusal() -> None:
    """Sixteen in flight when the window ends do not make sixteen doublings."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9, None)
    tickets = hand.go_all(1)
    for number, ticket in enumerate(tickets):
        hand.refused(2 + number / 100, ticket, 20)

    assert 9 == len(tickets)
    assert "backoff" == hand.wait(2.08).reason
    assert pytest.approx(19 - 0.08) == hand.seconds(2.08)


def test_a_refusal_after_waiting_as_told_is_believed_less() -> None:
    """A reset that is told anew each time, a second away, is not asked every second."""
    hand, now = Hand(), 0.0
    waits = []
    for _ in range(4):
        hand.refused(now, hand.go(now), now)
        waits.append(hand.seconds(now))
        now += waits[-1]

    assert [1, 15, 30, 60] == waits


def test_a_refusal_without_figures_keeps_what_was_told() -> None:
    """Where only successes carry figures, their end of the window holds for the 429 too."""
    hand = Hand()
    hand.heard(1, hand.go(0), 9)

    hand.refused(2, hand.go(1))

    # 50 - 1 and the second of resolution of either answer.
    assert Wait(50.0, "backoff") == hand.wait(2)


def test_success_between_refusals_is_no_spent_month() -> None:
    """However often the minute's limit is met, as long as something passes in between."""
    hand = Hand()
    for minute in range(0, 6000, 100):
        hand.refused(minute, hand.go(minute), minute + 30)
        hand.heard(minute + 40, hand.go(minute + 40), 9, minute + 90)
        hand.heard(minute + 99, hand.go(minute + 99), 9, minute + 99)

    assert isinstance(hand.pace.ask(6000), Go)


@pytest.mark.parametrize("reset", [NOW + 2400, 2400.0])
def test_a_reset_far_away_is_the_months(reset: float) -> None:
    """Forty minutes are not the minute's: stop, and say until when; then one may try again."""
    hand = Hand()
    hand.pace.refused(1, hand.go(0), RateHeaders(10, 0, reset), NOW, 0.5)

    assert Spent(NOW + 2400) == hand.pace.ask(1)
    assert Spent(NOW + 2400) == hand.pace.ask(2399)
    probe = hand.go(2402)
    assert Wait(None, "probe") == hand.wait(2402)
    hand.heard(2403, probe, 9, 2450)
    assert 2 == len(hand.go_all(2403))


def test_two_minutes_are_no_month() -> None:
    """Up to 120 s a 429's reset is waited for."""
    hand = Hand()
    hand.refused(1, hand.go(0), 120)

    assert Wait(120.0, "backoff") == hand.wait(1)


def test_others_are_left_what_they_may_take_meanwhile() -> None:
    """If Remaining falls by more than ours, the last ones are not fought for."""
    hand, remaining = Hand(), 9
    hand.pace.heard(1, hand.go(0), RateHeaders(1000, 900, NOW + 50), NOW + 1)
    remaining = 900
    for second in range(1, 20):
        # One of ours a second, and twenty of theirs.
        remaining -= 21
        hand.pace.heard(
            second + 1, hand.go(second), RateHeaders(1000, remaining, NOW + 50), NOW + second
        )

    left = len(hand.go_all(20))

    assert 20 <= remaining - left <= 100


def test_spread_requests_share_what_is_left_of_the_window() -> None:
    """Nine left and 45 seconds: one every five seconds."""
    hand = Hand(mode="spread")
    hand.heard(6, hand.go(0), 9)

    tickets = hand.go_all(6)

    assert 1 == len(tickets)
    assert Wait(5.0, "spread") == hand.wait(6)


def test_what_is_given_back_twice_is_noticed() -> None:
    """A ticket too many is a mistake of the caller."""
    hand = Hand()
    ticket = hand.go(0)
    hand.pace.lost(1, ticket)

    with pytest.raises(AssertionError, match="more requests ended"):
        hand.pace.lost(2, ticket)

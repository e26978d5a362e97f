"""Rules of the rate limiter: what was sent and answered, and what may be sent then."""

from __future__ import annotations

import math
from typing import Any

import pytest

from connector.client.limiter import QuotaExhausted, RateHeaders, RateLimiter, Ticket, Wait

NOW = 1_700_000_000.0
"""The server's Unix time at second 0 of the client's clock."""

OPEN = ("send", 0), ("ok", 1, 0, 9, 50)
"""A first request, which is answered with 9 of 10 remaining and a reset at second 50."""

# A step is one of:
#   ("send", at)                            a request leaves; tickets are numbered from 0
#   ("fill", at, number)                    requests leave until one must wait: so many
#   ("ok" | "429", at, ticket, remaining, reset)    an answer; None: without that header
#   ("lost" | "unsent", at, ticket)         a request ends without an answer
#   ("wait", at, seconds)                   the next request has to wait
#   ("month", at, resets_at)                the month is used up
RULES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "the first request is a probe": (
        ("send", 0), ("wait", 0, None), ("ok", 1, 0, 7, 50), ("fill", 1, 7),
        ("wait", 1, 50),
    ),
    "a late answer does not raise what remains": (
        *OPEN, ("send", 1), ("send", 1), ("ok", 2, 2, 3, 50), ("ok", 3, 1, 8, 50), ("fill", 3, 3),
    ),
    "requests in flight are subtracted": (
        *OPEN, *[("send", 1)] * 5, ("ok", 2, 1, 8, 50), ("fill", 2, 4),
    ),
    "an answer of an earlier window changes nothing, but may have been counted": (
        *OPEN, ("send", 1), ("send", 52), ("ok", 53, 2, 8, 110), ("ok", 54, 1, 0, 50),
        ("fill", 54, 7),
    ),
    "a new window begins with one probe": (
        ("send", 0), ("ok", 1, 0, 0, 50), ("send", 51), ("wait", 51, None),
        ("ok", 51.5, 1, 9, 110), ("fill", 51.5, 9),
    ),
    "what a window left can be used after the reset": (*OPEN, ("fill", 52, 9)),
    "an unsent request is free again, a lost one is not": (
        ("send", 0), ("ok", 1, 0, 3, 50), ("fill", 1, 3), ("unsent", 2, 1), ("fill", 2, 1),
        ("lost", 3, 2), ("fill", 3, 0),
    ),
    "a later answer shows that a lost request was not counted": (
        ("send", 0), ("ok", 1, 0, 5, 50), ("send", 1), ("lost", 2, 1), ("send", 3),
        ("ok", 4, 2, 4, 50), ("fill", 4, 4),
    ),
    "an answer without headers counts as one request": (
        ("send", 0), ("ok", 1, 0, 5, 50), ("send", 1), ("ok", 2, 1, None, None), ("fill", 2, 4),
    ),
    "nothing remains, although others used it": (
        *OPEN, ("send", 70), ("ok", 71, 1, 2, 120), ("send", 71), ("ok", 72, 2, 1, 120),
        ("send", 72), ("ok", 73, 3, 0, 120), ("wait", 73, 48),
    ),
    "a 429 stops all until its reset": (
        *OPEN, ("send", 1), ("429", 2, 1, 0, 30), ("wait", 2, 29), ("send", 31),
        ("wait", 31, None),
    ),
    "a 429 of an earlier window stops nothing": (
        *OPEN, ("send", 1), ("send", 52), ("ok", 53, 2, 8, 110), ("429", 54, 1, 0, 56),
        ("fill", 54, 8),
    ),
    "a 429 without a time lets all wait longer each time, and never means the month": (
        ("send", 0), ("429", 0, 0, None, None), ("wait", 0, 15),
        ("send", 15), ("429", 15, 1, None, None), ("wait", 15, 30),
        ("send", 45), ("429", 45, 2, None, None), ("wait", 45, 60),
        ("send", 105), ("429", 105, 3, None, None), ("wait", 105, 60),
        ("send", 165),
    ),
    "refusals of requests that left together are one": (
        ("send", 0), ("ok", 1, 0, 9, None), ("send", 1), ("send", 1), ("429", 2, 1, 0, 8),
        ("429", 2.1, 2, 0, 8), ("wait", 2.1, 6.9),
    ),
    "a 429 after the wait that the server requested makes the next one longer": (
        ("send", 0), ("429", 0, 0, 0, 0), ("wait", 0, 1),
        ("send", 1), ("429", 1, 1, 0, 1), ("wait", 1, 15),
        ("send", 16), ("429", 16, 2, 0, 16), ("wait", 16, 30),
    ),
    "a reset far away is the month's": (
        ("send", 0), ("429", 1, 0, 0, 2400), ("month", 1, NOW + 2400), ("month", 2399, NOW + 2400),
        ("send", 2401),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str) -> None:
    limiter, tickets = RateLimiter(), list[Ticket]()
    for what, at, *more in RULES[rule]:
        step = (what, at, *more)
        if what in ("ok", "429"):
            ticket, remaining, reset = more
            limit = None if remaining is None else 10
            rate = RateHeaders(
                limit, remaining, None if reset is None else NOW + reset, date=NOW + at
            )
            if what == "ok":
                limiter.record_response(at, tickets[ticket], rate)
            else:
                limiter.record_refusal(at, tickets[ticket], rate, 0.0)
        elif what in ("lost", "unsent"):
            getattr(limiter, f"record_{what}")(at, tickets[more[0]])
        elif what == "fill":
            before = len(tickets)
            while isinstance(found := limiter.acquire(at), Ticket):
                tickets.append(found)
            assert more[0] == len(tickets) - before, step
        else:
            found = limiter.acquire(at)
            if what == "send":
                assert isinstance(found, Ticket), (step, found)
                tickets.append(found)
            elif what == "month":
                assert QuotaExhausted(more[0]) == found, step
            else:
                assert isinstance(found, Wait), (step, found)
                assert pytest.approx(more[0]) == found.seconds, step


@pytest.mark.parametrize(
    ("reset", "date", "seconds"),
    [
        (NOW + 30, NOW, 31),
        (NOW - 570, NOW - 600, 31),
        (NOW + 30, NOW + 0.9, 30.1),
        (NOW + 59, NOW, 60),
        (NOW + 2400, NOW, 60),
        (NOW, NOW, 1),
        (NOW - 0.9, NOW, 0.1),
        (NOW - 1000, NOW, 60),
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
    limiter = RateLimiter()
    ticket = limiter.acquire(0)
    assert isinstance(ticket, Ticket)
    limiter.record_response(1, ticket, RateHeaders(10, 0, reset, date=date))

    wait = limiter.acquire(1)
    assert isinstance(wait, Wait)
    assert pytest.approx(seconds) == wait.seconds
    assert isinstance(limiter.acquire(1 + seconds + 0.001), Ticket)

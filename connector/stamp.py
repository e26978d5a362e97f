"""Moments as names of runs and files carry them: in UTC, to the second, in order when sorted."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def stamped(at: datetime) -> str:
    """The moment, as in 20261122T000029Z."""
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def new_id(at: datetime) -> str:
    """A name for what begins now, as in 20261122T000029Z-eac3b1: no other has it."""
    return f"{stamped(at)}-{secrets.token_hex(3)}"

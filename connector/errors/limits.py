"""Limits that end a run, and the turn of another run that lets none begin."""

from __future__ import annotations

from connector.errors.api import TryAgain
from connector.errors.root import ConnectorError


class Stopped(ConnectorError):
    """A limit was reached; everything so far is kept and the next run continues."""

    code = "stopped"
    action = "Run the same command again to continue."
    exit_status = 4


class BudgetSpent(Stopped):
    """The run's own limit of requests is spent."""

    code = "budget_spent"


class QuotaSpent(Stopped):
    """The month's allowance is spent; `resets_at` is an ISO date and time where it is known."""

    code = "quota_spent"

    def __init__(self, message: str, *, resets_at: str | None = None) -> None:
        self.resets_at = resets_at
        when = f" after {resets_at}" if resets_at else " in the next billing cycle"
        super().__init__(
            message, action=f"Run the same command again{when}; everything landed is kept."
        )


class LeaseHeld(TryAgain):
    """Another run of the same kind is under way at this account; this one sent nothing.

    It is no `Stopped`: nothing was begun that a repeat could continue, and whoever repeats while
    the exit status is 4 would not wait for anything.
    """

    code = "lease_held"
    action = "Wait until it has ended ('connector status' shows how far it is), or stop it."


class LeaseLost(Stopped):
    """The run was held up for so long that another one has begun in its place."""

    code = "lease_lost"

"""Request spenders, and processes that use a ledger, for the tests of the ledger."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import datetime
from pathlib import Path

from connector.catalog import CATALOG
from connector.client.messages import Request, build_get_request, build_list_request
from connector.ledger.ledger import Ledger, RequestSpender
from connector.ledger.quota import Allowance, utc_day
from connector.ledger.request_budget import RequestBudget
from tests.support.clock import START
from tests.support.processes import start_python

LIST = build_list_request(CATALOG["jobs"])
DETAIL = build_get_request(CATALOG["jobs"], "5d1c")


def make_spender(
    run_id: str = "a",
    *,
    monthly: int | None = None,
    reserve: int = 0,
    billing_day: int = 1,
    keeps_reserve: bool = True,
    ignores_quota: bool = False,
) -> RequestSpender:
    """Return the run whose requests are counted, with its limits. `monthly` is the plan's number of
    requests, None if unknown; `reserve` is the part that is kept for manual work.
    """
    terms = Allowance(monthly, reserve, billing_day)
    return RequestSpender(
        run_id, "pull", terms, keeps_reserve=keeps_reserve, ignores_quota=ignores_quota
    )


def read_used_requests(ledger: Ledger, now: datetime = START, billing_day: int = 1) -> int:
    """Return the number of requests recorded in the billing cycle of that time."""
    return ledger.read_month(Allowance(None, 0, billing_day), utc_day(now)).used


def spend_requests(budget: RequestBudget, *requests: Request) -> None:
    """Reserve requests of the budget one after another."""

    async def act() -> None:
        for each in requests:
            await budget.count_attempt(each)

    asyncio.run(act())


def start_program(program: str, folder: Path) -> subprocess.Popen[str]:
    """Start a process that runs a program with the folder as `sys.argv[1]`."""
    return start_python("-W", "error", "-c", program, str(folder))

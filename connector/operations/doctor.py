"""What could keep a pull from working, looked at one thing at a time, from the settings outwards.

At most one request for each scope is spent, and nothing is written but a file in the data folder
that is taken away again, and the count of the requests. No check ever shows the key. Only a repair
that was asked for changes anything: it sets a damaged log aside, and keeps it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Resource
from connector.client.client import Client
from connector.client.endpoint import Endpoint
from connector.client.sending import Limits
from connector.errors import (
    ConnectorError,
    DamagedLog,
    NothingPublished,
    SettingsError,
    WarehouseError,
    count_noun,
)
from connector.errors_api import Forbidden, RateLimited, ServerFailed, Stopped, Unauthorized
from connector.lakehouse.lake_status import standing
from connector.ledger.ledger import Ledger, Spender, terms_of
from connector.ledger.request_budget import Purse
from connector.operations.upkeep import Check, upkeep
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import set_logs_aside
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

SKEW_SECONDS_MAX = 60.0
"""A difference between the two clocks that is worth a warning."""

_LIMITS = Limits(deadline_seconds=20.0, attempts_max=2, retry_seconds_max=30.0)
_UNTOLD = (
    "Pulls begin carefully and slow down when the API refuses a request; nothing need be done."
)

_REPAIRED = "Run 'connector pull': it reads again what was in the log and has changed since."


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was looked at. `settings` are names, values as they may be shown, origins."""

    settings: tuple[tuple[str, str, str], ...]
    checks: tuple[Check, ...]
    requests: int

    @property
    def exit_status(self) -> int:
        """0 where a pull can work, 2 where settings must change first, else 1."""
        failed = [check.name for check in self.checks if check.state == "failed"]
        if not failed:
            return 0
        return SettingsError.exit_status if "settings" in failed else 1

    def as_json(self) -> dict[str, Any]:
        """The examination as `--json` prints it."""
        return {
            "settings": [
                {"name": name, "value": value, "origin": origin}
                for name, value, origin in self.settings
            ],
            "checks": [asdict(check) for check in self.checks],
            "requests": self.requests,
            "exit_status": self.exit_status,
        }


async def examine(
    settings: Settings,
    *,
    repairs: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Examination:
    """Look at everything that a pull needs. Whatever is found is told, and nothing is raised.

    With `repairs`, a damaged log of the work file is set aside first, and that is told too.
    """
    checks = [_settings(settings), _folder(settings.folder)]
    if repairs:
        checks.append(await asyncio.to_thread(_repair, settings.folder, now))
    checks.append(await asyncio.to_thread(_warehouse, settings.folder))
    if settings.lakehouse.value is not None:
        checks.append(await asyncio.to_thread(_lakehouse, settings))
    checks += await asyncio.to_thread(lambda: list(upkeep(settings, os.environ, now())))
    requests = 0
    if checks[0].state == "failed":
        checks += [Check(n, "not checked", "the settings come first") for n in ("address", "key")]
    else:
        with Ledger(settings.folder) as ledger:
            check, purse = await asyncio.to_thread(_count, settings, ledger, now)
            visit = _Visit(settings, now, purse)
            checks += [check, *await visit.examine()]
            requests = visit.requests
            if purse is not None:
                await purse.settle()
    return Examination(tuple(settings.rows()), tuple(checks), requests)


# -- this machine ---------------------------------------------------------------------------------


def _settings(settings: Settings) -> Check:
    """The address and the key are set."""
    try:
        settings.connection()
    except SettingsError as error:
        return _failed("settings", error)
    return Check("settings", "ok", "the address and the key are set")


def _folder(folder: Path) -> Check:
    """The data folder can be written to, or can be made."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".connector-doctor-") as file:
            file.write(b"well")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = f"{existing} cannot be written to: {error.strerror or error}"
        return _failed("data folder", WarehouseError(reason))
    if existing != folder:
        return Check("data folder", "ok", f"{folder} is not there yet; the first pull makes it")
    return Check("data folder", "ok", f"{folder} can be written to")


def _repair(folder: Path, now: Callable[[], datetime]) -> Check:
    """The work file's log can be read back, or is set aside and kept."""
    warehouse = Warehouse(folder)
    try:
        if not warehouse.exists:  # A pull takes back what the published file has.
            return Check("repair", "ok", "nothing is landed yet, so nothing can be damaged")
        warehouse.prepare()
    except DamagedLog as damage:
        try:
            moved = set_logs_aside(warehouse.work, now())
            warehouse.prepare()
        except ConnectorError as error:
            return _failed("repair", error)
        kept = " and ".join(str(each) for each in moved)
        found = f"{damage}; it was moved to {kept}, and nothing was deleted. {_standing(warehouse)}"
        return Check("repair", "ok", found, _REPAIRED)
    except ConnectorError as error:
        return _failed("repair", error)
    return Check("repair", "ok", "the log is whole, so nothing was changed")


def _standing(warehouse: Warehouse) -> str:
    """Up to when each resource of a file that lost its log is proven now."""
    standing = [
        f"{each.resource} {each.proven_at:%Y-%m-%d %H:%M:%S}"
        for each in warehouse.standing()
        if each.proven_at is not None
    ]
    if not standing:
        return "No resource is proven any more: the next pull loads them."
    return f"Proven are still (UTC): {', '.join(standing)}."


def _warehouse(folder: Path) -> Check:
    """The work file is one of ours and can be read."""
    warehouse = Warehouse(folder)
    try:
        if warehouse.is_lost:
            return Check("warehouse", "warning", LOST, LOST_ACTION)
        if not warehouse.exists:
            return Check("warehouse", "ok", "nothing is landed yet; the first pull makes it")
        warehouse.prepare()
        live = sum(each.live for each in warehouse.standing())
    except ConnectorError as error:
        return _failed("warehouse", error)
    return Check("warehouse", "ok", f"{warehouse.work} holds {live:,} live records")


def _lakehouse(settings: Settings) -> Check:
    """The lakehouse can be reached. A pull works without it, and publishes."""
    try:
        found = standing(settings)
    except NothingPublished as error:
        return Check("lakehouse", "ok", str(error))
    except ConnectorError as error:
        return Check("lakehouse", "warning", str(error), error.action)
    accounts = count_noun(len(found.entries), "account")
    return Check("lakehouse", "ok", f"{found.data} has {accounts}")


def _count(
    settings: Settings, ledger: Ledger, now: Callable[[], datetime]
) -> tuple[Check, Purse | None]:
    """The month's requests can be counted; with the purse that pays for those of the look.

    A person asks, so the reserve may be spent, and a month that the API called spent is looked at.
    """
    if not settings.folder.is_dir():
        return Check("requests", "ok", "none is counted yet; the first pull begins to"), None
    terms = terms_of(settings)
    try:
        month = ledger.standing(terms, now()).month
    except ConnectorError as error:
        return _failed("requests", error), None
    found = f"{month.used:,} counted since {month.period.begins}"
    if month.limit is not None:
        found += f", of {month.limit:,} until {month.period.ends}"
    spender = Spender("doctor", "doctor", terms, keeps_reserve=False, asks_anyway=True)
    return Check("requests", "ok", found), Purse(ledger, spender, now=now)


# -- the API --------------------------------------------------------------------------------------


class _Visit:
    """A look at the API: one short list for each scope.

    What has a parent has its parent's scope, and no list of its own to ask for (API 4.7).
    """

    def __init__(
        self, settings: Settings, now: Callable[[], datetime], purse: Purse | None
    ) -> None:
        connection = settings.connection()
        self._now = now
        self._base_url = connection.base_url
        self._client = Client(
            connection.base_url,
            connection.api_key,
            limits=_LIMITS,
            observer=self,
            toll=purse,
            **connection.route(),
        )
        self._skew_seconds: float | None = None
        self.requests = 0

    def before_send(self, request: object) -> None:
        """Count what leaves."""
        self.requests += 1

    def answered(self, request: object, status: int | None, seconds: float) -> None:
        """Answers are not counted."""

    def waited(self, seconds: float, why: str) -> None:
        """Waits are not counted."""

    async def examine(self) -> list[Check]:
        """Address, key, scopes, clock and limits, as far as each of them can be looked at."""
        scopes = []
        async with self._client:
            for resource in (each for each in CATALOG.values() if each.parent is None):
                try:
                    scopes.append(await self._scope(resource))
                except ConnectorError as error:
                    return [*self._let_in(error), *scopes, self._limits()]
        return [*self._let_in(None), *scopes, self._clock(), self._limits()]

    async def _scope(self, resource: Declaration) -> Check:
        """Whether the key may read the resource. Raises what concerns every other one as well."""
        name = f"scope {resource.read_scope()}"
        endpoint: Endpoint[Resource] = Endpoint(self._client, resource.record)
        try:
            page = await endpoint.list(page=1, per_page=1)
        except Forbidden as error:
            return Check(name, "warning", "missing: a pull leaves out what needs it", error.action)
        except ServerFailed as error:
            return _failed(name, error)
        if page.served_at is not None:
            self._skew_seconds = (self._now() - page.served_at).total_seconds()
        return Check(name, "ok", f"{page.total:,} {resource.name.replace('_', ' ')}")

    def _let_in(self, error: ConnectorError | None) -> list[Check]:
        """The address and the key, in the light of what ended the look at the scopes."""
        address = Check("address", "ok", f"{self._base_url} answers as the API does")
        match error:
            case None | Stopped() | RateLimited():
                return [address, Check("key", "ok", "the key is accepted")]
            case Unauthorized():
                return [address, _failed("key", error)]
        return [_failed("address", error), Check("key", "not checked", "the address comes first")]

    def _clock(self) -> Check:
        """How far this machine's clock is from the server's."""
        skew = self._skew_seconds
        if skew is None:
            return Check("clock", "warning", "the server does not tell its time")
        found = f"this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the API"
        if abs(skew) <= SKEW_SECONDS_MAX:
            return Check("clock", "ok", found)
        action = "Set this machine's clock. Pulls go by the server's clock and are not harmed."
        return Check("clock", "warning", found, action)

    def _limits(self) -> Check:
        """What the last answer said of the limits (API 8.3)."""
        pace = self._client.pace
        if pace.limit is None:
            return Check("limits", "warning", "the API does not tell its limit", _UNTOLD)
        found = f"{pace.limit:,} requests a minute"
        if pace.remaining is not None:
            found += f", {pace.remaining:,} left"
        seconds = pace.resets_in(time.monotonic())
        if seconds is not None:
            found += f", reset in {seconds:.0f} s"
        return Check("limits", "ok", found)


def _failed(name: str, error: ConnectorError) -> Check:
    return Check(name, "failed", str(error), error.action)

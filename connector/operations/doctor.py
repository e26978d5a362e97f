"""Doctor: checks of the settings, the files, the backups and the API of an account.

The doctor repairs nothing: each finding has the command or the sentence that repairs it. The API
gets one request per scope. No check shows a secret.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

from connector.atomic_files import find_wide_permissions
from connector.catalog import CATALOG
from connector.client.client import Client
from connector.client.session import Limits
from connector.errors import (
    DONE,
    FAILED,
    ConnectorError,
    Forbidden,
    RateLimited,
    ServerFailed,
    Stopped,
    Unauthorized,
    convert_file_errors,
)
from connector.operations.notify import send_test
from connector.operations.problems import FREE_BYTES_MIN, find_problems, read_state
from connector.pulls.account import RequestTally, check_account
from connector.settings import OPEN_TO_OTHERS, Settings
from connector.state.database import STATE_FILE, Database
from connector.state.database import check as check_state
from connector.state.lock import has_locks, no_locks_error
from connector.state.quota import Quota, format_moment
from connector.version import full_version
from connector.warehouse.warehouse import Warehouse

SKEW_SECONDS_MAX = 60.0
"""Difference between the two clocks, in seconds, that causes a warning."""

ROOM_SHARE, ROOM_BYTES_MIN = 3, 400 * 2**20
"""Space that a run may need, as a multiple of the work file's size, and at least."""

_LIMITS = Limits(deadline_seconds=20.0, attempts_max=2, retry_seconds_max=30.0)

State = Literal["failed", "warning", "ok"]

STATES: tuple[State, ...] = get_args(State)
"""States of a check, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check: what was found, and the action if there is a problem."""

    name: str
    state: State
    found: str
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """Checks of an account, and its settings as (name, displayed value, origin)."""

    settings: tuple[tuple[str, str, str], ...]
    checks: tuple[DoctorCheck, ...]
    requests: int

    @property
    def exit_status(self) -> int:
        """Return the status of a failure if a check failed."""
        return FAILED if any(check.state == "failed" for check in self.checks) else DONE

    def as_json(self) -> dict[str, Any]:
        """Return the examination as `--json` prints it."""
        names = ("name", "value", "origin")
        return {
            "settings": [dict(zip(names, each, strict=True)) for each in self.settings],
            "checks": [asdict(check) for check in self.checks],
            "requests": self.requests,
            "exit_status": self.exit_status,
        }


async def diagnose(settings: Settings, *, sends_test: bool = False) -> Examination:
    """Check everything that a pull needs. Problems are reported and not raised.

    With `sends_test`, send a test message to the addresses for notifications.
    """
    checks = await asyncio.to_thread(lambda: [*_check_locally(settings, sends_test=sends_test)])
    tally = RequestTally()
    # Requests of an account whose files are damaged or another account's could not be counted.
    if not any(each.state == "failed" for each in checks if each.name in ("settings", "files")):
        with Database(settings.folder) as database:
            meter = None
            if settings.folder.is_dir():
                meter = Quota(database, settings, "doctor", keeps_reserve=False, ignores_quota=True)
            checks += await _check_api(settings, tally, meter)
    return Examination(tuple(settings.display_rows()), tuple(checks), tally.requests)


# -- Settings and files ----------------------------------------------------------------------------


def _check_locally(settings: Settings, *, sends_test: bool) -> Iterator[DoctorCheck]:
    for name, check in _CHECKS.items():
        try:
            if sends_test and check is _check_notifications:
                send_test(settings)
                yield DoctorCheck(name, "ok", "a test message was sent to every address")
            else:
                yield DoctorCheck(name, *check(settings))
        except ConnectorError as error:
            yield DoctorCheck(name, "failed", str(error), error.action)


Result = tuple[State, str] | tuple[State, str, str]
"""State of a check, what was found, and the action if there is a problem."""


def _check_settings(settings: Settings) -> Result:
    settings.connection()
    return "ok", f"address and key are set; {full_version()} with DuckDB {version('duckdb')}"


def _check_folder(settings: Settings) -> Result:
    existing = _existing(settings.folder)
    with convert_file_errors(existing):
        if not has_locks(existing):
            raise no_locks_error(existing)
    if existing != settings.folder:
        return "ok", f"{settings.folder} does not exist yet. The first pull creates it"
    return "ok", f"{existing} can be written to, and its file system has locks"


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _check_files(settings: Settings) -> Result:
    warehouse, state = Warehouse(settings.folder), settings.folder / STATE_FILE
    if state.exists():
        check_state(state)
    check_account(settings)
    if not warehouse.exists:
        return "ok", "no records are loaded yet. The first pull creates the files"
    warehouse.prepare()
    live = sum(each.live for each in warehouse.status())
    return "ok", f"{warehouse.work} contains {live:,} live records of {settings.base_url}"


def _check_room(settings: Settings) -> Result:
    free, work = shutil.disk_usage(_existing(settings.folder)).free, Warehouse(settings.folder).work
    needed = max(ROOM_BYTES_MIN, ROOM_SHARE * (work.stat().st_size if work.exists() else 0))
    found = f"{free / 2**20:,.0f} MiB free; a run may need {needed / 2**20:,.0f} MiB"
    if free >= needed:
        return "ok", found
    action = "Free some space, or move the data folder to a larger disk before the next run."
    return "failed" if free < FREE_BYTES_MIN else "warning", found, action


def _check_permissions(settings: Settings) -> Result:
    found = [each.partition(": ")[0] for each in settings.warnings if OPEN_TO_OTHERS in each]
    found += map(str, find_wide_permissions(settings.folder))
    if not found:
        return "ok", "only the owner can open the account's files and the key files"
    more = f"; {len(found) - 3} more" if len(found) > 3 else ""
    action = "Run chmod 600 on files and chmod 700 on folders, unless this is intended."
    return "warning", "; ".join(found[:3]) + more, action


def _check_backup(settings: Settings) -> Result:
    state = read_state(settings, datetime.now(UTC))
    for problem in find_problems(state):
        if problem.code == "backup_failed":
            return "warning", f"{problem.title}. {problem.happened}", problem.action
    if not Warehouse(settings.folder).exists:
        return "ok", "no records are loaded yet"
    advice = "Run 'connector backup TO' every night, with TO on another disk."
    for at, file in ((each.began_at, each.file) for each in state.backups if each.file):
        found = f"the last backup was made at {format_moment(at)}: {file}"
        if Path(file).exists():
            return "ok", found
        return "warning", f"{found}, but the file does not exist any more", advice
    return "warning", "there is no backup", advice


def _check_notifications(settings: Settings) -> Result:
    if settings.notify_urls is None:
        found = "no address is configured, so nobody is notified when a pull fails"
        return "warning", found, "Set notify_urls_file: see docs/INSTALL.md."
    return "ok", "an address is configured; test it with 'connector doctor --send-test'"


_CHECKS: dict[str, Callable[[Settings], Result]] = {
    "settings": _check_settings,
    "data folder": _check_folder,
    "files": _check_files,
    "room": _check_room,
    "permissions": _check_permissions,
    "backup": _check_backup,
    "notifications": _check_notifications,
}


# -- The API ---------------------------------------------------------------------------------------


async def _check_api(
    settings: Settings, tally: RequestTally, meter: Quota | None
) -> list[DoctorCheck]:
    """Check address, key, scopes, records and clock, until an error affects all of them."""
    (base_url, api_key), scopes, skew = settings.connection(), list[DoctorCheck](), 0.0
    address = DoctorCheck("address", "ok", f"{base_url} is the API")
    client = Client(
        base_url, api_key, limits=_LIMITS, observer=tally, meter=meter,
        ca_file=settings.ca_file,
        proxy=settings.proxy,
    )  # fmt: skip
    async with client:
        # A resource with a parent has the parent's scope and no separate list (API 4.7).
        for resource in (each for each in CATALOG.values() if each.parent is None):
            name = f"scope {resource.read_scope()}"
            try:
                page = await client.page(resource.name, page=1, per_page=1)
            except Forbidden as error:
                found = "missing: pulls skip the resources that need this scope"
                scopes.append(DoctorCheck(name, "warning", found, error.action))
            except ServerFailed as error:
                scopes.append(DoctorCheck(name, "failed", str(error), error.action))
            except Unauthorized as error:
                return [address, DoctorCheck("key", "failed", str(error), error.action)]
            except ConnectorError as error:
                what = "requests" if isinstance(error, (Stopped, RateLimited)) else "address"
                return [DoctorCheck(what, "failed", str(error), error.action), *scopes]
            else:
                found = f"{page.total:,} {resource.name.replace('_', ' ')}"
                scopes.append(DoctorCheck(name, "ok", found))
                if page.served_at is not None:
                    skew = (datetime.now(UTC) - page.served_at).total_seconds()
    clock = DoctorCheck("clock", "ok", f"the clock differs by {abs(skew):.0f} s from the API's")
    if abs(skew) > SKEW_SECONDS_MAX:
        found = f"this machine's clock is {abs(skew):.0f} s"
        found += f" {'ahead of' if skew > 0 else 'behind'} the API's"
        action = "Correct this machine's clock. Pulls use the server's clock and are not affected."
        clock = DoctorCheck("clock", "warning", found, action)
    return [address, DoctorCheck("key", "ok", "the key is accepted"), *scopes, clock]

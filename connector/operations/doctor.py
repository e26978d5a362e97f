"""Doctor: checks of the settings, the files, the backups and the API of an account.

The doctor repairs nothing: each finding has the command or the sentence that repairs it. The API
gets one request per scope. No check shows a secret.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
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
    file_error,
)
from connector.operations.notify import send_test
from connector.operations.problems import FREE_BYTES_MIN
from connector.pulls.account import RequestTally, check_account
from connector.settings import OPEN_TO_OTHERS, Settings
from connector.state.database import STATE_FILE, Database
from connector.state.database import check as check_state
from connector.state.lock import has_locks, no_locks_error
from connector.state.quota import Quota, format_moment
from connector.state.runs import latest_backups
from connector.version import full_version
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

SKEW_SECONDS_MAX = 60.0
"""Difference between the two clocks, in seconds, that causes a warning."""

BACKUP_DAYS_MAX = 8
"""Age of the last backup that causes a warning: a week, and a day of tolerance."""

ROOM_SHARE, ROOM_BYTES_MIN = 3, 200 * 2**20
"""Space that a run may need, as a multiple of the work file's size, and at least."""

NEARLY_FULL_BYTES = 2**30
"""A disk with less than a twentieth free is nearly full, unless more than this is free."""

_LIMITS = Limits(deadline_seconds=20.0, attempts_max=2, retry_seconds_max=30.0)

State = Literal["failed", "warning", "ok"]

STATES: tuple[State, ...] = get_args(State)
"""States of a check, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check: its state, what was found, and the action if there is a problem."""

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
        return {
            "settings": [
                {"name": name, "value": value, "origin": origin}
                for name, value, origin in self.settings
            ],
            "checks": [asdict(check) for check in self.checks],
            "requests": self.requests,
            "exit_status": self.exit_status,
        }


async def diagnose(settings: Settings, *, sends_test: bool = False) -> Examination:
    """Check everything that a pull needs. Problems are reported and not raised.

    With `sends_test`, send a test message to the addresses for notifications.
    """
    checks = await asyncio.to_thread(lambda: [*_local_checks(settings, sends_test)])
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


def _local_checks(settings: Settings, sends_test: bool) -> Iterator[DoctorCheck]:
    """Yield the checks that need no request. An error that a check raises is a failed check."""
    checks: dict[str, Callable[[], DoctorCheck]] = {
        "settings": lambda: _check_settings(settings),
        "data folder": lambda: _check_folder(settings.folder),
        "files": lambda: _check_files(settings),
        "room": lambda: _check_room(settings.folder),
        "permissions": lambda: _check_permissions(settings),
        "backup": lambda: _check_backup(settings),
        "notifications": lambda: _check_notifications(settings, sends_test),
    }
    for name, check in checks.items():
        try:
            yield replace(check(), name=name)
        except ConnectorError as error:
            yield DoctorCheck(name, "failed", str(error), error.action)


def _ok(found: str, action: str | None = None) -> DoctorCheck:
    """Return a successful check, which the caller names."""
    return DoctorCheck("", "ok", found, action)


def _warning(found: str, action: str | None) -> DoctorCheck:
    """Return a check with a warning, which the caller names."""
    return DoctorCheck("", "warning", found, action)


def _check_settings(settings: Settings) -> DoctorCheck:
    """Check that the address and the key are set."""
    settings.connection()
    return _ok(f"address and key are set; {full_version()} with DuckDB {version('duckdb')}")


def _check_folder(folder: Path) -> DoctorCheck:
    """Check that the data folder can be written to or created, and that its disk has locks."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".connector-doctor-") as file:
            file.write(b"well")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise file_error(existing, error) from None
    if not has_locks(existing):
        raise no_locks_error(existing)
    if existing != folder:
        return _ok(f"{folder} does not exist yet. The first pull creates it")
    return _ok(f"{folder} can be written to, and its file system has locks")


def _check_files(settings: Settings) -> DoctorCheck:
    """Check that the work file and the state can be read, and belong together and to base_url."""
    warehouse, state = Warehouse(settings.folder), settings.folder / STATE_FILE
    if warehouse.is_lost:
        return _warning(LOST, LOST_ACTION)
    if state.exists():
        check_state(state)
    check_account(settings)
    if not warehouse.exists:
        return _ok("no records are loaded yet. The first pull creates the files")
    warehouse.prepare()
    live = sum(each.live for each in warehouse.status())
    return _ok(f"{warehouse.work} contains {live:,} live records of {settings.base_url}")


def _check_room(folder: Path) -> DoctorCheck:
    """Check that the disk has room for a run, and is not nearly full."""
    disk = shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists()))
    work = Warehouse(folder).work
    needed = max(ROOM_BYTES_MIN, ROOM_SHARE * (work.stat().st_size if work.exists() else 0))
    found = f"{disk.free / 2**20:,.0f} MiB free; a run may need {needed / 2**20:,.0f} MiB"
    action = "Free some space, or move the data folder to a larger disk before the next run."
    if disk.free < FREE_BYTES_MIN:
        return DoctorCheck("", "failed", found, action)
    if disk.free < max(needed, min(disk.total // 20, NEARLY_FULL_BYTES)):
        return _warning(found, action)
    return _ok(found)


def _check_permissions(settings: Settings) -> DoctorCheck:
    """Check that others cannot open the account's files or the files of its secrets."""
    keys = [each.partition(": ")[0] for each in settings.warnings if OPEN_TO_OTHERS in each]
    found = list(find_wide_permissions(settings.folder))
    if not keys and not found:
        return _ok("only the owner can open the account's files and the key files")
    shown = [*keys, *map(str, found)]
    more = f"; {len(shown) - 3} more" if len(shown) > 3 else ""
    action = "Run chmod 600 on the key file." if keys else found[0].action
    return _warning("; ".join(shown[:3]) + more, action)


def _check_backup(settings: Settings) -> DoctorCheck:
    """Check that the last backup is recent and still exists."""
    if not Warehouse(settings.folder).exists:
        return _ok("no records are loaded yet")
    advice = "Run 'connector backup TO' every night, with TO on another disk."
    with Database(settings.folder) as database:
        made = latest_backups(database) if database.exists else ()
    last = next(((each.began_at, Path(each.file)) for each in made if each.file), None)
    if last is None:
        return _warning("there is no backup", advice)
    at, file = last
    found = f"the last backup was made at {format_moment(at)}: {file}"
    if not file.exists():
        return _warning(f"{found}, but the file does not exist any more", advice)
    if datetime.now(UTC) - at > timedelta(days=BACKUP_DAYS_MAX):
        return _warning(found, advice)
    return _ok(found)


def _check_notifications(settings: Settings, sends_test: bool) -> DoctorCheck:
    """Check that an address for notifications is configured, and send a test if requested."""
    if sends_test:
        send_test(settings)
        return _ok("a test message was sent to every address")
    if settings.notify_urls is None:
        found = "no address is configured, so nobody is notified when a pull fails"
        return _warning(found, "Set notify_urls_file: see docs/INSTALL.md.")
    return _ok("an address is configured; test it with 'connector doctor --send-test'")


# -- The API ---------------------------------------------------------------------------------------


async def _check_api(
    settings: Settings, tally: RequestTally, meter: Quota | None
) -> list[DoctorCheck]:
    """Check address, key, scopes, records and clock, until an error affects all of them."""
    base_url, api_key = settings.connection()
    address = DoctorCheck("address", "ok", f"{base_url} is the API")
    client = Client(
        base_url, api_key, limits=_LIMITS, observer=tally, meter=meter,
        ca_file=settings.ca_file,
        proxy=settings.proxy,
    )  # fmt: skip
    scopes, clock = list[DoctorCheck](), list[DoctorCheck]()
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
            except (Stopped, RateLimited) as error:
                return [DoctorCheck("requests", "failed", str(error), error.action), *scopes]
            except Unauthorized as error:
                return [address, DoctorCheck("key", "failed", str(error), error.action)]
            except ConnectorError as error:
                return [DoctorCheck("address", "failed", str(error), error.action), *scopes]
            else:
                found = f"{page.total:,} {resource.name.replace('_', ' ')}"
                scopes.append(DoctorCheck(name, "ok", found))
                if page.served_at is not None:
                    clock = [_check_clock((datetime.now(UTC) - page.served_at).total_seconds())]
    return [address, DoctorCheck("key", "ok", "the key is accepted"), *scopes, *clock]


def _check_clock(skew: float) -> DoctorCheck:
    """Report the difference to the server's clock in seconds; a large one is a warning."""
    found = f"this machine's clock is {abs(skew):.0f} s"
    found += f" {'ahead of' if skew > 0 else 'behind'} the API's"
    if abs(skew) <= SKEW_SECONDS_MAX:
        return DoctorCheck("clock", "ok", found)
    action = "Correct this machine's clock. Pulls use the server's clock and are not affected."
    return DoctorCheck("clock", "warning", found, action)

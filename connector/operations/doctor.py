"""Doctor: checks of everything that pulls need, and of backups, disks and schedules.

Local checks send no requests; a webhook or a mail server is only connected to. The API gets at most
one request per scope. The doctor only writes a temporary file in the data folder, and the number of
requests. No check shows a secret. Only a requested repair makes changes: it moves a damaged log
aside.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from connector.atomic_files import find_wide_permissions
from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Page, Resource
from connector.client.client import Client, Limits
from connector.client.limiter import RateLimiter
from connector.errors import ConnectorError, DamagedLog, SettingsError, WarehouseError, count_noun
from connector.errors_api import Forbidden, RateLimited, ServerFailed, Stopped, Unauthorized
from connector.ledger.erasures import Backups, Erasures
from connector.ledger.ledger import LEDGER_FILE, Ledger, RequestSpender, allowance_of
from connector.ledger.ledger_schema import LEDGER_VERSION
from connector.ledger.quota import format_moment
from connector.ledger.receipts import RECEIPT_MISSING_ACTION
from connector.ledger.request_budget import RequestBudget
from connector.ledger.sqlite_file import check_ledger
from connector.operations.folder_identity import confirm_move, find_owner, replace_ledger
from connector.operations.restore import leftover_folders
from connector.privacy.receipt import rewrite_receipt
from connector.pulls.outcome import RequestTally
from connector.pulls.workspace import (
    check_address,
    check_files,
    find_first_existing,
    read_folder_identity,
)
from connector.settings.credentials import OPEN_TO_OTHERS
from connector.settings.model import Settings, configured_accounts, unclaimed_folders
from connector.settings.values import OFF
from connector.version import full_version
from connector.warehouse.duckdb_file import lock_and_move_logs
from connector.warehouse.schema import SCHEMA_VERSION
from connector.warehouse.state import read_oldest_keys
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

SKEW_SECONDS_MAX = 60.0
"""Difference between the two clocks, in seconds, that causes a warning."""

BACKUP_DAYS_MAX = 8
"""Age of the last backup that causes a warning: a week, and a day of tolerance."""

ROOM_SHARE = 3
"""Space that a run may need at the same time, as a multiple of the work file's size."""

ROOM_BYTES_MIN = 200 * 1024 * 1024

NEARLY_FULL_BYTES = 2**30
"""A disk with less than a twentieth free is nearly full, unless more than this is free."""

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")

_LIMITS = Limits(deadline_seconds=20.0, attempts_max=2, retry_seconds_max=30.0)

FOLDERS = "folders"
"""Name of the check of the data folder, which is the same for every account in it."""

WORKSPACE = "workspace"
"""Name of the check that the folder belongs to the configured workspace."""

_FIRST = ("settings", WORKSPACE)
"""Checks that must succeed before a request is sent."""

KNOWN_IDS = 3
"""Number of the folder's records that are searched in the workspace."""

State = Literal["ok", "warning", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check: its state, what was found, and the action if there is a problem."""

    name: str
    state: State
    found: str
    action: str | None = None


CheckOutcome = tuple[State, str, str | None]
"""State, finding, and the action if there is a problem."""

PendingChecks = Iterable[tuple[str, Callable[[], CheckOutcome]]]
"""Name of each check, and the function that runs it."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Checks of an account, and its settings as (name, displayed value, origin)."""

    settings: tuple[tuple[str, str, str], ...]
    checks: tuple[DoctorCheck, ...]
    requests: int

    @property
    def has_warnings(self) -> bool:
        """Return True if a check has a warning."""
        return any(check.state == "warning" for check in self.checks)

    @property
    def exit_status(self) -> int:
        """Return 0 if a pull can run, 2 if settings must change first, else 1."""
        failed = [check.name for check in self.checks if check.state == "failed"]
        if not failed:
            return 0
        return SettingsError.exit_status if "settings" in failed else 1

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


async def diagnose(
    settings: Settings,
    *,
    repairs: bool = False,
    renews_ledger: bool = False,
    moved_to: str | None = None,
) -> Examination:
    """Check everything that a pull needs. Problems are reported and not raised.

    `repairs` first moves a damaged log of the work file aside, `renews_ledger` replaces a lost or
    damaged ledger, and `moved_to` is a new address of the folder's workspace. The result has a
    check for each of these changes.
    """
    requested = {"repairs": repairs, "renews_ledger": renews_ledger}
    move_checks = [] if moved_to is None else [await _accept_move(settings, moved_to)]
    local = (
        *_pull_checks(settings, **requested),
        *_folder_and_settings_checks(settings, os.environ, datetime.now(UTC)),
    )
    checks = await asyncio.to_thread(lambda: list(_run_checks(local)))
    checks[2:2] = move_checks
    requests = 0
    blocked = next((c.name for c in checks if c.state == "failed" and c.name in _FIRST), None)
    if blocked is not None:
        found = f"first fix the check '{blocked}'"
        checks += [DoctorCheck(n, "not checked", found) for n in ("address", "key")]
    else:
        with Ledger(settings.folder) as ledger:
            check, meter = await asyncio.to_thread(_check_quota, settings, ledger)
            tally = RequestTally()
            checks += [check, *await _check_api(settings, tally, meter)]
            requests = tally.requests
            if meter is not None:
                await meter.return_unused()
    return Examination(tuple(settings.display_rows()), tuple(checks), requests)


def _run_checks(pending: PendingChecks) -> Iterator[DoctorCheck]:
    """Yield the result of each check. An error that a check raises is a failed check."""
    for name, look in pending:
        try:
            yield DoctorCheck(name, *look())
        except ConnectorError as error:
            yield _failed_check(name, error)


def _failed_check(name: str, error: ConnectorError) -> DoctorCheck:
    """Return the failed check for an error, with the error's action."""
    return DoctorCheck(name, "failed", str(error), error.action)


def _ok(found: str, action: str | None = None) -> CheckOutcome:
    """Return the outcome of a successful check."""
    return "ok", found, action


def _warning(found: str, action: str | None) -> CheckOutcome:
    """Return the outcome of a check with a warning."""
    return "warning", found, action


# -- What a pull needs -----------------------------------------------------------------------------


def _pull_checks(settings: Settings, *, repairs: bool, renews_ledger: bool) -> PendingChecks:
    """Yield the checks of files and settings that a pull needs, and requested repairs."""
    warehouse = Warehouse(settings.folder)
    yield "settings", lambda: _check_settings(settings)
    yield "data folder", lambda: _check_folder(settings)
    if repairs:
        yield "repair", lambda: _repair_work_file(warehouse)
        yield "receipts", lambda: _repair_receipts(settings)
    if renews_ledger:
        yield "new ledger", lambda: _replace_ledger(settings)
    yield "warehouse", lambda: _check_warehouse(warehouse)
    yield "ledger", lambda: _check_ledger(settings)
    yield WORKSPACE, lambda: _check_workspace(settings)


def _check_settings(settings: Settings) -> CheckOutcome:
    """Check that the address and the key are set. Raises `SettingsError`."""
    settings.connection()
    return _ok("the address and the key are set")


def _check_folder(settings: Settings) -> CheckOutcome:
    """Check that the data folder can be written to or created."""
    folder = settings.folder
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".connector-doctor-") as file:
            file.write(b"well")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = f"{existing} cannot be written to: {error.strerror or error}"
        raise WarehouseError(reason) from None
    if existing != folder:
        return _ok(f"{folder} does not exist yet. The first pull creates it")
    return _ok(f"{folder} can be written to")


def _repair_work_file(warehouse: Warehouse) -> CheckOutcome:
    """Check that the work file's write-ahead log can be read; move a damaged log aside."""
    if not warehouse.exists:  # A pull restores it from the published file.
        return _ok("no records are loaded yet")
    try:
        warehouse.prepare()
    except DamagedLog as damage:
        moved_logs = lock_and_move_logs(warehouse.work, datetime.now(UTC))
        warehouse.prepare()
        file_names = " and ".join(str(each) for each in moved_logs)
        verified = _describe_verified_times(warehouse)
        found = f"{damage}; the damaged log was moved to {file_names}. {verified}"
        action = "Run 'connector pull': it reads the lost changes again."
        return _ok(found, action)
    return _ok("the log is not damaged. Nothing was changed")


def _repair_receipts(settings: Settings) -> CheckOutcome:
    """Write missing receipts of erasures again from the data in the ledger."""
    with Ledger(settings.folder) as ledger:
        missing = Erasures(ledger).missing_receipts() if ledger.exists else []
    if not missing:
        return _ok("no receipt is missing. Nothing was changed")
    written = [rewrite_receipt(each, settings) for each in missing]
    return _ok(f"written again from the ledger: {', '.join(map(str, written))}")


def _describe_verified_times(warehouse: Warehouse) -> str:
    """Return a sentence on the time up to which each resource is verified."""
    proven = [
        f"{each.resource} {each.proven_at:%Y-%m-%d %H:%M:%S}"
        for each in warehouse.status()
        if each.proven_at is not None
    ]
    if not proven:
        return "No resource is verified any more. The next pull loads all resources again."
    return f"Verified until (UTC): {', '.join(proven)}."


def _check_warehouse(warehouse: Warehouse) -> CheckOutcome:
    """Check that the work file belongs to this program and can be read."""
    if warehouse.is_lost:
        return _warning(LOST, LOST_ACTION)
    if not warehouse.exists:
        return _ok("no records are loaded yet. The first pull creates the file")
    warehouse.prepare()
    live = sum(each.live for each in warehouse.status())
    return _ok(f"{warehouse.work} contains {live:,} live records")


def _replace_ledger(settings: Settings) -> CheckOutcome:
    """Replace the ledger if it is lost, damaged or belongs to another folder."""
    replaced = replace_ledger(settings, datetime.now(UTC))
    if replaced is None:
        return _ok("the ledger is not damaged. Nothing was changed")
    kept_file = "" if replaced.aside is None else f" The old file is in {replaced.aside}."
    return _warning(
        f"a new ledger was created: {replaced.reason}.{kept_file} {' '.join(replaced.forgotten)}",
        "Run 'connector pull'. Then check the rows of recent pushes on the platform.",
    )


def _check_ledger(settings: Settings) -> CheckOutcome:
    """Check that the ledger can be read and belongs to the same folder as the work file."""
    path = settings.folder / LEDGER_FILE
    check_files(settings)
    if not path.exists():
        return _ok("no requests are counted yet. The first pull creates the ledger")
    check_ledger(path)
    return _ok(f"{path} belongs to this folder")


def _check_workspace(settings: Settings) -> CheckOutcome:
    """Check that the folder's records belong to the configured address."""
    address = settings.base_url.value
    try:
        with Ledger(settings.folder) as ledger:
            identity = read_folder_identity(ledger, Warehouse(settings.folder))
    except WarehouseError:
        return "not checked", "fix the checks 'warehouse' and 'ledger' first", None
    if identity is None or address is None:
        return _ok("the folder does not belong to a workspace yet")
    check_address(identity, address, Warehouse(settings.folder))
    return _ok(f"{settings.folder} belongs to {identity.address}; version {identity.written_by}")


async def _accept_move(settings: Settings, address: str) -> DoctorCheck:
    """Accept the new address of the workspace, after comparing a few records."""
    try:
        return DoctorCheck("moved", "ok", await confirm_move(settings, address))
    except ConnectorError as error:
        return _failed_check("moved", error)


# -- Upkeep ----------------------------------------------------------------------------------------


def _folder_and_settings_checks(
    settings: Settings, environ: Mapping[str, str], now: datetime
) -> PendingChecks:
    """Return the checks of backups, disk space, permissions, alerts and schedules."""
    return (
        ("versions", _check_versions),
        ("room", lambda: _check_disk_space(settings)),
        ("permissions", lambda: _check_permissions(settings)),
        ("backup", lambda: _check_backup(settings, now)),
        (FOLDERS, lambda: _check_folders(settings, environ)),
        ("leftovers", lambda: _check_leftovers(settings)),
        ("erasures", lambda: _check_erasures(settings)),
        ("notifications", lambda: _check_notifications(settings)),
        ("schedules", lambda: _check_schedules(settings)),
        ("proxy", lambda: _check_proxy(settings, environ)),
    )


def _check_versions() -> CheckOutcome:
    """Report the versions of the connector, DuckDB and the file formats."""
    return _ok(
        f"{full_version()} with DuckDB {version('duckdb')}; format of work files: "
        f"{SCHEMA_VERSION}, of ledgers: {LEDGER_VERSION}"
    )


def _check_disk_space(settings: Settings) -> CheckOutcome:
    """Check that the disk has room for a run, and is not nearly full."""
    folder = settings.folder
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    disk = shutil.disk_usage(existing)
    free = disk.free
    work = Warehouse(folder).work
    needed = max(ROOM_BYTES_MIN, ROOM_SHARE * (work.stat().st_size if work.exists() else 0))
    found = f"{free / 2**20:,.0f} MiB free; a run may need {needed / 2**20:,.0f} MiB"
    action = "Free some space, or move the data folder to a larger disk before the next run."
    if free < ROOM_BYTES_MIN // 10:
        return "failed", found, action
    if free < max(needed, min(disk.total // 20, NEARLY_FULL_BYTES)):
        return _warning(found, action)
    return _ok(found)


def _check_permissions(settings: Settings) -> CheckOutcome:
    """Check that others cannot open the account's files or the files of its secrets."""
    found = list(find_wide_permissions(settings.folder))
    keys = [each for each in settings.warnings if OPEN_TO_OTHERS in each]
    if keys:
        others = f"; {count_noun(len(found), 'other file')}" if found else ""
        return _warning(keys[0].partition(": ")[0] + others, "Run chmod 600 on the key file.")
    if not found:
        return _ok("only the owner can open the account's files and the key files")
    message = "; ".join(map(str, found[:3])) + (
        f"; {len(found) - 3} more" if len(found) > 3 else ""
    )
    return _warning(message, found[0].action)


def _check_backup(settings: Settings, now: datetime) -> CheckOutcome:
    """Check that the last backup is recent and still exists."""
    if not Warehouse(settings.folder).exists:
        return _ok("no records are loaded yet")
    advice = "Run 'connector backup TO' every night, with TO on another disk."
    with Ledger(settings.folder) as ledger:
        backups = Backups(ledger).latest_backups() if ledger.exists else ()
    last = next((each for each in backups if each.file is not None), None)
    if last is None:
        return _warning("there is no backup", advice)
    assert last.file is not None
    found = f"the last backup was made at {format_moment(last.began_at)}: {last.file}"
    if not last.file.exists():
        return _warning(f"{found}, but the file does not exist any more", advice)
    if now - last.began_at > timedelta(days=BACKUP_DAYS_MAX):
        return _warning(found, advice)
    return _ok(found)


def _check_folders(settings: Settings, environ: Mapping[str, str]) -> CheckOutcome:
    """Check that every folder in the data folder belongs to an account."""
    found = unclaimed_folders(settings)
    if not found:
        return _ok("every folder belongs to a configured account")
    accounts = configured_accounts(environ, Path.cwd())
    unclaimed = [find_owner(folder, accounts) for folder in found]
    message = "; ".join(map(str, unclaimed))
    return _warning(message, " ".join(dict.fromkeys(each.action for each in unclaimed)))


def _check_leftovers(settings: Settings) -> CheckOutcome:
    """Check that no replaced files of a restore are left, because erasures do not change them."""
    found = leftover_folders(settings.folder)
    if not found:
        return _ok("no replaced files of a restore")
    action = (
        "Delete the files when you no longer need them. They contain personal data that "
        "erasures do not remove."
    )
    return _warning(f"replaced files of a restore: {', '.join(map(str, found))}", action)


def _check_erasures(settings: Settings) -> CheckOutcome:
    """Check that erasures are complete and that erased people are recognized."""
    with Ledger(settings.folder) as ledger:
        erasures = Erasures(ledger)
        unended = len(erasures.unfinished_erasures()) if ledger.exists else 0
        unlisted = erasures.count_missing_hashes() if ledger.exists else 0
        missing = erasures.missing_receipts() if ledger.exists else []
    if missing:
        return _warning("; ".join(map(str, missing)), RECEIPT_MISSING_ACTION)
    if unlisted:
        found = f"the list in {ledger.path.name} lacks {count_noun(unlisted, 'hash', 'hashes')}"
        action = (
            "The next pull adds them again from the receipts. Find out why they were lost, for "
            "example by an older copy of the ledger."
        )
        return _warning(f"{found} of the erasure receipts", action)
    if unended:
        action = "Run 'connector erase --apply' to complete the erasure."
        return _warning(f"{unended} interrupted", action)
    return _ok("no interrupted erasures")


def _check_notifications(settings: Settings) -> CheckOutcome:
    """Check that an address for notifications is configured. Nothing is sent."""
    if settings.notify_urls.value is None:
        found = "no address is configured, so nobody is notified when a pull fails"
        return _warning(found, "Set notify_urls_file: see docs/MONITORING.md.")
    return _ok("an address is configured; nothing was sent")


def _check_schedules(settings: Settings) -> CheckOutcome:
    """Report which schedules are switched on in the settings."""
    crons = {
        "nightly": settings.nightly_cron.value,
        "intraday": settings.intraday_cron.value,
        "weekly": settings.verification_cron.value,
    }
    on = [f"{name} at '{cron}'" for name, cron in crons.items() if cron != OFF]
    if not on:
        return _ok("all schedules are off")
    zone = settings.time_zone.value
    return _ok(
        f"{', '.join(on)} ({zone}). They run only if Dagster is running and the schedules "
        f"are switched on"
    )


def _check_proxy(settings: Settings, environ: Mapping[str, str]) -> CheckOutcome:
    """Report which proxy is used, and which proxy variables are ignored."""
    if settings.proxy.value is not None:
        return _ok(f"{settings.proxy.value}, from {settings.proxy.origin}")
    there = [name for name in PROXIES if environ.get(name)]
    if not there:
        return _ok("no proxy is configured")
    verb = "are" if len(there) > 1 else "is"
    found = (
        f"{' and '.join(there)} {verb} set in the environment, but the connector does not use it"
    )
    return _ok(found, "If the API is only reachable through this proxy, set CONNECTOR_PROXY.")


# -- The API ---------------------------------------------------------------------------------------


def _check_quota(settings: Settings, ledger: Ledger) -> tuple[DoctorCheck, RequestBudget | None]:
    """Check the month's requests. Return also the budget that counts this command's requests.

    The budget is None if nothing can be counted. This command may use reserved requests, and sends
    requests even if the API reported the quota as used up.
    """
    if not settings.folder.is_dir():
        return DoctorCheck("requests", "ok", "no requests are counted yet"), None
    policy = allowance_of(settings)
    try:
        month = ledger.status(policy, datetime.now(UTC)).month
    except ConnectorError as error:
        return _failed_check("requests", error), None
    found = f"{month.used:,} counted since {month.period.begins}"
    if month.limit is not None:
        found += f", of {month.limit:,} until {month.period.ends}"
    spender = RequestSpender("doctor", "doctor", policy, keeps_reserve=False, ignores_quota=True)
    return DoctorCheck("requests", "ok", found), RequestBudget(ledger, spender)


async def _check_api(
    settings: Settings, tally: RequestTally, meter: RequestBudget | None
) -> list[DoctorCheck]:
    """Check address, key, scopes, records, clock and limits, until an error affects all of them.

    Requests one short list for each scope, and some records that the folder has. A resource with a
    parent has the parent's scope and no separate list (API 4.7).
    """
    connection = settings.connection()
    address, key = connection.base_url, connection.api_key
    route = connection.client_options()
    client = Client(address, key, limits=_LIMITS, observer=tally, meter=meter, **route)
    scopes: list[DoctorCheck] = []
    skew: float | None = None
    async with client:
        for resource in (each for each in CATALOG.values() if each.parent is None):
            try:
                page, check = await _check_scope(client, resource)
            except ConnectorError as error:
                return [*_address_checks(address, error), *scopes, _check_limits(client.limiter)]
            scopes.append(check)
            if page is not None and page.served_at is not None:
                skew = (datetime.now(UTC) - page.served_at).total_seconds()
        scopes += await _check_known_records(client, settings)
    return [
        *_address_checks(address, None),
        *scopes,
        _check_clock(skew),
        _check_limits(client.limiter),
    ]


async def _check_scope(
    client: Client, resource: Declaration
) -> tuple[Page[Resource] | None, DoctorCheck]:
    """Check that the key may read the resource, and return the page that was read.

    Raises errors that affect all resources.
    """
    name = f"scope {resource.read_scope()}"
    try:
        page = await client.page(resource.name, page=1, per_page=1)
    except Forbidden as error:
        found = "missing: pulls skip the resources that need this scope"
        return None, DoctorCheck(name, "warning", found, error.action)
    except ServerFailed as error:
        return None, _failed_check(name, error)
    return page, DoctorCheck(name, "ok", f"{page.total:,} {resource.name.replace('_', ' ')}")


async def _check_known_records(client: Client, settings: Settings) -> list[DoctorCheck]:
    """Check that the workspace has a record of the folder; no check if the folder is empty."""
    warehouse = Warehouse(settings.folder)
    try:
        if not warehouse.exists:
            return []
        known = await asyncio.to_thread(warehouse.read, read_oldest_keys, KNOWN_IDS)
        if not known:
            return []
        found = await find_first_existing(client, known)
    except ConnectorError as error:
        return [_failed_check("known records", error)]
    if found is not None:
        return [
            DoctorCheck(
                "known records",
                "ok",
                f"a loaded record exists in this workspace ({found[0]} {found[1]})",
            )
        ]
    return [
        DoctorCheck(
            "known records",
            "failed",
            (
                f"{len(known)} loaded records of {settings.folder} were checked, and none "
                "exists in this workspace"
            ),
            "The key may belong to another workspace: check CONNECTOR_API_KEY, or set"
            " CONNECTOR_DATA_DIR to another folder.",
        )
    ]


def _address_checks(base_url: str, error: ConnectorError | None) -> list[DoctorCheck]:
    """Return the checks of address and key; `error` ended the checks of the scopes."""
    address = DoctorCheck("address", "ok", f"{base_url} is the API")
    match error:
        case None | Stopped() | RateLimited():
            return [address, DoctorCheck("key", "ok", "the key is accepted")]
        case Unauthorized():
            return [address, _failed_check("key", error)]
    return [
        _failed_check("address", error),
        DoctorCheck("key", "not checked", "fix the check 'address' first"),
    ]


def _check_clock(skew: float | None) -> DoctorCheck:
    """Report the difference to the server's clock in seconds; a large one is a warning."""
    if skew is None:
        return DoctorCheck(
            "clock", "warning", "the API does not report its time, so the clock was not checked"
        )
    found = (
        f"this machine's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the "
        f"API's"
    )
    if abs(skew) <= SKEW_SECONDS_MAX:
        return DoctorCheck("clock", "ok", found)
    action = "Correct this machine's clock. Pulls use the server's clock and are not affected."
    return DoctorCheck("clock", "warning", found, action)


def _check_limits(limiter: RateLimiter) -> DoctorCheck:
    """Check the rate limits of the last response (API 8.3)."""
    if limiter.limit is None:
        action = "Nothing to do: pulls start slowly and adapt to the API."
        return DoctorCheck("limits", "warning", "the API does not report a rate limit", action)
    found = f"{limiter.limit:,} requests a minute"
    if limiter.remaining is not None:
        found += f", {limiter.remaining:,} left"
    seconds = limiter.resets_in(time.monotonic())
    if seconds is not None:
        found += f", reset in {seconds:.0f} s"
    return DoctorCheck("limits", "ok", found)

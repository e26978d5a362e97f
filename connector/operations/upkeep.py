"""What keeps an account well from one night to the next, looked at one thing at a time.

Files and settings alone: nothing is changed, no request of the API is spent, and of a webhook or a
mail server only the connection is tried. No check shows a secret.
"""

from __future__ import annotations

import shutil
import smtplib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Literal
from urllib.parse import urlsplit

from connector.engine.quota import shown
from connector.errors import ConnectorError, count_noun
from connector.ledger.erasures import Backups, Erasures
from connector.ledger.ledger import Ledger
from connector.ledger.sqlite_file import LATEST
from connector.operations.restore import leftovers
from connector.privacy.harm import REREAD, counts_of, harmed
from connector.settings.model import Settings
from connector.settings.values import OFF, PORTS
from connector.system.atomic_files import wide
from connector.warehouse.schema import SCHEMA_VERSION
from connector.warehouse.warehouse import Warehouse

BACKUP_DAYS_MAX = 8
"""A last backup that is older than a week, and a day to be late, is worth a warning."""

ROOM_SHARE = 3
"""A run may need so many times the work file's bytes at once: a draft, a fresh file, a log."""

ROOM_BYTES_MIN = 200 * 1024 * 1024

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")

_SECONDS = 5.0

State = Literal["ok", "warning", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, and what to do where it is not well."""

    name: str
    state: State
    found: str
    action: str | None = None


def upkeep(settings: Settings, environ: Mapping[str, str], now: datetime) -> Iterator[Check]:
    """Look at versions, room, permissions, backups, what restores left, erasures, alerts, schedules
    and proxies. Whatever is found is told, and nothing is raised.
    """
    looks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("versions", _versions),
        ("room", lambda: _room(settings)),
        ("permissions", lambda: _permissions(settings)),
        ("backup", lambda: _backup(settings, now)),
        ("leftovers", lambda: _leftovers(settings)),
        ("erasures", lambda: _erasures(settings)),
        ("alerts", lambda: _alerts(settings)),
        ("schedules", lambda: _schedules(settings)),
        ("proxy", lambda: _proxy(settings, environ)),
    )
    for name, look in looks:
        try:
            yield look()
        except ConnectorError as error:
            yield Check(name, "failed", str(error), error.action)


def _versions() -> Check:
    """Which program it is, and which files it writes."""
    found = (
        f"{version('recruitment-connector')} with DuckDB {version('duckdb')}; it writes work files"
        f" of migration {SCHEMA_VERSION} and ledgers of migration {LATEST}"
    )
    return Check("versions", "ok", found)


def _room(settings: Settings) -> Check:
    """Whether the disk has room for what a run may need at once."""
    folder = settings.folder
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    work = Warehouse(folder).work
    size = work.stat().st_size if work.exists() else 0
    needed = max(ROOM_BYTES_MIN, ROOM_SHARE * size)
    found = f"{free / 2**20:,.0f} MiB are free, and a run may need {needed / 2**20:,.0f}"
    if free >= needed:
        return Check("room", "ok", found)
    action = "Free some space, or move the data folder to a larger disk before the next run."
    return Check("room", "warning", found, action)


def _permissions(settings: Settings) -> Check:
    """Whether others may open what is personal."""
    found = list(wide(settings.folder))
    if not found:
        return Check("permissions", "ok", "nobody but the owner may open the account's files")
    said = "; ".join(map(str, found[:3])) + (f"; {len(found) - 3} more" if len(found) > 3 else "")
    return Check("permissions", "warning", said, found[0].action)


def _backup(settings: Settings, now: datetime) -> Check:
    """How old the last backup is, and whether it is still there."""
    if not Warehouse(settings.folder).exists:
        return Check("backup", "ok", "nothing is landed yet, so nothing can be lost")
    advice = "Run 'connector backup TO' every night, with TO on another disk."
    with Ledger(settings.folder) as ledger:
        last = Backups(ledger).last() if ledger.exists else None
    if last is None:
        return Check("backup", "warning", "no backup was ever made", advice)
    found = f"the last backup is of {shown(last.made_at)}: {last.file}"
    if not last.file.exists():
        return Check("backup", "warning", f"{found}, which is not there (any more)", advice)
    if now - last.made_at > timedelta(days=BACKUP_DAYS_MAX):
        return Check("backup", "warning", found, advice)
    return Check("backup", "ok", found)


def _leftovers(settings: Settings) -> Check:
    """Whether copies of the account lie about, which nobody who is erased leaves."""
    found = leftovers(settings.folder)
    if not found:
        return Check("leftovers", "ok", "no restore has left anything")
    action = "Remove it as soon as nobody needs it: it holds people, and no erasure reaches it."
    return Check("leftovers", "warning", f"left by a restore: {', '.join(map(str, found))}", action)


def _erasures(settings: Settings) -> Check:
    """Whether an erasure was begun and not ended, whether everybody erased is known again, and
    whether one may have overwritten others.
    """
    with Ledger(settings.folder) as ledger:
        erasures = Erasures(ledger)
        unended = len(erasures.unended()) if ledger.exists else 0
        unlisted = erasures.unlisted() if ledger.exists else 0
    if unlisted:
        found = f"the list in {ledger.path.name} lacks {count_noun(unlisted, 'hash', 'hashes')}"
        action = "Nothing: the next pull takes them from the receipts. Find out what was lost."
        return Check("erasures", "warning", f"{found} that receipts have", action)
    if unended:
        action = "Run 'connector erase --apply', which brings it to its end."
        return Check("erasures", "warning", f"{unended} begun and not ended", action)
    if suspects := harmed(settings):
        found = f"an earlier one may have overwritten texts of others: {counts_of(suspects)}"
        return Check("erasures", "warning", found, REREAD)
    return Check("erasures", "ok", "none was cut off, and none has overwritten others")


def _alerts(settings: Settings) -> Check:
    """Whether alerts go anywhere, and whether somebody listens there. Nothing is sent."""
    tried: list[str] = []
    webhook, host = settings.alert_webhook.value, settings.alert_email_host.value
    if webhook is not None:
        parts = urlsplit(webhook.get_secret_value())
        port = parts.port or (443 if parts.scheme == "https" else 80)
        _connect(parts.hostname or "", port, is_tls=parts.scheme == "https", failed=tried)
    if host is not None:
        security = settings.alert_email_security.value
        port = settings.alert_email_port.value or PORTS[security]
        _greet(host, port, security, failed=tried)
    if webhook is None and host is None:
        found = "neither a webhook nor an email is set: a night that fails tells nobody"
        return Check("alerts", "ok", found, "docs/ALERTS.md says how they are set.")
    if tried:
        return Check(
            "alerts",
            "warning",
            "; ".join(tried),
            "Check the alert_* settings; 'connector alerts --test' sends one.",
        )
    return Check("alerts", "ok", "somebody listens where they go; nothing was sent")


def _connect(host: str, port: int, *, is_tls: bool, failed: list[str]) -> None:
    try:
        with socket.create_connection((host, port), _SECONDS) as plain:
            if is_tls:
                context = ssl.create_default_context()
                with context.wrap_socket(plain, server_hostname=host):
                    pass
    except (OSError, ValueError) as error:
        # The address of a webhook may hold a token: nothing of it is shown.
        failed.append(f"the webhook cannot be reached ({type(error).__name__})")


def _greet(host: str, port: int, security: str, *, failed: list[str]) -> None:
    kind = smtplib.SMTP_SSL if security == "ssl" else smtplib.SMTP
    try:
        server = kind(host, port, timeout=_SECONDS)
        try:
            server.noop()
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.quit()
    except (OSError, smtplib.SMTPException) as error:
        failed.append(f"the mail server cannot be reached ({type(error).__name__})")


def _schedules(settings: Settings) -> Check:
    """What happens by itself, if anything does."""
    names = ("nightly_cron", "intraday_cron", "scrub_cron")
    crons = {name: getattr(settings, name).value for name in names}
    on = [
        f"{name.removesuffix('_cron')} at '{cron}'" for name, cron in crons.items() if cron != OFF
    ]
    if not on:
        return Check("schedules", "ok", "none is set: nothing is pulled by itself")
    zone = settings.time_zone.value
    return Check("schedules", "ok", f"{', '.join(on)} ({zone}), where Dagster runs and they are on")


def _proxy(settings: Settings, environ: Mapping[str, str]) -> Check:
    """Which proxy is used, and which are there and are not."""
    if settings.proxy.value is not None:
        return Check("proxy", "ok", f"{settings.proxy.value}, from {settings.proxy.origin}")
    there = [name for name in PROXIES if environ.get(name)]
    if not there:
        return Check("proxy", "ok", "none is set, and none is used")
    verb = "are" if len(there) > 1 else "is"
    found = f"{' and '.join(there)} {verb} set in the environment and not used"
    action = "Where the API is behind it, name it in CONNECTOR_PROXY."
    return Check("proxy", "ok", found, action)

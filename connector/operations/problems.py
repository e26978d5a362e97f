"""Problems of an account: at most one of each of seven kinds, found in the account's files.

`read_state` reads the files once, without creating any. Each check is a pure function of that
state. The data is judged by the file that analysts open and not by the pull: a pull that succeeds
every night is no help if its publication is killed.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from http.client import responses
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from connector.catalog import declaration
from connector.errors import (
    ConnectorError,
    Forbidden,
    SettingsError,
    TryAgain,
    WarehouseError,
    count_noun,
    end_sentence,
    file_error,
)
from connector.operations.backup import BACKUP
from connector.pulls.account import check_account
from connector.pulls.report import can_retry, next_action
from connector.settings import Settings
from connector.settings.values import Age
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.lock import Holder, holder_of
from connector.state.quota import QuotaStatus, format_moment, quota_status
from connector.state.row import Row
from connector.state.runs import (
    Backup,
    Publication,
    ResourceRun,
    Run,
    RunHealth,
    Runs,
    latest_backups,
)
from connector.warehouse.user_query import read_verified_times
from connector.warehouse.warehouse import Warehouse

Code = Literal[
    "unusable", "pull_failed", "publication_failed", "data_old", "rows_unconfirmed", "quota",
    "backup_failed",
]  # fmt: skip
"""Kind of a problem, the most severe first."""

FORECAST_SHARE = 1.05
"""Forecast as a share of the quota above which the quota is about to be used up."""

FREE_BYTES_MIN = 20 * 2**20
"""Free space below which the disk counts as full."""

BACKUP_AGES_MAX = 2
"""Number of usual intervals without a backup after which the last one is too old."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem with its title, a sentence on what happened, and the next action.

    `cause` distinguishes problems of one kind: a new cause is a new problem. Texts contain no name
    of a person, no content of a file, no key, and none of the API's own words.
    """

    code: Code
    title: str
    happened: str
    action: str
    since: datetime | None = None
    cause: str = ""

    @property
    def key(self) -> str:
        """Name of the problem in the set of problems."""
        return f"{self.code}:{self.cause}" if self.cause else self.code

    def as_json(self) -> dict[str, Any]:
        """Return the problem as `--json` prints it."""
        return asdict(self) | {"since": self.since and self.since.isoformat()}


@dataclass(frozen=True, slots=True)
class AccountState:
    """Contents of an account's files that determine its problems.

    `verified` has the time up to which each resource is verified in the published file; it is None
    without such a file. `error` is that of a file, and `holder` uses the account now.
    """

    now: datetime
    max_age: Age
    health: RunHealth = field(default_factory=RunHealth)
    verified: Mapping[str, datetime | None] | None = None
    error: ConnectorError | None = None
    quota: QuotaStatus | None = None
    holder: Holder | None = None
    unconfirmed: Sequence[Row] = ()
    backups: Sequence[Backup] = ()

    @property
    def running(self) -> str:
        """Id of the run in progress, empty if none. Any other run without an end was killed."""
        return self.health.runs[0].run_id if self.holder and self.health.runs else ""

    @property
    def runs(self) -> list[Run]:
        """Latest pulls that ended or were killed, newest first."""
        return [each for each in self.health.runs if each.outcome or each.run_id != self.running]

    @property
    def publications(self) -> list[Publication]:
        """Latest publications that ended or were killed, newest first."""
        found = self.health.publications
        return [each for each in found if each.outcome or each.run_id != self.running]


def read_state(settings: Settings, now: datetime) -> AccountState:
    """Read the account's files. Errors of the files are part of the state.

    The work file is only opened if no other process uses the account.
    """
    warehouse = Warehouse(settings.folder)
    state = AccountState(now, settings.max_age)
    try:
        with Database(settings.folder) as database:
            if database.exists:
                state = replace(
                    state,
                    health=Runs(database).health(),
                    quota=quota_status(database, settings, now),
                    holder=holder_of(settings.folder),
                    unconfirmed=Journal(database).unconfirmed(),
                    backups=latest_backups(database),
                )
            if state.holder is None:
                check_account(settings)
        if warehouse.published.exists():
            state = replace(state, verified=read_verified_times(warehouse.published))
    except (WarehouseError, SettingsError) as error:
        # A file that another process has open is no problem.
        return state if error.code == "warehouse_busy" else replace(state, error=error)
    return replace(state, error=_disk_error(settings.folder))


def _disk_error(folder: Path) -> WarehouseError | None:
    """Return an error if the disk takes no writes: then no command can record that it failed."""
    if folder.is_dir() and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return file_error(folder, OSError(errno.EROFS, "the file system is read-only"))
    if folder.is_dir() and shutil.disk_usage(folder).free < FREE_BYTES_MIN:
        return file_error(folder, OSError(errno.ENOSPC, ""))
    return None


def find_problems(state: AccountState) -> list[Problem]:
    """Return the account's problems, the most severe first. One cause is reported once."""
    before = [check(state) for check in (_unusable, _pull_failed, _publication_failed)]
    after = [check(state) for check in (_rows_unconfirmed, _quota, _backup_failed)]
    # A failure explains an old file, until the file is twice as old.
    is_explained = any((*before[1:], after[1]))
    old = _data_old(state, state.max_age.length * (2 if is_explained else 1))
    return [problem for problem in (*before, old, *after) if problem is not None]


def settings_problem(error: ConnectorError) -> Problem:
    """Return the problem of an account whose settings are invalid."""
    happened = _without_api_text(str(error))
    return Problem("unusable", "settings are invalid", happened, error.action, cause="settings")


def describe_problem(problem: Problem) -> Iterator[str]:
    """Yield the lines of a problem: its title, what happened and since when, and what to do."""
    since = "" if problem.since is None else f" Since {format_moment(problem.since)}."
    yield f"{problem.title[:1].upper()}{problem.title[1:]}."
    yield f"{problem.happened}{since}".strip()
    yield f"What to do: {problem.action}"


# -- Checks ----------------------------------------------------------------------------------------


def _unusable(s: AccountState) -> Problem | None:
    if s.error is not None:
        titles = {
            "work_lost": "the work file is missing",
            "other_workspace": "the data folder belongs to another address",
        }
        title = titles.get(s.error.code, "the account's files cannot be used")
        happened = _without_api_text(str(s.error))
        return Problem("unusable", title, happened, s.error.action, cause=s.error.code)
    if s.verified is None and any(each.outcome == "published" for each in s.health.publications):
        title, action = "the published file is missing", "Run 'connector publish'."
        happened = "recruitment.duckdb is no longer in the account's folder."
        return Problem("unusable", title, happened, action, cause="published_missing")
    return None


def _pull_failed(s: AccountState) -> Problem | None:
    """Report that the last pull failed, was killed, or did not verify a resource.

    A pull that was stopped on purpose is no failure. A pull whose publication failed is reported by
    the publication.
    """
    runs = [each for each in s.runs if each.outcome != "stopped" or each.error_code]
    failed = [*takewhile(lambda run: run.outcome in (None, "interrupted", "failed"), runs)]
    unpublished = {each.run_id for each in s.publications if each.outcome != "published"}
    if not failed or failed[0].run_id in unpublished:
        return _pull_incomplete(s)
    last, times = failed[0], _name_last("pull", failed)
    since = failed[-1].ended_at or failed[-1].started_at
    if last.outcome != "failed":
        happened = "The process was killed, for example by a restart. Loaded records are kept."
        action = "The next pull continues. If it is killed again, check the log of the machine."
        return Problem("pull_failed", f"{times} did not end", happened, action, since, "killed")
    results = [each for run_id, each in s.health.resources.values() if run_id == last.run_id]
    same = [next_action(each) for each in results if each.error_code == last.error_code]
    action = _join_actions(same or [next_action(last.error_code)])
    happened, cause = _without_api_text(last.message), last.error_code or "unverified"
    return Problem("pull_failed", f"{times} failed", happened, action, since, cause)


def _pull_incomplete(s: AccountState) -> Problem | None:
    found = [
        (run_id, each)
        for run_id, each in s.health.resources.values()
        if each.anomalies.get("mass_deletion") or _is_unverified(each)
    ]
    if not found:
        return None
    runs, results = {run_id for run_id, _ in found}, [each for _, each in found]
    ended = [each.ended_at or each.started_at for each in s.runs if each.run_id in runs]
    title = f"not verified: {', '.join(each.resource for each in results)}"
    happened = " ".join([*dict.fromkeys(_without_api_text(each.message) for each in results)][:2])
    actions, since = [*map(next_action, results)], min(ended, default=None)
    refused = [each for each in results if each.error_code == Forbidden.code]
    if len(refused) > 1:
        scopes = ", ".join(sorted({declaration(each.resource).read_scope() for each in refused}))
        actions = [next_action(each) for each in results if each not in refused]
        actions.append(f"Give the key the scopes {scopes}, or pull only the other resources.")
    # An unstable service fails in many ways, which are one cause.
    causes = ["try_again" if can_retry(e) else e.error_code or "unverified" for e in results]
    cause = ",".join(f"{e.resource}-{c}" for e, c in zip(results, causes, strict=True))
    return Problem("pull_failed", title, happened, _join_actions(actions), since, cause)


def _is_unverified(result: ResourceRun) -> bool:
    """Return True if a pull ended without verifying the resource, and was not out of quota."""
    is_ended = result.outcome not in ("done", "stopped", "not_started")
    is_out_of_quota = result.error_code in ("quota_spent", "budget_spent")
    return not result.proven and is_ended and not is_out_of_quota


def _publication_failed(s: AccountState) -> Problem | None:
    failed = [*takewhile(lambda each: each.outcome != "published", s.publications)]
    if not failed:
        return None
    last, since = failed[0], failed[-1].ended_at or failed[-1].started_at
    if last.outcome in (None, "interrupted"):
        title = f"{_name_last('publication', failed)} did not end"
        happened = "The process was killed. Analysts still have the file before it."
        action = "Run 'connector publish'. If it is killed again, give the machine more memory, or"
        action += " publish without models (CONNECTOR_MODELS=off)."
        return Problem("publication_failed", title, happened, action, since, "killed")
    title, cause = "the publication failed", last.error_code or ""
    if last.outcome == "refused":
        title, cause = "the publication was refused", " ".join(["refused", *last.failed_checks])
    happened = _without_api_text(last.message)
    return Problem(
        "publication_failed", title, happened, next_action(last.error_code), since, cause
    )


def _name_last(noun: str, failed: Sequence[object]) -> str:
    """Return "the last pull" or "the last 3 pulls"."""
    return f"the last {noun}" if len(failed) == 1 else f"the last {len(failed)} {noun}s"


def _data_old(s: AccountState, limit: timedelta) -> Problem | None:
    """Report that analysts have no file whose resources are all verified within this time."""
    first, verified = s.health.first_run_at, s.verified
    if verified is None and s.error is None:  # No file was published since the first pull.
        verified = {"no file was published": first}
    if verified == {}:  # The file was published without the schema `sync`.
        published = [each for each in s.publications if each.outcome == "published"]
        verified = {"all resources": published[0].true_of} if published else {}
    ages = (verified or {}).items()
    old = {name: at for name, at in ages if at is not None and s.now - at > limit}
    if not old:
        return None
    title, since = f"the published file is older than {s.max_age}", min(old.values())
    happened = f"It has no newer data of: {', '.join(old)}."
    if s.verified is None:
        title, happened = "no file was published yet", "Analysts have no file."
    action = "Run 'connector pull' and check its messages. If it succeeds, check the schedule."
    return Problem("data_old", title, happened, action, since)


def _rows_unconfirmed(s: AccountState) -> Problem | None:
    # The rows of a running push do not count.
    found = [each for each in s.unconfirmed if each.state == "held" or s.holder is None]
    if not found:
        return None
    rows = count_noun(len(found), "pushed row is", "pushed rows are")
    happened = "The rows were sent, but their answers were lost. The API may have applied them."
    action = "Push the same file again: no row is sent twice. If rows stay unconfirmed, run"
    action += " 'connector resolve', which lists them."
    since = min(each.moved_at for each in found if each.moved_at is not None)
    return Problem("rows_unconfirmed", f"{rows} unconfirmed", happened, action, since)


def _quota(s: AccountState) -> Problem | None:
    if s.quota is None:
        return None
    month, forecast, refusal = s.quota.month, s.quota.forecast, s.quota.exhaustion
    until = f"The billing cycle ends on {month.period.ends}."
    if refusal is not None:
        until = f"Pulls send no request before {format_moment(refusal.until)}."
    happened, ignores = (
        f"{month.used:,} requests were sent.",
        "run 'connector pull --ignore-quota'.",
    )
    if refusal is not None or month.requests_left(keeps_reserve=True) == 0:
        title, cause = "the monthly quota is used up", "spent"
        if refusal is not None:
            happened = f"The API reported it after {month.used:,} requests."
        elif month.limit is not None:
            happened = f"{month.used:,} of {month.limit:,} requests were sent, and"
            happened += f" {month.reserve:,} are reserved for pushes."
        action = "Wait for the reset: pulls continue by themselves. If your plan has changed, set"
        action += f" monthly_requests, and {ignores}"
    elif month.limit is not None and (forecast or 0) > FORECAST_SHARE * month.limit:
        title = f"the month needs about {forecast:,} requests, and the quota is {month.limit:,}"
        action, cause = (
            "Pull less often, or get a larger plan and set monthly_requests.",
            "forecast",
        )
    else:
        return None
    since = refusal.noted_at if refusal is not None else None
    return Problem("quota", title, f"{happened} {until}", action, since, cause)


def _backup_failed(s: AccountState) -> Problem | None:
    """Report that the last backup failed or was interrupted, or is too old.

    An account without backups has no problem. A backup is too old after twice the average interval,
    and not before twice the maximum age.
    """
    is_running = s.holder is not None and s.holder.name == BACKUP
    ended = [each for each in s.backups if each.ended_at or not is_running]
    made = [each.began_at for each in ended if each.file is not None]
    if ended and ended[0].file is None:
        title, cause, since = "the last backup failed", "failed", ended[0].began_at
        happened = ended[0].message or "The process was killed before the backup was complete"
        action = "Run 'connector backup' again, and check the disk of the backups."
        return Problem("backup_failed", title, _without_api_text(happened), action, since, cause)
    interval = (made[0] - made[-1]) / max(1, len(made) - 1) if made else s.max_age.length
    if not made or s.now - made[0] <= BACKUP_AGES_MAX * max(s.max_age.length, interval):
        return None
    title, happened = "the last backup is too old", "No later backup was made."
    action = "Check that the schedule of the backup runs, then run 'connector backup'."
    return Problem("backup_failed", title, happened, action, made[0], "old")


# -- Words -----------------------------------------------------------------------------------------


def _join_actions(actions: Iterable[str]) -> str:
    """Return the distinct actions, for a user whose schedule runs the command again."""
    retried = "The next pull tries again. If it still fails after a day, check the network and the"
    retried += " platform's status page."
    return " ".join(dict.fromkeys(actions)).replace(TryAgain.action, retried)


def _without_api_text(message: str | None) -> str:
    """Return a message as a sentence without the API's words.

    A notification leaves the machine, and the API's words may name a person.
    """
    text = (message or "").strip()
    request, _, answer = text.partition(" was answered ")
    # The target of a redirect is not part of the API's words.
    if answer[:3].isdecimal() and not answer.startswith("3"):
        phrase = responses.get(int(answer[:3]), "")
        text = f"{request} was answered {answer[:3]} {phrase}".rstrip()
    if text.partition(" ")[0].isalpha():
        text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith(("?", "!")) or not text else end_sentence(text)

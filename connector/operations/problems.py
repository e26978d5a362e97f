"""Problems of an account: at most one of each of seven kinds, found in the account's files.

`read_state` reads the files once, without creating any. Each check is a pure function of that
state. The data is judged by the file that analysts open and not by the pull: a pull that succeeds
every night is no help if its publication is killed.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
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
from connector.warehouse.warehouse import LOST, LOST_ACTION, Warehouse

Code = Literal[
    "unusable",
    "pull_failed",
    "publication_failed",
    "data_old",
    "rows_unconfirmed",
    "quota",
    "backup_failed",
]
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

    Attributes:
        health: Runs and publications; empty if the state cannot be read.
        verified: Time up to which each resource is verified in the published file, None if it is
            not; None without a published file.
        error: Error of a file.
        quota: Requests of the month; None if none was ever counted.
        holder: Process that uses the account now.
        backups: Latest backups, newest first.
        is_work_lost: True if the work file is missing although a file was published.
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
    is_work_lost: bool = False

    @property
    def running(self) -> frozenset[str]:
        """Id of the run in progress: the latest, while its process holds the lock.

        Any other run without an end was killed.
        """
        latest = self.health.runs[:1] if self.holder is not None else ()
        return frozenset(each.run_id for each in latest)

    @property
    def runs(self) -> list[Run]:
        """Latest pulls that ended or were killed, newest first."""
        return [
            each for each in self.health.runs if each.outcome or each.run_id not in self.running
        ]

    @property
    def publications(self) -> list[Publication]:
        """Latest publications that ended or were killed, newest first."""
        return [
            each
            for each in self.health.publications
            if each.outcome or each.run_id is None or each.run_id not in self.running
        ]


def read_state(settings: Settings, now: datetime) -> AccountState:
    """Read the account's files. Errors of the files are part of the state.

    The work file is only opened if no other process uses the account.
    """
    warehouse = Warehouse(settings.folder)
    state = AccountState(now, settings.max_age, is_work_lost=warehouse.is_lost)
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
            if state.holder is None and not state.is_work_lost:
                check_account(settings)
        if warehouse.published.exists():
            state = replace(state, verified=read_verified_times(warehouse.published))
    except (WarehouseError, SettingsError) as error:
        # A file that another process has open is no problem.
        return state if error.code == "warehouse_busy" else replace(state, error=error)
    return replace(state, error=_disk_error(settings.folder))


def _disk_error(folder: Path) -> WarehouseError | None:
    """Return an error if the disk takes no writes: then no command can record that it failed."""
    if not folder.is_dir():
        return None
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return file_error(folder, OSError(errno.EROFS, "the file system is read-only"))
    if shutil.disk_usage(folder).free < FREE_BYTES_MIN:
        return file_error(folder, OSError(errno.ENOSPC, ""))
    return None


def find_problems(state: AccountState) -> list[Problem]:
    """Return the account's problems, the most severe first. One cause is reported once."""
    found = [problem for check in _CHECKS if (problem := check(state)) is not None]
    return [each for each in found if each.code != "data_old" or not _is_explained(state, found)]


def _is_explained(s: AccountState, found: Sequence[Problem]) -> bool:
    """Return True if another problem explains the age of the published file: a recent pull failed.

    An age of more than twice the maximum is reported anyway.
    """
    causes = {"pull_failed", "publication_failed", "quota"} & {each.code for each in found}
    (old,) = (each for each in found if each.code == "data_old")
    is_tried = bool(s.runs) and s.now - s.runs[0].started_at <= s.max_age.length
    is_recent = old.since is None or s.now - old.since <= 2 * s.max_age.length
    return bool(causes) and is_tried and is_recent


def settings_problem(error: ConnectorError) -> Problem:
    """Return the problem of an account whose settings are invalid."""
    return Problem(
        "unusable", "settings are invalid", _without_api_text(str(error)), error.action,
        cause="settings",
    )  # fmt: skip


def describe_problem(problem: Problem) -> Iterator[str]:
    """Yield the lines of a problem: its title, what happened and since when, and what to do."""
    since = "" if problem.since is None else f" Since {format_moment(problem.since)}."
    yield f"{problem.title[:1].upper()}{problem.title[1:]}."
    yield f"{problem.happened}{since}".strip()
    yield f"What to do: {problem.action}"


# -- Checks ----------------------------------------------------------------------------------------


def _unusable(s: AccountState) -> Problem | None:
    """Report a file that is damaged or missing, or that belongs to another account."""
    if s.is_work_lost:
        return Problem(
            "unusable", "the work file is missing", f"{LOST}.", LOST_ACTION, cause="work_missing"
        )
    if s.error is not None:
        sentence = _without_api_text(str(s.error))
        title = "the account's files cannot be used"
        if isinstance(s.error, SettingsError):
            title = "the data folder belongs to another address"
        return Problem("unusable", title, sentence, s.error.action, cause=s.error.code)
    if s.verified is None and any(each.outcome == "published" for each in s.health.publications):
        return Problem(
            "unusable",
            "the published file is missing",
            "recruitment.duckdb was published, and is no longer in the account's folder.",
            "Run 'connector publish'.",
            cause="published_missing",
        )
    return None


def _pull_failed(s: AccountState) -> Problem | None:
    """Report that the last pull failed, was killed, or did not verify a resource.

    A pull that was stopped on purpose is no failure. A pull whose publication failed is reported by
    the publication.
    """
    runs = [each for each in s.runs if each.outcome != "stopped" or each.error_code]
    failed = list(takewhile(lambda run: run.outcome in (None, "failed"), runs))
    unpublished = {each.run_id for each in s.publications if each.outcome != "published"}
    if not failed or failed[0].run_id in unpublished:
        return _pull_incomplete(s)
    last, times = failed[0], _name_last("pull", len(failed))
    since = failed[-1].ended_at or failed[-1].started_at
    if last.outcome is None:
        return Problem(
            "pull_failed",
            f"{times} did not end",
            "The process was killed, for example by a restart or because memory ran out. Loaded"
            " records are kept.",
            "The next pull continues. If this happens again, check the machine's log.",
            since,
            "killed",
        )
    results = [each for run_id, each in s.health.resources.values() if run_id == last.run_id]
    same = [each for each in results if each.error_code == last.error_code]
    action = _join_actions([*map(next_action, same)] or [next_action(last.error_code)])
    happened = _without_api_text(last.message)
    cause = last.error_code or "unverified"
    return Problem("pull_failed", f"{times} failed", happened, action, since, cause)


def _name_last(noun: str, count: int) -> str:
    """Return "the last pull" or "the last 3 pulls"."""
    return f"the last {noun}" if count == 1 else f"the last {count} {noun}s"


def _pull_incomplete(s: AccountState) -> Problem | None:
    """Report the resources that their last pull did not verify."""
    ended = {each.run_id: each.ended_at or each.started_at for each in s.runs}
    results = [
        (ended.get(run_id), each)
        for run_id, each in s.health.resources.values()
        if each.anomalies.get("mass_deletion") or _is_unverified(each)
    ]
    if not results:
        return None
    names = ", ".join(each.resource for _, each in results)
    since = min((at for at, _ in results if at is not None), default=None)
    sentences = dict.fromkeys(_without_api_text(each.message) for _, each in results)
    actions = [next_action(each) for _, each in results if each.error_code != Forbidden.code]
    refused = [each for _, each in results if each.error_code == Forbidden.code]
    if scopes := {declaration(each.resource).read_scope() for each in refused}:
        named = f"Give the key the missing scopes ({', '.join(sorted(scopes))}), or name only the"
        actions.append(f"{named} other resources in 'connector pull'.")
    return Problem(
        "pull_failed",
        f"not verified: {names}",
        " ".join([*sentences][:2]),
        _join_actions(actions),
        since,
        # An unstable service fails in many ways, which are one cause.
        ",".join(
            f"{each.resource}-{'try_again' if can_retry(each) else each.error_code or 'unverified'}"
            for _, each in results
        ),
    )


def _is_unverified(result: ResourceRun) -> bool:
    """Return True if a pull ended without verifying the resource, and was not out of quota."""
    is_ended = result.outcome not in ("done", "stopped", "not_started")
    return (
        not result.proven and is_ended and result.error_code not in ("quota_spent", "budget_spent")
    )


def _publication_failed(s: AccountState) -> Problem | None:
    """Report that the last publication was refused, failed, or did not end."""
    failed = list(takewhile(lambda each: each.outcome != "published", s.publications))
    if not failed:
        return None
    last, since = failed[0], failed[-1].ended_at or failed[-1].started_at
    if last.outcome in (None, "interrupted"):
        return Problem(
            "publication_failed",
            f"{_name_last('publication', len(failed))} did not end",
            "The process was killed, for example because memory ran out. Analysts still have the"
            " file before it.",
            "Run 'connector publish'. If it is killed again, give the machine more memory, or"
            " publish without models (CONNECTOR_MODELS=off).",
            since,
            "killed",
        )
    is_refused = last.outcome == "refused"
    return Problem(
        "publication_failed",
        "the publication was refused" if is_refused else "the publication failed",
        _without_api_text(last.message),
        _join_actions([next_action(last.error_code)]),
        since,
        " ".join(["refused", *last.failed_checks]) if is_refused else last.error_code or "",
    )


def _data_old(s: AccountState) -> Problem | None:
    """Report resources of the published file that are verified up to a time that is too old."""
    first = s.health.first_run_at
    if s.verified is None:
        if first is None or s.now - first <= s.max_age.length or s.error is not None:
            return None
        return Problem(
            "data_old",
            "no file was published yet",
            f"The first pull began at {format_moment(first)}, and analysts have no file.",
            "Run 'connector pull' and check its messages.",
            first,
        )
    verified = s.verified
    if not verified:  # The file was published without the schema `sync`.
        times = [each.true_of for each in s.publications if each.outcome == "published"]
        verified = {"all": times[0]} if times else {}
    known = {name: at for name, at in verified.items() if at is not None}
    behind = [name for name, at in known.items() if s.now - at > s.max_age.length]
    if not behind:
        return None
    oldest = min(known[name] for name in behind)
    return Problem(
        "data_old",
        f"the published file is older than {s.max_age}",
        f"Its records are verified up to {format_moment(oldest)}: {', '.join(behind)}.",
        "Run 'connector pull' and check its messages. If it succeeds, check the schedule.",
        oldest,
    )


def _rows_unconfirmed(s: AccountState) -> Problem | None:
    """Report rows of pushes whose answer was lost. The rows of a running push do not count."""
    found = [each for each in s.unconfirmed if each.state == "held" or s.holder is None]
    if not found:
        return None
    return Problem(
        "rows_unconfirmed",
        f"{count_noun(len(found), 'pushed row is', 'pushed rows are')} unconfirmed",
        "The rows were sent, but the answers were lost. The API may have applied them or not.",
        "If a push was interrupted, push the same file again: no row is sent twice. Otherwise run"
        " 'connector resolve', which lists the rows.",
        min(each.moved_at for each in found if each.moved_at is not None),
    )


def _requests_refused(s: AccountState) -> Problem | None:
    """Report that the API refuses requests, because the quota is used up or for another reason."""
    refusal = s.quota.exhaustion if s.quota is not None else None
    if refusal is None:
        return None
    return Problem(
        "quota",
        "the API refuses requests (429)",
        "The month's quota may be used up, or another limit applies. Pulls send no request before"
        f" {format_moment(refusal.until)}.",
        "Check on the platform which limit applies. Pulls continue by themselves after a reset. If"
        " the quota is not used up, run 'connector pull --ignore-quota'.",
        refusal.noted_at,
        "refused",
    )


def _quota(s: AccountState) -> Problem | None:
    """Report that the requests of the month are used up by our count, or about to be."""
    if s.quota is None or s.quota.exhaustion is not None:
        return None
    month = s.quota.month
    if month.limit is None:
        return None
    if not month.requests_left(keeps_reserve=True):
        reserved = f", and {month.reserve:,} are reserved for pushes" if month.reserve else ""
        return Problem(
            "quota",
            f"the monthly quota of {month.limit:,} requests is used up",
            f"{month.used:,} requests were sent{reserved}. The quota resets on"
            f" {month.period.ends}.",
            "Wait for the reset: pulls continue by themselves. If your plan has changed, set"
            " monthly_requests to its number.",
            cause="spent",
        )
    if (s.quota.forecast or 0) > FORECAST_SHARE * month.limit:
        return Problem(
            "quota",
            f"the month needs about {s.quota.forecast:,} requests, and the quota is"
            f" {month.limit:,}",
            f"The cycle ends on {month.period.ends}. {month.used:,} requests were sent.",
            "Pull less often, or get a larger plan and set monthly_requests.",
            cause="forecast",
        )
    return None


def _backup_failed(s: AccountState) -> Problem | None:
    """Report that the last backup failed or was interrupted, or is too old.

    An account without backups has no problem. A backup is too old after twice the average interval,
    and not before twice the maximum age.
    """
    is_running = s.holder is not None and s.holder.name == BACKUP
    ended = [each for each in s.backups if each.ended_at or not is_running]
    if not ended:
        return None
    if ended[0].file is None:
        return Problem(
            "backup_failed",
            "the last backup failed",
            _without_api_text(
                ended[0].message or "The process was killed before the backup was complete"
            ),
            "Run 'connector backup' again, and check the disk of the backups.",
            ended[0].began_at,
            "failed",
        )
    made = [each.began_at for each in ended if each.file is not None]
    interval = (made[0] - made[-1]) / max(1, len(made) - 1)
    if s.now - made[0] <= BACKUP_AGES_MAX * max(s.max_age.length, interval):
        return None
    return Problem(
        "backup_failed",
        "the last backup is too old",
        f"It was made at {format_moment(made[0])}.",
        "Check that the schedule of the backup runs, then run 'connector backup'.",
        made[0],
        "old",
    )


_CHECKS: tuple[Callable[[AccountState], Problem | None], ...] = (
    *(_unusable, _pull_failed, _publication_failed, _data_old),
    *(_rows_unconfirmed, _requests_refused, _quota, _backup_failed),
)


# -- Words -----------------------------------------------------------------------------------------


def _join_actions(actions: Iterable[str]) -> str:
    """Return the distinct actions, for a user whose schedule runs the command again."""
    retried = "No action is needed: the next pull tries again. If the error lasts for a day, check"
    retried += " the network and the platform's status page."
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

"""Findings: the condition of every alert.

`read_snapshot` reads an account's files once. Each condition is a pure function of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from statistics import median
from typing import Literal, NamedTuple

from connector.errors import (
    ConnectorError,
    MartsMissing,
    NothingPublished,
    SettingsError,
    UnknownName,
    WarehouseBusy,
    WarehouseError,
    count_noun,
    end_sentence,
)
from connector.errors_api import TryAgain
from connector.ledger.alert_states import AlertRecord
from connector.ledger.journal import Journal
from connector.ledger.journal_records import PushHealth, PushRun
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.ledger import Ledger, LedgerStatus, allowance_of
from connector.ledger.quota import format_moment, midnight
from connector.pulls.outcome import QUIET_KINDS, can_retry, describe_anomalies, next_action
from connector.pulls.workspace import read_folder_identity
from connector.settings.model import Settings
from connector.settings.values import Age, Kind
from connector.warehouse.runs import Publication, ResourceRun, Run, RunHealth
from connector.warehouse.warehouse import Warehouse

COMPARED_MIN, COMPARED_MAX = 5, 20
"""Number of earlier pulls that show what is usual."""

COST_FACTOR, COST_REQUESTS_MIN = 3, 100
"""A pull is expensive if it takes more than `COST_FACTOR` times the median of the pulls before it,
and at least this number of requests more."""

SLOW_FACTOR, SLOW_SECONDS_MIN, SLOW_REQUESTS_MIN = 5, 1.0, 10
"""An API is slow if a pull of at least this number of requests needs more than a second for each,
and more than `SLOW_FACTOR` times the median of the pulls before it."""

CLOCK_SECONDS_MAX = 300
"""Maximum acceptable difference between the two clocks."""

QUOTA_OVER_SHARE = 0.95
"""Share of the quota below which a forecast is no problem, so that the alert does not alternate."""

_FIELD_EVENTS = frozenset(("unknown_field", "unknown_value", "unreadable_value"))
_PASSING = WarehouseBusy | MartsMissing | NothingPublished
"""Errors of files that do not show that the files are unusable."""

_SETTINGS = SettingsError | UnknownName
_REFUSED = frozenset(("refused", "failed"))
NOTHING = RunHealth((), {}, None, {}, {}, ())
"""Health of an account that never loaded anything."""

NO_PUSHES = PushHealth()


@dataclass(frozen=True, slots=True)
class AccountProblem:
    """Problem of an account: title, sentence, start (None: now) and next action.

    Without an action, the action of the alert's type is used. `causes` are codes of errors, names
    of checks and the like. An open alert is sent again for a new cause.
    """

    title: str
    happened: str
    since: datetime | None = None
    action: str = ""
    causes: tuple[str, ...] = ()


ConditionResult = AccountProblem | Literal[False] | None
"""Result of a condition: the problem, False for no problem, None if it could not be checked."""


class Subject(NamedTuple):
    """Subject of an alert: its code, and the resource or job (empty for the account)."""

    code: str
    about: str = ""


FoundProblems = Mapping[Subject, AccountProblem | None]
"""Result of a check: a problem, or None for no problem. A missing subject could not be checked and
keeps its state.
"""


@dataclass(frozen=True, slots=True)
class JobRun:
    """Last completed run of a Dagster job."""

    job: str
    run_id: str
    started_at: datetime
    failed: bool


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """Contents of an account's files that determine alerts.

    Attributes:
        health: Completed runs; empty if the work file is `unusable`.
        quota: Requests of the month; None without a ledger.
        ahead_seconds: Seconds by which the local clock was ahead of the API at the last pull.
        alerts: Open alerts.
        jobs: Last runs of Dagster's jobs.
        command_error: Error that ended the current command.
    """

    now: datetime
    max_age: Age
    health: RunHealth = NOTHING
    unusable: WarehouseError | None = None
    quota: LedgerStatus | None = None
    pushes: PushHealth = NO_PUSHES
    ahead_seconds: float | None = None
    alerts: Sequence[AlertRecord] = ()
    jobs: Sequence[JobRun] = ()
    command_error: ConnectorError | None = None

    @property
    def runs(self) -> Sequence[Run]:
        """Latest runs, newest first."""
        return self.health.runs

    @property
    def publications(self) -> Sequence[Publication]:
        """Latest completed publications, newest first."""
        return [e for e in self.health.publications if e.outcome in (*_REFUSED, "published")]

    @property
    def recorded_at(self) -> datetime | None:
        """Latest time at which a pull, a push or a publication was recorded."""
        times = [each.started_at for each in self.runs[:1]]
        times += [each.started_at for each in self.health.publications[:1]]
        times += [each.ended_at or each.begun_at for each in self.pushes.runs[:1]]
        return max(times, default=None)

    def last_opened_at(self, *codes: str) -> datetime | None:
        """Return the latest time at which an open alert with one of these codes opened."""
        return max((e.opened_at for e in self.alerts if e.code in codes), default=None)


def read_snapshot(
    settings: Settings,
    now: datetime,
    alerts: Iterable[AlertRecord] = (),
    jobs: Sequence[JobRun] = (),
    command_error: ConnectorError | None = None,
) -> FileSnapshot:
    """Read the account's files without creating any. Raises the ledger's errors."""
    warehouse, health, unusable = Warehouse(settings.folder), NOTHING, None
    open_now = [each for each in alerts if each.is_open]
    s = FileSnapshot(
        now, settings.alert_max_age.value, alerts=open_now, jobs=jobs, command_error=command_error
    )
    running = set[str]()
    with Ledger(settings.folder) as ledger:
        if ledger.exists:
            quota, pushes = (
                ledger.status(allowance_of(settings), now),
                Journal(ledger).push_health(),
            )
            active_leases = [each for each in quota.leases if not each.can_be_taken(now)]
            running = {each.owner.run_id for each in active_leases}
            if any(each.name == PUSH_LEASE for each in active_leases):
                ended = tuple(each for each in pushes.runs if each.outcome)
                pushes = replace(pushes, runs=ended, open=None)
            ahead = -ledger.read_server_state().offset_seconds
            s = replace(s, quota=quota, pushes=pushes, ahead_seconds=ahead)
        try:
            health = warehouse.health() if warehouse.exists else NOTHING
            read_folder_identity(ledger, warehouse)
        except WarehouseError as error:
            unusable = error
    # Runs from the future ran while the local clock was ahead.
    latest = now + timedelta(seconds=CLOCK_SECONDS_MAX)
    runs = (e for e in health.runs if e.outcome or e.run_id not in running)
    health = replace(
        health,
        runs=tuple(each for each in runs if each.started_at <= latest),
        publications=tuple(e for e in health.publications if e.started_at <= latest),
    )
    return replace(s, health=health, unusable=unusable)


# -- Words -----------------------------------------------------------------------------------------

_REASONS = {
    "unauthorized": "API key rejected",
    "forbidden": "the API key lacks a scope",
    "unreachable": "the API cannot be reached",
    "no_answer": "the API did not answer completely",
    "rate_limited": "the API's rate limit is exceeded",
    "answer_broken": "the API's answer cannot be read",
    "unreadable_answer": "the address did not answer as the API",
    "quota_spent": "the monthly limit is used up",
    "redirected": "the API redirects to another address",
}

_BY_SCHEDULE = {
    TryAgain.action: "No action is needed: the next pull tries again. If the error lasts for a "
    "day, check the"
    " network and the platform's status page.",
    ", then run the command again.": ". The next pull tries again.",
    "Run the command again later: earlier": "No action is needed: the next pull tries again. "
    "Earlier",
    "Run the same command again to continue": "No action is needed: the next pull continues",
    "Run the same command again. It continues": "No action is needed: the next pull continues",
    "Run the same command again: it reads": "No action is needed: the next pull reads",
}
"""Next steps of users who run a command manually, and the variants if a schedule runs it."""


def remove_api_text(message: str | None) -> tuple[str, str]:
    """Return a run's message as a sentence without the API's text, and the status of its answer.

    The status is empty if the message has none. An alert leaves the machine, and the API's texts
    may name a person. Other parts of a message are the connector's own and contain no record data.
    """
    request, _, answer = (message or "").partition(" was answered ")
    status = answer[:3] if answer[:3].isdecimal() else ""
    sentence = f"{request} was answered {status}" if status else (message or "").strip()
    if status.startswith("3"):
        sentence = (
            message or ""
        ).strip()  # The target of a redirect is not part of the API's text.
    is_word = sentence.partition(" ")[0].isalpha()
    sentence = f"{sentence[:1].upper()}{sentence[1:]}" if is_word else sentence
    return (
        sentence if sentence.endswith(("?", "!")) else end_sentence(sentence)
    ) if sentence else "", status


def _error_problem(
    subject: str,
    since: datetime | None,
    ended: Run | ResourceRun | Publication | PushRun,
    *,
    action: str = "",
    causes: Iterable[str] = (),
) -> AccountProblem:
    """Return the problem for a run that ended with an error: "SUBJECT (REASON)" and its action."""
    code, (sentence, status) = ended.error_code, remove_api_text(ended.message)
    reason = _REASONS.get(code or "")
    if reason is None:
        reason = f"the API answered {status}" if status else (code or "").replace("_", " ")
    elif status:
        reason = f"{reason}, {status}"
    action = action_when_scheduled(action or next_action(code))
    title = f"{subject} ({reason})" if reason else subject
    return AccountProblem(
        title, sentence, since, action, tuple(sorted(causes)) or (code or "failed",)
    )


def action_when_scheduled(action: str) -> str:
    """Return the action for a user whose schedule runs the command again."""
    for by_hand, by_schedule in _BY_SCHEDULE.items():
        action = action.replace(by_hand, by_schedule)
    return action


# -- Pulls -----------------------------------------------------------------------------------------


def _has_failed(run: Run | Publication) -> bool:
    """Return True if the run failed, was refused or was interrupted."""
    return run.outcome in (None, "failed", "interrupted", "refused")


def _pull_failed(s: FileSnapshot) -> ConditionResult:
    """Report the latest pulls if they failed.

    Not decided without pulls, if only their publication failed, or if the last pull was stopped
    before its first request.
    """
    failed = list(takewhile(_has_failed, s.runs))
    if not failed:
        # A pull that was stopped before its first request proves nothing about the API.
        is_told = s.runs and (s.runs[0].outcome != "stopped" or s.runs[0].requests)
        return False if is_told else None
    last = failed[0]
    if last.run_id in {each.run_id for each in s.publications if each.outcome in _REFUSED}:
        return None
    since = failed[-1].ended_at or failed[-1].started_at
    causes = {run.error_code or run.outcome or "interrupted" for run in failed}
    subject = f"the last {len(failed)} pulls" if len(failed) > 1 else "pull"
    if last.outcome == "failed":
        results = [done for run_id, done in s.health.resources.values() if run_id == last.run_id]
        same = [next_action(done) for done in results if done.error_code == last.error_code]
        action = " ".join(dict.fromkeys(same))
        return _error_problem(f"{subject} failed", since, last, action=action, causes=causes)
    title = f"{subject} failed (interrupted)" if len(failed) > 1 else "pull interrupted"
    sentence = (
        "The pull was stopped before its end, for example by a restart. Loaded records are kept."
    )
    action = "Run 'connector pull', or wait for the next one: it continues. If this happens again, "
    action += "check the machine's log."
    return AccountProblem(title, sentence, since, action, tuple(sorted(causes)))


def _publication_failed(s: FileSnapshot) -> ConditionResult:
    """Report the latest publications if they failed or were refused."""
    failed = list(takewhile(_has_failed, s.publications))
    if not failed:
        return False if s.publications else None
    last, since = failed[0], failed[-1].ended_at or failed[-1].started_at
    causes = {each.error_code or each.outcome or "" for each in failed}
    causes.update(*(each.failed_checks for each in failed))
    found = _error_problem(f"publication {last.outcome}", since, last, causes=causes)
    if last.outcome == "refused" and last.failed_checks:
        checks = count_noun(len(last.failed_checks), "check")
        found = replace(found, title=f"publication refused ({checks} failed)")
    return found


def _checks_warn(s: FileSnapshot) -> ConditionResult:
    """Report data checks with warnings in the latest publication."""
    if not s.publications or s.publications[0].outcome != "published":
        return None
    last, sentences = s.publications[0], list[str]()
    rows, samples = iter(last.failed_rows), iter(last.failed_samples)
    for name in last.failed_checks:
        count, sample = next(rows, None), next(samples, None)
        number = "" if count is None else f": {count_noun(count, 'row')}"
        sentences.append(f"{name}{number}{f' (for example {sample})' if sample else ''}")
    title = f"{count_noun(len(sentences), 'data check has', 'data checks have')} warnings"
    causes = tuple(sorted(last.failed_checks))
    return sentences != [] and AccountProblem(
        title, f"{'; '.join(sentences)}.", last.ended_at, causes=causes
    )


class _LastResult(NamedTuple):
    """Result of a resource in its last run, that run, and the time of its end."""

    done: ResourceRun
    run: Run | None
    since: datetime | None


def _not_proven(s: FileSnapshot, last_result: _LastResult) -> ConditionResult:
    """Report that the last pull did not verify the resource, unless another alert has the cause."""
    result, run, since = last_result
    if result.proven:
        return False
    if result.outcome in ("done", "stopped") or result.anomalies.get("mass_deletion"):
        return None
    failing = {e.run_id: e.error_code for e in takewhile(_has_failed, s.runs) if e.error_code}
    if run is not None and result.error_code and failing.get(run.run_id) == result.error_code:
        return None  # `pull_failed` reports the error that ended the latest pulls.
    state = "skipped" if result.outcome == "skipped" else "not verified"
    # An unstable service fails in many ways, which are one cause.
    cause = "try_again" if can_retry(result) else result.error_code or "unproven"
    return _error_problem(state, since, result, action=next_action(result), causes=(cause,))


def _deletions_refused(s: FileSnapshot, last_result: _LastResult) -> ConditionResult:
    """Report that the last pull did not accept the resource's deletions."""
    result = last_result.done
    if not result.anomalies.get("mass_deletion"):
        return False if result.proven else None
    title, _, samples = (result.message or "many records are missing").partition(", for example ")
    sentence = f"The local copy still contains them.{f' Examples: {samples}.' if samples else ''}"
    code = result.error_code or "deletions_refused"
    return AccountProblem(
        title, sentence, last_result.since, action_when_scheduled(next_action(code)), (code,)
    )


def _anomalies(s: FileSnapshot, last_result: _LastResult) -> ConditionResult:
    """Report undocumented fields and values of the resource in the last pull."""
    events = s.health.events.get(last_result.done.resource, ())
    anomalies = [each for each in events if each.kind not in QUIET_KINDS]
    if not anomalies:
        return False if last_result.done.proven else None
    # Each field is a separate cause. Other events report figures that change.
    causes = {f"{e.kind} {e.detail}" if e.kind in _FIELD_EVENTS else e.kind for e in anomalies}
    sentence = describe_anomalies(last_result.done.resource, anomalies)
    title = "undocumented fields or values"
    return AccountProblem(title, sentence, last_result.since, causes=tuple(sorted(causes)))


def _cost_rising(s: FileSnapshot) -> ConditionResult:
    """Report that the last pull took unusually many requests and the plan will not suffice."""
    # Verification requests do not count, and neither do pulls with a limit.
    whole = [e for e in s.runs if e.outcome in ("done", "partial") and e.budget is None]
    if s.quota is None or not whole or whole[0] is not s.runs[0]:
        return None
    last, month, scrubs = whole[0], s.quota.month, s.health.scrubs
    same_command = [run for run in whole if run.command == last.command][: COMPARED_MAX + 1]
    cost, *before = [(run.requests or 0) - scrubs.get(run.run_id, 0) for run in same_command]
    if month.limit is None or len(before) < COMPARED_MIN:
        return False
    usual = median(before)
    gap = (last.started_at - same_command[-1].started_at) / len(before)
    pulls = (midnight(month.period.ends) - last.started_at) / max(gap, timedelta(minutes=1))
    expected = month.used + int(pulls * cost)
    if cost <= max(COST_FACTOR * usual, usual + COST_REQUESTS_MIN - 1) or expected <= month.limit:
        return False
    title = f"the last pull took {cost:,} requests, usually {usual:,.0f}"
    sentence = f"If pulls continue like this, the billing cycle needs about {expected:,} requests."
    return AccountProblem(title, f"{sentence} The plan has {month.limit:,}.", last.started_at)


def _api_slow(s: FileSnapshot) -> ConditionResult:
    """Report that the last pull needed unusually many seconds per request.

    Compared with the median of earlier pulls.
    """
    # Pulls that waited for the rate limit do not count.
    paces = [
        (run, run.seconds / run.requests)
        for run in s.runs[: COMPARED_MAX + 1]
        if run.outcome in ("done", "partial") and run.seconds and run.requests
        if (run.waited_seconds or 0.0) < run.seconds / 10
    ]
    if not paces or paces[0][0] is not s.runs[0]:
        return None
    (last, pace), *before = paces
    requests, usual = last.requests or 0, median([each for _, each in before] or [pace])
    is_comparable = len(before) >= COMPARED_MIN and requests >= SLOW_REQUESTS_MIN
    if not is_comparable or pace <= max(SLOW_SECONDS_MIN, SLOW_FACTOR * usual):
        return False
    title = f"the API is slow ({pace:.1f} s per request, usually {usual:.1f} s)"
    sentence = f"The last pull took {last.seconds:,.0f} s for {requests:,} requests."
    return AccountProblem(title, sentence, last.started_at)


def _clock_wrong(s: FileSnapshot) -> ConditionResult:
    """Report a large difference between the local clock and the API's clock."""
    if s.ahead_seconds is None:
        return None
    seconds = abs(s.ahead_seconds)
    if seconds <= CLOCK_SECONDS_MAX:
        return False
    sizes = ((86_400, "day"), (3600, "hour"), (60, "minute"))
    size, unit = next(each for each in sizes if seconds >= each[0])
    where = "ahead of" if s.ahead_seconds > 0 else "behind"
    title = f"this machine's clock is {count_noun(round(seconds / size), unit)} {where} the API's"
    return AccountProblem(
        title, "Schedules and alerts use this clock, so they may be early or late."
    )


# -- Pushes ----------------------------------------------------------------------------------------
# Messages contain no file names, because they may be personal.


def _push_failed(s: FileSnapshot) -> ConditionResult:
    """Report that the last push failed or was interrupted."""
    if not s.pushes.runs:
        return None
    last = s.pushes.runs[0]
    batch = f"Batch {last.batch}, {last.resource}."
    if last.outcome is None:
        action = "Push the same file again: it continues where it stopped."
        return AccountProblem("push interrupted", batch, last.begun_at, action, ("interrupted",))
    found = _error_problem("push failed", last.ended_at, last)
    # No schedule sends a file again.
    found = replace(found, happened=f"{batch} {found.happened}".rstrip())
    action = next_action(last.error_code)
    again = "" if "again" in action else " Then push the same file again."
    found = replace(found, action=f"{action}{again}")
    return found if last.outcome == "failed" else False


def _rows_rejected(s: FileSnapshot, push: PushRun) -> ConditionResult:
    """Report rows of the resource's last push that were not applied."""
    if push.outcome not in ("done", "partial"):
        return None
    title = f"{count_noun(push.refused, 'row')} of the last push not applied"
    found = AccountProblem(title, f"Batch {push.batch}.", push.ended_at, causes=(push.batch,))
    return found if push.refused else False


def _rows_in_doubt(s: FileSnapshot) -> ConditionResult:
    """Report pushed rows whose answer was lost and which are not resolved yet."""
    unclear = [each for each in (s.pushes.held, s.pushes.open) if each is not None]
    if s.quota is None or not unclear:
        return None if s.quota is None else False
    rows = count_noun(sum(each.rows for each in unclear), "row")
    sentence = (
        "The rows were sent, but the answers were lost. The API may have applied them or not."
    )
    return AccountProblem(f"{rows} unconfirmed", sentence, min(each.since for each in unclear))


# -- Quota -----------------------------------------------------------------------------------------


def _quota_spent(s: FileSnapshot) -> ConditionResult:
    """Report that the monthly quota is used up, by the API or by the own count."""
    if s.quota is None:
        return None
    month, answer = s.quota.month, s.quota.exhaustion
    if answer is not None:
        sentence = (
            f"The API reported it. Pulls send no request before {format_moment(answer.until)}."
        )
        return AccountProblem("the monthly limit of requests is used up", sentence, answer.noted_at)
    if month.limit is None or month.requests_left(keeps_reserve=True):
        return False
    reserved = f", and {month.reserve:,} are reserved for pushes" if month.reserve else ""
    sentence = (
        f"{month.used:,} requests were sent{reserved}. The limit resets on {month.period.ends}."
    )
    return AccountProblem(f"the monthly limit of {month.limit:,} requests is used up", sentence)


def _quota_forecast(s: FileSnapshot) -> ConditionResult:
    """Report that the month's requests will probably exceed the plan."""
    if s.quota is None or s.quota.month.limit is None:
        return None if s.quota is None else False
    limit, expected, ends = s.quota.month.limit, s.quota.forecast, s.quota.month.period.ends
    if _quota_spent(s) or expected is None or QUOTA_OVER_SHARE * limit < expected <= limit:
        return None
    title = f"this month needs about {expected:,} requests, and the plan has {limit:,}"
    sentence = f"The cycle ends on {ends}. A usual day needs {s.quota.usual_day:,} requests."
    return AccountProblem(title, sentence) if expected > limit else False


# -- Silence ---------------------------------------------------------------------------------------
# By loaded records only: a schedule that ran proves nothing.


@dataclass(frozen=True, slots=True)
class Proof:
    """Time up to which the records are verified, compared with a maximum age.

    Attributes:
        oldest: Time up to which the least recently verified resource is verified; None without one.
        behind: Resources that are older than allowed.
        sentence: Sentence on these resources; None if there are none.
    """

    oldest: datetime | None
    behind: tuple[str, ...]
    sentence: str | None


def proof_of(proven_at: Mapping[str, datetime | None], now: datetime, age: Age) -> Proof:
    """Compare the verified times with the maximum age; None times are left out."""
    known = {resource: moment for resource, moment in proven_at.items() if moment is not None}
    if not known:
        return Proof(
            None, (), f"No pull has verified the local copy yet. The maximum age is {age}."
        )
    behind = tuple(resource for resource, moment in known.items() if now - moment > age.length)
    oldest = min(known.values())
    sentence = (
        f"Not verified for more than {age}: {', '.join(behind)} (since {format_moment(oldest)})."
    )
    return Proof(oldest, behind, sentence if behind else None)


def _silent(s: FileSnapshot) -> ConditionResult:
    """Report that no pull has verified the local copy within the maximum age."""
    if s.unusable is not None:
        return None
    proof = proof_of(s.health.proven_at, s.now, s.max_age)
    first = s.health.first_run_at
    if proof.sentence is None:
        return False
    if proof.oldest is None and first is not None and s.now - first <= s.max_age.length:
        return None  # The first pull has the same time limit as any other.
    never = "no pull has verified the local copy yet"
    title = f"the local copy was not verified for more than {s.max_age}" if proof.oldest else never
    return AccountProblem(title, proof.sentence, proof.oldest or first)


# -- Not recorded by any run -----------------------------------------------------------------------


def file_problem(error: WarehouseError) -> AccountProblem:
    """Return the problem for an error of the work file or the ledger."""
    title, (sentence, _) = "the account's files cannot be used", remove_api_text(str(error))
    return AccountProblem(
        title, sentence, action=action_when_scheduled(error.action), causes=(error.code,)
    )


def _resolved_if_recorded(s: FileSnapshot, code: str) -> ConditionResult:
    """Return False if a run was recorded after the open alert with this code, else None."""
    opened, recorded = s.last_opened_at(code), s.recorded_at
    is_over = opened is None or (recorded is not None and recorded >= opened)
    return False if is_over else None


def _files_unusable(s: FileSnapshot) -> ConditionResult:
    """Report that the account's files cannot be used."""
    if s.unusable is not None:
        return file_problem(s.unusable)
    recorded = {each.error_code for each in s.runs[:1]}
    recorded |= {each.error_code for each in s.health.publications[:1]}
    is_passing = isinstance(s.command_error, _PASSING)
    if (
        isinstance(s.command_error, WarehouseError)
        and not is_passing
        and s.command_error.code not in recorded
    ):
        return file_problem(s.command_error)
    return _resolved_if_recorded(s, "files_unusable")


def _settings_wrong(s: FileSnapshot) -> ConditionResult:
    """Report invalid settings, by the error of the current command."""
    if s.command_error is None or not isinstance(s.command_error, _SETTINGS):
        return _resolved_if_recorded(s, "settings_wrong")
    sentence, _ = remove_api_text(str(s.command_error))
    # The list of all setting names is no help: the message suggests the nearest.
    action = "" if isinstance(s.command_error, UnknownName) else s.command_error.action
    return AccountProblem(
        "settings are invalid", sentence, action=action, causes=(str(s.command_error),)
    )


def _job_failed(s: FileSnapshot, job: JobRun) -> ConditionResult:
    """Report a Dagster job that failed before the connector recorded a run."""
    if not job.failed or (s.recorded_at is not None and s.recorded_at >= job.started_at):
        return False
    sentence = f"Dagster run {job.run_id} failed before the connector recorded a run."
    return AccountProblem("job failed", sentence, job.started_at)


# -- Every alert -----------------------------------------------------------------------------------

BY_CODE = "The action of the error's code ([errors](ERRORS.md))."
"""Next action of alerts that repeat the action of an error."""


@dataclass(frozen=True, slots=True)
class AlertType:
    """Type of alert: its condition, the text for its end, and the next action.

    A condition is called with the snapshot, and with the subject's last run if the alert is about a
    resource or a job.
    """

    code: str
    condition: Callable[..., ConditionResult]
    kind: Kind
    over: str
    action: str = BY_CODE
    about: Literal["account", "resource", "job"] = "account"

    @property
    def runbook(self) -> str:
        """Section of the documentation."""
        if self.action == BY_CODE:
            return "docs/ERRORS.md#if-the-action-does-not-help"
        return "docs/ALERTS.md#every-alert"


# The most severe first. `docs/ALERTS.md` describes them.
_ALL = (
    AlertType("pull_failed", _pull_failed, "failed", "the pull succeeded"),
    AlertType(
        "publication_failed", _publication_failed, "failed", "the file for analysts was published"
    ),
    AlertType("push_failed", _push_failed, "failed", "the push succeeded"),
    AlertType("files_unusable", _files_unusable, "failed", "the account's files were usable"),
    AlertType(
        *("settings_wrong", _settings_wrong, "failed", "the settings were valid"),
        "Correct the setting, then run 'connector doctor'.",
    ),
    AlertType(
        *("job_failed", _job_failed, "failed", "the job succeeded"),
        "Open the failed run in Dagster, then run 'connector doctor'. It checks the settings, the "
        "API key and the network.",
        about="job",
    ),
    AlertType("not_proven", _not_proven, "degraded", "verified", about="resource"),
    AlertType(
        "deletions_refused",
        _deletions_refused,
        "degraded",
        "the local copy equalled the API",
        about="resource",
    ),
    AlertType(
        *("anomalies", _anomalies, "degraded", "all fields and values were documented"),
        "No action is needed: no data is lost. The table sync.events lists all these records, and"
        " docs/PULL.md explains each kind.",
        about="resource",
    ),
    AlertType(
        *("rows_rejected", _rows_rejected, "degraded", "the last push applied every row"),
        "Correct the rows in the report of the push, then push the report.",
        about="resource",
    ),
    AlertType(
        *("rows_in_doubt", _rows_in_doubt, "degraded", "no row was unconfirmed"),
        "If the push was interrupted, push the same file again: no row is sent twice. Otherwise"
        " run 'connector resolve', which lists the rows.",
    ),
    AlertType(
        *("checks_warn", _checks_warn, "degraded", "the data checks passed"),
        "Run 'connector models test', then correct the records on the platform, or fill in"
        " the seed files.",
    ),
    AlertType(
        *("clock_wrong", _clock_wrong, "degraded", "the clock was right"),
        "Set the clock, and check that time synchronisation runs ('timedatectl'). The copy is"
        " not affected: pulls use the server's clock.",
    ),
    AlertType(
        *("api_slow", _api_slow, "degraded", "the API answered at its usual speed"),
        "No action is needed: the pull succeeded. If the next nights are slow too, ask the "
        "platform's"
        " support.",
    ),
    AlertType(
        *(
            "cost_rising",
            _cost_rising,
            "degraded",
            "the last pull took its usual number of requests",
        ),
        "If many records were edited together, no action is needed: the next pull takes fewer "
        "requests again. If"
        " not, send the output of 'connector status' to the platform's support.",
    ),
    AlertType(
        *("quota_forecast", _quota_forecast, "degraded", "the forecast was within the plan"),
        "Pull less often ('connector plan --every' estimates the requests), or get a larger plan "
        "and set monthly_requests.",
    ),
    AlertType(
        *("quota_spent", _quota_spent, "degraded", "pulls ran again"),
        "Wait for the reset: pulls continue by themselves. After a change of your plan, set"
        " monthly_requests and run 'connector pull --ignore-quota'.",
    ),
    AlertType(
        *("silent", _silent, "silent", "all resources were pulled completely"),
        "Check that the schedule runs, then run 'connector pull'.",
    ),
)
ALERTS: Mapping[str, AlertType] = {each.code: each for each in _ALL}


def find_problems(s: FileSnapshot) -> FoundProblems:
    """Return the problem of each subject, None if it has none; one cause is reported once."""
    problems = {
        subject: answer or None for subject, answer in _check_conditions(s) if answer is not None
    }
    if problems.get(Subject("silent")) and _is_explained(s, problems):
        del problems[Subject("silent")]
    return problems


def _check_conditions(s: FileSnapshot) -> Iterator[tuple[Subject, ConditionResult]]:
    """Call the condition of every alert; yield each subject with its result."""
    ended = {each.run_id: each for each in s.runs}
    reached, pushes = dict[str, _LastResult](), dict[str, PushRun]()
    for resource, (run_id, result) in s.health.resources.items():
        run = ended.get(run_id)
        since = None if run is None else run.ended_at or run.started_at
        reached[resource] = _LastResult(result, run, since)
    for push in s.pushes.runs:
        pushes.setdefault(push.resource, push)
    # If settings are invalid, only some of them could be read.
    codes = (
        ("files_unusable", "settings_wrong") if isinstance(s.command_error, _SETTINGS) else ALERTS
    )
    for code in codes:
        each = ALERTS[code]
        if each.about == "resource":
            for about, last in (pushes if code == "rows_rejected" else reached).items():
                yield Subject(code, about), each.condition(s, last)
        elif each.about == "account":
            yield Subject(code), each.condition(s)
    if isinstance(s.command_error, _SETTINGS):
        return
    for alert in s.alerts:
        if alert.code == "job_failed" and s.recorded_at and s.recorded_at >= alert.since:
            yield Subject("job_failed", alert.about), False
    for job in s.jobs:
        yield Subject("job_failed", job.job), _job_failed(s, job)


def _is_explained(s: FileSnapshot, problems: FoundProblems) -> bool:
    """Return True if the alert `silent` would repeat another alert: a recent pull ran and failed.

    Without a recent pull, the schedule does not run, whatever else is wrong.
    """
    unrecorded = s.last_opened_at("files_unusable", "settings_wrong", "job_failed")
    tried = [each for each in (unrecorded, *(run.started_at for run in s.runs[:1])) if each]
    if not tried or s.now - max(tried) > s.max_age.length:
        return False
    known = {subject for subject, found in problems.items() if found}
    reasons = {"pull_failed", "quota_spent", "job_failed", "clock_wrong", "files_unusable"}
    if unrecorded or any(each.code in reasons for each in known):
        return True
    behind = proof_of(s.health.proven_at, s.now, s.max_age).behind
    explained = {each.about for each in known if each.code in ("not_proven", "deletions_refused")}
    return bool(behind) and explained >= {*behind}

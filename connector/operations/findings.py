"""Findings: problems of an account, by its runs, pushes, quota, clock and silence.

An account's files are read once; everything else is pure: records in, findings out. What could not
be read is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from statistics import median

from connector.errors import (
    ConnectorError,
    MartsMissing,
    NothingPublished,
    SettingsError,
    UnknownName,
    WarehouseBusy,
    WarehouseError,
    count_noun,
)
from connector.errors_api import TryAgain
from connector.ledger.alert_states import AlertRecord
from connector.ledger.journal import PUSH_LEASE
from connector.ledger.journal_reads import PushHealth, PushRun, read_push_health
from connector.ledger.ledger import Ledger, LedgerStatus, allowance_of
from connector.ledger.quota import midnight, month_used_up, shown
from connector.operations.alerts import ALERTS, Seen, Sight, Subject, Trouble, own_words, reason_of
from connector.pulls.error_hints import QUIET_KINDS, action_of, describe_anomalies, may_repeat
from connector.pulls.workspace import compare_files
from connector.settings.model import Settings
from connector.settings.values import Age
from connector.warehouse.pull_commands import Event
from connector.warehouse.runs import Health, Publication, ResourceRun, Run, SharedPublication
from connector.warehouse.warehouse import Warehouse

COST_PULLS_MIN = 5
"""Minimum number of earlier pulls that show what is usual."""

COST_PULLS_MAX = 20
COST_FACTOR = 3
COST_REQUESTS_MIN = 100
"""A pull is expensive if it takes more than `COST_FACTOR` times the median of the pulls before it,
and at least this number of requests more."""

SLOW_FACTOR = 5
SLOW_SECONDS_MIN = 1.0
SLOW_REQUESTS_MIN = 10
"""An API is slow if a pull of at least this number of requests needs more than a second for each,
and more than `SLOW_FACTOR` times the median of the pulls before it."""

CLOCK_SECONDS_MAX = 300
"""Largest difference between the two clocks that is no problem."""

_OF_FIELDS = frozenset(("unknown_field", "unknown_value", "unreadable_value"))

_PASSING = WarehouseBusy | MartsMissing | NothingPublished
"""Errors of files that say nothing of their state."""

UNRECORDED = ("files_unusable", "settings_wrong")
"""Alerts of what no run could write down."""

_REFUSED = frozenset(("refused", "failed"))


def of_pulls(health: Health, under_way: Collection[str]) -> Seen:
    """How pulls and publications have ended; `under_way` are the runs that go on."""
    ended = [run for run in health.runs if run.outcome is not None or run.run_id not in under_way]
    published = [each for each in health.publications if each.outcome in (*_REFUSED, "published")]
    if ended:
        yield from _of_last(health, ended, published)
    if published:
        yield from _of_published(published)
    # What a pull in the row of those that failed met in the end is told by `pull_failed`.
    failing = list(takewhile(_has_failed, ended))
    for resource, (run_id, done) in health.resources.items():
        run = next((each for each in ended if each.run_id == run_id), None)
        events = health.events.get(resource, ())
        yield from _of_resource(resource, done, run, events, is_told=run in failing)


def _of_last(health: Health, ended: Sequence[Run], published: Sequence[Publication]) -> Seen:
    last = ended[0]
    subject = Subject("pull_failed")
    refused = {each.run_id for each in published if each.outcome in _REFUSED}
    if _has_failed(last) and last.run_id not in refused:
        failed = list(takewhile(_has_failed, ended))
        since = failed[-1].ended_at or failed[-1].started_at
        if last.outcome in (None, "interrupted"):
            title, action = "pull was interrupted", "Run 'connector pull': it continues."
        else:
            mine = [done for run_id, done in health.resources.values() if run_id == last.run_id]
            same = [action_of(done) for done in mine if done.error_code == last.error_code]
            action = " ".join(dict.fromkeys(same)) or action_of(last.error_code)
            title = f"pull failed{reason_of(last.message, last.error_code)}"
        if len(failed) > 1:
            title = title.replace("pull failed", f"the last {len(failed)} pulls failed")
        causes = {run.error_code or run.outcome or "interrupted" for run in failed}
        said = own_words(last.message)
        yield subject, Trouble(since, title, said, _unattended(action), tuple(sorted(causes)))
    elif last.outcome != "stopped" or last.requests:
        # A pull that was stopped before its first request has not asked the API anything.
        yield subject, None


def _unattended(action: str) -> str:
    """Return the action for a user whose schedule runs the command again."""
    if action != TryAgain.action:
        return action
    return (
        "Nothing now: the next pull tries again. If this lasts for a day, check the network and the"
        " platform's status page."
    )


def _has_failed(run: Run) -> bool:
    return run.outcome in (None, "failed", "interrupted")


def _of_published(published: Sequence[Publication]) -> Seen:
    last = published[0]
    subject = Subject("publication_failed")
    if last.outcome == "published":
        yield subject, None
        found = None
        if last.failed_checks:
            checks = count_noun(len(last.failed_checks), "data check has", "data checks have")
            action = ALERTS["checks_warn"].action
            said = _described(last)
            causes = tuple(sorted(last.failed_checks))
            found = Trouble(last.ended_at, f"{checks} warnings", said, action, causes)
        yield Subject("checks_warn"), found
        return
    failed = list(takewhile(lambda each: each.outcome in _REFUSED, published))
    since = failed[-1].ended_at or failed[-1].started_at
    verb = "refused" if last.outcome == "refused" else "failed"
    title = f"publication {verb}{reason_of(last.message, last.error_code)}"
    if verb == "refused" and last.failed_checks:
        title = f"publication refused ({count_noun(len(last.failed_checks), 'check')} failed)"
    reasons = {each.error_code or verb for each in failed}.union(
        *(each.failed_checks for each in failed)
    )
    action = action_of(last.error_code)
    yield subject, Trouble(since, title, own_words(last.message), action, tuple(sorted(reasons)))


def _described(row: Publication) -> str:
    """Sentence on the failed checks: rows, and the id of one record."""
    told = []
    rows = (*row.failed_rows, *[None] * len(row.failed_checks))
    samples = (*row.failed_samples, *[None] * len(row.failed_checks))
    for name, count, sample in zip(row.failed_checks, rows, samples, strict=False):
        counted = "" if count is None else f": {count_noun(count, 'row')}"
        example = f" (for example {sample})" if sample else ""
        told.append(f"{name}{counted}{example}")
    return f"{'; '.join(told)}."


def of_shared(last: SharedPublication | None) -> Seen:
    """Return the problem of the latest publication to the lakehouse, if there was one."""
    found = None
    if last is not None and last.outcome == "failed":
        code, said = last.error_code, own_words(last.message)
        title = f"the lakehouse is not up to date{reason_of(last.message, code)}"
        found = Trouble(last.ended_at, title, said, action_of(code), (code or "failed",))
    yield Subject("lakehouse_behind"), found


def _of_resource(
    resource: str, done: ResourceRun, run: Run | None, events: Iterable[Event], *, is_told: bool
) -> Seen:
    since = None if run is None else run.ended_at or run.started_at
    refused = done.anomalies.get("mass_deletion")
    if is_told:
        is_told = run is not None and None is not run.error_code == done.error_code
    odd = [each for each in events if each.kind not in QUIET_KINDS]
    if done.proven:
        yield Subject("not_proven", resource), None
    elif done.outcome not in ("done", "stopped") and not (is_told or refused):
        verb = "skipped" if done.outcome == "skipped" else "not verified"
        title = f"{verb}{reason_of(done.message, done.error_code)}"
        # A service that comes and goes fails in many ways, and is one cause.
        causes = ("try_again" if may_repeat(done) else done.error_code or "unproven",)
        said, action = own_words(done.message), _unattended(action_of(done))
        yield Subject("not_proven", resource), Trouble(since, title, said, action, causes)
    if refused:
        said = f"{own_words(done.message)} The pull kept their rows."
        code = done.error_code or "deletions_refused"
        title = "many records are missing"
        found = Trouble(since, title, said, action_of(code), (code,))
        yield Subject("deletions_refused", resource), found
    elif done.proven:
        yield Subject("deletions_refused", resource), None
    if odd:
        said = describe_anomalies(resource, odd)
        # Of what fields have, each is a cause; other events tell of figures that move.
        met = {f"{e.kind} {e.detail}" if e.kind in _OF_FIELDS else e.kind for e in odd}
        action = ALERTS["anomalies"].action
        title = "undocumented fields or values"
        found = Trouble(since, title, said, action, tuple(sorted(met)))
        yield Subject("anomalies", resource), found
    elif done.proven:
        yield Subject("anomalies", resource), None


def of_cost(health: Health, under_way: Collection[str], standing: LedgerStatus) -> Seen:
    """Return the problem of a last pull that took far more requests than usual.

    Requests of `--reverify` do not count, and neither do pulls with a limit. It is a problem only
    if such pulls, as often as until now, would need more requests than the plan has.
    """
    ended = [run for run in health.runs if run.outcome is not None or run.run_id not in under_way]
    whole = [run for run in ended if run.outcome in ("done", "partial") and run.budget is None]
    if not ended or not whole or whole[0] is not ended[0]:
        return
    last = whole[0]
    alike = [run for run in whole if run.command == last.command][: COST_PULLS_MAX + 1]
    cost, *before = [(run.requests or 0) - health.scrubs.get(run.run_id, 0) for run in alike]
    month, found = standing.month, None
    if month.limit is not None and len(before) >= COST_PULLS_MIN:
        usual = median(before)
        gap = (last.started_at - alike[-1].started_at) / len(before)
        pulls = (midnight(month.period.ends) - last.started_at) / max(gap, timedelta(minutes=1))
        expected = month.used + int(pulls * cost)
        is_dear = cost > max(COST_FACTOR * usual, usual + COST_REQUESTS_MIN - 1)
        if is_dear and expected > month.limit:
            title = f"the last pull took {cost:,} requests, usually {usual:,.0f}"
            said = (
                f"If pulls continue like this, the billing cycle needs about {expected:,} requests."
                f" The plan has {month.limit:,}."
            )
            found = Trouble(last.started_at, title, said, ALERTS["cost_rising"].action)
    yield Subject("cost_rising"), found


def of_speed(health: Health, under_way: Collection[str]) -> Seen:
    """Return the problem of an API that answers far more slowly than usual.

    Pulls that waited for the rate limit do not count.
    """
    ended = [run for run in health.runs if run.outcome is not None or run.run_id not in under_way]
    paces = [
        (run, run.seconds / run.requests)
        for run in ended[: COST_PULLS_MAX + 1]
        if run.outcome in ("done", "partial") and run.seconds and run.requests
        if (run.waited_seconds or 0.0) < run.seconds / 10
    ]
    if not paces or paces[0][0] is not ended[0]:
        return
    (last, pace), *before = paces
    found = None
    if len(before) >= COST_PULLS_MIN and (last.requests or 0) >= SLOW_REQUESTS_MIN:
        usual = median(each for _, each in before)
        if pace > max(SLOW_SECONDS_MIN, SLOW_FACTOR * usual):
            title = f"the API is slow ({pace:.1f} s per request, usually {usual:.1f} s)"
            said = f"The last pull took {last.seconds:,.0f} s for {last.requests:,} requests."
            found = Trouble(last.started_at, title, said, ALERTS["api_slow"].action)
    yield Subject("api_slow"), found


def of_clock(ahead_seconds: float | None) -> Seen:
    """Return the problem of a clock that differs from the API server's; None if not measured."""
    if ahead_seconds is None:
        return
    found = None
    if abs(ahead_seconds) > CLOCK_SECONDS_MAX:
        where = "ahead of" if ahead_seconds > 0 else "behind"
        length = _length(abs(ahead_seconds))
        title = f"this machine's clock is {length} {where} the API's"
        said = "Ages, schedules and alerts about silence use this machine's clock."
        found = Trouble(None, title, said, ALERTS["clock_wrong"].action)
    yield Subject("clock_wrong"), found


def _length(seconds: float) -> str:
    for size, unit in ((86_400, "day"), (3600, "hour")):
        if seconds >= size:
            return count_noun(round(seconds / size), unit)
    return count_noun(round(seconds / 60), "minute")


# -- Pushes ----------------------------------------------------------------------------------------
# No file's name is repeated, since it may be a person's.


def of_pushes(health: PushHealth, *, is_under_way: bool) -> Seen:
    """How pushes have ended; `is_under_way` says whether one goes on."""
    # While one goes on, the batch that it works at has no outcome.
    ended = [each for each in health.runs if each.outcome is not None or not is_under_way]
    if ended:
        yield Subject("push_failed"), _of_last_push(ended[0])
    last = {each.resource: each for each in reversed(ended)}
    for resource, push in last.items():
        if push.outcome in ("done", "partial"):
            yield Subject("rows_rejected", resource), _rejected(push)
    doubts = [health.held, None if is_under_way else health.open]
    in_doubt = [each for each in doubts if each is not None]
    found = None
    if in_doubt:
        rows = count_noun(sum(each.rows for each in in_doubt), "row")
        said = "The rows were sent, and it is unknown whether the API applied them."
        since = min(each.since for each in in_doubt)
        found = Trouble(since, f"{rows} in doubt", said, ALERTS["rows_in_doubt"].action)
    yield Subject("rows_in_doubt"), found


def _of_last_push(last: PushRun) -> Trouble | None:
    said = f"Batch {last.batch}, {last.resource}."
    if last.outcome is None:
        action = "Push the same file again: it continues where it stopped."
        title = "push was interrupted"
        return Trouble(last.begun_at, title, said, action, ("interrupted",))
    if last.outcome != "failed":
        return None
    title = f"push failed{reason_of(last.message, last.error_code)}"
    said = f"{said} {own_words(last.message)}".rstrip()
    code = last.error_code
    return Trouble(last.ended_at, title, said, action_of(code), (code or "failed",))


def _rejected(last: PushRun) -> Trouble | None:
    if not last.refused:
        return None
    title = f"{count_noun(last.refused, 'row')} of the last push not applied"
    said, action = f"Batch {last.batch}.", ALERTS["rows_rejected"].action
    return Trouble(last.ended_at, title, said, action, (last.batch,))


# -- Month -----------------------------------------------------------------------------------------

WELL_SHARE = 0.95
"""A forecast is no problem any more below this part of the plan, so that it does not alternate."""


def of_month(standing: LedgerStatus) -> Seen:
    """Return whether requests are left, and whether they will be."""
    spent = _spent(standing)
    yield Subject("quota_spent"), spent
    limit, expected = standing.month.limit, standing.forecast
    subject = Subject("quota_forecast")
    if limit is None:
        yield subject, None
    elif spent is None and expected is not None:
        if expected > limit:
            title = f"the billing cycle needs about {expected:,} of {limit:,} requests"
            said = (
                f"The cycle ends on {standing.month.period.ends}. A usual day takes"
                f" {standing.usual_day:,} requests."
            )
            yield subject, Trouble(None, title, said, ALERTS["quota_forecast"].action)
        elif expected <= WELL_SHARE * limit:
            yield subject, None


def _spent(standing: LedgerStatus) -> Trouble | None:
    month, word = standing.month, standing.exhaustion
    title, action = "the monthly limit of requests is used up", ALERTS["quota_spent"].action
    if word is not None:
        until = shown(word.until)
        said = f"The API reported it. Pulls send no request before {until}."
        return Trouble(word.noted_at, title, said, action)
    if month.limit is None or month.room(keeps_reserve=True):
        return None
    return Trouble(None, title, month_used_up(month), action)


# -- Silence ---------------------------------------------------------------------------------------
# From what has landed alone: whether a schedule ran is no proof of anything.


@dataclass(frozen=True, slots=True)
class Proof:
    """Age of what is proven.

    `oldest` is the moment up to which the resource is proven that is furthest behind (None:
    none ever was), `behind` those that are older than is allowed, and `sentence` says so (None:
    all are young enough).
    """

    oldest: datetime | None
    behind: tuple[str, ...]
    sentence: str | None


def proof_of(proven_at: Mapping[str, datetime | None], now: datetime, age: Age) -> Proof:
    """Age of the proof of what is pulled.

    A resource that was never proven counts only where none was: that it is not is told by other
    means.
    """
    known = {resource: moment for resource, moment in proven_at.items() if moment is not None}
    if not known:
        said = f"No pull was ever proven, and one must be at most {age} old."
        return Proof(None, (), said)
    behind = tuple(resource for resource, moment in known.items() if now - moment > age.length)
    oldest = min(known.values())
    if not behind:
        return Proof(oldest, (), None)
    said = f"No proven pull of {', '.join(behind)} is younger than {age}"
    return Proof(oldest, behind, f"{said}: the oldest is of {shown(oldest)}.")


def of_silence(health: Health | None, now: datetime, age: Age) -> Seen:
    """Whether the account is silent. The first pull of all has as long as any other."""
    proof = proof_of({} if health is None else health.proven_at, now, age)
    subject = Subject("silent")
    if proof.sentence is None:
        yield subject, None
        return
    first = None if health is None else health.first_run_at
    if proof.oldest is None and first is not None and now - first <= age.length:
        return
    since = proof.oldest or first
    title = f"no verified pull for more than {age}" if proof.oldest else "no pull was ever verified"
    yield subject, Trouble(since, title, proof.sentence, ALERTS["silent"].action)


# -- Snapshot --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobRun:
    """The last run of a job of Dagster that has ended; `failed` says how."""

    job: str
    run_id: str
    started_at: datetime
    failed: bool


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """Snapshot of what an account's files hold.

    `health` is None where nothing was ever landed, or where the work file
    is `unusable`; `standing` and `pushes` are None where there is no ledger. `ahead_seconds` is how
    far this machine's clock was ahead of the API's at the last pull. `alerts` are the open ones.
    """

    now: datetime
    max_age: Age
    health: Health | None
    unusable: WarehouseError | None
    standing: LedgerStatus | None
    pushes: PushHealth | None
    ahead_seconds: float | None = None
    alerts: tuple[AlertRecord, ...] = ()


def look(settings: Settings, now: datetime, alerts: Iterable[AlertRecord] = ()) -> FileSnapshot:
    """Snapshot of the account's files; none is made. Raises the ledger's errors."""
    warehouse = Warehouse(settings.folder)
    health, unusable = None, None
    try:
        if warehouse.exists:
            health = warehouse.health()
            if settings.lakehouse.value is None:
                # What was not brought there while there was a lakehouse is nobody's concern now.
                health = replace(health, shared=None)
            health = _until(health, now)
    except WarehouseError as error:
        unusable = error
    standing, pushes, ahead = None, None, None
    with Ledger(settings.folder) as ledger:
        if ledger.exists:
            standing = ledger.status(allowance_of(settings), now)
            pushes = read_push_health(ledger)
            ahead = -ledger.server().offset_seconds
        if unusable is None:
            try:
                compare_files(ledger, warehouse)
            except WarehouseError as error:
                unusable = error
    age = settings.alert_max_age.value
    open_now = tuple(each for each in alerts if each.is_open)
    return FileSnapshot(now, age, health, unusable, standing, pushes, ahead, open_now)


def _until(health: Health, now: datetime) -> Health:
    """Leave out runs from the future: this machine's clock was ahead when they ran."""
    latest = now + timedelta(seconds=CLOCK_SECONDS_MAX)
    return replace(
        health,
        runs=tuple(each for each in health.runs if each.started_at <= latest),
        publications=tuple(each for each in health.publications if each.started_at <= latest),
    )


def sight_of(
    snapshot: FileSnapshot, jobs: Sequence[JobRun] = (), met: ConnectorError | None = None
) -> Sight:
    """Troubles in the snapshot, and on the jobs of whoever runs them.

    `met` ended the command that looks. What it could not write down is nowhere in the files.
    """
    sight = dict(_seen(snapshot, jobs, met))
    if sight.get(Subject("silent")) and _is_explained(snapshot, sight):
        # An alert that stands stays, and none is opened: why nothing is proven is told already.
        del sight[Subject("silent")]
    return sight


_SILENCING = ("pull_failed", "quota_spent", "job_failed", "clock_wrong", *UNRECORDED)
"""Alerts that say why nothing of the account is proven."""


def _is_explained(snapshot: FileSnapshot, sight: Sight) -> bool:
    """Whether a try lately proved nothing, and another alert says why.

    Where nothing was tried, the schedule is dead, whatever else is not well.
    """
    health = snapshot.health
    tried = [] if health is None else [run.started_at for run in health.runs[:1]]
    trackless = (*UNRECORDED, "job_failed")
    open_since = {each.code: each.opened_at for each in snapshot.alerts if each.code in trackless}
    tried += open_since.values()
    if not tried or snapshot.now - max(tried) > snapshot.max_age.length:
        return False
    known = {subject for subject, found in sight.items() if found} | {
        Subject(code) for code in open_since
    }
    if any(subject.code in _SILENCING for subject in known):
        return True
    behind = proof_of({} if health is None else health.proven_at, snapshot.now, snapshot.max_age)
    return bool(behind.behind) and all(
        Subject("not_proven", each) in known or Subject("deletions_refused", each) in known
        for each in behind.behind
    )


def of_files(error: WarehouseError) -> Trouble:
    """Trouble of a work file or a ledger."""
    title = f"data files cannot be used{reason_of(str(error), error.code)}"
    return Trouble(None, title, own_words(str(error)), error.action, (error.code,))


def _is_told(snapshot: FileSnapshot, met: ConnectorError) -> bool:
    """Whether a run or a publication recorded the error, and tells of it."""
    health = snapshot.health
    if health is None:
        return False
    last = [each.error_code for each in health.runs[:1]]
    return met.code in (*last, *(each.error_code for each in health.publications[:1]))


def _of_the_met(snapshot: FileSnapshot, met: ConnectorError | None) -> Seen:
    """What keeps the connector from its work; over only once it has done some again."""
    files, wrong = snapshot.unusable, None
    if isinstance(met, WarehouseError) and not isinstance(met, _PASSING):
        files = files or (None if _is_told(snapshot, met) else met)
    if isinstance(met, SettingsError | UnknownName):
        wrong = Trouble(None, "settings are invalid", own_words(str(met)), met.action, (str(met),))
    recorded = max(_recorded(snapshot), default=None)
    for subject, found in (
        (Subject("files_unusable"), None if files is None else of_files(files)),
        (Subject("settings_wrong"), wrong),
    ):
        opened = [each.opened_at for each in snapshot.alerts if each.code == subject.code]
        if found or not opened or (recorded is not None and recorded >= opened[0]):
            yield subject, found


def _seen(
    snapshot: FileSnapshot, jobs: Sequence[JobRun], met: ConnectorError | None = None
) -> Seen:
    leases = snapshot.standing.leases if snapshot.standing is not None else ()
    under_way = [each for each in leases if not each.is_over(snapshot.now)]
    yield from _of_the_met(snapshot, met)
    if isinstance(met, SettingsError | UnknownName):
        return  # One cause is told once, and what is read of the settings may not be all.
    if snapshot.unusable is None:
        yield from of_silence(snapshot.health, snapshot.now, snapshot.max_age)
    if snapshot.health is not None:
        running = {each.owner.run_id for each in under_way}
        yield from of_pulls(snapshot.health, running)
        yield from of_speed(snapshot.health, running)
        yield from of_shared(snapshot.health.shared)
        if snapshot.standing is not None:
            yield from of_cost(snapshot.health, running, snapshot.standing)
    yield from of_clock(snapshot.ahead_seconds)
    if snapshot.pushes is not None:
        is_pushing = any(each.name == PUSH_LEASE for each in under_way)
        yield from of_pushes(snapshot.pushes, is_under_way=is_pushing)
    if snapshot.standing is not None:
        yield from of_month(snapshot.standing)
    recorded = max(_recorded(snapshot), default=None)
    yield from _of_jobs(jobs, recorded)
    # Anything that was recorded since, by hand or by another schedule, has done the job's work.
    unheard = {alert.about: alert.since for alert in snapshot.alerts if alert.code == "job_failed"}
    for job in unheard.keys() - {each.job for each in jobs}:
        if recorded is not None and recorded >= unheard[job]:
            yield Subject("job_failed", job), None


def _of_jobs(jobs: Sequence[JobRun], recorded: datetime | None) -> Seen:
    """Troubles of jobs that failed and left no trace.

    Where the connector wrote something down since, that says more.
    """
    for each in jobs:
        found = None
        if each.failed and (recorded is None or recorded < each.started_at):
            said = f"Dagster run {each.run_id}. The connector recorded nothing."
            found = Trouble(each.started_at, "job failed", said, ALERTS["job_failed"].action)
        yield Subject("job_failed", each.job), found


def _recorded(snapshot: FileSnapshot) -> Iterator[datetime]:
    """The moments at which the connector last wrote something down."""
    if snapshot.health is not None:
        yield from (each.started_at for each in snapshot.health.runs[:1])
        yield from (each.started_at for each in snapshot.health.publications[:1])
    if snapshot.pushes is not None:
        yield from (each.ended_at or each.begun_at for each in snapshot.pushes.runs[:1])

"""Which alerts are due: from those that stand and what is seen now, each once per change of state.

Pure: the moment is an argument, and nothing is read or sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from connector.ledger.alert_states import AlertRecord, Change, MessageRecord
from connector.settings.values import Kind

# -- Declared --------------------------------------------------------------------------------------
# Every alert that there is: its kind, what it is about, what it means, and what to do next.
#
# `docs/ALERTS.md` shows this table, and a test holds the two equal. When an alert is due is decided
# by the files beside this one.


About = Literal["account", "resource", "job"]

BY_CODE = "What the code of the error asks for (docs/ERRORS.md)."
"""The action of alerts that pass on the error's own."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One alert. `over` is the sentence that is told when it has ended."""

    code: str
    kind: Kind
    about: About
    meaning: str
    action: str
    over: str


_ALL = (
    Declared(
        "pull_failed",
        "failed",
        "account",
        "The last pull failed, or was cut off.",
        BY_CODE,
        "A pull has ended well since.",
    ),
    Declared(
        "publication_failed",
        "failed",
        "account",
        "What has landed could not be published, or checks that block have refused it.",
        BY_CODE,
        "The file for analysts was published since.",
    ),
    Declared(
        "push_failed",
        "failed",
        "account",
        "The last push failed, or was cut off.",
        BY_CODE,
        "A push has ended well since.",
    ),
    Declared(
        "files_unusable",
        "failed",
        "account",
        "The work file cannot be opened or read.",
        BY_CODE,
        "The work file can be read again.",
    ),
    Declared(
        "job_failed",
        "failed",
        "job",
        "A job of Dagster failed before the connector could write anything down.",
        "Look at the run in Dagster; 'connector doctor' checks what a pull needs.",
        "The job has ended well since, or the connector has written down what became of it.",
    ),
    Declared(
        "not_proven",
        "degraded",
        "resource",
        "The last pull of the resource failed, skipped it, or could not prove it.",
        BY_CODE,
        "The resource is proven again.",
    ),
    Declared(
        "deletions_refused",
        "degraded",
        "resource",
        "So many records were missing that the last pull kept their deletions back.",
        BY_CODE,
        "The last pull believed what the list shows.",
    ),
    Declared(
        "anomalies",
        "degraded",
        "resource",
        "The last pull of the resource met what the API's description does not have.",
        "Look at the latest rows of sync.events. Nothing is lost: what came is kept as it came.",
        "The last pull of the resource met nothing odd.",
    ),
    Declared(
        "rows_rejected",
        "degraded",
        "resource",
        "Rows of the resource's last push were refused, or not applied.",
        "Correct the rows in the push's report, and push the report.",
        "The last push of the resource left no row behind.",
    ),
    Declared(
        "rows_in_doubt",
        "degraded",
        "account",
        "Rows were sent whose fate is unknown.",
        "Run 'connector resolve', which lists them; for a push that was cut off, push its file"
        " again.",
        "No row is in doubt any more.",
    ),
    Declared(
        "checks_warn",
        "degraded",
        "account",
        "What was published last has findings of checks that warn.",
        "Run 'connector models test', and correct what it finds, or the seeds.",
        "What was published last has no findings.",
    ),
    Declared(
        "lakehouse_behind",
        "degraded",
        "account",
        "What was published last is not in the shared lakehouse.",
        BY_CODE,
        "The lakehouse has what was published last.",
    ),
    Declared(
        "cost_rising",
        "degraded",
        "account",
        "The last pull took far more requests than the pulls before it.",
        "Run 'connector status' for where they went; a bulk edit explains it, a change in how the"
        " API sorts or dates its records must be looked into.",
        "Pulls cost what they did before.",
    ),
    Declared(
        "quota_forecast",
        "degraded",
        "account",
        "At the usual pace the billing cycle will take more requests than the plan has.",
        "Pull less often ('connector plan --every' says what that costs), or enlarge the plan and"
        " set monthly_requests.",
        "The plan's requests will do until the billing cycle ends.",
    ),
    Declared(
        "quota_spent",
        "degraded",
        "account",
        "The billing cycle's requests are spent, so that no pull sends any.",
        "Wait, or enlarge the plan, set monthly_requests and run 'connector pull --ask-anyway'.",
        "Requests may be sent again.",
    ),
    Declared(
        "silent",
        "silent",
        "account",
        "A resource was not proven for longer than alert_max_age, or nothing ever was.",
        "Check that the schedule runs and look at 'connector status', then run 'connector pull'.",
        "Everything that is pulled is proven again.",
    ),
)

DECLARED: Mapping[str, Declared] = {each.code: each for each in _ALL}
"""Every alert by its code, the gravest first."""


# -- Deciding --------------------------------------------------------------------------------------
#


NOTHING_TO_DO = "Nothing need be done."
"""The action of an alert that has ended."""


class Subject(NamedTuple):
    """What can be well or not: the code of an alert, and the resource or job that it is about,
    nothing where it is the account.
    """

    code: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is not well: since when (None: since it is noticed), what happened, what to do."""

    since: datetime | None
    happened: str
    action: str


Seen = Iterator[tuple[Subject, Finding | None]]

Sight = Mapping[Subject, Finding | None]
"""What is seen now: a finding, or None where all is well. A subject that is not there could not be
looked at, and stays as it was.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """The alerts that stand from now on, and what is to be told: what ended, then what opened."""

    standing: tuple[AlertRecord, ...]
    messages: tuple[MessageRecord, ...]


def decide(
    standing: Iterable[AlertRecord],
    sight: Sight,
    now: datetime,
    kinds: Collection[Kind],
    account: str | None = None,
) -> Decision:
    """At most one alert stands for each subject, and none whose kind is not wanted any more.

    An alert that stands and is seen again is told nothing of; it stands with what is so now. One
    that is of no wanted kind, or of none that there is, ends without a word.
    """
    before = {Subject(each.code, each.about): each for each in standing}
    after: dict[Subject, AlertRecord] = {}
    ended: list[MessageRecord] = []
    for subject, alert in before.items():
        declared = DECLARED.get(subject.code)
        if declared is None or declared.kind not in kinds:
            continue
        if subject not in sight:
            after[subject] = alert
            continue
        found = sight[subject]
        if found is None:
            over = replace(alert, happened=declared.over, action=NOTHING_TO_DO)
            ended.append(_message("ended", over, now, account))
        else:
            after[subject] = replace(alert, happened=found.happened, action=found.action)
    opened: list[MessageRecord] = []
    for subject, found in sight.items():
        if found is not None and subject not in before and DECLARED[subject.code].kind in kinds:
            since = now if found.since is None else min(found.since, now)
            alert = AlertRecord(*subject, since, now, found.happened, found.action)
            after[subject] = alert
            opened.append(_message("opened", alert, now, account))
    order = {code: place for place, code in enumerate(DECLARED)}
    opened.sort(key=lambda each: (order[each.code], each.about))
    ended.sort(key=lambda each: (order[each.code], each.about))
    return Decision(tuple(after.values()), (*ended, *opened))


def _message(
    change: Change, alert: AlertRecord, at: datetime, account: str | None
) -> MessageRecord:
    """A message whose id no other has: a subject changes once at a moment."""
    named = "-".join(filter(None, (account, alert.code, alert.about, change)))
    return MessageRecord(
        id=f"{at:%Y%m%dT%H%M%S%fZ}-{named}",
        change=change,
        at=at,
        code=alert.code,
        about=alert.about,
        since=alert.since,
        happened=alert.happened,
        action=alert.action,
    )


# -- Words -----------------------------------------------------------------------------------------
# What a run's record says, as an alert may repeat it: nothing that another program has worded.
#
# An alert leaves the machine. The API's own words in an error may name anybody, so that they stay
# behind; everything else in a record is the connector's own, which never holds a record's contents.


_ANSWERED = re.compile(r"( was answered [0-9]{3})\b.*", re.DOTALL)


def told(message: str | None, code: str | None) -> str:
    """What happened, to follow a colon, with the error's code in brackets; empty where nothing is
    known.
    """
    said = _ANSWERED.sub(r"\1", message or "").strip().rstrip(".")
    shown = f"[{code}]" if code else ""
    return " ".join(filter(None, (said, shown)))


def sentence(said: str, reason: str) -> str:
    """What happened and, where it is known, why."""
    return f"{said}: {reason}." if reason else f"{said}."

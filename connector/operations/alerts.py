"""Alerts: all that there are, and which are due, once per change of state.

Pure: the moment is an argument, and nothing is read or sent. `findings.py` says what is not well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

from connector.ledger.alert_states import AlertRecord, Change, MessageRecord
from connector.settings.values import Kind

# -- Declared --------------------------------------------------------------------------------------
# `docs/ALERTS.md` shows this table, and a test holds the two equal.

About = Literal["account", "resource", "job"]

BY_CODE = "What the code of the error asks for (docs/ERRORS.md)."
"""The action of alerts that pass on the error's own."""


@dataclass(frozen=True, slots=True)
class AlertType:
    """One alert: its meaning, the sentence that says it is over, and what to do next."""

    code: str
    kind: Kind
    meaning: str
    over: str
    action: str = BY_CODE
    about: About = "account"


_ALL = (
    AlertType(
        "pull_failed",
        "failed",
        "The last pull failed, or was cut off.",
        "A pull has ended well since.",
    ),
    AlertType(
        "publication_failed",
        "failed",
        "What has landed could not be published, or checks that block have refused it.",
        "The file for analysts was published since.",
    ),
    AlertType(
        "push_failed",
        "failed",
        "The last push failed, or was cut off.",
        "A push has ended well since.",
    ),
    AlertType(
        "files_unusable",
        "failed",
        "The work file or the ledger cannot be opened, read or written to.",
        "The account's files are in use again.",
    ),
    AlertType(
        "settings_wrong",
        "failed",
        "The account's settings cannot be used, so that nothing is done.",
        "The account's settings are in use again.",
    ),
    AlertType(
        "job_failed",
        "failed",
        "A job of Dagster failed before the connector could write anything down.",
        "The job has ended well since, or the connector has written down what became of it.",
        "Look at the run in Dagster; 'connector doctor' checks what a pull needs.",
        about="job",
    ),
    AlertType(
        "not_proven",
        "degraded",
        "The last pull of the resource failed, skipped it, or could not prove it.",
        "The resource is proven again.",
        about="resource",
    ),
    AlertType(
        "deletions_refused",
        "degraded",
        "So many records were missing that the last pull kept their deletions back.",
        "The last pull believed what the list shows.",
        about="resource",
    ),
    AlertType(
        "anomalies",
        "degraded",
        "The resource has what the API's description does not have.",
        "The resource has nothing odd any more.",
        "Look at the record that is named, and at sync.events for others; docs/PULL.md says what"
        " each kind asks for. Nothing is lost: what came is kept as it came.",
        about="resource",
    ),
    AlertType(
        "rows_rejected",
        "degraded",
        "Rows of the resource's last push were refused, or not applied.",
        "The last push of the resource left no row behind.",
        "Correct the rows in the push's report, and push the report.",
        about="resource",
    ),
    AlertType(
        "rows_in_doubt",
        "degraded",
        "Rows were sent whose fate is unknown.",
        "No row is in doubt any more.",
        "Run 'connector resolve', which lists them; for a push that was cut off, push its file"
        " again.",
    ),
    AlertType(
        "checks_warn",
        "degraded",
        "What was published last has findings of checks that warn.",
        "What was published last has no findings.",
        "Run 'connector models test', and correct what it finds, or the seeds.",
    ),
    AlertType(
        "lakehouse_behind",
        "degraded",
        "What was published last is not in the shared lakehouse.",
        "The lakehouse has what was published last.",
    ),
    AlertType(
        "cost_rising",
        "degraded",
        "The last pull took far more requests than the pulls before it.",
        "Pulls cost what they did before.",
        "Run 'connector status' for where they went; a bulk edit explains it, a change in how the"
        " API sorts or dates its records must be looked into.",
    ),
    AlertType(
        "quota_forecast",
        "degraded",
        "At the usual pace the billing cycle will take more requests than the plan has.",
        "The plan's requests will do until the billing cycle ends.",
        "Pull less often ('connector plan --every' says what that costs), or enlarge the plan and"
        " set monthly_requests.",
    ),
    AlertType(
        "quota_spent",
        "degraded",
        "The billing cycle's requests are spent, so that no pull sends any.",
        "Requests may be sent again.",
        "Wait, or enlarge the plan, set monthly_requests and run 'connector pull --ignore-quota'.",
    ),
    AlertType(
        "silent",
        "silent",
        "A resource was not proven for longer than alert_max_age, or nothing ever was.",
        "Everything that is pulled is proven again.",
        "Check that the schedule runs and look at 'connector status', then run 'connector pull'.",
    ),
)

ALERTS: Mapping[str, AlertType] = {each.code: each for each in _ALL}
"""Every alert by its code, the gravest first."""


# -- Deciding --------------------------------------------------------------------------------------

NOTHING_TO_DO = "Nothing need be done."
"""The action of an alert that has ended."""

ABOUT_SEPARATOR = ", "
"""Between the resources that one message is about."""

_TOLD_FIRST: Mapping[Change, int] = {"ended": 0, "changed": 1, "opened": 2, "test": 3}


class Subject(NamedTuple):
    """Subject of an alert: its code, and the resource or job that it is about.

    `about` is empty where it is the account.
    """

    code: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not well: since when, what happened, what to do.

    `since` is None where it begins when it is noticed. `causes` say what it comes of, such as an
    error's code or a check: one that is new is told of, although the alert stands already.
    """

    since: datetime | None
    happened: str
    action: str
    causes: tuple[str, ...] = ()


Seen = Iterator[tuple[Subject, Trouble | None]]

Sight = Mapping[Subject, Trouble | None]
"""What is seen now: a finding, or None where all is well. A subject that is not there could not be
looked at, and stays as it was.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """Alerts that stand from now on, and messages: ended, changed, then opened."""

    standing: tuple[AlertRecord, ...]
    messages: tuple[MessageRecord, ...]


def decide(
    standing: Iterable[AlertRecord],
    sight: Sight,
    now: datetime,
    kinds: Collection[Kind],
    account: str | None = None,
) -> Decision:
    """Decide: one open alert a subject at most, none of a kind that is not wanted.

    An alert that stands and is seen again is told nothing of, unless it has a new cause; it stands
    with what is so now. One that is of no wanted kind, or of none that there is, ends without a
    word. Alerts of one name that change together, of the same causes, are one message.
    """
    wanted = {code: place for place, code in enumerate(ALERTS) if ALERTS[code].kind in kinds}
    before = {Subject(each.code, each.about): each for each in standing if each.code in wanted}
    after = before.copy()
    changes: dict[tuple[Change, str, tuple[str, ...]], list[AlertRecord]] = {}
    for subject, found in sight.items():
        alert = before.get(subject)
        if found is None:
            if alert is not None:
                del after[subject]
                over = replace(alert, happened=ALERTS[alert.code].over, action=NOTHING_TO_DO)
                changes.setdefault(("ended", alert.code, ()), []).append(over)
        elif alert is not None:
            now_so = replace(
                alert, happened=found.happened, action=found.action, causes=found.causes
            )
            after[subject] = now_so
            if not {*found.causes} <= {*alert.causes}:
                changes.setdefault(("changed", alert.code, found.causes), []).append(now_so)
        elif subject.code in wanted:
            since = now if found.since is None else min(found.since, now)
            alert = AlertRecord(*subject, since, now, found.happened, found.action, found.causes)
            after[subject] = alert
            changes.setdefault(("opened", alert.code, found.causes), []).append(alert)
    messages = [_message(change, each, now, account) for (change, *_), each in changes.items()]
    messages.sort(key=lambda each: (_TOLD_FIRST[each.change], wanted[each.code], each.about))
    return Decision(tuple(after.values()), tuple(messages))


def _message(
    change: Change, alerts: Sequence[AlertRecord], at: datetime, account: str | None
) -> MessageRecord:
    """Message on all of them. No other has its id: a subject changes once at a moment."""
    code, about = alerts[0].code, sorted(each.about for each in alerts)
    named = "-".join(filter(None, (account, code, "+".join(about), change)))
    return MessageRecord(
        id=f"{at:%Y%m%dT%H%M%S%fZ}-{named}",
        change=change,
        at=at,
        code=code,
        about=ABOUT_SEPARATOR.join(about),
        since=min(each.since for each in alerts),
        happened=" ".join(dict.fromkeys(each.happened for each in alerts)),
        action=" ".join(dict.fromkeys(each.action for each in alerts)),
    )


def because(said: str, message: str | None, code: str | None) -> str:
    """Sentence on what happened and why: a run's own words, and the error's code.

    An alert leaves the machine. The API's own words in an error may name anybody, so that they
    stay behind; everything else in a record is the connector's own, which never holds a record's
    contents.
    """
    own = re.sub(r"(?s)( was answered [0-9]{3})\b.*", r"\1", message or "").strip().rstrip(".")
    reason = " ".join(filter(None, (own, f"[{code}]" if code else "")))
    return f"{said}: {reason}." if reason else f"{said}."

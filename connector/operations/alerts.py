"""Alerts: their types, and which are due, once per change of state.

Pure: the time is an argument, and nothing is read or sent. `findings.py` says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Literal, NamedTuple

from connector.ledger.alert_states import AlertRecord, Change
from connector.settings.values import Kind

# -- Types -----------------------------------------------------------------------------------------
# `docs/ALERTS.md` shows this table, and a test holds the two equal.

About = Literal["account", "resource", "job"]

BY_CODE = "The action of the error's code ([errors](ERRORS.md))."
"""The action of alerts that pass on the error's own."""

RUNBOOK, ERROR_RUNBOOK = "docs/ALERTS.md#every-alert", "docs/OPERATIONS.md#after-every-error"


@dataclass(frozen=True, slots=True)
class AlertType:
    """Type of alert: its meaning, the clause that reports its end, and the next action."""

    code: str
    kind: Kind
    meaning: str
    over: str
    action: str = BY_CODE
    about: About = "account"


_ALL = (
    AlertType(
        "pull_failed", "failed", "The last pull failed or was interrupted.", "the pull succeeded"
    ),
    AlertType(
        "publication_failed",
        "failed",
        "The loaded data could not be published, or a blocking check refused it.",
        "the file for analysts was published",
    ),
    AlertType(
        "push_failed", "failed", "The last push failed or was interrupted.", "the push succeeded"
    ),
    AlertType(
        "files_unusable",
        "failed",
        "The work file or the ledger cannot be opened, read or written.",
        "the account's files were usable",
    ),
    AlertType(
        "settings_wrong",
        "failed",
        "The account's settings are invalid, so no command runs.",
        "the settings were valid",
    ),
    AlertType(
        "job_failed",
        "failed",
        "A Dagster job failed before the connector recorded anything.",
        "the job succeeded",
        "Open the failed run in Dagster. 'connector doctor' checks what a pull needs.",
        about="job",
    ),
    AlertType(
        "not_proven",
        "degraded",
        "The last pull failed for the resource, skipped it, or could not verify it.",
        "verified",
        about="resource",
    ),
    AlertType(
        "deletions_refused",
        "degraded",
        "So many records are missing that the last pull kept their rows.",
        "the copy agreed with the API",
        about="resource",
    ),
    AlertType(
        "anomalies",
        "degraded",
        "The resource has fields or values that the API documentation does not describe.",
        "no undocumented field or value remained",
        "Check the record that is named. The table sync.events lists the others, and docs/PULL.md"
        " explains each kind. No data is lost.",
        about="resource",
    ),
    AlertType(
        "rows_rejected",
        "degraded",
        "The resource's last push did not apply every row.",
        "the last push applied every row",
        "Correct the rows in the report of the push, then push the report.",
        about="resource",
    ),
    AlertType(
        "rows_in_doubt",
        "degraded",
        "Rows were sent, and it is unknown whether the API applied them.",
        "no row was in doubt",
        "Run 'connector resolve', which lists the rows. After an interrupted push, push its file"
        " again.",
    ),
    AlertType(
        "checks_warn",
        "degraded",
        "Data checks have warnings about the published file.",
        "the data checks passed",
        "Run 'connector models test', then correct the records on the platform, or fill in the"
        " seed files.",
    ),
    AlertType(
        "lakehouse_behind",
        "degraded",
        "The latest publication is not in the shared lakehouse.",
        "the lakehouse was up to date",
    ),
    AlertType(
        "clock_wrong",
        "degraded",
        "This machine's clock differs from the API server's by more than 5 minutes.",
        "the clock was right",
        "Set the clock, and check that time synchronisation runs ('timedatectl'). The copy is not"
        " affected: pulls use the server's clock.",
    ),
    AlertType(
        "api_slow",
        "degraded",
        "The API answered the last pull far more slowly than the pulls before it.",
        "the API answered at its usual speed",
        "Nothing now: the pull succeeded. If the next nights are slow too, ask the platform's"
        " support.",
    ),
    AlertType(
        "cost_rising",
        "degraded",
        "The last pull took far more requests than the pulls before it.",
        "the pull took its usual requests",
        "Run 'connector status' to see the requests. A bulk edit explains them; otherwise the API"
        " may sort or date its records differently: ask the platform's support.",
    ),
    AlertType(
        "quota_forecast",
        "degraded",
        "At the usual pace the billing cycle needs more requests than the plan has.",
        "the forecast was within the plan",
        "Pull less often ('connector plan --every' shows the cost), or enlarge the plan and set"
        " monthly_requests.",
    ),
    AlertType(
        "quota_spent",
        "degraded",
        "The monthly limit of requests is used up, so pulls send none.",
        "pulls could send requests",
        "Wait, or enlarge the plan, set monthly_requests and run 'connector pull --ignore-quota'.",
    ),
    AlertType(
        "silent",
        "silent",
        "A resource was not verified for longer than alert_max_age, or never.",
        "everything was verified",
        "Check that the schedule runs, then run 'connector pull'.",
    ),
)

ALERTS: Mapping[str, AlertType] = {each.code: each for each in _ALL}
"""Every alert by its code, the most severe first."""


# -- Deciding --------------------------------------------------------------------------------------


class Subject(NamedTuple):
    """Subject of an alert: its code, and the resource or job (empty for the account)."""

    code: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem: since when (None: from now), its title, a sentence on it, and the next action.

    `causes` are codes of errors, names of checks and the like. An open alert is sent again for a
    new one.
    """

    since: datetime | None
    title: str
    happened: str
    action: str
    causes: tuple[str, ...] = ()


Seen = Iterator[tuple[Subject, Trouble | None]]

Sight = Mapping[Subject, Trouble | None]
"""Result of a check: a problem, or None if there is none. A subject that is missing could not be
checked, and keeps its state.
"""


def decide(
    before: Iterable[AlertRecord],
    sight: Sight,
    now: datetime,
    kinds: Collection[Kind],
    zone: tzinfo = UTC,
) -> tuple[AlertRecord, ...]:
    """Return the alerts from now on; those without `sent_at` are due.

    An open alert is due again only for a new cause. Alerts of unwanted kinds end without a message.
    """
    after = {
        Subject(each.code, each.about): each
        for each in before
        if each.code in ALERTS and ALERTS[each.code].kind in kinds
    }
    for subject, found in sight.items():
        alert = after.get(subject)
        if found is None:
            if alert is not None and alert.is_open:
                title = f"{ALERTS[alert.code].over} at {now.astimezone(zone):%H:%M}"
                happened = f"Problem: {alert.title}."
                after[subject] = replace(
                    alert,
                    change="ended",
                    changed_at=now,
                    title=title,
                    happened=happened,
                    action="",
                    sent_at=None,
                )
        elif alert is not None and alert.is_open:
            after[subject] = _updated(alert, found, now)
        elif ALERTS[subject.code].kind in kinds:
            since = now if found.since is None else min(found.since, now)
            after[subject] = AlertRecord(
                *subject,
                since=since,
                opened_at=now,
                change="opened",
                changed_at=now,
                title=found.title,
                happened=found.happened,
                action=found.action,
                causes=found.causes,
            )
    return tuple(after.values())


def _updated(alert: AlertRecord, found: Trouble, now: datetime) -> AlertRecord:
    updated = replace(
        alert, title=found.title, happened=found.happened, action=found.action, causes=found.causes
    )
    if {*found.causes} <= {*alert.causes}:
        return updated
    # A problem that was not reported yet is reported as it is now.
    change: Change = "opened" if alert.sent_at is None and alert.change == "opened" else "changed"
    return replace(updated, change=change, changed_at=now, sent_at=None)


@dataclass(frozen=True, slots=True)
class Message:
    """Message about alerts of one code that changed together, or a test message.

    `id` is the same when the message is sent again.
    """

    id: str
    change: Literal["opened", "changed", "ended", "test"]
    at: datetime
    code: str
    about: tuple[str, ...]
    since: datetime
    title: str
    happened: str
    action: str
    causes: tuple[str, ...] = ()


HAPPENED_MAX = 2
"""Resources of one message whose sentences it contains: those of one cause say the same."""


def messages_of(
    alerts: Iterable[AlertRecord], account: str | None
) -> list[tuple[Message, tuple[AlertRecord, ...]]]:
    """Return the messages that are due, ended alerts first, each with its alerts."""
    order = ("ended", "changed", "opened")
    groups: dict[tuple[int, int, datetime, tuple[str, ...]], list[AlertRecord]] = {}
    for each in alerts:
        if each.sent_at is None:
            causes = () if each.change == "ended" else each.causes
            place = [*ALERTS].index(each.code)
            key = (order.index(each.change), place, each.changed_at, causes)
            groups.setdefault(key, []).append(each)
    found = []
    for key in sorted(groups):
        same = sorted(groups[key], key=lambda each: each.about)
        first, about = same[0], tuple(each.about for each in same if each.about)
        named = "-".join(filter(None, (account, first.code, "+".join(about), first.change)))
        message = Message(
            id=f"{first.changed_at:%Y%m%dT%H%M%S%fZ}-{named}",
            change=first.change,
            at=first.changed_at,
            code=first.code,
            about=about,
            since=min(each.since for each in same),
            title=_joined(each.title for each in same),
            happened=_joined(each.happened for each in same[:HAPPENED_MAX]),
            action=_joined(each.action for each in same),
            causes=first.causes,
        )
        found.append((message, tuple(same)))
    return found


def _joined(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(texts))


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
}


def reason_of(message: str | None, code: str | None) -> str:
    """Return why something failed, in a few words, with a space and in brackets; or nothing."""
    status = re.search(r" was answered ([0-9]{3})\b", message or "")
    reason = _REASONS.get(code or "")
    if reason is None:
        reason = f"the API answered {status[1]}" if status else (code or "").replace("_", " ")
    elif status:
        reason = f"{reason}, {status[1]}"
    return f" ({reason})" if reason else ""


def own_words(message: str | None) -> str:
    """Return a run's message without the API's own words, as a sentence.

    An alert leaves the machine, and the API's words in an error may name a person. Everything else
    in a message is the connector's own, which never holds a record's contents.
    """
    own = re.sub(r"(?s)( was answered [0-9]{3})\b.*", r"\1", message or "").strip().rstrip(".")
    return f"{own[:1].upper()}{own[1:]}." if own else ""

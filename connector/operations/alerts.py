"""Alerts that are due, once per change of state, and their messages.

This module reads and sends nothing; the time is an argument. `findings.py` defines the conditions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Literal

from connector.ledger.alert_states import AlertRecord, Change
from connector.operations.findings import ALERTS, AccountProblem, FoundProblems, Subject
from connector.settings.values import Kind


def decide_alerts(
    before: Iterable[AlertRecord],
    problems: FoundProblems,
    now: datetime,
    kinds: Collection[Kind],
    zone: tzinfo = UTC,
) -> tuple[AlertRecord, ...]:
    """Return all alerts after a check; those without `sent_at` are to be sent.

    `before` are the alerts before the check. An open alert is sent again only for a new cause.
    Alerts whose kind is not in `kinds` end without a message.
    """
    wanted_codes = {code for code, each in ALERTS.items() if each.kind in kinds}
    after = {Subject(each.code, each.about): each for each in before if each.code in wanted_codes}
    for subject, found in problems.items():
        alert = after.get(subject)
        open_alert = alert if alert is not None and alert.is_open else None
        if found is not None and subject.code in wanted_codes:
            after[subject] = _update_alert(open_alert, subject, found, now)
        elif found is None and open_alert is not None:
            title = f"{ALERTS[subject.code].over} at {now.astimezone(zone):%H:%M}"
            ended = replace(open_alert, change="ended", changed_at=now, sent_at=None, action="")
            after[subject] = replace(ended, title=title, happened=f"Problem: {open_alert.title}.")
    return tuple(after.values())


def _update_alert(
    alert: AlertRecord | None, subject: Subject, found: AccountProblem, now: datetime
) -> AlertRecord:
    """Return the alert with the problem's texts; without `sent_at` if it has a new cause."""
    since = min(found.since or now, now)
    known = alert or AlertRecord(*subject, since, now, "opened", now, "", "", "", found.causes)
    updated = replace(
        known,
        title=found.title,
        happened=found.happened,
        action=found.action or ALERTS[subject.code].action,
        causes=found.causes,
    )
    if {*found.causes} <= {*known.causes}:
        return updated
    # A problem that was not reported yet is reported as it is now.
    is_news = known.sent_at is None and known.change == "opened"
    change: Change = "opened" if is_news else "changed"
    return replace(updated, change=change, changed_at=now, sent_at=None)


@dataclass(frozen=True, slots=True)
class Message:
    """Message about alerts with one code that changed together, or a test message.

    `id` stays the same when the message is sent again.
    """

    id: str
    change: Change | Literal["test"]
    at: datetime
    code: str
    about: tuple[str, ...]
    since: datetime
    title: str
    happened: str
    action: str
    causes: tuple[str, ...] = ()


HAPPENED_MAX = 2
"""Maximum number of resources in one message whose sentences are included."""


def due_messages(
    alerts: Iterable[AlertRecord], account: str | None
) -> list[tuple[Message, tuple[AlertRecord, ...]]]:
    """Return the messages to send, each with its alerts; messages on ended alerts come first."""
    order, codes = ("ended", "changed", "opened"), [*ALERTS]
    groups: dict[tuple[int, int, datetime, tuple[str, ...]], list[AlertRecord]] = {}
    for each in sorted(alerts, key=lambda each: each.about):
        if each.sent_at is None:
            causes = () if each.change == "ended" else each.causes
            key = (order.index(each.change), codes.index(each.code), each.changed_at, causes)
            groups.setdefault(key, []).append(each)
    found = []
    for _, same in sorted(groups.items()):
        first, about = same[0], tuple(each.about for each in same if each.about)
        named = "-".join(filter(None, (account, first.code, "+".join(about), first.change)))
        message = Message(
            id=f"{first.changed_at:%Y%m%dT%H%M%S%fZ}-{named}",
            change=first.change,
            at=first.changed_at,
            code=first.code,
            about=about,
            since=min(each.since for each in same),
            title=_join_distinct(each.title for each in same),
            happened=_join_distinct(each.happened for each in same[:HAPPENED_MAX]),
            action=_join_distinct(each.action for each in same),
            causes=first.causes,
        )
        found.append((message, tuple(same)))
    return found


def _join_distinct(texts: Iterable[str]) -> str:
    """Join the texts with blanks, without repetitions."""
    return " ".join(dict.fromkeys(texts))

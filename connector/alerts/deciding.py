"""Which alerts are due: from those that stand and what is seen now, each once per change of state.

Pure: the moment is an argument, and nothing is read or sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from connector.alert_settings import Kind
from connector.alerts.declared import DECLARED
from connector.ledger.alerts import AlertRecord, Change, MessageRecord

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

"""Alert state: one open alert per subject, one message for its start and one for its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from connector.ledger.alert_states import AlertRecord
from connector.operations.alerts import Message, decide_alerts, due_messages
from connector.operations.findings import AccountProblem, FoundProblems, Subject
from connector.settings.values import KINDS, Kind

START = datetime(2026, 11, 21, tzinfo=UTC)
SUBJECTS = (
    Subject("pull_failed"),
    Subject("not_proven", "jobs"),
    Subject("not_proven", "leads"),
    Subject("quota_spent"),
    Subject("silent"),
)
BAD = AccountProblem("a problem", "It happened.", action="Do something.")
Alerts = tuple[AlertRecord, ...]

looks = st.dictionaries(st.sampled_from(SUBJECTS), st.sampled_from([BAD, None]))


def deliver(alerts: Iterable[AlertRecord]) -> tuple[list[Message], Alerts]:
    """Return the messages that are due for the alerts, and the open alerts, marked as sent."""
    alerts = tuple(alerts)
    messages = [each for each, _ in due_messages(alerts, "acme")]
    left = tuple(replace(e, sent_at=START) for e in alerts if e.is_open)
    return messages, left


def check_and_deliver(
    before: Alerts, found: FoundProblems, hour: float = 0.0
) -> tuple[list[Message], Alerts]:
    """Return the due messages and the remaining alerts of a check `hour` hours after the start."""
    return deliver(decide_alerts(before, found, START + timedelta(hours=hour), KINDS))


def test_an_outage_sends_one_message_and_its_end_sends_another() -> None:
    subject, began = SUBJECTS[0], START - timedelta(hours=3)
    first, alerts = check_and_deliver((), {subject: replace(BAD, since=began)})
    again, alerts = check_and_deliver(alerts, {subject: replace(BAD, title="another title")}, 1)
    over, alerts = check_and_deliver(alerts, {subject: None}, 2.25)

    assert [("opened", began, "a problem")] == summarize_messages(first)
    assert [] == again
    assert [("ended", began, "the pull succeeded at 02:15")] == summarize_messages(over)
    assert ["Problem: another title."] == [each.happened for each in over]
    assert () == alerts


def test_a_new_cause_of_an_open_alert_sends_another_message() -> None:
    alerts: Alerts = ()
    changes = []
    for hour, causes in enumerate([("a",), ("a", "b"), ("b",), ("c",), None]):
        found = causes and replace(BAD, title=f"{causes}", causes=causes)
        messages, alerts = check_and_deliver(alerts, {SUBJECTS[0]: found}, hour)
        changes.append([(each.change, each.title) for each in messages])

    assert [
        [("opened", "('a',)")],
        [("changed", "('a', 'b')")],
        [],
        [("changed", "('c',)")],
        [("ended", "the pull succeeded at 04:00")],
    ] == changes


def test_an_outage_that_ended_before_delivery_sends_only_one_message() -> None:
    opened = decide_alerts((), {SUBJECTS[0]: BAD}, START, KINDS)
    ended = decide_alerts(opened, {SUBJECTS[0]: None}, START + timedelta(hours=1), KINDS)
    unheard = decide_alerts(ended, {SUBJECTS[0]: None}, START + timedelta(hours=2), KINDS)

    assert ended == unheard
    assert [("ended", START, "the pull succeeded at 01:00")] == summarize_messages(
        deliver(unheard)[0]
    )


def test_alerts_with_the_same_cause_share_one_message() -> None:
    names = [Subject("not_proven", name) for name in ("jobs", "leads", "candidates")]
    causes = (("try_again",), ("forbidden",), ("try_again",))
    found = {
        subject: replace(BAD, happened=f"About {subject.about}.", causes=each)
        for subject, each in zip(names, causes, strict=True)
    }
    first, alerts = check_and_deliver((), found)
    over, _ = check_and_deliver(alerts, dict.fromkeys(names), 1)

    assert [
        (("leads",), "About leads.", "Do something."),
        (("candidates", "jobs"), "About candidates. About jobs.", "Do something."),
    ] == sorted(((e.about, e.happened, e.action) for e in first), key=lambda each: len(each[0]))
    assert [("ended", ("candidates", "jobs", "leads"))] == [(e.change, e.about) for e in over]


def test_an_alert_stays_open_if_its_subject_could_not_be_checked() -> None:
    _, alerts = check_and_deliver((), {SUBJECTS[0]: BAD})

    assert ([], alerts) == check_and_deliver(alerts, {}, 1)


def test_disabled_kinds_open_no_alert_and_close_without_a_message() -> None:
    silent: tuple[Kind, ...] = ("silent",)
    _, alerts = check_and_deliver((), dict.fromkeys(SUBJECTS, BAD))
    left = decide_alerts(alerts, dict.fromkeys(SUBJECTS, BAD), START, silent)

    assert ["silent"] == [each.code for each in left]
    assert [] == due_messages(left, None)
    assert () == decide_alerts((), {SUBJECTS[0]: BAD}, START, silent)


@settings(max_examples=100)
@given(st.lists(looks, max_size=12))
def test_any_sequence_opens_at_most_one_alert_per_subject_and_ends_each(
    sequence: list[FoundProblems],
) -> None:
    alerts: Alerts = ()
    changes: list[tuple[Subject, str]] = []
    ids: Counter[str] = Counter()
    for hour, found in enumerate([*sequence, dict.fromkeys(SUBJECTS, None)]):
        messages, alerts = check_and_deliver(alerts, found, hour)
        changes += [
            (Subject(each.code, about), each.change)
            for each in messages
            for about in each.about or ("",)
        ]
        ids.update(each.id for each in messages)
        is_open = [Subject(each.code, each.about) for each in alerts]
        assert len(set(is_open)) == len(is_open)
        for subject in SUBJECTS:
            mine = [change for about, change in changes if about == subject]
            assert ["opened", "ended"] * (len(mine) // 2) + ["opened"] * (len(mine) % 2) == mine
            assert (subject in is_open) == (len(mine) % 2 == 1)

    assert () == alerts
    assert set(ids.values()) <= {1}


def summarize_messages(messages: Iterable[Message]) -> list[tuple[str, datetime, str]]:
    """Return the change, start and title of each message."""
    return [(each.change, each.since, each.title) for each in messages]

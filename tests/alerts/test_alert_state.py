"""Deciding: at most one alert stands for a subject, each is told once, and each ends."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from connector.ledger.alert_states import AlertRecord
from connector.operations.alerts import Decision, Sight, Subject, Trouble, decide
from connector.settings.values import KINDS, Kind

START = datetime(2026, 11, 21, tzinfo=UTC)
SUBJECTS = (
    Subject("pull_failed"),
    Subject("not_proven", "jobs"),
    Subject("not_proven", "leads"),
    Subject("quota_spent"),
    Subject("silent"),
)
BAD = Trouble(None, "It is not well.", "Do something.")

looks = st.dictionaries(st.sampled_from(SUBJECTS), st.sampled_from([BAD, None]))


def test_an_alert_is_told_once_and_keeps_its_beginning() -> None:
    subject, began = SUBJECTS[0], START - timedelta(hours=3)
    first = decide((), {subject: Trouble(began, "Once.", "Do.")}, START, KINDS, "acme")
    later = START + timedelta(hours=1)
    again = decide(first.standing, {subject: Trouble(later, "Twice.", "Do.")}, later, KINDS)
    over = decide(again.standing, {subject: None}, later, KINDS)

    assert [("opened", began, "Once.")] == told(first)
    assert [(began, START, "Twice.")] == [
        (each.since, each.opened_at, each.happened) for each in again.standing
    ]
    assert [] == told(again)
    assert [("ended", began, "A pull has ended well since.")] == told(over)
    assert () == over.standing


def test_a_new_cause_is_told_while_the_alert_stands() -> None:
    subject = SUBJECTS[0]
    standing: tuple[AlertRecord, ...] = ()
    changes = []
    for hour, causes in enumerate([("a",), ("a", "b"), ("b",), ("c",), None]):
        found = causes and Trouble(None, f"It is {causes}.", "Do.", causes)
        decision = decide(standing, {subject: found}, START + timedelta(hours=hour), KINDS)
        standing = decision.standing
        changes.append([(each.change, each.happened) for each in decision.messages])

    assert [
        [("opened", "It is ('a',).")],
        [("changed", "It is ('a', 'b').")],
        [],
        [("changed", "It is ('c',).")],
        [("ended", "A pull has ended well since.")],
    ] == changes


def test_alerts_of_one_cause_are_one_message() -> None:
    names = [Subject("not_proven", name) for name in ("jobs", "leads", "candidates")]
    causes = (("try_again",), ("forbidden",), ("try_again",))
    sight = {
        subject: Trouble(None, f"{subject.about} is failed.", "Do.", each)
        for subject, each in zip(names, causes, strict=True)
    }
    first = decide((), sight, START, KINDS)
    over = decide(first.standing, dict.fromkeys(names), START + timedelta(hours=1), KINDS)

    assert [
        ("candidates, jobs", "jobs is failed. candidates is failed.", "Do."),
        ("leads", "leads is failed.", "Do."),
    ] == [(each.about, each.happened, each.action) for each in first.messages]
    assert {"candidates", "jobs", "leads"} == {each.about for each in first.standing}
    assert [("ended", "candidates, jobs, leads")] == [
        (each.change, each.about) for each in over.messages
    ]


def test_what_could_not_be_looked_at_stays_as_it_was() -> None:
    first = decide((), {SUBJECTS[0]: BAD}, START, KINDS)

    assert Decision(first.standing, ()) == decide(first.standing, {}, START, KINDS)


def test_kinds_that_are_not_wanted_open_nothing_and_end_without_a_word() -> None:
    silent: tuple[Kind, ...] = ("silent",)
    first = decide((), dict.fromkeys(SUBJECTS, BAD), START, KINDS)
    second = decide(first.standing, dict.fromkeys(SUBJECTS, BAD), START, silent)

    assert ["silent"] == [each.code for each in second.standing]
    assert () == second.messages
    assert () == decide((), {SUBJECTS[0]: BAD}, START, silent).messages


@settings(max_examples=100)
@given(st.lists(looks, max_size=12))
def test_any_sequence_opens_at_most_one_alert_for_a_subject_and_ends_each(
    sequence: list[Sight],
) -> None:
    standing: tuple[AlertRecord, ...] = ()
    changes: list[tuple[Subject, str]] = []
    ids: Counter[str] = Counter()
    for hour, sight in enumerate([*sequence, dict.fromkeys(SUBJECTS, None)]):
        decision = decide(standing, sight, START + timedelta(hours=hour), KINDS)
        standing = decision.standing
        changes += [
            (Subject(each.code, about), each.change)
            for each in decision.messages
            for about in each.about.split(", ")
        ]
        ids.update(each.id for each in decision.messages)
        stands = [Subject(each.code, each.about) for each in standing]
        assert len(set(stands)) == len(stands)
        for subject in SUBJECTS:
            mine = [change for about, change in changes if about == subject]
            assert ["opened", "ended"] * (len(mine) // 2) + ["opened"] * (len(mine) % 2) == mine
            assert (subject in stands) == (len(mine) % 2 == 1)

    assert () == standing
    assert set(ids.values()) <= {1}


def told(decision: Decision) -> list[tuple[str, datetime, str]]:
    """The messages, in short."""
    return [(each.change, each.since, each.happened) for each in decision.messages]

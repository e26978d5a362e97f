"""The nights: what goes wrong in each, and what a user does about it in the morning."""

from __future__ import annotations

import csv
import resource
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from connector.cli.session import RunProgress
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.operations.alert_check import check_alerts
from connector.operations.findings import JobRun
from connector.pulls import run
from connector.sandbox.exchange import Fault
from connector.sandbox.faults import Drop, HtmlPage, Limited, NotJson, Redirect, Status
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.runs import Run, begin_run
from tests.alerts.nights import COUNTS, KEY, OTHER_KEY, Night, NightlyAccount, Step

CANDIDATES = "/api/v1/candidates*"


def all_of(*steps: Step) -> Step:
    """One step after another; gives the result of the last."""
    return lambda a: [each(a) for each in steps][-1]


# -- The server ------------------------------------------------------------------------------------


def failing(fault: Fault, path: str = "*", **when: Any) -> Step:
    """The server answers so, until it is whole again."""
    return lambda a: a.sandbox.faults.add(fault, path=path, **{"times": None, **when})


def whole(a: NightlyAccount) -> None:
    """The server answers as it should."""
    a.sandbox.faults.clear()


def key(key: str) -> Step:
    """The file has another key."""
    return lambda a: a.write("key", key)


def extra_fields(value: str) -> Step:
    """The server shows a field that the API does not document, or stops."""
    return lambda a: object.__setattr__(a.sandbox.store.behaviours, "extra_fields", value)


def touch(name: str, number: int = 1, **changes: Any) -> Step:
    """A user changes records in one bulk edit, five hours ago."""

    def step(a: NightlyAccount) -> None:
        ids = sorted(a.sandbox.store.records(name))[:number]
        a.sandbox.store.touch_many(name, ids, changes, updated_at=a.hours() - timedelta(hours=5))

    return step


def remove(name: str, number: int) -> Step:
    """A user deletes records."""

    def step(a: NightlyAccount) -> None:
        for id in sorted(a.sandbox.store.records(name))[:number]:
            a.sandbox.store.remove(name, id)

    return step


def hourly(*before: Step) -> Step:
    """A pull every hour, each after its step."""

    def run(a: NightlyAccount) -> None:
        for each in before:
            each(a)
            a.pull()
            a.hours.now += timedelta(hours=1)

    return run


def slow(a: NightlyAccount) -> object:
    """Answers take several seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "time", SimpleNamespace(monotonic=count(0.0, 67.0).__next__))
        return a.pull()


def another_workspace(a: NightlyAccount) -> object:
    """The address is that of another agency, which takes the same key."""
    ago = timedelta(days=60)  # No record was changed there since yesterday.
    with Sandbox(
        counts=COUNTS, seed=99, keys={KEY: ("*",)}, clock=lambda: a.hours() - ago
    ) as other:
        ago = timedelta()
        a.set(base_url=other.base_url)
        ended = a.pull()
    a.set(base_url=a.sandbox.base_url)
    return ended


# -- This machine ----------------------------------------------------------------------------------


def clock(**ahead: float) -> Step:
    """This machine's clock differs from the server's."""
    return lambda a: setattr(a.hours, "ahead", timedelta(**ahead))


def nothing(a: NightlyAccount) -> None:
    """No scheduler runs."""


def command(*words: str, status: int = 0) -> Step:
    """A user runs a command."""

    def step(a: NightlyAccount) -> object:
        done = a.call(*words)
        assert status == done.status, (words, done)
        return done

    return step


def killed(a: NightlyAccount) -> None:
    """The pull's process is killed: its run has no end."""
    with open_file(a.home / "work.duckdb") as connection:
        begin_run(connection, Run("killed", "pull", a.hours()))


def beside_another(a: NightlyAccount) -> object:
    """The night's pull finds another one."""
    with Ledger(a.home) as ledger:
        ledger.take_lease("pull", LeaseOwner.of_this_process("another", "pull"), a.hours())
        assert 1 == a.pull().status
        ledger.release_lease("pull", "another")
    return a.pull()


def interrupted(*words: str) -> Step:
    """The process of a command gets a signal at its first answer."""

    def cut(self: RunProgress, progress: object) -> None:
        raise KeyboardInterrupt

    def run(a: NightlyAccount) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunProgress, "__call__", cut)
            assert 130 == a.call(*words).status

    return run


def dagster_fails(a: NightlyAccount) -> None:
    """A job of Dagster fails before it comes to the connector."""
    job = JobRun("nightly_pull", "d-1", a.hours(), failed=True)
    check_alerts(load_settings({"account": "acme"}, a.environ), jobs=[job], now=a.hours)


def full_disk(a: NightlyAccount) -> object:
    """No file can be written beyond its first bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        return a.pull()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def overwrite(name: str) -> Step:
    """A file is overwritten by another kind of file."""

    def step(a: NightlyAccount) -> None:
        (a.home / name).rename(a.folder / f"{name}.was")
        (a.home / name).write_bytes(b"another kind of file" * 500)

    return step


def put_back(name: str) -> Step:
    """A user puts the file back."""
    return lambda a: (a.folder / f"{name}.was").replace(a.home / name)


# -- Pushes and models -----------------------------------------------------------------------------

STATUS = "3f0b7c1e-5d3a-4a52-9a39-0c6a1c1f7f10"
PUSH = ("--mode", "create", "--apply", "--no-wait", "--no-pull")


def push(name: str, email: str, status: int = 0) -> Step:
    """A user pushes a file with one lead."""

    def step(a: NightlyAccount) -> None:
        row = f"Ada,Novak,{email},{STATUS}"
        a.write(f"{name}.csv", f"first_name,last_name,email,lead_status_id\n{row}\n")
        done = a.call("push", "leads", str(a.folder / f"{name}.csv"), *PUSH)
        assert status == done.status, done

    return step


def cut_push(a: NightlyAccount) -> None:
    """A push gets a signal at its first row."""
    a.write("cut.csv", (a.folder / "late.csv").read_text())
    interrupted("push", "leads", str(a.folder / "cut.csv"), *PUSH)(a)


def give_up(a: NightlyAccount) -> None:
    """A user looks, finds that the lead is not there, and gives the row up."""
    (row,) = a.call("resolve", "--json").object["rows"]
    for decision in ("--look", "--drop"):
        done = a.call("resolve", row["batch"], str(row["row"]), decision)
    assert 3 == done.status, done


def with_models(a: NightlyAccount) -> object:
    """The night publishes with models."""
    return a.pull(CONNECTOR_MODELS="on")


def seed(name: str, text: str) -> Step:
    """A user saves a seed."""

    def step(a: NightlyAccount) -> None:
        (a.home / "seeds").mkdir(exist_ok=True)
        (a.home / "seeds" / f"{name}.csv").write_text(text)

    return step


def begin_names(a: NightlyAccount) -> None:
    """A user names one status and groups one source; the names of the others are missing."""
    seed("lead_statuses", f"id,name,outcome\n{STATUS},New,open\n")(a)
    command("models", "seeds", "--write", "source_groups")(a)
    with (a.home / "seeds" / "source_groups.csv").open("a") as file:
        file.write("Our own page,Own page\n")


def name_all(a: NightlyAccount) -> None:
    """A user fills in the names that the seeds lack."""
    command("models", "seeds", "--write")(a)
    for each in (a.home / "seeds").glob("*.csv"):
        rows = csv.reader(each.read_text().splitlines())
        each.write_text("".join(f"{','.join(cell or 'open' for cell in row)}\n" for row in rows))


PULL: Step = NightlyAccount.pull
NIGHTS = (
    Night(1, "The first load publishes with models; no seed is filled in", instead=with_models),
    Night(3, "Edits, and three deletions", all_of(remove("candidates", 3), touch("jobs"))),
    Night(
        *(4, "The API is unreachable for three hours, and a pull runs every hour"),
        instead=hourly(lambda a: a.sandbox.stop(), nothing, nothing, lambda a: a.sandbox.start()),
    ),
    Night(5, "The API answers 503", failing(Status(503)), whole),
    Night(7, "The key is revoked", key(OTHER_KEY), key(KEY)),
    Night(9, "The API is slow", touch("jobs", 12), instead=slow),
    Night(
        *(10, "22 of 57 candidates are deleted", remove("candidates", 22)),
        command("pull", "candidates", "--accept-deletes"),
    ),
    Night(11, "The key loses the scope of candidates", failing(Status(403), CANDIDATES), whole),
    Night(
        *(12, "A proxy answers 200 with its own page", failing(HtmlPage(200))), all_of(whole, PULL)
    ),
    Night(13, "The pull is killed", instead=killed),
    Night(15, "Two pulls run at one time", instead=beside_another),
    Night(16, "The clock is two days behind", clock(days=-2), all_of(clock(), PULL)),
    Night(17, "The clock is three days ahead", clock(days=3), clock()),
    Night(19, "No scheduler runs", instead=nothing),
    Night(20, "No scheduler runs again", instead=nothing),
    Night(
        *(21, "The API answers 503, and the webhook is down"),
        all_of(failing(Status(503)), lambda a: a.receiver.go_down()),
        all_of(whole, lambda a: a.receiver.go_up()),
    ),
    Night(
        *(23, "The plan's requests are used up", lambda a: a.set(monthly_requests=100)),
        lambda a: a.set(monthly_requests=100_000),
    ),
    Night(
        *(25, "The API answers 429 for the rest of the month", failing(Limited("far"))),
        all_of(whole, command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(
        *(27, "A setting is misspelt", lambda a: a.set(billing_dai=3)),
        lambda a: a.set(billing_dai=None),
    ),
    Night(28, "The key's file is empty", key(""), key(KEY)),
    Night(29, "The disk is full", instead=full_disk),
    # Kinds of alerts that those nights do not have.
    Night(
        *(31, "A field is undocumented", all_of(extra_fields("shown"), touch("jobs"))),
        all_of(extra_fields("none"), touch("jobs")),
    ),
    Night(
        *(33, "A pushed file has an invalid address", push("wrong", "nobody", 3)),
        push("wrong", "ada@people.example"),
    ),
    Night(
        *(35, "A created lead is not answered, and not found"),
        all_of(
            failing(Drop(), "/api/v1/leads", method="POST", times=1),
            push("lost", "lost@people.example", 3),
        ),
        give_up,
    ),
    Night(
        *(37, "The key is revoked while somebody pushes"),
        all_of(key(OTHER_KEY), push("late", "late@people.example", 1), key(KEY)),
        push("late", "late@people.example"),
    ),
    Night(39, "A push is interrupted", cut_push, push("cut", "late@people.example")),
    Night(
        *(40, "A seed has wrong headings", seed("lead_statuses", "status;name\n")),
        *(lambda a: (a.home / "seeds" / "lead_statuses.csv").unlink(), with_models),
    ),
    Night(41, "The seed is corrected", instead=with_models),
    Night(42, "Seeds lack names", begin_names, instead=with_models),
    Night(
        *(43, "A lead has another source", touch("leads", source="Stand at the fair")),
        *(name_all, with_models),
    ),
    Night(44, "The seeds are filled in", instead=with_models),
    Night(45, "Dagster fails before it comes to the connector", instead=dagster_fails),
    Night(47, "The address is another agency's", instead=another_workspace),
    Night(48, "The ledger is overwritten", overwrite("ledger.sqlite"), put_back("ledger.sqlite")),
    Night(49, "The API has moved", failing(Redirect("https://new.example/")), whole),
    Night(51, "Candidates are no JSON", failing(NotJson(), CANDIDATES), whole),
    Night(
        *(53, "All jobs change, and the plan is small"),
        all_of(touch("jobs", 120), lambda a: a.set(monthly_requests=1000)),
    ),
    Night(54, "The plan is too small", lambda a: a.set(monthly_requests=290)),
    Night(55, "The plan is larger", lambda a: a.set(monthly_requests=1000)),
)

"""Incidents of the nights: the faults, and the corrections on the next morning."""

from __future__ import annotations

import csv
import resource
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from connector.cli.session import RunProgress
from connector.ledger.ledger import LeaseOwner, Ledger
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


def run_steps(*steps: Step) -> Step:
    """Return a step that runs the steps in order and returns the last result."""
    return lambda a: [each(a) for each in steps][-1]


# -- The server ------------------------------------------------------------------------------------


def make_server_fail(fault: Fault, path: str = "*", **when: Any) -> Step:
    """Make the server respond with a fault until `clear_server_faults`."""
    return lambda a: a.sandbox.faults.add(fault, path=path, **{"times": None, **when})


def clear_server_faults(a: NightlyAccount) -> None:
    a.sandbox.faults.clear()


def replace_key(key: str) -> Step:
    """Replace the key in the key file."""
    return lambda a: a.write("key", key)


def set_undocumented_field(value: str) -> Step:
    """Make the server add a field that the API does not document, or stop adding it."""
    return lambda a: object.__setattr__(a.sandbox.store.behaviours, "extra_fields", value)


def edit_records(name: str, number: int = 1, **changes: Any) -> Step:
    """Change records in one bulk edit that happened five hours ago."""

    def step(a: NightlyAccount) -> None:
        ids = sorted(a.sandbox.store.records(name))[:number]
        a.sandbox.store.touch_many(name, ids, changes, updated_at=a.hours() - timedelta(hours=5))

    return step


def delete_records(name: str, number: int) -> Step:
    def step(a: NightlyAccount) -> None:
        for id in sorted(a.sandbox.store.records(name))[:number]:
            a.sandbox.store.remove(name, id)

    return step


def pull_hourly_after(*before: Step) -> Step:
    """Run a pull every hour, each after one of the steps."""

    def step(a: NightlyAccount) -> None:
        for each in before:
            each(a)
            a.pull()
            a.hours.now += timedelta(hours=1)

    return step


def pull_with_slow_responses(a: NightlyAccount) -> object:
    """Pull while each response takes several seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "time", SimpleNamespace(monotonic=count(0.0, 67.0).__next__))
        return a.pull()


def pull_from_another_workspace(a: NightlyAccount) -> object:
    """Pull while the address is that of another agency, which accepts the same key."""
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


def set_local_clock(**ahead: float) -> Step:
    """Set the difference between this machine's clock and the server's."""
    return lambda a: setattr(a.hours, "ahead", timedelta(**ahead))


def run_nothing(a: NightlyAccount) -> None:
    """Do nothing, as when no scheduler runs."""


def run_command(*words: str, status: int = 0) -> Step:
    def step(a: NightlyAccount) -> object:
        done = a.call(*words)
        assert status == done.status, (words, done)
        return done

    return step


def record_killed_pull(a: NightlyAccount) -> None:
    """Record a run without an end, as a killed pull leaves it."""
    with open_file(a.home / "work.duckdb") as connection:
        begin_run(connection, Run("killed", "pull", a.hours()))


def pull_during_another_pull(a: NightlyAccount) -> object:
    """Pull while another pull holds the lease, then pull again."""
    with Ledger(a.home) as ledger:
        ledger.take_lease("pull", LeaseOwner.of_this_process("another", "pull"), a.hours())
        assert 1 == a.pull().status
        ledger.release_lease("pull", "another")
    return a.pull()


def interrupt_command(*words: str) -> Step:
    """Interrupt a command at its first response."""

    def raise_interrupt(self: RunProgress, progress: object) -> None:
        raise KeyboardInterrupt

    def step(a: NightlyAccount) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunProgress, "__call__", raise_interrupt)
            assert 130 == a.call(*words).status

    return step


def report_failed_dagster_job(a: NightlyAccount) -> None:
    """Report a Dagster job that failed before it called the connector."""
    job = JobRun("nightly_pull", "d-1", a.hours(), failed=True)
    check_alerts(load_settings({"account": "acme"}, a.environ), jobs=[job], now=a.hours)


def pull_with_full_disk(a: NightlyAccount) -> object:
    """Pull while no file can grow beyond 1,024 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        return a.pull()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def overwrite_file(name: str) -> Step:
    """Overwrite a file of the data folder with other bytes."""

    def step(a: NightlyAccount) -> None:
        (a.home / name).rename(a.folder / f"{name}.was")
        (a.home / name).write_bytes(b"another kind of file" * 500)

    return step


def restore_file(name: str) -> Step:
    """Restore the file that `overwrite_file` replaced."""
    return lambda a: (a.folder / f"{name}.was").replace(a.home / name)


# -- Pushes and models -----------------------------------------------------------------------------

STATUS = "3f0b7c1e-5d3a-4a52-9a39-0c6a1c1f7f10"
PUSH = ("--mode", "create", "--apply", "--no-wait", "--no-pull")


def push_one_lead(name: str, email: str, status: int = 0) -> Step:
    """Push a file with one lead."""

    def step(a: NightlyAccount) -> None:
        row = f"Ada,Novak,{email},{STATUS}"
        a.write(f"{name}.csv", f"first_name,last_name,email,lead_status_id\n{row}\n")
        done = a.call("push", "leads", str(a.folder / f"{name}.csv"), *PUSH)
        assert status == done.status, done

    return step


def interrupt_push(a: NightlyAccount) -> None:
    """Interrupt a push at its first row."""
    a.write("cut.csv", (a.folder / "late.csv").read_text())
    interrupt_command("push", "leads", str(a.folder / "cut.csv"), *PUSH)(a)


def drop_unknown_row(a: NightlyAccount) -> None:
    """Check that the lead does not exist, then drop the row."""
    (row,) = a.call("resolve", "--json").object["rows"]
    for decision in ("--look", "--drop"):
        done = a.call("resolve", row["batch"], str(row["row"]), decision)
    assert 3 == done.status, done


def pull_with_models(a: NightlyAccount) -> object:
    """Pull and publish with models."""
    return a.pull(CONNECTOR_MODELS="on")


def write_seed(name: str, text: str) -> Step:
    """Write a seed file."""

    def step(a: NightlyAccount) -> None:
        (a.home / "seeds").mkdir(exist_ok=True)
        (a.home / "seeds" / f"{name}.csv").write_text(text)

    return step


def fill_some_seed_names(a: NightlyAccount) -> None:
    """Name one status and group one source; leave the other names empty."""
    write_seed("lead_statuses", f"id,name,outcome\n{STATUS},New,open\n")(a)
    run_command("models", "seeds", "--write", "source_groups")(a)
    with (a.home / "seeds" / "source_groups.csv").open("a") as file:
        file.write("Our own page,Own page\n")


def fill_all_seed_names(a: NightlyAccount) -> None:
    """Fill in the names that the seeds lack."""
    run_command("models", "seeds", "--write")(a)
    for each in (a.home / "seeds").glob("*.csv"):
        rows = csv.reader(each.read_text().splitlines())
        each.write_text("".join(f"{','.join(cell or 'open' for cell in row)}\n" for row in rows))


PULL: Step = NightlyAccount.pull
NIGHTS = (
    Night(
        1, "The first load publishes with models; no seed is filled in", instead=pull_with_models
    ),
    Night(
        3,
        "Edits, and three deletions",
        run_steps(delete_records("candidates", 3), edit_records("jobs")),
    ),
    Night(
        *(4, "The API is unreachable for three hours, and a pull runs every hour"),
        instead=pull_hourly_after(
            lambda a: a.sandbox.stop(), run_nothing, run_nothing, lambda a: a.sandbox.start()
        ),
    ),
    Night(5, "The API answers 503", make_server_fail(Status(503)), clear_server_faults),
    Night(7, "The key is revoked", replace_key(OTHER_KEY), replace_key(KEY)),
    Night(9, "The API is slow", edit_records("jobs", 12), instead=pull_with_slow_responses),
    Night(
        *(10, "22 of 57 candidates are deleted", delete_records("candidates", 22)),
        run_command("pull", "candidates", "--accept-deletes"),
    ),
    Night(
        11,
        "The key loses the scope of candidates",
        make_server_fail(Status(403), CANDIDATES),
        clear_server_faults,
    ),
    Night(
        *(12, "A proxy answers 200 with its own page", make_server_fail(HtmlPage(200))),
        run_steps(clear_server_faults, PULL),
    ),
    Night(13, "The pull is killed", instead=record_killed_pull),
    Night(15, "Two pulls run at one time", instead=pull_during_another_pull),
    Night(
        16,
        "The clock is two days behind",
        set_local_clock(days=-2),
        run_steps(set_local_clock(), PULL),
    ),
    Night(17, "The clock is three days ahead", set_local_clock(days=3), set_local_clock()),
    Night(19, "No scheduler runs", instead=run_nothing),
    Night(20, "No scheduler runs again", instead=run_nothing),
    Night(
        *(21, "The API answers 503, and the webhook is down"),
        run_steps(make_server_fail(Status(503)), lambda a: a.receiver.go_down()),
        run_steps(clear_server_faults, lambda a: a.receiver.go_up()),
    ),
    Night(
        *(23, "The plan's requests are used up", lambda a: a.set(monthly_requests=100)),
        lambda a: a.set(monthly_requests=100_000),
    ),
    Night(
        *(25, "The API answers 429 for the rest of the month", make_server_fail(Limited("far"))),
        run_steps(clear_server_faults, run_command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(
        *(27, "A setting is misspelt", lambda a: a.set(billing_dai=3)),
        lambda a: a.set(billing_dai=None),
    ),
    Night(28, "The key's file is empty", replace_key(""), replace_key(KEY)),
    Night(29, "The disk is full", instead=pull_with_full_disk),
    # Kinds of alerts that those nights do not have.
    Night(
        *(
            31,
            "A field is undocumented",
            run_steps(set_undocumented_field("shown"), edit_records("jobs")),
        ),
        run_steps(set_undocumented_field("none"), edit_records("jobs")),
    ),
    Night(
        *(33, "A pushed file has an invalid address", push_one_lead("wrong", "nobody", 3)),
        push_one_lead("wrong", "ada@people.example"),
    ),
    Night(
        *(35, "A created lead is not answered, and not found"),
        run_steps(
            make_server_fail(Drop(), "/api/v1/leads", method="POST", times=1),
            push_one_lead("lost", "lost@people.example", 3),
        ),
        drop_unknown_row,
    ),
    Night(
        *(37, "The key is revoked while somebody pushes"),
        run_steps(
            replace_key(OTHER_KEY),
            push_one_lead("late", "late@people.example", 1),
            replace_key(KEY),
        ),
        push_one_lead("late", "late@people.example"),
    ),
    Night(39, "A push is interrupted", interrupt_push, push_one_lead("cut", "late@people.example")),
    Night(
        *(40, "A seed has wrong headings", write_seed("lead_statuses", "status;name\n")),
        *(lambda a: (a.home / "seeds" / "lead_statuses.csv").unlink(), pull_with_models),
    ),
    Night(41, "The seed is corrected", instead=pull_with_models),
    Night(42, "Seeds lack names", fill_some_seed_names, instead=pull_with_models),
    Night(
        *(43, "A lead has another source", edit_records("leads", source="Stand at the fair")),
        *(fill_all_seed_names, pull_with_models),
    ),
    Night(44, "The seeds are filled in", instead=pull_with_models),
    Night(45, "Dagster fails before it comes to the connector", instead=report_failed_dagster_job),
    Night(47, "The address is another agency's", instead=pull_from_another_workspace),
    Night(
        48,
        "The ledger is overwritten",
        overwrite_file("ledger.sqlite"),
        restore_file("ledger.sqlite"),
    ),
    Night(
        49,
        "The API has moved",
        make_server_fail(Redirect("https://new.example/")),
        clear_server_faults,
    ),
    Night(
        51, "Candidates are no JSON", make_server_fail(NotJson(), CANDIDATES), clear_server_faults
    ),
    Night(
        *(53, "All jobs change, and the plan is small"),
        run_steps(edit_records("jobs", 120), lambda a: a.set(monthly_requests=1000)),
    ),
    Night(54, "The plan is too small", lambda a: a.set(monthly_requests=290)),
    Night(55, "The plan is larger", lambda a: a.set(monthly_requests=1000)),
)

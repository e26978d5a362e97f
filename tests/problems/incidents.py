"""Incidents of the nights: the faults, and the corrections on the next morning."""

from __future__ import annotations

import csv
import resource
import sqlite3
import ssl
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from connector.cli.session import RunProgress
from connector.pulls import run
from connector.sandbox.app import Fault
from connector.sandbox.faults import Drop, HtmlPage, Limited, NotJson, Redirect, Status
from connector.sandbox.server import Sandbox
from connector.state import database
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.runs import Publication, Run, begin_run, write_publication
from tests.problems.nights import COUNTS, KEY, OTHER_KEY, Night, NightlyAccount, Step
from tests.support.command import CommandResult
from tests.support.processes import OtherProcess, shorten_wait

CANDIDATES = "/api/v1/candidates*"


def combine_steps(*steps: Step) -> Step:
    """Return a step that runs these steps in order and returns the result of the last one."""
    return lambda account: [each(account) for each in steps][-1]


# -- The server ------------------------------------------------------------------------------------


def make_server_fail(fault: Fault, path: str = "*", **limits: Any) -> Step:
    """Return a step that adds a fault to the server until `clear_server_faults`; `limits` are
    those of `FaultList.add`.
    """
    return lambda account: account.sandbox.faults.add(fault, path=path, **{"times": None, **limits})


def clear_server_faults(account: NightlyAccount) -> None:
    account.sandbox.faults.clear()


def replace_key(key: str) -> Step:
    """Return a step that replaces the key in the key file."""
    return lambda account: account.write_private_file("key", key)


def set_undocumented_field(value: str) -> Step:
    """Return a step that makes the server add ("shown") or omit ("none") a field that the API
    does not document.
    """
    return lambda account: account.sandbox.store.behaviours.update(extra_fields=value)


def edit_records(resource_name: str, count: int = 1, **changes: Any) -> Step:
    """Return a step that edits the first `count` records of a resource, dated five hours ago."""

    def step(account: NightlyAccount) -> None:
        ids = sorted(account.sandbox.store.records(resource_name))[:count]
        account.sandbox.store.touch_many(
            resource_name, ids, changes, updated_at=account.clock() - timedelta(hours=5)
        )

    return step


def delete_records(resource_name: str, count: int) -> Step:
    """Return a step that deletes the first `count` records of a resource on the server."""

    def step(account: NightlyAccount) -> None:
        for id in sorted(account.sandbox.store.records(resource_name))[:count]:
            account.sandbox.store.remove(resource_name, id)

    return step


def pull_hourly_after(*steps: Step) -> Step:
    """Return a step that runs each of these steps, followed by a pull and an hour of waiting."""

    def step(account: NightlyAccount) -> None:
        for each in steps:
            each(account)
            account.pull()
            account.clock.now += timedelta(hours=1)

    return step


def pull_with_slow_responses(account: NightlyAccount) -> CommandResult:
    """Pull while each response takes several seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "time", SimpleNamespace(monotonic=count(0.0, 67.0).__next__))
        return account.pull()


def pull_from_another_workspace(account: NightlyAccount) -> CommandResult:
    """Pull while the address is that of another agency, which accepts the same key."""
    ago = timedelta(days=60)  # No record was changed there since yesterday.
    with Sandbox(
        counts=COUNTS, seed=99, keys={KEY: ("*",)}, clock=lambda: account.clock() - ago
    ) as other:
        ago = timedelta()
        account.change_settings(base_url=other.base_url)
        ended = account.pull()
    account.change_settings(base_url=account.sandbox.base_url)
    return ended


# -- This machine ----------------------------------------------------------------------------------


def set_clock_ahead(**difference: float) -> Step:
    """Return a step that sets how far this machine's clock is ahead of the server's, as keywords
    of `timedelta`.
    """
    return lambda account: setattr(account.clock, "ahead", timedelta(**difference))


def run_nothing(account: NightlyAccount) -> None:
    """Do nothing, as when no scheduler runs."""


def run_command(*words: str, exit_status: int = 0) -> Step:
    """Return a step that runs a command and checks its exit status."""

    def step(account: NightlyAccount) -> CommandResult:
        done = account.call(*words)
        assert exit_status == done.status, (words, done)
        return done

    return step


def record_killed_pull(account: NightlyAccount) -> None:
    """Record a run without an end, as a killed pull leaves it."""
    with open_file(account.home / "work.duckdb") as connection:
        begin_run(connection, Run("killed", "pull", account.clock()))


def publish_and_be_killed(account: NightlyAccount) -> None:
    """Record a pull and its publication without an end, as a kill while publishing leaves them."""
    with open_file(account.home / "work.duckdb") as connection:
        now = account.clock()
        name = f"killed-{now:%j}"
        begin_run(connection, Run(name, "pull", now))
        write_publication(connection, Publication(name, now, name))


def pull_with_refused_certificate(verify_code: int, message: str) -> Step:
    """Return a step that pulls while the certificate of the server is refused for this reason."""

    def refuse(self: object, request: object) -> None:
        error = ssl.SSLCertVerificationError(1, message)
        error.verify_code, error.verify_message = verify_code, message
        raise httpx.ConnectError("refused") from error

    def step(account: NightlyAccount) -> CommandResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", refuse)
            return account.pull()

    return step


def pull_on_a_read_only_disk(account: NightlyAccount) -> CommandResult:
    """Pull while the databases of the account cannot be written."""

    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_connect", refuse)
        return account.pull()


def back_up(account: NightlyAccount) -> CommandResult:
    """Make a backup."""
    return account.call("backup", str(account.folder / "backups"))


def back_up_to_a_full_disk(account: NightlyAccount) -> CommandResult:
    """Pull, then make a backup while there is room for the state's changes alone."""
    account.pull()
    return with_full_disk(lambda: back_up(account), 500_000)


def pull_during_another_pull(account: NightlyAccount) -> CommandResult:
    """Pull while another process holds the account, then pull again."""
    other = OtherProcess(account.home)
    with pytest.MonkeyPatch.context() as patch:
        shorten_wait(patch)
        assert 1 == account.pull().status
    other.kill()
    return account.pull()


def interrupt_command(*words: str) -> Step:
    """Return a step that interrupts a command at its first response and checks its exit status."""

    def raise_interrupt(self: RunProgress, progress: object) -> None:
        raise KeyboardInterrupt

    def step(account: NightlyAccount) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunProgress, "__call__", raise_interrupt)
            assert 130 == account.call(*words).status

    return step


def pull_with_full_disk(account: NightlyAccount) -> CommandResult:
    """Pull while no file can grow beyond 1,024 bytes."""
    return with_full_disk(account.pull, 1024)


def with_full_disk(act: Callable[[], CommandResult], bytes_max: int) -> CommandResult:
    """Act while no file can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        return act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def overwrite_file(name: str) -> Step:
    """Return a step that replaces a file of the data folder by bytes that are not a database."""

    def step(account: NightlyAccount) -> None:
        (account.home / name).rename(account.folder / f"{name}.was")
        (account.home / name).write_bytes(b"another kind of file" * 500)

    return step


def restore_file(name: str) -> Step:
    """Return a step that restores the file that `overwrite_file` replaced."""
    return lambda account: (account.folder / f"{name}.was").replace(account.home / name)


# -- Pushes and models -----------------------------------------------------------------------------

STATUS = "3f0b7c1e-5d3a-4a52-9a39-0c6a1c1f7f10"
"""Lead status that no lead has."""

PUSH = ("--mode", "create", "--apply", "--no-wait", "--no-pull")


def push_one_lead(name: str, email: str, exit_status: int = 0) -> Step:
    """Return a step that pushes NAME.csv with one lead and checks the exit status."""

    def step(account: NightlyAccount) -> None:
        leads = account.sandbox.store.records("leads")
        row = f"Ada,Novak,{email},{leads[min(leads)]['lead_status_id']}"
        account.write_private_file(
            f"{name}.csv", f"first_name,last_name,email,lead_status_id\n{row}\n"
        )
        done = account.call("push", "leads", str(account.folder / f"{name}.csv"), *PUSH)
        assert exit_status == done.status, done

    return step


def interrupt_push(account: NightlyAccount) -> None:
    """Interrupt a push at its first row."""
    account.write_private_file("cut.csv", (account.folder / "late.csv").read_text())
    interrupt_command("push", "leads", str(account.folder / "cut.csv"), *PUSH)(account)


def search_and_drop_unconfirmed_row(account: NightlyAccount) -> None:
    """Resolve the only unconfirmed row: search its lead on the server, then drop the row."""
    (row,) = account.call("resolve", "--json").object["rows"]
    for decision in ("--look", "--drop"):
        done = account.call("resolve", row["batch"], str(row["row"]), decision)
    assert 3 == done.status, done


def pull_with_models(account: NightlyAccount) -> CommandResult:
    """Pull and publish with models."""
    return account.pull(CONNECTOR_MODELS="on")


def write_seed(name: str, text: str) -> Step:
    """Return a step that writes NAME.csv to the seeds."""

    def step(account: NightlyAccount) -> None:
        (account.home / "seeds").mkdir(exist_ok=True)
        (account.home / "seeds" / f"{name}.csv").write_text(text)

    return step


def write_incomplete_seeds(account: NightlyAccount) -> None:
    """Write seeds in which one lead status has a name and one source has a group."""
    write_seed("lead_statuses", f"id,name,outcome\n{STATUS},New,open\n")(account)
    run_command("models", "seeds", "--write", "source_groups")(account)
    with (account.home / "seeds" / "source_groups.csv").open("a") as file:
        file.write("Our own page,Own page\n")


def complete_seeds(account: NightlyAccount) -> None:
    """Fill every empty cell of the seeds."""
    run_command("models", "seeds", "--write")(account)
    for each in (account.home / "seeds").glob("*.csv"):
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
        combine_steps(delete_records("candidates", 3), edit_records("jobs")),
    ),
    Night(
        *(4, "The API is unreachable for three hours, and a pull runs every hour"),
        instead=pull_hourly_after(
            lambda account: account.sandbox.stop(),
            run_nothing,
            run_nothing,
            lambda account: account.sandbox.start(),
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
        combine_steps(clear_server_faults, PULL),
    ),
    Night(13, "The pull is killed", instead=record_killed_pull),
    Night(15, "Two pulls run at one time", instead=pull_during_another_pull),
    Night(
        16,
        "The clock is two days behind",
        set_clock_ahead(days=-2),
        combine_steps(set_clock_ahead(), PULL),
    ),
    Night(17, "The clock is three days ahead", set_clock_ahead(days=3), set_clock_ahead()),
    Night(19, "No scheduler runs", instead=run_nothing),
    Night(20, "No scheduler runs again", instead=run_nothing),
    Night(
        *(21, "The API answers 503, and notifications cannot be sent"),
        combine_steps(make_server_fail(Status(503)), lambda account: account.receiver.stop()),
        combine_steps(clear_server_faults, lambda account: account.receiver.start()),
    ),
    Night(
        *(
            23,
            "The plan's requests are used up",
            lambda account: account.change_settings(monthly_requests=100),
        ),
        lambda account: account.change_settings(monthly_requests=100_000),
    ),
    Night(
        *(25, "The API answers 429 for the rest of the month", make_server_fail(Limited("far"))),
        combine_steps(clear_server_faults, run_command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(
        *(27, "A setting is misspelt", lambda account: account.change_settings(billing_dai=3)),
        lambda account: account.change_settings(billing_dai=None),
    ),
    Night(28, "The key's file is empty", replace_key(""), replace_key(KEY)),
    Night(29, "The disk is full", instead=pull_with_full_disk),
    Night(
        *(
            31,
            "A field is undocumented",
            combine_steps(set_undocumented_field("shown"), edit_records("jobs")),
        ),
        combine_steps(set_undocumented_field("none"), edit_records("jobs")),
    ),
    Night(
        *(33, "A pushed file has an invalid address", push_one_lead("wrong", "nobody", 3)),
        push_one_lead("wrong", "ada@people.example"),
    ),
    Night(
        *(35, "A created lead is not answered, and not found"),
        combine_steps(
            make_server_fail(Drop(), "/api/v1/leads", method="POST", times=1),
            push_one_lead("lost", "lost@people.example", 3),
        ),
        search_and_drop_unconfirmed_row,
    ),
    Night(
        *(37, "The key is revoked while somebody pushes"),
        combine_steps(
            replace_key(OTHER_KEY),
            push_one_lead("late", "late@people.example", 1),
            replace_key(KEY),
        ),
        push_one_lead("late", "late@people.example"),
    ),
    Night(39, "A push is interrupted", interrupt_push, push_one_lead("cut", "late@people.example")),
    Night(
        *(40, "A seed has wrong headings", write_seed("lead_statuses", "status;name\n")),
        *(
            lambda account: (account.home / "seeds" / "lead_statuses.csv").unlink(),
            pull_with_models,
        ),
    ),
    Night(41, "The seed is corrected", instead=pull_with_models),
    Night(42, "Seeds lack names", write_incomplete_seeds, instead=pull_with_models),
    Night(
        *(43, "A lead has another source", edit_records("leads", source="Stand at the fair")),
        *(complete_seeds, pull_with_models),
    ),
    Night(44, "The seeds are filled in", instead=pull_with_models),
    Night(47, "The address is another agency's", instead=pull_from_another_workspace),
    Night(
        48, "The state is overwritten", overwrite_file("state.sqlite"), restore_file("state.sqlite")
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
        combine_steps(
            edit_records("jobs", 120),
            lambda account: account.change_settings(monthly_requests=1000),
        ),
    ),
    Night(
        54, "The plan is too small", lambda account: account.change_settings(monthly_requests=290)
    ),
    Night(55, "The plan is larger", lambda account: account.change_settings(monthly_requests=1000)),
    Night(57, "A publication is killed", instead=publish_and_be_killed),
    Night(58, "A publication is killed again", instead=publish_and_be_killed),
    Night(59, "A publication is killed for the third time", instead=publish_and_be_killed),
    Night(63, "The certificate has expired", instead=pull_with_refused_certificate(10, "expired")),
    Night(
        *(65, "The certificate is of another host"),
        instead=pull_with_refused_certificate(62, "Hostname mismatch"),
    ),
    Night(67, "Six answers are 429 without headers", make_server_fail(Limited("missing"), times=6)),
    Night(
        *(69, "All answers are 429 without headers", make_server_fail(Limited("missing"))),
        combine_steps(clear_server_faults, run_command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(71, "The disk is read-only", instead=pull_on_a_read_only_disk),
    Night(73, "The pull is stopped by the machine", instead=interrupt_command("pull", *COUNTS)),
    Night(75, "The disk of the backups is full", instead=back_up_to_a_full_disk),
    Night(76, "The backup is complete", instead=back_up),
)

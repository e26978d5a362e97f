"""Incidents of the nights: the faults, and the corrections on the next morning."""

from __future__ import annotations

import resource
import ssl
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from connector.sandbox.app import Fault
from connector.sandbox.faults import Drop, Limited, Status
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.runs import Publication, Run, begin_run, write_publication
from tests.problems.nights import COUNTS, Night, NightlyAccount, Step
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


def delete_records(resource_name: str, count: int) -> Step:
    """Return a step that deletes the first `count` records of a resource on the server."""

    def step(account: NightlyAccount) -> None:
        for id in sorted(account.sandbox.store.records(resource_name))[:count]:
            account.sandbox.store.remove(resource_name, id)

    return step


# -- This machine ----------------------------------------------------------------------------------


def set_clock_ahead(**difference: float) -> Step:
    """Return a step that sets how far this machine's clock is ahead of the server's, as keywords
    of `timedelta`.
    """
    return lambda account: setattr(account.clock, "ahead", timedelta(**difference))


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


def pull_with_expired_certificate(account: NightlyAccount) -> CommandResult:
    """Pull while the certificate of the server is refused as expired."""

    def refuse(self: object, request: object) -> None:
        error = ssl.SSLCertVerificationError(1, "expired")
        error.verify_code, error.verify_message = 10, "expired"
        raise httpx.ConnectError("refused") from error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", refuse)
        return account.pull()


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

PUSH = ("--mode", "create", "--apply", "--no-wait", "--no-pull")


def push_lost_lead(account: NightlyAccount) -> None:
    """Push a file with one lead whose row is held."""
    leads = account.sandbox.store.records("leads")
    row = f"Ada,Novak,lost@people.example,{leads[min(leads)]['lead_status_id']}"
    account.write_private_file("lost.csv", f"first_name,last_name,email,lead_status_id\n{row}\n")
    done = account.call("push", "leads", str(account.folder / "lost.csv"), *PUSH)
    assert 3 == done.status, done


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


NIGHTS = (
    Night(
        1, "The first load publishes with models; no seed is filled in", instead=pull_with_models
    ),
    Night(2, "The API answers 503", make_server_fail(Status(503)), clear_server_faults),
    Night(
        *(4, "22 of 60 candidates are deleted", delete_records("candidates", 22)),
        run_command("pull", "candidates", "--accept-deletes"),
    ),
    Night(
        5,
        "The key loses the scope of candidates",
        make_server_fail(Status(403), CANDIDATES),
        clear_server_faults,
    ),
    Night(6, "The pull is killed", instead=record_killed_pull),
    Night(7, "Two pulls run at one time", instead=pull_during_another_pull),
    Night(8, "The clock is three days ahead", set_clock_ahead(days=3), set_clock_ahead()),
    Night(
        *(10, "The API answers 503, and notifications cannot be sent"),
        combine_steps(make_server_fail(Status(503)), lambda account: account.receiver.stop()),
        combine_steps(clear_server_faults, lambda account: account.receiver.start()),
    ),
    Night(
        *(
            12,
            "The plan's requests are used up",
            lambda account: account.change_settings(monthly_requests=100),
        ),
        lambda account: account.change_settings(monthly_requests=100_000),
    ),
    Night(
        *(13, "The API answers 429 for the rest of the month", make_server_fail(Limited("far"))),
        combine_steps(clear_server_faults, run_command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(
        *(14, "A setting is misspelt", lambda account: account.change_settings(billing_dai=3)),
        lambda account: account.change_settings(billing_dai=None),
    ),
    Night(15, "The disk is full", instead=pull_with_full_disk),
    Night(
        *(17, "A created lead is not answered, and not found"),
        combine_steps(
            make_server_fail(Drop(), "/api/v1/leads", method="POST", times=1), push_lost_lead
        ),
        search_and_drop_unconfirmed_row,
    ),
    Night(
        *(18, "A seed has wrong headings", write_seed("lead_statuses", "status;name\n")),
        *(
            lambda account: (account.home / "seeds" / "lead_statuses.csv").unlink(),
            pull_with_models,
        ),
    ),
    Night(19, "The seed is corrected", instead=pull_with_models),
    Night(
        20, "The state is overwritten", overwrite_file("state.sqlite"), restore_file("state.sqlite")
    ),
    Night(22, "A publication is killed", instead=publish_and_be_killed),
    Night(23, "The certificate has expired", instead=pull_with_expired_certificate),
    Night(
        *(24, "All answers are 429 without headers", make_server_fail(Limited("missing"))),
        combine_steps(clear_server_faults, run_command("pull", *COUNTS, "--ignore-quota")),
    ),
    Night(25, "The disk of the backups is full", instead=back_up_to_a_full_disk),
    Night(26, "The backup is complete", instead=back_up),
)

"""The script of the quarter: five accounts, and what befalls them in ninety nights."""

from __future__ import annotations

import csv
import resource
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from connector.cli.session import Follower
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.operations.alert_check import check_alerts
from connector.operations.findings import JobRun
from connector.sandbox.faults import (
    DateSkew,
    Drop,
    Fault,
    HtmlPage,
    Limited,
    NotJson,
    Redirect,
    Status,
    Truncated,
)
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings
from tests.alerts.quarter import KEY, OTHER_KEY, Calm, Incident, Plan, Quarter

Step = Callable[[Quarter], object]

ZERO = timedelta(0)


def both(*steps: Step) -> Step:
    """One step after another."""

    def run(q: Quarter) -> None:
        for each in steps:
            each(q)

    return run


# -- The server ------------------------------------------------------------------------------------


def failing(fault: Fault, path: str = "*", **when: Any) -> Step:
    """The server answers so, until it is whole again."""
    return lambda q: q.sandbox.faults.add(fault, path=path, **{"times": None, **when})


def whole(q: Quarter) -> None:
    """The server answers as it should."""
    q.sandbox.faults.clear()


def revoke(q: Quarter) -> None:
    """The server does not know the key any more."""
    q.set_key(OTHER_KEY)


def new_key(q: Quarter) -> None:
    """A person puts a new key into the file."""
    q.set_key(KEY)


def behave(**values: str) -> Step:
    """The server answers a question that the API leaves open in another way."""

    def step(q: Quarter) -> None:
        for name, value in values.items():
            object.__setattr__(q.store.behaviours, name, value)

    return step


def some(q: Quarter, name: str, count: int = 1) -> list[str]:
    """The ids of records."""
    return sorted(q.store.records(name))[:count]


def touch(name: str, changes: dict[str, Any] | None = None, count: int = 1) -> Step:
    """Somebody changes records in one bulk edit, the evening before or in the morning."""

    def step(q: Quarter) -> None:
        at = q.hours() - timedelta(hours=5)
        q.store.touch_many(name, some(q, name, count), changes or {}, updated_at=at)

    return step


def remove(name: str, count: int) -> Step:
    """Somebody deletes records."""

    def step(q: Quarter) -> None:
        for id in some(q, name, count):
            q.store.remove(name, id)

    return step


def command(*words: str, status: int = 0) -> Step:
    """A person runs a command."""

    def step(q: Quarter) -> None:
        done = q.call(*words)
        assert status == done.status, (words, done)

    return step


def another_workspace(q: Quarter) -> None:
    """The address is that of another agency, which takes the same key."""
    ago = [timedelta(days=60)]  # Nobody has changed anything there since yesterday.
    other = Sandbox(
        counts=q.plan.counts, seed=99, keys={KEY: ("*",)}, clock=lambda: q.hours() - sum(ago, ZERO)
    )
    ago.clear()
    other.start()
    q.kept["other"] = other
    q.set(base_url=other.base_url)


def right_workspace(q: Quarter) -> None:
    """A person corrects the address."""
    other = q.kept.pop("other")
    other.stop()
    other.store.close()
    q.set(base_url=q.sandbox.base_url)


def clock(**ahead: float) -> Step:
    """This machine's clock differs from the server's."""
    return lambda q: setattr(q.hours, "ahead", timedelta(**ahead))


def beside_another(q: Quarter) -> None:
    """The night's pull finds another one, and the next one runs."""

    def run() -> object:
        with Ledger(q.home) as ledger:
            ledger.take_lease("pull", LeaseOwner.of_this_process("another", "pull"), q.hours())
            refused = q.pull()
            ledger.release_lease("pull", "another")
        assert 1 == refused.status, refused
        assert "another pull is running" in refused.err
        return q.pull()

    q.instead = run


CANDIDATES = "/api/v1/candidates*"

ACME = Plan(
    "acme",
    ("jobs", "candidates"),
    {"jobs": 6, "candidates": 60},
    (
        Calm(2, "One answer of 503, repeated", failing(Status(503), times=1)),
        Calm(3, "Three candidates deleted", remove("candidates", 3)),
        Calm(4, "A 429 with the right reset", failing(Limited(), times=1)),
        Incident(
            *(5, "The API", "answers everything with 503", failing(Status(503))),
            *("pull_failed", "the next pull tries again", whole),
        ),
        Incident(
            *(9, "The key", "is revoked", revoke, "pull_failed", "generate a new key", new_key)
        ),
        Incident(
            *(14, "The API", "answers with 503 for two nights", failing(Status(503))),
            *("pull_failed", "the next pull tries again"),
            over=2,
        ),
        Incident(
            *(15, "The key", "is revoked while the API is away", both(whole, revoke)),
            *("pull_failed", "generate a new key", new_key),
            change="changed",
            over=None,
        ),
        Incident(
            *(18, "The address", "is that of another agency's workspace", another_workspace),
            *("settings_wrong", "another folder", right_workspace),
        ),
        Incident(
            *(20, "Candidates", "lose two thirds in one day", remove("candidates", 38)),
            *("deletions_refused", "connector pull --accept-deletes"),
            command("pull", "candidates", "--accept-deletes"),
            "candidates",
        ),
        Incident(
            *(24, "The machine's clock", "is an hour behind the server's", failing(DateSkew(3600))),
            *("clock_wrong", "Set the clock", whole),
        ),
        Incident(
            *(26, "A proxy", "answers with its own page", failing(HtmlPage(502))),
            *("pull_failed", "next pull", whole),
        ),
        Incident(
            *(31, "The API", "has moved", failing(Redirect("https://new.example/"))),
            *("pull_failed", "set base_url", whole),
        ),
        Incident(
            *(36, "The key", "lost the scope of candidates"),
            *(failing(Status(403), CANDIDATES), "not_proven", "Give the key the scope"),
            *(whole, "candidates"),
        ),
        Incident(
            *(41, "Candidates", "are no JSON", failing(NotJson(), CANDIDATES)),
            *("not_proven", "later", whole, "candidates"),
        ),
        Incident(
            *(46, "The network", "cuts every answer off", failing(Drop())),
            *("pull_failed", "tries again", whole),
        ),
        Incident(
            *(51, "Candidates", "arrive by half", failing(Truncated(), CANDIDATES)),
            *("not_proven", "tries again", whole, "candidates"),
        ),
        Incident(
            *(56, "A proxy", "answers 200 with its own page", failing(HtmlPage(200))),
            *("pull_failed", "earlier answers of this address were readable", whole),
        ),
        Calm(59, "Another pull is running when the timer starts one", beside_another),
        Incident(
            *(62, "The machine's clock", "is three days ahead", clock(days=3)),
            *("clock_wrong", "Set the clock", clock()),
        ),
        Incident(
            *(63, "The API", "answers 503 after the clock was corrected", failing(Status(503))),
            *("pull_failed", "the next pull tries again", whole),
        ),
        Incident(
            *(72, "The machine's clock", "is two days behind", clock(days=-2)),
            *("clock_wrong", "Set the clock", clock()),
        ),
    ),
)


GLOBEX = Plan(
    "globex",
    ("jobs",),
    {"jobs": 120},
    (
        Calm(
            3,
            "A person's pull that stops at its budget",
            command("pull", "jobs", "--max-requests", "1", status=4),
        ),
        Incident(
            *(6, "Jobs", "have a field that the API does not document"),
            *(
                both(behave(extra_fields="shown"), touch("jobs")),
                "anomalies",
                "record that is named",
            ),
            *(both(behave(extra_fields="none"), touch("jobs")), "jobs"),
        ),
        Incident(
            *(12, "A job", "has a status that there is not", touch("jobs", {"status": "on_ice"})),
            *("anomalies", "record that is named", touch("jobs", {"status": "filled"}), "jobs"),
        ),
        Incident(
            *(18, "A job", "has more openings than a number can hold"),
            *(touch("jobs", {"positions_available": 2**63}), "anomalies", "record that is named"),
            *(touch("jobs", {"positions_available": 2}), "jobs"),
        ),
        Calm(25, "Thirty jobs in one bulk edit", touch("jobs", count=30)),
        Incident(
            *(33, "All jobs", "change in one bulk edit, which the plan cannot take daily"),
            *(touch("jobs", count=120), "cost_rising", "A bulk edit explains them"),
        ),
        Calm(40, "Eighty jobs change", touch("jobs", count=80)),
        Incident(
            *(60, "The API", "says that the month is spent", failing(Limited("far"))),
            *("quota_spent", "connector pull --ignore-quota"),
            both(whole, command("pull", "jobs", "--ignore-quota")),
        ),
        Incident(
            *(63, "The plan", "is made smaller than what the month usually takes"),
            *(lambda q: q.set(monthly_requests=50), "quota_forecast", "enlarge the plan"),
            lambda q: q.set(monthly_requests=1500),
        ),
        Incident(
            *(70, "The month", "is spent on comparing everything, thrice"),
            both(
                lambda q: q.set(monthly_requests=400),
                *(command("verify"),) * 2,
                command("verify", status=4),
            ),
            *("quota_spent", "set monthly_requests"),
            both(lambda q: q.set(monthly_requests=5000), command("pull", "jobs", "--ignore-quota")),
        ),
    ),
    {"monthly_requests": 1500},
)


# -- The machine and its settings ------------------------------------------------------------------


def nothing(q: Quarter) -> None:
    """No scheduler runs in this night."""
    q.instead = lambda: None


def interrupted(*words: str) -> Step:
    """The process of a command is cut off at its first answer."""

    def cut(progress: object) -> None:
        raise KeyboardInterrupt

    def run(q: Quarter) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Follower, "__call__", lambda self, progress: cut(progress))
            assert 130 == q.call(*words).status

    return run


def dagster_fails(q: Quarter) -> None:
    """A job of Dagster fails before it comes to the connector."""

    def run() -> None:
        now = q.hours()
        settings = load_settings({"account": q.name}, q.environ)
        check_alerts(settings, jobs=[JobRun("nightly_pull", "d-1", now, failed=True)], now=q.hours)

    q.instead = run


def lose_key(q: Quarter) -> None:
    """The key's file is gone."""
    (q.folder / "key").unlink()


def unset(name: str) -> Step:
    """A setting is taken out again."""

    def step(q: Quarter) -> None:
        del q.settings[name]
        q.configure()

    return step


HOOLI = Plan(
    "hooli",
    ("jobs",),
    {"jobs": 6},
    (
        Incident(
            *(9, "The scheduler", "is dead for a night", nothing),
            *("silent", "Check that the schedule runs"),
        ),
        Incident(
            *(17, "The key's file", "is deleted", lose_key),
            *("settings_wrong", "Correct this setting", new_key),
        ),
        Incident(
            *(25, "connector.toml", "has a misspelt setting", lambda q: q.set(billing_dai=3)),
            *("settings_wrong", "billing_day", unset("billing_dai")),
        ),
        Incident(
            *(41, "The API", "is away in a night in which the webhook is, too"),
            both(failing(Status(503)), lambda q: q.receiver.go_down()),
            *("pull_failed", "next pull", whole),
            dawn=lambda q: q.receiver.go_up(),
        ),
        Incident(
            *(49, "The API's server", "cannot be reached", lambda q: q.sandbox.stop()),
            *("pull_failed", "Check base_url", lambda q: q.sandbox.start()),
        ),
        Incident(
            *(57, "The pull", "is cut off by a restart of the machine"),
            lambda q: setattr(q, "instead", lambda: interrupted("pull", "jobs")(q)),
            *("pull_failed", "connector pull"),
        ),
        Incident(
            *(65, "Dagster", "fails before it comes to the connector", dagster_fails),
            *("job_failed", "Open the failed run in Dagster"),
            resource="pull",
        ),
        Incident(
            *(73, "The address", "is mistyped", lambda q: q.set(base_url="http://127.0.0.1:9")),
            *("settings_wrong", "another folder"),
            lambda q: q.set(base_url=q.sandbox.base_url),
        ),
    ),
)


# -- Files -----------------------------------------------------------------------------------------


def full_disk(q: Quarter) -> None:
    """No file can be written beyond its first bytes."""

    def run() -> object:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            return q.pull()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    q.let_go()
    q.instead = run


def overwrite(name: str) -> Step:
    """A file is overwritten by what is none of ours."""

    def step(q: Quarter) -> None:
        q.let_go()
        (q.home / name).rename(q.folder / f"{name}.was")
        (q.home / name).write_bytes(b"what somebody copied here" * 500)

    return step


def put_back(name: str) -> Step:
    """A person puts the file back."""
    return lambda q: (q.folder / f"{name}.was").replace(q.home / name)


def lose_work(q: Quarter) -> None:
    """The work file is deleted; the published one is there."""
    q.let_go()
    (q.home / "work.duckdb").unlink()


INITECH = Plan(
    "initech",
    ("candidates",),
    {"candidates": 12},
    (
        Incident(
            *(7, "The data folder", "cannot be written to", full_disk),
            *("files_unusable", "CONNECTOR_DATA_DIR"),
        ),
        Incident(
            *(13, "The work file", "is overwritten", overwrite("work.duckdb")),
            *("files_unusable", "move the file away", put_back("work.duckdb")),
        ),
        Incident(
            *(19, "The ledger", "is overwritten", overwrite("ledger.sqlite")),
            *("files_unusable", "doctor --new-ledger", put_back("ledger.sqlite")),
        ),
        Calm(22, "The work file is lost, and made again of the published one", lose_work),
        Incident(
            *(
                25,
                "The API",
                "answers with a status that it does not document",
                failing(Status(410)),
            ),
            *("pull_failed", "report the status", whole),
        ),
        Incident(
            *(31, "The API", "refuses every request of the minute", failing(Limited("past"))),
            *("quota_spent", "connector pull --ignore-quota"),
            both(whole, command("pull", "candidates", "--ignore-quota")),
        ),
    ),
)

# -- Pushes and models -----------------------------------------------------------------------------

STATUS = "3f0b7c1e-5d3a-4a52-9a39-0c6a1c1f7f10"
PUSH = ("--mode", "create", "--apply", "--no-wait", "--no-pull")


def push(name: str, email: str, status: int = 0) -> Step:
    """A person pushes a file with one lead."""

    def step(q: Quarter) -> None:
        file = q.folder / f"{name}.csv"
        row = f"Ada,Novak,{email},{STATUS}"
        file.write_text(f"first_name,last_name,email,lead_status_id\n{row}\n")
        done = q.call("push", "leads", str(file), *PUSH)
        assert status == done.status, done

    return step


def give_up(q: Quarter) -> None:
    """A person looks, finds that the lead is not there, and gives the row up."""
    shown = q.call("resolve", "--json").object
    (row,) = shown["rows"]
    for decision in ("--look", "--drop"):
        done = q.call("resolve", row["batch"], str(row["row"]), decision)
    assert 3 == done.status, done


def with_models(q: Quarter) -> None:
    """The night publishes with models."""
    q.instead = lambda: q.pull(CONNECTOR_MODELS="on")


def wrong_seed(q: Quarter) -> None:
    """Somebody saves a seed as what it is not."""
    seeds = q.home / "seeds"
    seeds.mkdir(exist_ok=True)
    (seeds / "lead_statuses.csv").write_text("status;name\n")
    with_models(q)


def right_seed(q: Quarter) -> None:
    """A person puts the seed right."""
    (q.home / "seeds" / "lead_statuses.csv").unlink()


def begin_names(q: Quarter) -> None:
    """A person names one status and groups one source; the names of the others are missing."""
    seeds = q.home / "seeds"
    seeds.mkdir(exist_ok=True)
    (seeds / "lead_statuses.csv").write_text(f"id,name,outcome\n{STATUS},New,open\n")
    command("models", "seeds", "--write", "source_groups")(q)
    with (seeds / "source_groups.csv").open("a") as file:
        file.write("Our own page,Own page\n")


def name_all(q: Quarter) -> None:
    """A person fills in what the seeds have no name for."""
    command("models", "seeds", "--write")(q)
    for seed in (q.home / "seeds").glob("*.csv"):
        head, *rows = csv.reader(seed.read_text().splitlines())
        filled = [[each or "open" for each in row] for row in rows]
        seed.write_text("\n".join(",".join(row) for row in (head, *filled)) + "\n")


UMBRELLA = Plan(
    "umbrella",
    ("leads",),
    {"leads": 12},
    (
        Calm(0, "A new account publishes with models, and no seed is filled in", with_models),
        Incident(
            *(8, "A pushed file", "has an address that is none", push("wrong", "nobody", 3)),
            *("rows_rejected", "push the report", push("wrong", "ada@people.example"), "leads"),
        ),
        Incident(
            *(15, "A created lead", "is not answered, and not found"),
            both(
                failing(Drop(), "/api/v1/leads", method="POST", times=1),
                push("lost", "lost@people.example", 3),
            ),
            *("rows_in_doubt", "connector resolve", give_up),
        ),
        Incident(
            *(22, "The key", "is revoked while somebody pushes"),
            both(revoke, push("late", "late@people.example", 1), new_key),
            *("push_failed", "generate a new key", push("late", "late@people.example")),
        ),
        Incident(
            *(29, "A push", "is cut off by a restart of the machine"),
            both(
                lambda q: (q.folder / "cut.csv").write_text((q.folder / "late.csv").read_text()),
                lambda q: interrupted("push", "leads", str(q.folder / "cut.csv"), *PUSH)(q),
            ),
            *("push_failed", "Push the same file again", push("cut", "late@people.example")),
        ),
        Incident(
            *(36, "A seed", "is saved with semicolons", wrong_seed),
            *("publication_failed", "Correct this place", right_seed),
        ),
        Calm(42, "Nobody has begun to fill in a seed", with_models),
        Incident(
            *(43, "Leads", "have a status that the seed has no name for"),
            *(both(begin_names, with_models), "checks_warn", "fill in the seed files"),
            over=2,
        ),
        Incident(
            *(44, "A lead", "comes from a source that nobody has grouped"),
            both(touch("leads", {"source": "Stand at the fair"}), with_models),
            *("checks_warn", "fill in the seed files"),
            name_all,
            change="changed",
            over=None,
        ),
        Calm(45, "The models find nothing", with_models),
    ),
)

PLANS = (ACME, GLOBEX, HOOLI, INITECH, UMBRELLA)

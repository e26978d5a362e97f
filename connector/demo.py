"""The demonstration's surroundings: a folder of its own, the API's twin, questions to ask.

What is shown is the real thing: nothing here pulls, lands or publishes. Run as a module it is the
twin: it serves until its standard input ends, so that it never outlives whoever started it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ConnectorError, SettingsError
from connector.sandbox import KEY_DEFAULT, LEAD_STATUSES, USERS, Sandbox
from connector.settings import ENVIRONMENT

COUNTS = {
    "jobs": 100,
    "candidates": 1200,
    "companies": 50,
    "bookings": 300,
    "leads": 300,
    "content_types": 3,
    "content_items": 60,
}
"""A small agency: enough to ask something of, and pulled in less than a minute."""

_PEOPLE = (
    "Amara Okafor,Technology",
    "Ben Whitlock,Technology",
    "Chiara Conti,Finance",
    "Dilys Pritchard,Health",
    "Edwin Marsh,Health",
    "Farah Siddiqui,Education",
    "Greta Lindqvist,Finance",
    "Hugo Baptiste,Education",
)
_LEAD_STATUSES = ("New,open", "Contacted,open", "Qualified,open", "Won,won", "Lost,lost")

RATE_LIMIT = 60_000
"""Requests a minute: nobody should wait at a demonstration."""

MARKER = ".made-by-connector-demo"
"""The file by which a demonstration's folder is known, so that no other is ever replaced."""

_STOP_SECONDS_MAX = 10


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a recruiter asks, and the SQL that answers it from the published file."""

    title: str
    sql: str


QUESTIONS = (
    Question(
        "Where do the candidates stand, and for how long?",
        """\
select stage, count(*) as candidates, round(median(days_in_stage), 1) as days_in_stage
from marts.fct_pipeline_candidates
group by stage, stage_order
order by stage_order nulls last, candidates desc""",
    ),
    Question(
        "Which open jobs have waited longest, and what has happened to them?",
        """\
select job_title, company_name, age_days, bookings, days_without_booking
from marts.fct_job_ageing
order by age_days desc
limit 5""",
    ),
    Question(
        "Which sources bring candidates who are hired?",
        """\
select source_group, sum(candidates) as candidates, sum(candidates_placed) as placed,
    round(100 * sum(candidates_placed) / sum(candidates), 1) as hired_percent
from marts.sum_source_effectiveness
group by source_group
order by hired_percent desc
limit 5""",
    ),
)
"""What the demonstration asks of its own warehouse."""


def make_folder(folder: Path) -> None:
    """Make the folder anew, replacing one that a demonstration made and no other.

    Raises `SettingsError`.
    """
    try:
        if (folder / MARKER).is_file() and not folder.is_symlink():
            shutil.rmtree(folder)
        if folder.is_symlink() or (folder.exists() and not _is_empty(folder)):
            raise SettingsError(
                f"{folder} is there already, and no demonstration made it",
                action="Move it away, or name another folder with --data-dir.",
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / MARKER).write_text("This folder is replaced by the next 'connector demo'.\n")
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be made anew: {error.strerror or error}",
            action="Name another folder with --data-dir.",
        ) from error


def write_seeds(folder: Path) -> None:
    """Name the agency's consultants and the states of its leads, as a person would in the seeds:
    the API has no names for them. Raises `SettingsError`.
    """
    people = zip(USERS, _PEOPLE, strict=True)
    statuses = zip(LEAD_STATUSES, _LEAD_STATUSES, strict=True)
    tables = {
        "people.csv": ["id,name,team", *(f"{id},{who}" for id, who in people)],
        "lead_statuses.csv": ["id,name,outcome", *(f"{id},{what}" for id, what in statuses)],
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, lines in tables.items():
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be written: {error.strerror or error}",
            action="Name another folder with --data-dir.",
        ) from error


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and next(folder.iterdir(), None) is None


def environment(base_url: str, folder: Path) -> Mapping[str, str]:
    """The variables that lead to the twin and to the folder."""
    return {
        ENVIRONMENT["base_url"]: base_url,
        ENVIRONMENT["api_key"]: KEY_DEFAULT,
        ENVIRONMENT["data_dir"]: str(folder.absolute()),
    }


@contextmanager
def serving_twin() -> Iterator[str]:
    """The address of the API's twin, in a process of its own that ends with the block.

    Raises `ConnectorError` where it did not start.
    """
    process = subprocess.Popen(  # noqa: S603 # this interpreter, and a module of our own
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            ready, _, base_url = process.stdout.readline().strip().partition(" ")
            if ready != "ready":
                raise ConnectorError("the sandbox did not start")
            yield base_url
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def serve() -> None:
    """Serve the twin until standard input ends."""
    # Ctrl-C reaches every process of the terminal; this one ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Sandbox(counts=COUNTS, rate_limit=RATE_LIMIT) as sandbox:
        sys.stdout.write(f"ready {sandbox.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    serve()

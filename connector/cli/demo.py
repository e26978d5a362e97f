"""`connector demo`: pull a sample agency through Dagster, and query it.

It needs no account and no network, and stops everything that it started.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import NamedTuple

import click

from connector.cli.pull import COLUMNS, HEADINGS
from connector.cli.session import Command, Session, show_log
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, SettingsError, convert_file_errors, count_noun
from connector.report.page import REPORT_FILE, write_report
from connector.sandbox.seed import LEAD_STATUSES, USERS
from connector.sandbox.server import KEY_DEFAULT, Sandbox
from connector.settings import ENVIRONMENT
from connector.settings.folders import DAGSTER_FOLDER, SEEDS_FOLDER
from connector.warehouse.publish import own_publication
from connector.warehouse.user_query import query
from connector.warehouse.warehouse import Warehouse

COUNTS = {
    "jobs": 100,
    "candidates": 1200,
    "companies": 50,
    "bookings": 300,
    "leads": 300,
    "content_types": 3,
    "content_items": 60,
}
"""Records of a small agency, which a pull reads in less than a minute."""

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
"""Requests a minute: high enough that the demo never waits."""

FOLDER_DEFAULT = Path("demo-data")

MARKER = ".made-by-connector-demo"
"""File that marks a folder of the demo. Other folders are never replaced."""


class Question(NamedTuple):
    """Question that the demo answers, and its SQL query on the published file."""

    title: str
    sql: str


QUESTIONS = (
    Question(
        "How many candidates are in each stage, and for how long?",
        """\
select stage, count(*) as candidates, round(median(days_in_stage), 1) as days_in_stage
from marts.fct_candidates
group by stage, stage_order
order by stage_order nulls last, candidates desc""",
    ),
    Question(
        "Which jobs have been open longest, and which stages have their candidates reached?",
        """\
select job_title, company_name, age_days, candidates_interviewed, days_since_last_booking
from marts.dim_jobs
where is_open
order by age_days desc
limit 5""",
    ),
    Question(
        "Which sources lead to hires?",
        """\
select source_group, sum(candidates)::int as candidates, sum(candidates_placed)::int as placed,
    round(100 * sum(candidates_placed) / sum(candidates), 1) as hired_percent
from marts.sum_source_effectiveness
group by source_group
order by hired_percent desc
limit 5""",
    ),
)
"""Questions that the demo answers from the published file."""


def create_demo_folder(folder: Path) -> None:
    """Create the folder, replacing a folder of an earlier demo.

    Raises `SettingsError` for any other folder that is not empty, and `WarehouseError`.
    """
    with convert_file_errors(folder):
        if (folder / MARKER).is_file() and not folder.is_symlink():
            shutil.rmtree(folder)
        if folder.is_symlink() or (
            folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        ):
            raise SettingsError(
                f"{folder} already exists and was not created by 'connector demo'",
                action="Move the folder away, or choose another one with --data-dir.",
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / MARKER).write_text("The next 'connector demo' replaces this folder.\n")


def write_seeds(folder: Path) -> None:
    """Write seed files with names of the sample consultants and outcomes of lead statuses.

    The API has no such names. Raises `WarehouseError` if a file cannot be written.
    """
    people = zip(USERS, _PEOPLE, strict=True)
    statuses = zip(LEAD_STATUSES, _LEAD_STATUSES, strict=True)
    tables = {
        "people.csv": ["id,name,team", *(f"{id},{who}" for id, who in people)],
        "lead_statuses.csv": ["id,name,outcome", *(f"{id},{what}" for id, what in statuses)],
    }
    with convert_file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, lines in tables.items():
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@click.command(
    cls=Command,
    examples=("connector demo", "connector demo --keep"),
    if_interrupted="The sandbox is stopped too.",
    is_for_account=False,
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=FOLDER_DEFAULT,
    show_default=True,
    help="Folder to create. The folder of an earlier demo is replaced; other folders are refused.",
)
@click.option("--keep", is_flag=True, help="Keep the sandbox running until you press Ctrl-C.")
def demo(session: Session, *, data_dir: Path, keep: bool) -> None:
    """Run the whole pipeline on a sample agency.

    Starts the sandbox, a local copy of the API with about 2,000 records. Materializes the Dagster
    assets: it pulls the records, builds the models and publishes the file. Then it runs three
    queries on the published file. Everything stays on this machine. The sandbox stops when the
    command ends.
    """
    terminal = session.terminal
    if session.is_debug:
        show_log(terminal, KEY_DEFAULT)
    # SIGTERM stops the sandbox as Ctrl-C does. Dagster gives SIGTERM the handler of SIGINT, so both
    # are set.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    create_demo_folder(data_dir)
    write_seeds(data_dir / SEEDS_FOLDER)
    terminal.say("Starting the sandbox and Dagster (takes a few seconds).")
    with Sandbox(counts=COUNTS, rate_limit=RATE_LIMIT) as sandbox:
        variables = {
            ENVIRONMENT["base_url"]: sandbox.base_url,
            ENVIRONMENT["api_key"]: KEY_DEFAULT,
            ENVIRONMENT["data_dir"]: str(data_dir.absolute()),
        }
        _run_demo(terminal, variables, data_dir)
        for heading, commands in _next_steps(data_dir, variables if keep else {}).items():
            terminal.print_line()
            for line in (heading, *(f"  {command}" for command in commands)):
                terminal.print_line(line)
        if keep:
            _wait_for_interrupt(terminal, sandbox.base_url)


def _run_demo(terminal: Terminal, variables: Mapping[str, str], folder: Path) -> None:
    """Pull through Dagster, run the queries, and print the tables and answers.

    Raises `ConnectorError` if the run fails.
    """
    # Dagster takes seconds to load, so the first line is printed before it is imported.
    from pipelines.accounts import Account  # noqa: PLC0415
    from pipelines.definitions import execute_nightly_pull  # noqa: PLC0415

    began, home = time.monotonic(), folder.absolute() / DAGSTER_FOLDER
    terminal.say(f"Pulling {sum(COUNTS.values()):,} sample records as Dagster assets.")
    with terminal.progress("pull", sum(COUNTS.values())) as bar:
        account = Account(environ=variables, cwd=folder.absolute(), watch=bar)
        run_id = execute_nightly_pull(account, home)
    published = Warehouse(folder).published
    publication = own_publication(published)
    assert publication is not None, "the run's last step has published"
    answers = [(each, query(published, each.sql)) for each in QUESTIONS]
    report: Path | None = folder / REPORT_FILE
    try:
        write_report(published, folder / REPORT_FILE)
    except ConnectorError as error:  # the package that draws charts is optional
        terminal.warn(f"{error}. {error.action}")
        report = None
    seconds, results = time.monotonic() - began, bar.resources
    terminal.print_object({
        "folder": folder, "published": published, "report": report,
        "sandbox": variables[ENVIRONMENT["base_url"]],
        "dagster": {"home": home, "run_id": run_id}, "seconds": round(seconds, 3),
        "models": publication.models, "checks": publication.checks,
        "warnings": publication.failed_checks,
        "resources": {e.resource: {n: getattr(e, n) for n in COLUMNS[1:]} for e in results},
        "answers": [{**each._asdict(), **asdict(answer)} for each, answer in answers],
    })  # fmt: skip
    terminal.print_table(HEADINGS, [[getattr(e, name) for name in COLUMNS] for e in results])
    records = count_noun(sum(each.live for each in results), "record")
    requests = count_noun(sum(each.requests for each in results), "request")
    text = f"{records} loaded and published with {requests} in {seconds:.0f} s: {published}"
    terminal.print_line(text)
    models, checks = publication.models, publication.checks
    warnings = count_noun(len(publication.failed_checks), "warning")
    text = f"{count_noun(models, 'model')} built, {count_noun(checks, 'check')} run, {warnings}."
    terminal.print_line(text)
    for question, answer in answers:
        for line in ("", question.title, *(f"  {each}" for each in question.sql.splitlines())):
            terminal.print_line(line)
        terminal.print_table(answer.columns, answer.rows)
    if report is not None:
        terminal.print_line()
        terminal.print_line(f"Report for a director (open it in a browser): {report}")


def _next_steps(folder: Path, sandbox: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the next steps: commands to type, by heading."""
    file, home = Warehouse(folder).published, folder.absolute() / DAGSTER_FOLDER
    sql = "from marts.data_quality"
    ask = f'import duckdb; duckdb.connect("{file}", read_only=True).sql("{sql}").show()'
    variables = {**sandbox, "DAGSTER_HOME": str(home)}
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    # Outside the project's folder, Dagster needs the module to load.
    module = "" if Path("workspace.yaml").is_file() else " -m pipelines.definitions"
    connector = _program_path("connector")
    return {
        "Show the run and its assets in Dagster, at http://127.0.0.1:3000:": (
            f"{settings} {_program_path('dagster')} dev{module}",
        ),
        "Query the published file:": (f"{_program_path('python')} -c {shlex.quote(ask)}",),
        "Connect your own account. Save its API key in a file (chmod 600):": (
            "export CONNECTOR_BASE_URL=https://acme.example CONNECTOR_API_KEY_FILE=acme.key",
            f"{connector} doctor && {connector} pull",
        ),
    }


def _program_path(name: str) -> str:
    """Return the path of a program of this virtual environment, as typed in a shell."""
    path = Path(sys.executable).parent / name
    is_inside = path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if is_inside else path)


def _wait_for_interrupt(terminal: Terminal, base_url: str) -> None:
    """Print the sandbox's address, and wait for Ctrl-C."""
    text = f"The sandbox is running at {base_url} with the API key {KEY_DEFAULT}."
    try:
        terminal.say(f"{text} Press Ctrl-C to stop it.")
        Event().wait()
    except KeyboardInterrupt:
        terminal.say("The sandbox is stopped.")

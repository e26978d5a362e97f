"""`connector demo`: pull a sample agency through Dagster, and query it.

It needs no account and no network, and stops everything that it started.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import click

from connector.cli.pull import COLUMNS, HEADINGS
from connector.cli.session import Command, RunProgress, Session, show_log
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, SettingsError, count_noun
from connector.report.page import REPORT_FILE, write_report
from connector.sandbox.seed import LEAD_STATUSES, USERS
from connector.sandbox.server import KEY_DEFAULT, Sandbox
from connector.settings import ENVIRONMENT
from connector.settings.folders import DAGSTER_FOLDER, SEEDS_FOLDER
from connector.warehouse.published_file import QueryResult, query
from connector.warehouse.runs import Publication, ResourceRun, read_own_publication
from connector.warehouse.warehouse import Warehouse

# -- Sandbox ---------------------------------------------------------------------------------------
# Run as a module, this file serves the sandbox. It serves until its standard input ends, so that it
# never outlives the process that started it.

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

MARKER = ".made-by-connector-demo"
"""File that marks a folder of the demo. Other folders are never replaced."""

_STOP_SECONDS_MAX = 10


@dataclass(frozen=True, slots=True)
class Question:
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

    Raises `SettingsError` for any other folder that is not empty.
    """
    try:
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
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be replaced: {error.strerror or error}",
            action="Choose another folder with --data-dir.",
        ) from error


def write_seeds(folder: Path) -> None:
    """Write seed files with names of the sample consultants and outcomes of lead statuses.

    The API has no such names. Raises `SettingsError` if a file cannot be written.
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
            action="Choose another folder with --data-dir.",
        ) from error


def sandbox_environment(base_url: str, folder: Path) -> Mapping[str, str]:
    """Return the environment variables that connect the connector to the sandbox and the folder."""
    return {
        ENVIRONMENT["base_url"]: base_url,
        ENVIRONMENT["api_key"]: KEY_DEFAULT,
        ENVIRONMENT["data_dir"]: str(folder.absolute()),
    }


@contextmanager
def run_sandbox() -> Iterator[str]:
    """Run the sandbox in a separate process until the block ends, and yield its address.

    Raises `ConnectorError` if the sandbox does not start.
    """
    process = subprocess.Popen(  # noqa: S603 # this interpreter, and a module of our own
        [sys.executable, "-m", __name__, json.dumps(COUNTS)],
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


def serve_sandbox(counts: Mapping[str, int]) -> None:
    """Serve a sandbox with these numbers of records until standard input ends."""
    # Ctrl-C reaches every process of the terminal. This one ends when its parent closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Sandbox(counts=counts, rate_limit=RATE_LIMIT) as sandbox:
        sys.stdout.write(f"ready {sandbox.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    serve_sandbox(json.loads(sys.argv[1]))


# -- Demo ------------------------------------------------------------------------------------------

FOLDER_DEFAULT = Path("demo-data")


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Run, tables, answers and report of the demo."""

    folder: Path
    run_id: str
    seconds: float
    resources: tuple[ResourceRun, ...]
    answers: tuple[tuple[Question, QueryResult], ...]
    publication: Publication
    report: Path | None

    @property
    def published(self) -> Path:
        """Path of the published file."""
        return Warehouse(self.folder).published

    @property
    def dagster_home(self) -> Path:
        """Folder for the environment variable `DAGSTER_HOME`."""
        return self.folder.absolute() / DAGSTER_FOLDER


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
def demo(session: Session, *, data_dir: Path, keep: bool) -> int:
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
    with run_sandbox() as base_url:
        variables = sandbox_environment(base_url, data_dir)
        result = _run_demo(terminal, variables, data_dir)
        terminal.print_object(_as_json(result, base_url))
        _print_result(terminal, result, variables if keep else {})
        if keep:
            _wait_for_interrupt(terminal, base_url)
    return 0


def _run_demo(terminal: Terminal, variables: Mapping[str, str], folder: Path) -> DemoResult:
    """Pull through Dagster and run the queries. Raises `ConnectorError` if the run fails."""
    # Dagster takes seconds to load, so the first line is printed before it is imported.
    from pipelines.accounts import Account  # noqa: PLC0415
    from pipelines.definitions import execute_nightly_pull  # noqa: PLC0415

    began = time.monotonic()
    terminal.say(f"Pulling {sum(COUNTS.values()):,} sample records as Dagster assets.")
    with terminal.progress("pull", sum(COUNTS.values())) as meter:
        watch = RunProgress(meter)
        account = Account(environ=variables, cwd=folder.absolute(), watch=watch)
        executed = execute_nightly_pull(account, folder.absolute() / DAGSTER_FOLDER)
    if executed.failure is not None:
        raise ConnectorError(f"the Dagster run {executed.run_id} failed: {executed.failure}")
    published = Warehouse(folder).published
    publication = read_own_publication(published)
    assert publication is not None, "the run's last step has published"
    answers = tuple((question, query(published, question.sql)) for question in QUESTIONS)
    report: Path | None = folder / REPORT_FILE
    try:
        write_report(published, folder / REPORT_FILE, written_at=datetime.now(UTC))
    except ConnectorError as error:  # the package that draws charts is optional
        terminal.warn(f"{error}. {error.action}")
        report = None
    seconds = time.monotonic() - began
    resources = tuple(watch.resources)
    return DemoResult(folder, executed.run_id, seconds, resources, answers, publication, report)


def _print_result(terminal: Terminal, result: DemoResult, sandbox: Mapping[str, str]) -> None:
    """Print the loaded tables, the questions with answers, and the next steps."""
    rows = [[getattr(each, name) for name in COLUMNS] for each in result.resources]
    terminal.print_table(HEADINGS, rows)
    live = sum(each.live for each in result.resources)
    requests = sum(each.requests for each in result.resources)
    terminal.print_line(
        f"{count_noun(live, 'record')} loaded and published with "
        f"{count_noun(requests, 'request')} in {result.seconds:.0f} s: {result.published}"
    )
    row = result.publication
    terminal.print_line(
        f"{count_noun(row.models, 'model')} built, {count_noun(row.checks, 'check')} run, "
        f"{count_noun(len(row.failed_checks), 'warning')}."
    )
    for question, answer in result.answers:
        terminal.print_line()
        terminal.print_line(question.title)
        for line in question.sql.splitlines():
            terminal.print_line(f"  {line}")
        terminal.print_table(answer.columns, answer.rows)
    terminal.print_line()
    if result.report is not None:
        terminal.print_line(f"Report for a director (open it in a browser): {result.report}")
    for heading, commands in _next_steps(result, sandbox):
        terminal.print_line()
        terminal.print_line(heading)
        for command in commands:
            terminal.print_line(f"  {command}")


def _next_steps(
    result: DemoResult, sandbox: Mapping[str, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the next steps: a heading, and commands to type."""
    sql = "from marts.data_quality"
    ask = f"import duckdb; duckdb.connect('{result.published}', read_only=True).sql('{sql}').show()"
    variables = {**sandbox, "DAGSTER_HOME": str(result.dagster_home)}
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    # Outside the project's folder, Dagster needs the module to load.
    module = "" if Path("workspace.yaml").is_file() else " -m pipelines.definitions"
    return (
        (
            "Show the run and its assets in Dagster, at http://127.0.0.1:3000:",
            (f"{settings} {_program_path('dagster')} dev{module}",),
        ),
        ("Query the published file:", (f"{_program_path('python')} -c {_shell_quote(ask)}",)),
        (
            "Connect your own account. Save its API key in a file (chmod 600):",
            (
                "export CONNECTOR_BASE_URL=https://acme.example CONNECTOR_API_KEY_FILE=acme.key",
                f"{_program_path('connector')} doctor && {_program_path('connector')} pull",
            ),
        ),
    )


def _shell_quote(text: str) -> str:
    """Return the text as one shell word, in double quotes where that is safe."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _program_path(name: str) -> str:
    """Return the path of a program of this virtual environment, as typed in a shell."""
    path = Path(sys.executable).parent / name
    is_inside = path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if is_inside else path)


def _wait_for_interrupt(terminal: Terminal, base_url: str) -> None:
    """Print the sandbox's address, and wait for Ctrl-C."""
    message = (
        f"The sandbox is running at {base_url} with the API key {KEY_DEFAULT}. Press Ctrl-C "
        "to stop it."
    )
    try:
        terminal.say(message)
        Event().wait()
    except KeyboardInterrupt:
        terminal.say("The sandbox is stopped.")


def _as_json(result: DemoResult, base_url: str) -> dict[str, Any]:
    """Return the JSON object of `connector demo --json`."""
    return {
        "folder": str(result.folder),
        "published": str(result.published),
        "report": result.report,
        "sandbox": base_url,
        "dagster": {"home": str(result.dagster_home), "run_id": result.run_id},
        "seconds": round(result.seconds, 3),
        "models": result.publication.models,
        "checks": result.publication.checks,
        "warnings": list(result.publication.failed_checks),
        "resources": {
            each.resource: {name: getattr(each, name) for name in COLUMNS[1:]}
            for each in result.resources
        },
        "answers": [
            {"title": question.title, "sql": question.sql, **asdict(answer)}
            for question, answer in result.answers
        ],
    }

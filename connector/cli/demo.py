"""`connector demo`: a made-up agency, pulled through Dagster and queried, on this machine alone.

Parses, calls, prints. It needs no account, and leaves nothing running.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import click

from connector.cli.pull import COLUMNS, Follower
from connector.cli.session import Command, Session, show_log
from connector.cli.terminal import Terminal
from connector.demo import (
    COUNTS,
    QUESTIONS,
    Question,
    environment,
    make_folder,
    serving_twin,
    write_seeds,
)
from connector.errors import ConnectorError
from connector.report import REPORT_FILE, write_report
from connector.sandbox import KEY_DEFAULT
from connector.sources import DAGSTER_FOLDER, SEEDS_FOLDER
from connector.warehouse import ResourceRun, Warehouse
from connector.warehouse.publications import Publication, published_in
from connector.warehouse.query import Answer, query
from connector.words import counted

FOLDER_DEFAULT = Path("demo-data")


class Recorder(Follower):
    """A follower that remembers how each resource ended."""

    done: tuple[ResourceRun, ...] = ()

    def ended(self, done: ResourceRun) -> None:
        """Remember it."""
        super().ended(done)
        self.done += (done,)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What the demonstration did, to be printed."""

    folder: Path
    run_id: str
    seconds: float
    resources: tuple[ResourceRun, ...]
    answers: tuple[tuple[Question, Answer], ...]
    publication: Publication
    report: Path

    @property
    def published(self) -> Path:
        """The file for analysts."""
        return Warehouse(self.folder).published

    @property
    def home(self) -> Path:
        """The DAGSTER_HOME."""
        return self.folder.absolute() / DAGSTER_FOLDER


@click.command(
    cls=Command,
    examples=("connector demo", "connector demo --keep"),
    if_interrupted="The sandbox has ended as well.",
    is_for_account=False,
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=FOLDER_DEFAULT,
    show_default=True,
    help="Folder to make; one that an earlier demo made is replaced, any other is refused.",
)
@click.option("--keep", is_flag=True, help="Leave the sandbox running until Ctrl-C.")
def demo(session: Session, *, data_dir: Path, keep: bool) -> int:
    """Pull a made-up agency through Dagster, and query what is made of it.

    Starts the sandbox, a complete twin of the API, with some 2,000 records; materializes the
    Dagster assets against it, from what lands to the models and the published file; and asks that
    file three questions. Everything stays on this machine, and the sandbox ends with the command.
    """
    terminal = session.terminal
    if session.is_debug:
        show_log(terminal, KEY_DEFAULT)
    # Told to end, it lets go of its sandbox as one does that is interrupted. Dagster gives SIGTERM
    # whatever SIGINT has, so both are set.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    make_folder(data_dir)
    write_seeds(data_dir / SEEDS_FOLDER)
    terminal.say("Starting the sandbox and loading Dagster; this takes some seconds.")
    with serving_twin() as base_url:
        variables = environment(base_url, data_dir)
        shown = _demonstrate(terminal, variables, data_dir)
        if terminal.is_json:
            terminal.print_object(_as_json(shown, base_url))
        _print(terminal, shown, variables if keep else {})
        if keep:
            _wait(terminal, base_url)
    return 0


def _demonstrate(terminal: Terminal, variables: Mapping[str, str], folder: Path) -> Demonstration:
    """Pull through Dagster, and ask. Raises `ConnectorError` where the run failed."""
    # Dagster takes seconds to load, so not before the first line is said.
    from pipelines.connections import Account  # noqa: PLC0415
    from pipelines.execution import execute  # noqa: PLC0415

    began = time.monotonic()
    terminal.say(f"Pulling {sum(COUNTS.values()):,} made-up records as Dagster assets.")
    with terminal.progress("pull", sum(COUNTS.values())) as meter:
        recorder = Recorder(meter)
        account = Account(environ=variables, cwd=folder.absolute(), watch=recorder)
        executed = execute(account, folder.absolute() / DAGSTER_FOLDER)
    if executed.failure is not None:
        raise ConnectorError(f"the Dagster run {executed.run_id} failed: {executed.failure}")
    published = Warehouse(folder).published
    publication = published_in(published)
    assert publication is not None, "the run's last step has published"
    answers = tuple((question, query(published, question.sql)) for question in QUESTIONS)
    report = folder / REPORT_FILE
    write_report(published, report, written_at=datetime.now(UTC))
    seconds = time.monotonic() - began
    done = recorder.done
    return Demonstration(folder, executed.run_id, seconds, done, answers, publication, report)


def _print(terminal: Terminal, shown: Demonstration, sandbox: Mapping[str, str]) -> None:
    """What landed, what was asked and answered, and what to do next."""
    rows = [[getattr(each, name) for name in COLUMNS] for each in shown.resources]
    terminal.print_table(COLUMNS, rows)
    live = sum(each.live for each in shown.resources)
    requests = sum(each.requests for each in shown.resources)
    terminal.print_line(
        f"{counted(live, 'record')} landed and published with {counted(requests, 'request')}"
        f" in {shown.seconds:.0f} s: {shown.published}"
    )
    row = shown.publication
    terminal.print_line(
        f"{counted(row.models, 'model')} built, {counted(row.checks, 'check')} made:"
        f" none that blocks has failed, {len(row.failed_checks)} warn."
    )
    for question, answer in shown.answers:
        terminal.print_line("")
        terminal.print_line(question.title)
        for line in question.sql.splitlines():
            terminal.print_line(f"  {line}")
        terminal.print_table(answer.columns, answer.rows)
    terminal.print_line("")
    terminal.print_line(f"The report for a director, to open in a browser: {shown.report}")
    for heading, commands in _next(shown, sandbox):
        terminal.print_line("")
        terminal.print_line(heading)
        for command in commands:
            terminal.print_line(f"  {command}")


def _next(
    shown: Demonstration, sandbox: Mapping[str, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What to do next: a heading, and commands to type."""
    sql = "from marts.sum_coverage"
    ask = f"import duckdb; duckdb.connect('{shown.published}', read_only=True).sql('{sql}').show()"
    variables = {**sandbox, "DAGSTER_HOME": str(shown.home)}
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    # Anywhere but in the project's folder, Dagster must be told what to load.
    module = "" if Path("workspace.yaml").is_file() else " -m pipelines.definitions"
    return (
        (
            "See the run and its assets in Dagster, at http://127.0.0.1:3000:",
            (f"{settings} {_tool('dagster')} dev{module}",),
        ),
        ("Ask the warehouse something yourself:", (f"{_tool('python')} -c {_quoted(ask)}",)),
        (
            "Pull an account of your own: its address, and a file that holds its key (chmod 600):",
            (
                "export CONNECTOR_BASE_URL=https://acme.example CONNECTOR_API_KEY_FILE=acme.key",
                f"{_tool('connector')} doctor && {_tool('connector')} pull",
            ),
        ),
    )


def _quoted(text: str) -> str:
    """The text as one word of a shell, in double quotes where that is safe: it reads better."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _tool(name: str) -> str:
    """A tool beside this interpreter, as it would be typed here."""
    path = Path(sys.executable).parent / name
    is_inside = path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if is_inside else path)


def _wait(terminal: Terminal, base_url: str) -> None:
    """Wait for Ctrl-C, which is how this is meant to end."""
    said = f"The sandbox keeps listening at {base_url}, key {KEY_DEFAULT}; Ctrl-C ends it."
    try:
        terminal.say(said)
        Event().wait()
    except KeyboardInterrupt:
        terminal.say("The sandbox has ended.")


def _as_json(shown: Demonstration, base_url: str) -> dict[str, Any]:
    return {
        "folder": str(shown.folder),
        "published": str(shown.published),
        "report": str(shown.report),
        "sandbox": base_url,
        "dagster": {"home": str(shown.home), "run_id": shown.run_id},
        "seconds": round(shown.seconds, 3),
        "models": shown.publication.models,
        "checks": shown.publication.checks,
        "warnings": list(shown.publication.failed_checks),
        "resources": {
            each.resource: {name: getattr(each, name) for name in COLUMNS[1:]}
            for each in shown.resources
        },
        "answers": [
            {"title": question.title, "sql": question.sql, **asdict(answer)}
            for question, answer in shown.answers
        ],
    }

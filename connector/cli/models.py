"""`connector models`: list, build and test the models, and fill in the seeds that people own.

Parses, calls, prints. What a model is, how it is built, and how a file reaches analysts is
`connector/publishing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from connector.cli.publish import BuildFollower, unshared
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter, Terminal
from connector.errors import ConnectorError, NothingPublished, count_noun
from connector.publishing.build import check
from connector.publishing.checks import Unmapped, Written, checks_about, unmapped, write_copies
from connector.publishing.dictionary import Shown, inventory_of
from connector.publishing.project import Checked, ModelBuilt
from connector.publishing.publication import project_of, publish
from connector.settings.layers import SEEDS_FOLDER
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse

LISTED = ("name", "schema", "kind", "columns", "tests", "rows are")
BUILT = ("name", "schema", "kind", "rows", "seconds", "carried")
CHECKED = ("check", "model", "severity", "failing", "examples")

selection = click.argument("select", nargs=-1, metavar="[SELECT]...")


class _Collector(BuildFollower):
    """A follower that remembers: a build that is refused has results all the same."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter)
        self.models: list[ModelBuilt] = []
        self.checks: list[Checked] = []

    def built(self, model: ModelBuilt) -> None:
        """The model stands."""
        super().built(model)
        self.models.append(model)

    def checked(self, check: Checked) -> None:
        """A check has ended."""
        super().checked(check)
        self.checks.append(check)


@click.group()
def models() -> None:
    """List, build and test the models, and fill in the seeds.

    A SELECT is a model, a seed or a folder: 'marts', 'fct_placements', '+fct_placements' with all
    that it is made of, 'stg_jobs+' with all that is made of it. Without one, all are meant.
    """


@models.command(
    "build",
    cls=Command,
    examples=("connector models build", "connector models build fct_time_in_stage+"),
    if_interrupted="Analysts keep the file that they have.",
)
@selection
def build_models(session: Session, *, select: tuple[str, ...]) -> int:
    """Build models over what has landed, check them, and publish the file.

    Models that SELECT does not mean are carried over from the published file. Where a check that
    blocks fails, nothing is published and the exit status is 1.
    """
    settings = session.load()
    terminal = session.terminal
    # A name that is none is told before anything is copied.
    project_of(settings).selected(select)
    if settings.models.value == "off":
        terminal.warn(f"models are off (from {settings.models.origin}): the file goes without.")
    with terminal.progress("build") as meter:
        seen = _Collector(meter)
        try:
            done = publish(settings, select=select, watch=seen)
        except ConnectorError as error:
            _tell_built(terminal, seen, error)
            return error.exit_status
    _tell_built(terminal, seen, None)
    for line in unshared(done):
        terminal.warn(line)
    checks = count_noun(len(seen.checks), "check")
    terminal.say(f"Published {done.file} ({count_noun(len(seen.models), 'model')}, {checks}).")
    return 0 if done.unshared is None else 3


@models.command(
    "list", cls=Command, examples=("connector models list", "connector models list marts")
)
@selection
def list_models(session: Session, *, select: tuple[str, ...]) -> int:
    """List the models and seeds in the order in which they are built.

    All of them are tried out over empty tables, so that wrong SQL is found without any data. With
    --json, each has its columns with types, texts and lineage.
    """
    project = project_of(session.load())
    names = project.selected(select)
    shown = [each for each in inventory_of(project) if each.name in names]
    terminal = session.terminal
    if terminal.is_json:
        terminal.print_object({"models": [_shown_json(each) for each in shown]})
    rows = [_shown_row(each, len(checks_about(project, each.name))) for each in shown]
    terminal.print_table(LISTED, rows)
    terminal.say(
        f"{count_noun(len(project.models), 'model')}, {count_noun(len(project.seeds), 'seed')}."
    )
    return 0


@models.command(
    "test", cls=Command, examples=("connector models test", "connector models test marts")
)
@selection
def test_models(session: Session, *, select: tuple[str, ...]) -> int:
    """Run tests and audits on the published file, and change nothing in it.

    The exit status is 1 where a check of severity error found rows.
    """
    settings = session.load()
    terminal = session.terminal
    with terminal.progress("test") as meter:
        file = _published(settings)
        done = check(file, project_of(settings), select=select, watch=BuildFollower(meter))
    if terminal.is_json:
        terminal.print_object({"checks": [_check_json(each) for each in done]})
    failed = [each for each in done if not each.passed]
    terminal.print_table(CHECKED, [_check_row(each) for each in failed])
    for each in failed:
        terminal.warn(f"{each.name}: {each.about}")
    terminal.say(f"{count_noun(len(done), 'check')}, {len(failed):,} of them failed.")
    return 1 if any(each.severity == "error" for each in failed) else 0


@models.command(
    "seeds",
    cls=Command,
    examples=(
        "connector models seeds",
        "connector models seeds --write",
        "connector models seeds holidays --write",
    ),
)
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@click.option(
    "--write",
    "writes",
    is_flag=True,
    help="Write copies to the data folder's seeds/, with a row to fill in for each such value; a"
    " file that is there is kept and appended to.",
)
def show_seeds(session: Session, *, seeds: tuple[str, ...], writes: bool) -> int:
    """Show the values in the data that no row of a seed names: people, statuses, sources, rates.

    Seeds are small csv files of your own: one in the data folder's seeds/ takes the place of the
    one that is shipped. Rows that have nothing but their first cell wait to be filled in and
    count for nothing. Without a SEED, --write copies those that leave something unnamed.
    """
    settings = session.load()
    terminal = session.terminal
    project = project_of(settings)
    found = unmapped(_published(settings), project)
    written: tuple[Written, ...] = ()
    if writes:
        written = write_copies(settings.folder / SEEDS_FOLDER, found, project, seeds)
    if terminal.is_json:
        terminal.print_object(
            {
                "unmapped": {each.seed.name: list(each.values) for each in found},
                "written": [_written_json(each) for each in written],
            }
        )
    rows = [(each.seed.name, value) for each in found for value in each.values]
    terminal.print_table(("seed", "value without a row"), rows)
    for each in written:
        _tell_written(terminal, each)
    if not writes:
        _tell_unwritten(terminal, found)
    return 0


def _published(settings: Settings) -> Path:
    """The published file. Raises `NothingPublished`."""
    path = Warehouse(settings.folder).published
    if not path.exists():
        raise NothingPublished(f"{path} is not there: nothing was published yet")
    return path


def _tell_built(terminal: Terminal, seen: _Collector, error: ConnectorError | None) -> None:
    """The table of models, a line for each check that failed, and the error."""
    if terminal.is_json and error is None:
        terminal.print_object(
            {
                "models": [dict(zip(BUILT, _built_row(m), strict=True)) for m in seen.models],
                "checks": [_check_json(each) for each in seen.checks],
            }
        )
    terminal.print_table(BUILT, [_built_row(each) for each in seen.models])
    for each in seen.checks:
        if not each.passed:
            ids = f" ({', '.join(each.examples)})" if each.examples else ""
            told = f"{each.severity}: {count_noun(each.failing, 'row')} of {each.model}{ids}"
            terminal.warn(f"{each.name}: {told}. {each.about}")
    if error is not None:
        terminal.fail(error)


def _built_row(model: ModelBuilt) -> tuple[object, ...]:
    seconds = f"{model.seconds:.2f}"
    return model.name, model.schema, model.kind, model.rows, seconds, model.is_carried


def _check_row(check: Checked) -> tuple[object, ...]:
    ids = ", ".join(check.examples)
    return check.name, check.model, check.severity, check.failing, ids


def _check_json(check: Checked) -> dict[str, object]:
    return {
        "name": check.name,
        "model": check.model,
        "column": check.column,
        "kind": check.kind,
        "severity": check.severity,
        "passed": check.passed,
        "failing": check.failing,
        "examples": list(check.examples),
        "about": check.about,
    }


def _shown_row(shown: Shown, tests: int) -> tuple[object, ...]:
    return shown.name, shown.schema, shown.kind, len(shown.columns), tests, shown.grain


def _shown_json(shown: Shown) -> dict[str, object]:
    return {
        "name": shown.name,
        "schema": shown.schema,
        "kind": shown.kind,
        "grain": shown.grain or None,
        "about": shown.about,
        "file": str(shown.file),
        "made_of": list(shown.made_of),
        "sources": list(shown.sources),
        "columns": [
            {
                "name": each.name,
                "type": each.type,
                "about": each.about,
                "made_of": [".".join(named) for named in each.parents],
                "origins": [".".join(named) for named in each.origins],
            }
            for each in shown.columns
        ],
    }


def _written_json(written: Written) -> dict[str, object]:
    return {
        "file": str(written.path),
        "is_new": written.is_new,
        "appended": list(written.appended),
        "left_out": list(written.left_out),
    }


def _tell_written(terminal: Terminal, written: Written) -> None:
    rows = count_noun(len(written.appended), "row")
    verb = f"is new, with {rows} to fill in" if written.is_new else f"got {rows} to fill in"
    if not written.is_new and not written.appended:
        verb = "has all of it already, and was left as it is"
    terminal.say(f"{written.path} {verb}.")
    if written.left_out:
        values = count_noun(len(written.left_out), "value")
        terminal.warn(
            f"{values} would be a formula to a spreadsheet program and is not in {written.path}:"
            " add it with a text editor if it is meant."
        )


def _tell_unwritten(terminal: Terminal, found: Sequence[Unmapped]) -> None:
    if any(each.values for each in found):
        terminal.say("Run it with --write for files with a row to fill in for each of these.")
    else:
        terminal.say("Every value has its row.")

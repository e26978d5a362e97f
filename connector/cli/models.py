"""`connector models`, `publish` and `report`: build, test and publish the data for analysts."""

from __future__ import annotations

import webbrowser
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from connector.cli import options
from connector.cli.session import Command, RunProgress, Session
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, Misused, count_noun
from connector.models.exports import Sheet, export, write_workbook
from connector.models.mask import UndeclaredColumn, find_undeclared
from connector.models.project import Node, Project
from connector.models.publish import PublishResult, load_account_project
from connector.models.publish import publish as run_publish
from connector.models.runner import BuiltModel, CheckResult, describe, read_columns, run_check
from connector.models.seeds import SeedCopy, find_unmapped, write_seed_copies
from connector.pulls.account import check_account
from connector.report.page import REPORT_FILE, write_report
from connector.report.period import PERIOD_DEFAULT
from connector.settings import Settings, Treatment
from connector.settings.folders import SEEDS_FOLDER
from connector.state.quota import format_moment
from connector.warehouse.file import open_read_only
from connector.warehouse.user_query import require_published
from connector.warehouse.warehouse import Warehouse

LISTED = ("name", "schema", "kind", "columns", "tests", "rows are")
BUILT = ("name", "schema", "kind", "rows", "seconds")
CHECKED = ("check", "model", "severity", "failing", "examples")

_CHECK_FIELDS = ("name", "model", "column", "kind", "severity", "about")
_MEGABYTE = 1_000_000

selection = click.argument("select", nargs=-1, metavar="[SELECT]...")


@click.group()
def models() -> None:
    """List, build and test the models, and write seed files.

    A SELECT is a model, a seed or a folder: 'marts', 'fct_placements', '+fct_placements' with
    everything that it reads, 'stg_jobs+' with everything that reads it. Without SELECT, the command
    uses all models.
    """


# -- Build -----------------------------------------------------------------------------------------


@models.command(
    "build",
    cls=Command,
    examples=("connector models build",),
    if_interrupted="The published file is unchanged.",
)
def build_models(session: Session) -> int:
    """Build all models, check them, and publish recruitment.duckdb.

    Prints each model with its rows and seconds. If a check of severity error fails, nothing is
    published and the exit status is 1.
    """
    settings, terminal = session.load(), session.terminal
    project = load_account_project(settings)
    if settings.models == "off":
        terminal.warn(
            f"models are off (set in {settings.origin('models')}), so the file is published"
            " without marts."
        )
    with terminal.progress("build") as meter:
        progress = RunProgress(meter)
        try:
            check_account(settings)
            done = run_publish(settings, watch=progress.on_build)
        except ConnectorError as error:
            # A refused build has results too.
            _print_build_results(terminal, progress)
            return terminal.print_failure(error)
    built = [dict(zip(BUILT, _model_row(each), strict=True)) for each in progress.models]
    missing = find_undeclared(project)
    terminal.print_object(
        {
            "models": built,
            "checks": _checks_json(progress.checks),
            "undeclared": _undeclared_json(missing),
        }
    )
    _print_build_results(terminal, progress)
    _warn_undeclared(terminal, missing)
    made = f"{count_noun(len(built), 'model')}, {count_noun(len(progress.checks), 'check')}"
    terminal.say(f"Published {done.file} ({made}).")
    return 0


def _print_build_results(terminal: Terminal, progress: RunProgress) -> None:
    """Print the table of models, and a line for each failed check."""
    terminal.print_table(BUILT, [_model_row(each) for each in progress.models])
    for each in progress.checks:
        if each.failing:
            ids = f" ({', '.join(each.examples)})" if each.examples else ""
            blocks = "blocks the publication: " if each.check.severity == "error" else ""
            text = f"{blocks}{count_noun(each.failing, 'row')} in {each.check.model}{ids}"
            terminal.warn(f"{each.check.name}: {text}. {each.check.about}")


def _model_row(model: BuiltModel) -> tuple[object, ...]:
    """Return the values of the columns `BUILT`."""
    seconds = f"{model.seconds:.2f}"
    return model.name, model.schema, model.kind, model.rows, seconds


def _warn_undeclared(terminal: Terminal, missing: Sequence[UndeclaredColumn]) -> None:
    """Warn about each column of your own models that no schema.yml declares."""
    for each in missing:
        terminal.warn(each.sentence)


def _undeclared_json(missing: Sequence[UndeclaredColumn]) -> list[dict[str, object]]:
    """Return the JSON objects of columns that no schema.yml declares."""
    return [
        {
            "model": each.table,
            "column": each.column,
            "is_masked": each.is_masked,
            "file": each.file,
            "about": each.sentence,
        }
        for each in missing
    ]


def _checks_json(checks: Sequence[CheckResult]) -> list[dict[str, object]]:
    """Return the JSON objects of checks and their results."""
    return [
        {
            **{name: getattr(each.check, name) for name in _CHECK_FIELDS},
            "passed": not each.failing,
            "failing": each.failing,
            "examples": each.examples,
        }
        for each in checks
    ]


# -- List and test ---------------------------------------------------------------------------------


@models.command(
    "list", cls=Command, examples=("connector models list", "connector models list marts")
)
@selection
def list_models(session: Session, *, select: tuple[str, ...]) -> int:
    """List the models and seeds in build order.

    Runs every model on empty tables, so that wrong SQL is found without data. With --json, it
    includes the columns of each model with types and descriptions.
    """
    project, terminal = load_account_project(session.load()), session.terminal
    nodes = [project.nodes[name] for name in project.selected(select)]
    columns, missing = describe(project), find_undeclared(project)
    terminal.print_object(
        {
            "models": [_model_json(each, project) for each in nodes],
            "undeclared": _undeclared_json(missing),
        }
    )
    tests = Counter(check.model for check in project.checks)
    rows = [
        (each.name, each.schema, each.kind, len(columns[each.table]), tests[each.name], each.grain)
        for each in nodes
    ]
    terminal.print_table(LISTED, rows)
    _warn_undeclared(terminal, missing)
    seeds = [each for each in project.nodes.values() if each.kind == "seed"]
    made = count_noun(len(project.nodes) - len(seeds), "model")
    terminal.say(f"{made}, {count_noun(len(seeds), 'seed')}.")
    return 0


def _model_json(node: Node, project: Project) -> dict[str, object]:
    """Return the JSON object of a model or seed with its columns."""
    return {
        "name": node.name,
        "schema": node.schema,
        "kind": node.kind,
        "grain": node.grain or None,
        "about": node.about,
        "file": node.path,
        "made_of": node.parents,
        "sources": node.sources,
        "columns": [
            {"name": each.name, "type": each.type, "about": each.comment}
            for each in describe(project)[node.table]
        ],
    }


@models.command(
    "test", cls=Command, examples=("connector models test", "connector models test marts")
)
@selection
def test_models(session: Session, *, select: tuple[str, ...]) -> int:
    """Run tests and audits on the published file without changing it.

    Exits with status 1 if a check of severity error finds rows.
    """
    settings, terminal = session.load(), session.terminal
    with terminal.progress("test") as meter:
        file = _require_published_file(settings)
        project = load_account_project(settings)
        checks = project.checks_of(project.selected(select))
        progress = RunProgress(meter)
        with open_read_only(file) as connection:
            columns = read_columns(connection, project)
            for check in checks:
                progress.on_build(run_check(connection, check, columns), len(checks))
    done, missing = progress.checks, find_undeclared(project)
    terminal.print_object({"checks": _checks_json(done), "undeclared": _undeclared_json(missing)})
    failed = [each for each in done if each.failing]
    rows = [
        (e.check.name, e.check.model, e.check.severity, e.failing, ", ".join(e.examples))
        for e in failed
    ]
    terminal.print_table(CHECKED, rows)
    for each in failed:
        terminal.warn(f"{each.check.name}: {each.check.about}")
    _warn_undeclared(terminal, missing)
    terminal.say(f"{count_noun(len(done), 'check')} run, {len(failed):,} failed.")
    return 1 if any(each.check.severity == "error" for each in failed) else 0


def _require_published_file(settings: Settings) -> Path:
    """Return the path of the published file. Raises `WarehouseError`."""
    return require_published(Warehouse(settings.folder).published)


# -- Seeds -----------------------------------------------------------------------------------------


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
    help="Write the seed files to the folder 'seeds' of the data folder, with a row to fill in for "
    "each missing value. Existing rows are kept.",
)
def show_seeds(session: Session, *, seeds: tuple[str, ...], writes: bool) -> int:
    """List values in the data that are missing in the seeds.

    Seeds are small csv files: consultants, statuses, sources, rates. A file in the data folder's
    seeds/ replaces the shipped one. Rows with an empty second cell are ignored until you fill them
    in. With --write but without SEED, it writes the seeds that miss values.
    """
    settings, terminal = session.load(), session.terminal
    project = load_account_project(settings)
    with open_read_only(_require_published_file(settings)) as connection:
        found = find_unmapped(connection, project)
    written: tuple[SeedCopy, ...] = ()
    if writes:
        written = write_seed_copies(settings.folder / SEEDS_FOLDER, found, project, seeds)
    terminal.print_object(
        {
            "unmapped": found,
            "written": [
                {
                    "file": each.path,
                    "is_new": each.is_new,
                    "appended": each.appended,
                    "left_out": each.left_out,
                }
                for each in written
            ],
        }
    )
    rows = [(seed, value) for seed, values in found.items() for value in values]
    terminal.print_table(("seed", "missing value"), rows)
    for each in written:
        _print_seed_file(terminal, each)
    if not writes and rows:
        terminal.say("Run the command with --write to add a row for each value to the seed files.")
    elif not writes:
        terminal.say("No value is missing in the seed files.")
    return 0


def _print_seed_file(terminal: Terminal, written: SeedCopy) -> None:
    """Print the number of rows added to the file, and warn about values that were left out."""
    rows = count_noun(len(written.appended), "row")
    verb = f"has {rows} more for you to fill in"
    if written.is_new:
        verb = f"was created with {rows} for you to fill in"
    if not written.is_new and not written.appended:
        verb = "already has these values and was not changed"
    terminal.say(f"{written.path} {verb}.")
    if written.left_out:
        values = count_noun(len(written.left_out), "value")
        terminal.warn(
            f"{written.path} does not contain {values} that a spreadsheet program could run as a "
            f"formula. Add correct values with a text editor."
        )


# -- Publish ---------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=(
        "connector publish",
        "connector publish --parquet lake --schema marts",
        "connector publish --parquet s3://bucket/account=acme",
        "connector publish --xlsx placements.xlsx --table marts.fct_placements",
        "connector publish --personal drop --without push",
    ),
    if_interrupted="The published file is unchanged.",
)
@click.option(
    "--parquet",
    metavar="TARGET",
    help="Also export the tables as Parquet files, to a folder or to s3://BUCKET/PREFIX. Replaces "
    "an earlier export.",
)
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="NAME",
    help="Schema to export with --parquet. Repeatable. [default: all]",
)
@options.file_option(
    "--xlsx", about="Also export each --table to a sheet of this workbook. Replaces the file."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="SCHEMA.TABLE",
    help="Table to export with --xlsx, for example marts.fct_placements. Repeatable.",
)
@click.option(
    "--personal",
    type=click.Choice(get_args(Treatment)),
    help="Keep personal fields, leave them out, or replace each value by a hash. [default: setting"
    " publish_personal]",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="Schema, SCHEMA.TABLE, SCHEMA.TABLE.COLUMN or RESOURCE.FIELD to leave out of the"
    " published file."
    " Repeatable. [default: setting publish_without]",
)
def publish(
    session: Session,
    *,
    parquet: str | None,
    schemas: tuple[str, ...],
    xlsx: Path | None,
    tables: tuple[str, ...],
    personal: Treatment | None,
    without: tuple[str, ...],
) -> int:
    """Build the models, check them, and publish recruitment.duckdb.

    Makes no API requests. Open connections keep reading the old file; new connections see the new
    one. If a check of severity error fails, the old file stays and the exit status is 1. A
    pull and a push also publish, depending on the settings.
    """
    _check_workbook_options(xlsx, tables)
    terminal = session.terminal
    settings = session.load(publish_personal=personal, publish_without=",".join(without) or None)
    with terminal.progress("publish") as meter:
        check_account(settings)
        done = run_publish(settings, watch=RunProgress(meter).on_build)
    exported = () if parquet is None else export(done.file, parquet, schemas)
    sheets = () if xlsx is None else _write_workbook(done.file, xlsx, tables, terminal)
    for each in done.built.warnings:
        rows = count_noun(each.failing, "row")
        terminal.warn(f"{each.check.name} found {rows} in {each.check.model}. {each.check.about}")
    if settings.models == "on":
        _warn_undeclared(terminal, find_undeclared(load_account_project(settings)))
    values = done.as_json()
    if parquet is not None:
        values["parquet"] = {"folder": parquet, "tables": exported}
    if xlsx is not None:
        values["xlsx"] = {"file": xlsx, "sheets": sheets}
    terminal.print_object(values)
    exports = f" {count_noun(len(exported), 'table')} exported to {parquet}." if parquet else ""
    terminal.say(_publication_sentence(done) + exports)
    if xlsx is not None:
        rows = ", ".join(f"{each.name} ({count_noun(each.rows, 'row')})" for each in sheets)
        terminal.say(f"Wrote {xlsx}: {rows}.")
    return 0


def _check_workbook_options(path: Path | None, tables: tuple[str, ...]) -> None:
    """Raise `Misused` if --xlsx and --table do not belong together or the path is not usable."""
    if (path is None) != (not tables):
        raise Misused(
            "--xlsx and --table must be given together",
            action="For example: --xlsx placements.xlsx --table marts.fct_placements.",
        )
    if path is not None and (path.suffix.lower() != ".xlsx" or not path.parent.is_dir()):
        raise Misused(
            f"--xlsx is {path}: it must be the name of an .xlsx file in a folder that exists",
            action="For example: --xlsx placements.xlsx.",
        )


def _write_workbook(
    file: Path, path: Path, tables: tuple[str, ...], terminal: Terminal
) -> tuple[Sheet, ...]:
    """Export the tables to an .xlsx file, and warn about texts that were shortened."""
    sheets = write_workbook(file, path, tables)
    for each in sheets:
        for column, number in each.shortened.items():
            terminal.warn(
                f"{count_noun(number, 'text')} of {each.table}.{column} had too many characters for"
                " a cell. They are shortened, and end with their full length."
            )
    return sheets


def _publication_sentence(done: PublishResult) -> str:
    """Return a sentence with the published file, its size and age."""
    row = done.publication
    moment = "" if row.true_of is None else f", data as of {format_moment(row.true_of)}"
    size = f"{(row.bytes or 0) / _MEGABYTE:,.1f} MB in {row.seconds or 0:,.1f} s"
    if row.models:
        size = f"{count_noun(row.models, 'model')}, {count_noun(row.checks, 'check')}, {size}"
    return f"Published {done.file}{moment} ({size})."


# -- Report ----------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector report --open", "connector report --period 2026-Q3"),
    if_interrupted="No report was written.",
)
@options.file_option(
    "--out", about=f"Path of the report. [default: {REPORT_FILE} next to the published file]"
)
@click.option(
    "--period",
    default=PERIOD_DEFAULT,
    show_default=True,
    metavar="PERIOD",
    help="Period of the report: 2026-10, 2026-Q3, 2026, or this- or last- with month, quarter or "
    "year, for example last-quarter.",
)
@click.option("--open", "opens", is_flag=True, help="Open the report in the browser.")
def report(session: Session, *, out: Path | None, period: str, opens: bool) -> int:
    """Write a report for an agency's director from the published file.

    Shows eight figures of a period and of the one before, then charts and tables, each with its
    definition. Makes no API requests. The report is one file that can be read offline, printed and
    sent. Only its owner can read the file.
    """
    settings, terminal = session.load(), session.terminal
    path = (out or settings.folder / REPORT_FILE).absolute()
    page = write_report(
        Warehouse(settings.folder).published,
        path,
        written_at=datetime.now(UTC),
        account=settings.account,
        period=period,
    )
    terminal.print_object({"file": path, **page.as_json()})
    terminal.print_line(str(path))
    if opens and not webbrowser.open(path.as_uri()):
        terminal.warn("no browser could be started. Open the report by hand")
    return 0

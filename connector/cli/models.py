"""`connector models`, `publish` and `report`: build, test and publish the data for analysts."""

from __future__ import annotations

import webbrowser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import DONE, FAILED, Misused, count_noun
from connector.models.exports import export, write_workbook
from connector.models.publish import load_account_project
from connector.models.publish import publish as run_publish
from connector.models.runner import CheckResult, describe, run_check
from connector.models.seeds import find_unmapped, write_seed_copies
from connector.pulls.account import check_account
from connector.report.page import REPORT_FILE, write_report
from connector.report.period import PERIOD_DEFAULT
from connector.settings import Treatment
from connector.settings.folders import SEEDS_FOLDER
from connector.state.quota import format_moment
from connector.warehouse.file import open_read_only
from connector.warehouse.user_query import require_published
from connector.warehouse.warehouse import Warehouse

LISTED = ("name", "schema", "kind", "columns", "tests")
CHECKED = ("check", "model", "severity", "failing", "examples")

_CHECK_FIELDS = ("name", "model", "severity", "about")
_MEGABYTE = 1_000_000

selection = click.argument("select", nargs=-1, metavar="[SELECT]...")


@click.group()
def models() -> None:
    """List and test the models, and write seed files. 'connector publish' builds them.

    A SELECT is a model, a seed or a folder: 'marts', 'fct_placements', '+fct_placements' with
    everything that it reads, 'stg_jobs+' with everything that reads it. Without SELECT, the command
    uses all models.
    """


def _report_checks(terminal: Terminal, checks: Sequence[CheckResult]) -> list[dict[str, object]]:
    """Warn about failed checks; return the JSON objects of all checks."""
    for each in checks:
        if each.failing:
            ids = f" ({', '.join(each.examples)})" if each.examples else ""
            blocks = "blocks the publication: " if each.check.severity == "error" else ""
            text = f"{blocks}{count_noun(each.failing, 'row')} in {each.check.model}{ids}"
            terminal.warn(f"{each.check.name}: {text}. {each.check.about}")
    return [
        {name: getattr(each.check, name) for name in _CHECK_FIELDS}
        | {"passed": not each.failing, "failing": each.failing, "examples": each.examples}
        for each in checks
    ]


# -- List and test -------------------------------------------------------------------------------


@models.command(
    "list", cls=Command, examples=("connector models list", "connector models list marts")
)
@selection
def list_models(session: Session, *, select: tuple[str, ...]) -> None:
    """List the models and seeds in build order.

    Runs every model on empty tables, so that wrong SQL is found without data. With --json, it
    includes the columns of each model with types and descriptions.
    """
    project, terminal = load_account_project(session.load()), session.terminal
    nodes = [project.nodes[name] for name in project.selected(select)]
    columns, tests = describe(project), Counter(check.model for check in project.checks)
    rows = [
        (each.name, each.schema, each.kind, len(columns[each.table]), tests[each.name])
        for each in nodes
    ]
    terminal.print_table(LISTED, rows)
    objects = [
        {
            "name": node.name,
            "schema": node.schema,
            "kind": node.kind,
            "about": node.entry.description,
            "file": node.path,
            "made_of": node.parents,
            "sources": node.sources,
            "columns": [
                {"name": each.name, "type": each.type, "about": each.comment}
                for each in columns[node.table]
            ],
        }
        for node in nodes
    ]
    terminal.print_object({"models": objects})
    kinds = Counter(each.kind == "seed" for each in project.nodes.values())
    terminal.say(f"{count_noun(kinds[False], 'model')}, {count_noun(kinds[True], 'seed')}.")


@models.command(
    "test", cls=Command, examples=("connector models test", "connector models test marts")
)
@selection
def test_models(session: Session, *, select: tuple[str, ...]) -> int:
    """Run tests and audits on the published file without changing it.

    Exits with status 1 if a check of severity error finds rows.
    """
    settings, terminal = session.load(), session.terminal
    with terminal.progress("test") as bar:
        file, project = _published(settings.folder), load_account_project(settings)
        checks = project.checks_of(project.selected(select))
        with open_read_only(file) as connection:
            for check in checks:
                bar.on_build(run_check(connection, check), len(checks))
    failed = [each for each in bar.checks if each.failing]
    rows = [
        (e.check.name, e.check.model, e.check.severity, e.failing, ", ".join(e.examples))
        for e in failed
    ]
    terminal.print_table(CHECKED, rows)
    objects = _report_checks(terminal, bar.checks)
    terminal.print_object({"checks": objects})
    terminal.say(f"{count_noun(len(checks), 'check')} run, {len(failed):,} failed.")
    return FAILED if any(each.check.severity == "error" for each in failed) else DONE


def _published(folder: Path) -> Path:
    """Return the path of the published file. Raises `WarehouseError`."""
    return require_published(Warehouse(folder).published)


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
    help="Write the seed files to the folder 'seeds' of the data folder, with a row to fill in for"
    " each missing value. Existing rows are kept.",
)
def show_seeds(session: Session, *, seeds: tuple[str, ...], writes: bool) -> None:
    """List values in the data that are missing in the seeds.

    Seeds are small csv files: consultants, statuses, sources, rates. A file in the data folder's
    seeds/ replaces the shipped one. Rows with an empty second cell are ignored until you fill them
    in. With --write but without SEED, it writes the seeds that miss values. Values that a
    spreadsheet program could run as a formula are not written.
    """
    settings, terminal = session.load(), session.terminal
    project = load_account_project(settings)
    with open_read_only(_published(settings.folder)) as connection:
        found = find_unmapped(connection, project)
    written = {}
    if writes:
        written = write_seed_copies(settings.folder / SEEDS_FOLDER, found, project, seeds)
    files = [{"file": path, "appended": values} for path, values in written.items()]
    terminal.print_object({"unmapped": found, "written": files})
    rows = [(seed, value) for seed, values in found.items() for value in values]
    terminal.print_table(("seed", "missing value"), rows)
    for path, values in written.items():
        terminal.say(f"{path} has {count_noun(len(values), 'new row')} for you to fill in.")
    if not writes and rows:
        terminal.say("Run the command with --write to add a row for each value to the seed files.")
    elif not rows:
        terminal.say("No value is missing in the seed files.")


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
    help="Also export the tables as Parquet files, to a folder or to s3://BUCKET/PREFIX. Replaces"
    " an earlier export.",
)
@click.option(
    "--schema",
    multiple=True,
    metavar="NAME",
    help="Schema to export with --parquet. Repeatable. [default: all]",
)
@click.option(
    "--xlsx",
    type=options.FILE,
    metavar="FILE",
    help="Also export each --table to a sheet of this workbook. Replaces the file.",
)
@click.option(
    "--table",
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
    help="Schema, SCHEMA.TABLE or SCHEMA.TABLE.COLUMN to leave out of the published file."
    " Repeatable. [default: setting publish_without]",
)
def publish(
    session: Session, *, parquet: str | None, schema: tuple[str, ...], xlsx: Path | None,
    table: tuple[str, ...], personal: Treatment | None, without: tuple[str, ...],
) -> None:  # fmt: skip
    """Build the models, check them, and publish recruitment.duckdb.

    Makes no API requests. Open connections keep reading the old file; new connections see the new
    one. If a check of severity error fails, the old file stays and the exit status is 1. A
    pull and a push also publish, depending on the settings.
    """
    _check_workbook_options(xlsx, table)
    terminal, written = session.terminal, list[str]()
    settings = session.load(publish_personal=personal, publish_without=",".join(without) or None)
    with terminal.progress("publish") as bar:
        check_account(settings)
        done = run_publish(settings, watch=bar.on_build)
    values = done.as_json()
    if parquet is not None:
        tables = export(done.file, parquet, schema)
        values["parquet"] = {"folder": parquet, "tables": tables}
        written.append(f"{count_noun(len(tables), 'table')} exported to {parquet}.")
    if xlsx is not None:
        sheets = write_workbook(done.file, xlsx, table)
        values["xlsx"] = {"file": xlsx, "sheets": sheets}
        rows = ", ".join(f"{name} ({count_noun(n, 'row')})" for name, n in sheets.items())
        written.append(f"Wrote {xlsx}: {rows}.")
    _report_checks(terminal, done.built.failed("warn"))
    terminal.print_object(values)
    row = done.publication
    moment = "" if row.true_of is None else f", data as of {format_moment(row.true_of)}"
    size = f"{(row.bytes or 0) / _MEGABYTE:,.1f} MB in {row.seconds or 0:,.1f} s"
    if row.models:
        size = f"{count_noun(row.models, 'model')}, {count_noun(row.checks, 'check')}, {size}"
    for line in (f"Published {done.file}{moment} ({size}).", *written):
        terminal.say(line)


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


# -- Report ----------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector report --open", "connector report --period 2026-Q3"),
    if_interrupted="No report was written.",
)
@click.option(
    "--out",
    type=options.FILE,
    metavar="FILE",
    help=f"Path of the report. [default: {REPORT_FILE} next to the published file]",
)
@click.option(
    "--period",
    default=PERIOD_DEFAULT,
    show_default=True,
    metavar="PERIOD",
    help="Period of the report: 2026-10, 2026-Q3, 2026, or this- or last- with month, quarter or"
    " year, for example last-quarter.",
)
@click.option("--open", "opens", is_flag=True, help="Open the report in the browser.")
def report(session: Session, *, out: Path | None, period: str, opens: bool) -> None:
    """Write a report for an agency's director from the published file.

    Shows eight figures of a period and of the one before, then charts and tables, each with its
    definition. Makes no API requests. The report is one file that can be read offline, printed and
    sent. Only its owner can read the file.
    """
    settings, terminal = session.load(), session.terminal
    path = (out or settings.folder / REPORT_FILE).absolute()
    published = Warehouse(settings.folder).published
    write_report(published, path, account=settings.account, period=period)
    terminal.print_object({"file": path})
    terminal.print_line(str(path))
    if opens and not webbrowser.open(path.as_uri()):
        terminal.warn("no browser could be started. Open the report by hand")

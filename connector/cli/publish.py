"""`connector publish`: build the models over what has landed, and publish it now.

Parses, calls, prints. What is built, checked and put in place is `connector/publishing`.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from connector.cli.session import Command, Session
from connector.cli.terminal import Meter
from connector.errors import count_noun
from connector.publishing.parquet import Exported, export
from connector.publishing.project import Checked, ModelBuilt
from connector.publishing.publication import Published
from connector.publishing.publication import publish as run_publish
from connector.report.page import REPORT_FILE, as_json, write_report
from connector.settings.layers import Setting
from connector.settings.model import SCHEMAS, Settings, Treatment
from connector.warehouse.warehouse import Warehouse

_MEGABYTE = 1_000_000


class BuildFollower:
    """Moves a meter as models are built and checked: one step for each."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def planned(self, models: int, checks: int) -> None:
        """So many steps are to come."""
        self._meter.expect(models + checks)

    def building(self, name: str) -> None:
        """The model's turn has come."""
        self._meter.tell(f"build {name}")

    def built(self, model: ModelBuilt) -> None:
        """The model stands."""
        self._meter.advance()

    def checked(self, check: Checked) -> None:
        """A check has ended."""
        self._meter.tell(f"check {check.name}")
        self._meter.advance()


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=(
        "connector publish",
        "connector publish --parquet lake --schema marts",
        "connector publish --personal drop --without push",
    ),
    if_interrupted="Analysts keep the file that they have.",
)
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write the published tables to DIR as Parquet, in the place of an earlier export.",
)
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="NAME",
    help="A schema to export (default: all of them); may be given several times.",
)
@click.option(
    "--personal",
    type=click.Choice(get_args(Treatment)),
    help="What becomes of personal fields: kept, left out, or a token each, the same for the same"
    " text. Default: the setting publish_personal.",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(SCHEMAS),
    help="A schema to leave out of the published file; may be given several times. Default: the"
    " setting publish_without.",
)
def publish(
    session: Session,
    *,
    parquet: Path | None,
    schemas: tuple[str, ...],
    personal: Treatment | None,
    without: tuple[str, ...],
) -> int:
    """Build the models over what has landed, check them, and publish recruitment.duckdb.

    Nothing is asked of the API. Analysts who have the old file open keep it; who opens it next has
    the new one. Where a check that blocks fails, they keep the file that they have, and the exit
    status is 1; it is 3 where the file is published and could not be brought to the lakehouse. A
    pull and a push publish by themselves, as the settings say.
    """
    terminal = session.terminal
    settings = _with(session.load(), personal, without)
    with terminal.progress("publish") as meter:
        done = run_publish(settings, watch=BuildFollower(meter))
    exported = None
    if parquet is not None:
        exported = export(done.file, parquet, schemas)
    for line in _warnings(done):
        terminal.warn(line)
    if terminal.is_json:
        shown = done.as_json()
        if exported is not None:
            shown["parquet"] = {"folder": str(exported.folder), "tables": list(exported.tables)}
        terminal.print_object(shown)
    terminal.say(_closing(done, exported))
    return 0 if done.unshared is None else 3


def _with(settings: Settings, personal: Treatment | None, without: tuple[str, ...]) -> Settings:
    """The settings with what the options say otherwise. Raises `SettingsError` where there is no
    key to hash with.
    """
    if personal is not None:
        settings = replace(settings, publish_personal=Setting(personal, "--personal"))
    if without:
        settings = replace(settings, publish_without=Setting(without, "--without"))
    settings.hash_key()
    return settings


def _warnings(done: Published) -> Iterator[str]:
    yield from unshared(done)
    for each in () if done.built is None else done.built.warnings:
        rows = count_noun(each.failing, "row")
        yield f"{each.name} found {rows} in {each.model}. {each.about}".rstrip()


def unshared(done: Published | None) -> Iterator[str]:
    """Why what was published is not in the lakehouse, and what to do."""
    error = None if done is None else done.unshared
    if error is not None:
        yield f"it is published, and not in the lakehouse: {error}. {error.action}"


def _closing(done: Published, exported: Exported | None) -> str:
    row = done.publication
    moment = "" if row.true_of is None else f", true of {row.true_of:%Y-%m-%d %H:%M:%S}Z"
    built = (
        f"{count_noun(row.models, 'model')}, {count_noun(row.checks, 'check')}, "
        if row.models
        else ""
    )
    size = (row.bytes or 0) / _MEGABYTE
    said = f"Published {done.file}{moment} ({built}{size:,.1f} MB in {row.seconds or 0:,.1f} s)."
    if exported is not None:
        said += f" {count_noun(len(exported.tables), 'table')} exported to {exported.folder}."
    return said


# -- Report ----------------------------------------------------------------------------------------
# `connector report`: the page for an agency's director.
#
# Parses, calls, prints.


@click.command(
    cls=Command,
    examples=("connector report --open", "connector report --out board.html"),
    if_interrupted="No report was written.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=f"The file to write (default: {REPORT_FILE} beside the published file).",
)
@click.option("--open", "opens", is_flag=True, help="Show it in the browser.")
def report(session: Session, *, out: Path | None, opens: bool) -> int:
    """Write a page for an agency's director: funnel, time, fees, contracts, the copy's health.

    It is made from the published file alone, as of one moment, and spends no request. The page
    holds all that it shows: it can be read without a network, printed, and sent to a colleague.
    Only its owner may read the file.
    """
    settings = session.load()
    published = Warehouse(settings.folder).published
    path = (out or settings.folder / REPORT_FILE).absolute()
    account = settings.account.value
    page = write_report(published, path, written_at=datetime.now(UTC), account=account)
    terminal = session.terminal
    if terminal.is_json:
        as_of = None if page.as_of is None else page.as_of.isoformat()
        terminal.print_object({"file": str(path), "as_of": as_of, "key_figures": as_json(page)})
    terminal.print_line(str(path))
    if opens and not webbrowser.open(path.as_uri()):
        terminal.warn("no browser could be started: open the file yourself")
    return 0

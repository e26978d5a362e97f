"""`connector push`: what a spreadsheet would do, and with `--apply`, doing it.

Parses, calls, prints. What becomes of a row, and why, is decided in `connector/preview` and
`connector/batch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from connector.asking import DECIMALS, POLICIES, PUSH_OPTIONS, PushOptions
from connector.cli import options
from connector.cli.pull import Follower
from connector.cli.push_told import print_report, say_mapping
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter
from connector.errors import EncodingUnknown, Misused
from connector.push import Manner, PushReport, Watches
from connector.push import push as run_push
from connector.spreadsheet.mapping import saved_from
from connector.spreadsheet.mapping_file import save_map
from connector.words import counted


class _Follower:
    """Moves a meter as a batch goes on: one step for each row that has ended."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._ended = meter, 0

    def began(self, batch: str, rows: int) -> None:
        """The rows are about to be sent."""
        self._ended = 0
        self._meter.tell(f"push {batch}")
        self._meter.expect(rows)

    def moved(self, ended: int, rows: int, requests: int) -> None:
        """Show how many rows have ended."""
        self._meter.tell(f"push, {requests} requests")
        self._meter.advance(ended - self._ended)
        self._ended = ended

    def waiting(self, until: datetime, rows: int) -> None:
        """Say why nothing moves."""
        self._meter.tell(f"{counted(rows, 'row')} in doubt, looking again at {until:%H:%M:%S} UTC")


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=(
        "connector push candidates people.xlsx --mode create",
        "connector push candidates people.xlsx --mode create --apply",
        "connector push candidates people.csv --mode upsert --match email --apply",
        "connector push companies firms.csv jobs jobs.csv --mode create --apply",
        "connector push leads won.csv --mode convert --apply",
    ),
    if_interrupted="Every row is in the journal; run the same command again to go on.",
)
@click.argument("files", nargs=-1, required=True, metavar="RESOURCE FILE...")
@options.mode()
@options.match
@click.option("--apply", "applies", is_flag=True, help="Send it. Without: say what would be sent.")
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=PUSH_OPTIONS["map_file"],
)
@click.option(
    "--save-map",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write down what each column is taken for, to be changed, shared and given with --map.",
)
@click.option(
    "--ignore",
    type=options.Names(),
    default="",
    metavar="COLUMN,...",
    help=PUSH_OPTIONS["ignore"],
)
@options.content_type
@click.option("--sheet", metavar="NAME", help=PUSH_OPTIONS["sheet"])
@click.option("--encoding", metavar="NAME", help=PUSH_OPTIONS["encoding"])
@click.option("--delimiter", metavar="NAME", help=PUSH_OPTIONS["delimiter"])
@click.option("--date-format", metavar="FORM", help=PUSH_OPTIONS["date_format"])
@click.option("--decimal", type=click.Choice(tuple(DECIMALS)), help=PUSH_OPTIONS["decimal"])
@click.option("--clear", metavar="TOKEN", help=PUSH_OPTIONS["clear"])
@click.option(
    "--overwrite",
    is_flag=True,
    help=PUSH_OPTIONS["overwrite"],
)
@click.option("--again", is_flag=True, help=PUSH_OPTIONS["again"])
@click.option(
    "--in-doubt",
    type=click.Choice(POLICIES),
    default="hold",
    show_default=True,
    help=PUSH_OPTIONS["in_doubt"],
)
@click.option(
    "--marker-field",
    metavar="FIELD",
    help=PUSH_OPTIONS["marker_field"],
)
@click.option("--no-pull", is_flag=True, help="Compare with what is landed, however old.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the report goes (default: beside the file).",
)
@options.budget
@options.ask_anyway
def push(session: Session, *, files: tuple[str, ...], save_map: Path | None, **given: Any) -> int:
    """Check a spreadsheet, say what it would do, and do it with --apply.

    Every row is checked before the first request, and everything that is wrong with it is told
    at once. The report beside the file has the file's own columns, and what became of each row:
    correct it, and push the report. What was applied is not sent again. Several files are pushed
    together, those first that others refer to. A conversion of a lead cannot be undone.
    """
    settings = session.load()
    terminal = session.terminal
    said = PushOptions(**{name: given[name] for name in PUSH_OPTIONS})
    asked = [said.asked(resource, path) for resource, path in _pairs(files)]
    manner = Manner(
        applies=given["applies"],
        pulls=not given["no_pull"],
        report=given["report"],
        terms=said.terms(),
        asks_anyway=given["asks_anyway"],
    )
    with terminal.progress("push") as meter:
        try:
            reports = asyncio.run(
                run_push(
                    settings,
                    asked,
                    manner,
                    budget=given["budget"],
                    watches=Watches(_Follower(meter), Follower(meter), terminal.say),
                )
            )
        except EncodingUnknown as error:
            # The person whose file it is can tell whether the letters are right.
            for sample in error.samples:
                terminal.warn(f"read as {error.offered}: {sample}")
            raise
    if save_map is not None:
        _save(save_map, reports)
    for each in reports:
        for notice in each.pulled.notices if each.pulled is not None else ():
            terminal.warn(f"{notice}; find out why ('connector doctor')")
        say_mapping(terminal, each)
        print_report(terminal, each)
    if terminal.is_json:
        shown = [each.as_json() for each in reports]
        terminal.print_object(shown[0] if len(shown) == 1 else {"files": shown})
    return max(each.exit_status for each in reports)


def _pairs(files: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The files with their resources."""
    if len(files) % 2:
        raise Misused(
            f"resources and files come in pairs, and {len(files)} words were given:"
            f" {' '.join(files)}",
            action="Say, for example: connector push candidates people.csv --mode create",
        )
    return [(resource, Path(name)) for resource, name in zip(files[::2], files[1::2], strict=True)]


def _save(path: Path, reports: Sequence[PushReport]) -> None:
    if len(reports) > 1:
        raise Misused("one map was asked for of several files", action="Push them one by one.")
    save_map(path, saved_from(reports[0].preview.columns))

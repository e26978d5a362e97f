"""`connector report`: the page for an agency's director.

Parses, calls, prints.
"""

from __future__ import annotations

import webbrowser
from datetime import UTC, datetime
from pathlib import Path

import click

from connector.cli.session import Command, Session
from connector.report import REPORT_FILE, as_json, write_report
from connector.warehouse import Warehouse


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

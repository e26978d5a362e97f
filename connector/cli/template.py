"""`connector template`: an empty table to fill in.

Parses, calls, prints.
"""

from __future__ import annotations

from pathlib import Path

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.engine.task import Mode
from connector.template import template as write_template


@click.command(
    cls=Command,
    examples=(
        "connector template candidates",
        "connector template jobs --out jobs.csv",
        "connector template content_items --type news",
    ),
)
@click.argument("resource")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write, csv or xlsx by its name (default: RESOURCE.xlsx).",
)
@options.mode(default="create")
@options.match
@options.content_type
def template(
    session: Session,
    *,
    resource: str,
    out: Path | None,
    mode: Mode,
    match: tuple[str, ...],
    content_type: str | None,
) -> int:
    """Write an empty table with every column that pushing RESOURCE takes.

    Each column has its rule, its allowed values as a list to choose from, and an example. In a
    workbook all columns are text, so that leading zeros and a plus stay what was typed.
    """
    path = out or Path(f"{resource}.xlsx")
    columns = write_template(
        session.load(), resource, path, mode=mode, match=match, parent=content_type
    )
    terminal = session.terminal
    if terminal.is_json:
        terminal.print_object({"file": str(path), "columns": columns})
    terminal.say(
        f"{path} has {columns} columns. Fill it in, then: "
        f"connector push {resource} {path} --mode {mode}"
    )
    return 0

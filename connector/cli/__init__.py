"""The command `connector`: its commands, and the module of each command.

A command's module is imported when the command is called, so that `--help` and small commands start
fast. `session.py` has the parts that all commands share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

import click

from connector.cli.stopping import describe_interrupt, interrupt_on_signals

# Otherwise numpy reserves memory for each core, which fails where memory is limited.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run the whole pipeline on a sample agency.",
        "sandbox": "Serve a local copy of the API with sample data.",
        "doctor": "Check settings, data folder, API key, limits and notifications.",
    },
    "Sync": {
        "pull": "Update the local copy from the API and publish it.",
        "verify": "Compare every record with the API without changing anything.",
    },
    "Spreadsheets": {
        "template": "Write an empty spreadsheet with all columns of a resource.",
        "push": "Check a spreadsheet and send its rows to the API.",
        "page": "Serve the import page for checking, sending and undoing imports.",
        "resolve": "Show unconfirmed rows, and resolve them.",
        "undo": "Undo a push, except for records that changed since.",
    },
    "Analytics": {
        "models": "List and test the models, and write seed files.",
        "publish": "Build the models, check them, and publish recruitment.duckdb.",
        "report": "Write a report for an agency's director from the published file.",
    },
    "Privacy": {"person": "Find a person in the account's folder, and purge deleted people."},
    "Operations": {
        "status": "Show the state and the problems of the copy, and notify you of them.",
        "backup": "Back up an account's folder to one file.",
        "restore": "Restore an account's folder from a backup.",
    },
}
"""Every command with its one line of help, by group."""

COMMANDS: Mapping[str, str] = {
    name: about for group in GROUPS.values() for name, about in group.items()
}

_MODULES: Mapping[str, str] = {
    "verify": "pull",
    "template": "push",
    "resolve": "undo",
    **dict.fromkeys(("publish", "report"), "models"),
    **dict.fromkeys(("doctor", "backup", "restore"), "operations"),
}
"""Modules of commands that share one. Other commands have a module of their name."""


class _LazyGroup(click.Group):
    """Click group that imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{_MODULES.get(cmd_name, cmd_name)}")
        found = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Call the command. After Ctrl-C, print one line and raise `SystemExit`."""
        try:
            with interrupt_on_signals():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            message, status = describe_interrupt()
            click.echo(message, err=True)
            raise SystemExit(status) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        widest = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(f"{name:{widest}}", about) for name, about in commands.items()]
                )


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print the version and exit."""
    if not value or ctx.resilient_parsing:
        return
    from connector.version import full_version  # noqa: PLC0415

    click.echo(f"connector, version {full_version()}")
    ctx.exit()


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Run 'connector COMMAND --help' for the options and examples of a command."
    " Exit status: 0"
    " success, 1 failure, 2 wrong usage or settings, 3 partial success, 4 stopped at a limit (run"
    " the command again to continue).",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the version and, from a checkout, the commit.",
)  # fmt: skip
def main() -> None:
    """Sync a recruitment platform's API and a DuckDB warehouse in both directions.

    Start with 'connector demo', which needs no account. For your own account, set
    CONNECTOR_BASE_URL and CONNECTOR_API_KEY. Then run 'connector doctor' and 'connector pull'.
    """

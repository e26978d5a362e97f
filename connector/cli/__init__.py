"""The command `connector`: its commands, and the module of each.

A command's module is imported when the command is called and no earlier, so that `--help` and the
small commands start at once. What a command does is in its module; how it begins and ends is in
`session.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType

import click

from connector.cli.stopping import interruption, stoppable
from connector.system.extras import extra_missing

COMMANDS: Mapping[str, str] = {
    "demo": "Pull a made-up agency through Dagster, and query what landed.",
    "sandbox": "Serve a complete twin of the API, with a made-up agency in it.",
    "doctor": "Check settings, data folder, address, key, scopes, clock and limits.",
    "pull": "Bring the landed copy up to date with the API, and publish it.",
    "plan": "Say what a pull would cost, and a schedule of pulls by the month's end.",
    "sweep": "Pull, and compare every page of the lists for what is deleted or missing.",
    "verify": "Compare everything with the API, and change nothing.",
    "template": "Write an empty table with every column that pushing a resource takes.",
    "push": "Check a spreadsheet, say what it would do, and do it with --apply.",
    "page": "Serve the import page: prepare, send and take back a file in a browser.",
    "resolve": "Show the rows of pushes that are in doubt, and settle them.",
    "undo": "Take back what a push did, where nobody has touched it since.",
    "models": "List, build and test the models, fill in the seeds, and write models of your own.",
    "publish": "Build the models over what has landed, check them, and publish the file.",
    "lakehouse": "Publish to the shared lakehouse, and show its status.",
    "report": "Write a page for an agency's director, made from the published file alone.",
    "whereis": "List the records, rows and texts with data of a person.",
    "erase": "Erase a person's data, and keep a receipt.",
    "retention": "Erase those whose time is over by the rules.",
    "backup": "Write an account's folder to one file, while everything goes on.",
    "restore": "Put an account's folder back from a backup.",
    "status": "Show what is landed, how far it is proven, and the last runs.",
    "health": "End with 0 if the files are in order and were proven lately.",
    "alerts": "Show the alerts that are due or stand, send them, or send a test.",
    "metrics": "Print an account's metrics for Prometheus.",
}
"""Every command with its one line of help, in the order in which a newcomer needs them."""

_HOMES: Mapping[str, str] = {
    "plan": "pull",
    "sweep": "pull",
    "verify": "pull",
    "template": "push",
    "resolve": "push",
    "undo": "push",
    "publish": "models",
    "report": "models",
    "doctor": "operations",
    "backup": "operations",
    "restore": "operations",
    "erase": "privacy",
    "whereis": "privacy",
    "retention": "privacy",
    "health": "status",
    "metrics": "alerts",
}
"""The modules of the commands that share one; any other has one of its own name."""

_EXTRAS: Mapping[str, str] = {"page": "page"}
"""Commands that an extra of the project makes possible, with its name."""

_UNUSED = ("numpy", "pandas", "pyarrow.dataset", "httpx._main")
"""What others import though no command uses it, and what takes longer than most commands.

DuckDB looks with the first parameter of a statement whether it is a frame, Arrow when it is loaded
whether there are arrays, and httpx loads a command of its own. All do without.
"""


class WithoutUnused(MetaPathFinder):
    """Refuses to import what no command uses."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Refuse what is unused, and leave everything else to the others."""
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"no command uses {fullname}", name=fullname)


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module(f"{__name__}.{_HOMES.get(cmd_name, cmd_name)}")
        except ModuleNotFoundError as error:
            if cmd_name not in _EXTRAS:
                raise
            missing = extra_missing("the command needs", _EXTRAS[cmd_name], error)
            raise click.ClickException(f"{missing}. {missing.action}") from None
        found = getattr(module, cmd_name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Call the command; Ctrl-C while it is still being imported is no mistake either."""
        without = WithoutUnused()
        sys.meta_path.insert(0, without)
        try:
            with stoppable():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            said, status = interruption()
            click.echo(said, err=True)
            raise SystemExit(status) from None
        finally:
            sys.meta_path.remove(without)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print the version, and end."""
    if not value or ctx.resilient_parsing:
        return
    from connector.system.version import full_version  # noqa: PLC0415

    click.echo(f"connector, version {full_version()}")
    ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="'connector COMMAND --help' has each command's options and examples. Exit status: 0"
    " done, 1 failed, 2 wrong usage or settings, 3 done in part, 4 stopped at a limit (run again to"
    " continue).",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and, from a checkout, the commit.",
)
def main() -> None:
    """Keep a recruitment platform's API and a DuckDB warehouse in step.

    Begin with 'connector demo', which needs no account. For an account of your own, set
    CONNECTOR_BASE_URL and CONNECTOR_API_KEY, then run 'connector doctor' and 'connector pull'.
    """

"""`connector service-files`: write the files that run the connector every night."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from connector.atomic_files import write_atomically
from connector.cli.session import Command, Session
from connector.errors import ConnectorError
from connector.operations.service_files import FILE_MODE, InstallPlaces
from connector.operations.service_files import service_files as filled_in

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    cls=Command,
    is_for_account=False,
    examples=(
        "connector service-files service",
        "connector service-files service --user etl --state-dir /srv/connector",
    ),
)
@click.argument("folder", type=_FOLDER, metavar="DIR")
@click.option(
    "--user",
    default="connector",
    show_default=True,
    metavar="NAME",
    help="User and group that run the services.",
)
@click.option(
    "--state-dir",
    "state",
    type=_FOLDER,
    default="/var/lib/connector",
    show_default=True,
    metavar="DIR",
    help="Home of the user, with the data folder and Dagster's state.",
)
@click.option(
    "--config-dir",
    "config",
    type=_FOLDER,
    default="/etc/connector",
    show_default=True,
    metavar="DIR",
    help="Folder of connector.toml and workspace.yaml.",
)
@click.option(
    "--backup-dir",
    "backups",
    type=_FOLDER,
    default="/var/backups/connector",
    show_default=True,
    metavar="DIR",
    help="Folder of the backups.",
)
def service_files(
    session: Session, *, folder: Path, user: str, state: Path, config: Path, backups: Path
) -> int:
    """Write service files for systemd, cron and Dagster to DIR.

    The services run the programs of the virtual environment that this command is called from.
    Existing files are replaced. Nothing is installed or started: see docs/INSTALL.md.
    """
    files = filled_in(InstallPlaces(_program_folder(), user, state, config, backups))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with write_atomically(folder / name, FILE_MODE) as file:
                file.write(text.encode())
            written.append(folder / name)
    except OSError as error:
        raise ConnectorError(
            f"{folder} cannot be written: {error.strerror}", action="Choose another DIR."
        ) from None
    session.terminal.print_object({"folder": str(folder), "written": list(files)})
    for path in written:
        session.terminal.say(f"Wrote {path}.")
    return 0


def _program_folder() -> Path:
    """Return the folder of `connector` as the user called it, which may be a symbolic link."""
    called = Path(sys.argv[0]).absolute()
    return called.parent if called.name == "connector" else Path(sys.prefix) / "bin"

"""`connector page`: serve the import page, for people who do not use a terminal."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import click
import uvicorn

from connector.cli.session import Command, Session
from connector.errors import ConnectorError, Misused
from connector.page.access import AccessRules, read_passwords, set_password
from connector.page.import_page import ImportPage, PageOptions

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine can reach."""

_PASSWORD_CHARACTERS_MIN = 12


@click.command(
    cls=Command,
    examples=(
        "connector page",
        "connector page --account acme --port 8090",
        "connector page --passwords people.txt --add-person 'Ann Lee'",
        "connector page --host 10.0.0.5 --address https://imports.example --passwords people.txt",
    ),
    if_interrupted="No import is lost. Start the page again to continue.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--address", metavar="URL", help="Public address of the page, if it differs from host and port."
)
@click.option(
    "--passwords",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File with the users and their argon2 password hashes.",
)
@click.option(
    "--add-person",
    metavar="NAME",
    help="Add a user to the file of --passwords. The command asks for the password.",
)
@click.option("--proxy", metavar="IP", help="IP address of the reverse proxy that signs users in.")
@click.option(
    "--proxy-header", metavar="NAME", help="Header in which the proxy sends the user's name."
)
def page(
    session: Session,
    *,
    host: str,
    port: int,
    address: str | None,
    passwords: Path | None,
    add_person: str | None,
    proxy: str | None,
    proxy_header: str | None,
) -> int:
    """Serve the import page for preparing, sending and undoing imports.

    On the default address, it prints a link that signs one user in, once. To listen on another
    address, give a file of passwords, or the reverse proxy that signs users in and its header. Put
    the page behind a proxy with HTTPS. 'connector push' can continue an import that was prepared on
    the page, and the page can show imports of 'connector push'.
    """
    if add_person is not None:
        return _add_page_user(session, passwords, add_person)
    settings = session.load()
    settings.connection()
    _check_access(host, address, passwords, proxy, proxy_header)
    with _open_listener(host, port) as listener:
        taken = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        rules = AccessRules(
            (address or f"http://{shown}:{taken}").rstrip("/"), passwords, proxy, proxy_header
        )
        served = ImportPage(settings, PageOptions(rules, f"import_page_{taken}", _user_name()))
        served.start()
        config = uvicorn.Config(
            served.app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        is_open = passwords is None and proxy_header is None
        link = rules.address + (served.access.create_link() if is_open else "/")
        session.terminal.print_object({"address": rules.address, "link": link})
        session.terminal.say(f"Open {link}")
        if is_open:
            session.terminal.say(
                "The link can be used once, by one user. Press Ctrl-C to stop the page."
            )
        uvicorn.Server(config).run([listener])
    return 0


def _check_access(
    host: str, address: str | None, passwords: Path | None, proxy: str | None, header: str | None
) -> None:
    """Raise `Misused` if a public address has no login, or options do not belong together."""
    if (proxy is None) != (header is None):
        raise Misused(
            "--proxy and --proxy-header must be given together", action="Give both, or neither."
        )
    if passwords is not None:
        read_passwords(passwords)
    if host in LOOPBACK:
        return
    if passwords is None and header is None:
        raise Misused(
            f"other machines can reach --host {host}, and no sign-in is configured",
            action="Add --passwords FILE, or --proxy IP and --proxy-header NAME.",
        )
    if address is None or not address.startswith(("https://", "http://")):
        raise Misused(
            (
                f"other machines can reach --host {host}, and the public address of the page "
                "is not configured"
            ),
            action="Add --address, for example --address https://imports.example.",
        )


def _open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address. Raises `ConnectorError` if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    # Lets the page start again on the same port immediately.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Connections wait until the page is ready instead of being refused.
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConnectorError(
            f"{host}:{port} cannot be opened: {error.strerror or error}",
            action="Choose another port with --port. Port 0 picks a free one.",
        ) from error
    return listener


def _user_name() -> str:
    """Return the login name of the user who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _add_page_user(session: Session, passwords: Path | None, name: str) -> int:
    """Ask for a password, and add the user to the password file. Raises `Misused`."""
    if passwords is None:
        raise Misused("no password file is given", action="Add --passwords FILE.")
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if len(password) < _PASSWORD_CHARACTERS_MIN:
        raise Misused(
            f"the password has {len(password)} characters",
            action=f"Choose a password of at least {_PASSWORD_CHARACTERS_MIN} characters.",
        )
    set_password(passwords, name, password)
    session.terminal.say(f"{name} can now sign in. Start the page with --passwords.")
    return 0

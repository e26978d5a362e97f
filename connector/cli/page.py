"""`connector page`: serve the import page, for people who do not use a terminal."""

from __future__ import annotations

import getpass
import os
import socket

import click
import uvicorn

from connector.cli.session import Command, Session
from connector.errors import ConnectorError, Misused
from connector.page.access import Access, Proxy
from connector.page.app import App
from connector.page.imports import Imports

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine can reach."""


@click.command(
    cls=Command,
    examples=(
        "connector page",
        "connector page --account acme --port 8090",
        "connector page --proxy-user X-Remote-User --proxy-from 127.0.0.1"
        " --address https://imports.example",
    ),
    if_interrupted="No import is lost. Start the page again to continue.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(min=0),
    default=8080,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--address", metavar="URL", help="Public address of the page, if it differs from host and port."
)
@click.option(
    "--proxy-user", metavar="HEADER", help="Header in which the reverse proxy names the user."
)
@click.option(
    "--proxy-from", metavar="ADDRESS", help="IP address of the reverse proxy that signs users in."
)
def page(
    session: Session, *, host: str, port: int, address: str | None, proxy_user: str | None,
    proxy_from: str | None,
) -> None:  # fmt: skip
    """Serve the import page for checking, sending and undoing imports.

    On this machine, the command prints a link that signs one browser in, once. For a team, put the
    page behind a reverse proxy that signs users in. Name the header in which the proxy sends the
    user, and the address from which it connects.
    """
    settings = session.load()
    settings.connection()
    _check_access(host, address, proxy_user, proxy_from)
    with _open_listener(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        public = (address or f"http://{shown}:{listener.getsockname()[1]}").rstrip("/")
        imports = Imports(settings)
        proxy = Proxy(proxy_user, proxy_from) if proxy_user and proxy_from else None
        access = Access(public, _user_name(), imports.folder, proxy)
        config = uvicorn.Config(
            App(imports, access), log_config=None, access_log=False, server_header=False,
            lifespan="off", ws="none", proxy_headers=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        link = f"{public}/" if proxy_user else access.create_link()
        session.terminal.print_object({"address": public, "link": link})
        session.terminal.say(f"Open {link}")
        if not proxy_user:
            text = "The link can be used once, by one user. Press Ctrl-C to stop the page."
            session.terminal.say(text)
        uvicorn.Server(config).run([listener])


def _check_access(
    host: str, address: str | None, proxy_user: str | None, proxy_from: str | None
) -> None:
    """Raise `Misused` if a public address has no sign-in, or options do not belong together."""
    if (proxy_user is None) != (proxy_from is None):
        raise Misused(
            "--proxy-user and --proxy-from must be given together", action="Give both, or neither."
        )
    if address is not None and not address.startswith(("https://", "http://")):
        raise Misused(
            f"--address is {address!r}", action="Give an address such as https://imports.example."
        )
    if host in LOOPBACK:
        return
    if proxy_user is None:
        raise Misused(
            f"other machines can reach --host {host}, and no sign-in is configured",
            action="Add --proxy-user HEADER and --proxy-from ADDRESS.",
        )
    if address is None:
        raise Misused(
            f"other machines can reach --host {host}, and the public address of the page is not"
            " configured",
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

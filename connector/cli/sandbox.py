"""`connector sandbox`: serve a local copy of the API until it is stopped.

Parses the options, starts the server, prints its address and waits. The package `connector.sandbox`
answers the requests.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import click

from connector.catalog import CATALOG
from connector.cli import options
from connector.errors import ConnectorError, SettingsError, UnknownName
from connector.sandbox.app import ALL_SCOPES
from connector.sandbox.behaviour import SWITCHES, Behaviours
from connector.sandbox.seed import COUNTS_DEFAULT
from connector.sandbox.server import KEY_DEFAULT, Sandbox

_SCOPES = (
    *sorted({f"{each.scope}.{verb}" for each in CATALOG.values() for verb in ("read", "write")}),
    ALL_SCOPES,
)


def parse_keys(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parse keys and their scopes from `TOKEN`, `TOKEN=` or `TOKEN=scope,scope`.

    Raises `SettingsError` without a token, and `UnknownName` for a scope that does not exist.
    """
    keys = {}
    for text in texts:
        token, equals, listed = text.partition("=")
        if not token:
            # The text may contain a key, so the message does not repeat it.
            raise SettingsError("--api-key takes TOKEN or TOKEN=scope,scope")
        scopes = options.comma_separated(listed) if equals else (ALL_SCOPES,)
        for scope in scopes:
            if scope not in _SCOPES:
                raise UnknownName("scope", scope, _SCOPES)
        keys[token] = scopes
    return keys


def _add_count_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option `--RESOURCE N` for each resource: the number of its sample records."""
    for name in reversed(tuple(CATALOG)):
        about = f"Number of {name.replace('_', ' ')}; {COUNTS_DEFAULT[name]} if not given."
        command = click.option(
            f"--{name.replace('_', '-')}", type=click.IntRange(min=0), metavar="N", help=about
        )(command)
    return command


def _behaviour_help() -> str:
    """Return the help text that lists each behaviour with its values."""
    listed = "\n\n".join(
        f"  {each.name} = {' | '.join(each.values)}\n  {each.about}" for each in SWITCHES.values()
    )
    return f"\b\n{listed}".replace("\n\n", "\n\n\b\n")


def _serve_until_signal(sandbox: Sandbox) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = Event()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with sandbox:
        click.echo(f"ready {sandbox.base_url}")
        sys.stdout.flush()
        stop.wait()


@click.command(
    short_help="Serve a local copy of the API with sample data.",
    epilog=f"Behaviours (NAME = VALUES, the default first):\n\n{_behaviour_help()}",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--seed", default=7, show_default=True, help="Random seed of the sample records.")
@_add_count_options
@click.option(
    "--rate-limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Requests per minute. [default: no limit in practice]",
)
@click.option(
    "--monthly-limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Requests per calendar month. [default: no limit]",
)
@click.option(
    "--api-key",
    multiple=True,
    metavar="TOKEN[=SCOPE,SCOPE]",
    help="API key to accept, with its scopes (all scopes by default). Repeatable. [default:"
    f" {KEY_DEFAULT}]",
)
@click.option(
    "--data",
    type=options.FILE,
    metavar="FILE",
    help="File in which the records are stored. A file with records is used as it is.",
)
@click.option(
    "--behaviour",
    multiple=True,
    metavar="NAME=VALUE",
    help="Behaviour that the API documentation leaves open; see below. Repeatable.",
)
def sandbox(
    *, host: str, port: int, seed: int, rate_limit: int | None, monthly_limit: int | None,
    api_key: tuple[str, ...], data: Path | None,
    behaviour: tuple[str, ...], **counts: int | None,
) -> None:  # fmt: skip
    """Serve a local copy of the API with sample data.

    Prints `ready http://HOST:PORT` when it accepts requests, and runs until Ctrl-C. Needs no
    network and no account. Everything that is written to it stays on this machine.

    \b
    Example:
      connector sandbox --port 0 --candidates 5000 --rate-limit 60 --behaviour delete=message
    """  # noqa: D301  # click wants the character itself, not its name
    try:
        keys = parse_keys(api_key)
        served = Sandbox(
            counts=_record_counts(counts), seed=seed, keys=keys, rate_limit=rate_limit,
            monthly_limit=monthly_limit, behaviours=Behaviours.parse_options(behaviour), data=data,
            host=host, port=port,
        )  # fmt: skip
        if not keys:
            click.echo(f"The API key is {KEY_DEFAULT} (set another one with --api-key)", err=True)
        if data is not None and not served.store.is_new:
            click.echo(f"{data} already has records and is used as it is", err=True)
        _serve_until_signal(served)
    except ConnectorError as error:
        click.echo(f"Error: {error}\n{error.action}", err=True)
        raise SystemExit(error.exit_status) from None


def _record_counts(given: Mapping[str, int | None]) -> dict[str, int]:
    """Return the given numbers of records, with defaults for the other resources."""
    counts = {name: COUNTS_DEFAULT[name] if n is None else n for name, n in given.items()}
    # Content items need a content type.
    if counts["content_types"] == 0 and given["content_items"] is None:
        counts["content_items"] = 0
    return counts

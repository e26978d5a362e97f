"""Notifications: one message when the set of an account's problems changes, through Apprise.

The problems of the last delivered message are in a file of the account's folder. If sending fails,
the file stays as it is, and the next call sends.
"""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.errors import ConnectorError, SettingsError, count_noun
from connector.extras import extra_missing
from connector.log import mask_secrets
from connector.operations.problems import Problem, describe_problem
from connector.settings import Settings

NOTIFIED_FILE = "notified.json"
"""Keys of the problems in the last delivered message."""


def notify(settings: Settings, problems: Sequence[Problem]) -> bool:
    """Send a message if the problems are others than in the last one. Return True if it was sent.

    Sends nothing for an account that never had a problem.

    Raises:
        SettingsError: No address is configured, or an address is invalid.
        ConnectorError: No message was sent to at least one address. The next call sends again.
    """
    urls, keys = _read_urls(settings), sorted(each.key for each in problems)
    if keys == _read_notified(settings.folder):
        return False
    _send(settings, urls, *_format_message(settings, problems))
    _write_notified(settings.folder, keys)
    return True


def send_test(settings: Settings) -> None:
    """Send a test message. Raises `SettingsError` or `ConnectorError`."""
    title, body = f"{settings.account or 'connector'}: test", "Notifications arrive here."
    _send(settings, _read_urls(settings), title, body)


def _read_urls(settings: Settings) -> list[str]:
    if settings.notify_urls is None:
        raise SettingsError(
            "no address for notifications is configured",
            action="Set CONNECTOR_NOTIFY_URLS_FILE to a file with Apprise URLs, one per line,"
            " readable only by its owner.",
        )
    return settings.notify_urls.get_secret_value().split()


def _send(settings: Settings, urls: Sequence[str], title: str, body: str) -> None:
    """Send a message to every address, with the certificates and the proxy of the account."""
    try:
        import apprise  # noqa: PLC0415  # only a command that sends needs it
    except ImportError as error:
        raise extra_missing("notifications need", "notify", error) from None
    hub = apprise.Apprise()
    with _surroundings(settings) as log:
        for number, url in enumerate(urls, 1):
            if not hub.add(url):
                raise SettingsError(
                    f"address {number} of notify_urls is not an Apprise URL",
                    action="Write it as Apprise documents it, for example slack://TOKEN or"
                    " mailtos://USER:PASSWORD@HOST.",
                )
        is_sent = hub.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT)
        reasons = "; ".join(dict.fromkeys(each.strip(". ") for each in log.getvalue().splitlines()))
    if not is_sent:
        message = f"the message was not delivered{f': {reasons}' if reasons else ''}"
        secrets = (word for each in settings.secrets() for word in each.split())
        raise ConnectorError(mask_secrets(message, secrets), code="not_delivered")


@contextmanager
def _surroundings(settings: Settings) -> Iterator[io.StringIO]:
    """Let Apprise use the account's proxy, and its certificate authority beside the usual ones.

    Apprise reads both from the environment. Yields the texts of its warnings: they and those of
    Python do not reach the terminal.
    """
    environ, bundle = dict(os.environ), None
    text, logger = io.StringIO(), logging.getLogger("apprise")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate, logger.level = (
        [logging.StreamHandler(text)],
        False,
        logging.WARNING,
    )
    try:
        if settings.proxy is not None:
            os.environ["HTTPS_PROXY"] = settings.proxy
        if settings.ca_file is not None:
            import certifi  # noqa: PLC0415  # installed with Apprise

            bundle = tempfile.NamedTemporaryFile(suffix=".pem")  # noqa: SIM115
            bundle.write(Path(certifi.where()).read_bytes() + b"\n" + settings.ca_file.read_bytes())
            bundle.flush()
            os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = bundle.name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield text
    finally:
        logger.handlers, logger.propagate, logger.level = before
        os.environ.clear()
        os.environ.update(environ)
        if bundle is not None:
            bundle.close()


def _format_message(settings: Settings, problems: Sequence[Problem]) -> tuple[str, str]:
    """Return the title and the text of a message on the account's problems."""
    name = settings.account or "connector"
    host = f"Host: {socket.gethostname()}, folder: {settings.folder}"
    if not problems:
        return f"{name}: OK", f"All problems are resolved.\n\n{host}"
    more = f" and {count_noun(len(problems) - 1, 'other problem')}" if len(problems) > 1 else ""
    parts = ["\n".join(describe_problem(each)) for each in problems]
    text = settings.replace_variables_by_origins("\n\n".join([*parts, host]))
    return f"{name}: {problems[0].title}{more}", text


# -- What was sent ---------------------------------------------------------------------------------


def _read_notified(folder: Path) -> list[str]:
    for path in (_spare_file(folder), folder / NOTIFIED_FILE):
        with suppress(OSError, ValueError, TypeError):
            if path.stat().st_uid == os.getuid():
                return [*map(str, json.loads(path.read_text(encoding="utf-8")))]
    return []


def _write_notified(folder: Path, keys: list[str]) -> None:
    """Remember the problems in the account's folder, or elsewhere if its disk is full."""
    spare = _spare_file(folder)
    for path in (folder / NOTIFIED_FILE, spare):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(json.dumps(keys).encode())
            if path != spare:
                spare.unlink(missing_ok=True)
            return


def _spare_file(folder: Path) -> Path:
    name = "".join(each if each.isalnum() else "-" for each in str(folder.absolute()))
    return Path(tempfile.gettempdir()) / f"connector{name}-{NOTIFIED_FILE}"

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
from connector.operations.problems import Problem, describe_problem
from connector.settings import Settings

NOTIFIED_FILE = "notified.json"
"""Keys of the problems in the last delivered message."""

_NO_ADDRESS = SettingsError(
    "no address for notifications is configured",
    action="Set CONNECTOR_NOTIFY_URLS_FILE to a file with Apprise URLs, one per line, readable only"
    " by its owner.",
)


def notify(settings: Settings, problems: Sequence[Problem]) -> bool:
    """Send a message if the problems are others than in the last one. Return True if it was sent.

    Sends nothing for an account that never had a problem.

    Raises:
        SettingsError: No address is configured, or an address is invalid.
        ConnectorError: No message was sent to at least one address. The next call sends again.
    """
    if settings.notify_urls is None:
        raise _NO_ADDRESS
    keys = sorted(each.key for each in problems)
    before = _read_notified(settings.folder)
    if keys == before:
        return False
    send(settings, *_format_message(settings, problems))
    _write_notified(settings.folder, keys)
    return True


def send_test(settings: Settings) -> None:
    """Send a test message. Raises `SettingsError` or `ConnectorError`."""
    send(
        settings,
        f"{settings.account or 'connector'}: test",
        "Notifications of this account arrive here.",
    )


def send(settings: Settings, title: str, body: str) -> None:
    """Send a message to every address, with the certificates and the proxy of the account.

    Raises:
        SettingsError: No address is configured, or an address is invalid.
        ConnectorError: At least one address did not take the message.
    """
    if settings.notify_urls is None:
        raise _NO_ADDRESS
    try:
        import apprise  # noqa: PLC0415  # only a command that sends needs it
    except ImportError as error:
        raise extra_missing("notifications need", "notify", error) from None
    hub, urls = apprise.Apprise(), settings.notify_urls.get_secret_value().split()
    with _network_settings(settings), _capture_warnings() as log:
        for number, url in enumerate(urls, 1):
            if not hub.add(url):
                raise SettingsError(
                    f"address {number} of notify_urls is not an Apprise URL",
                    action="Write it as Apprise documents it, for example slack://TOKEN or"
                    " mailtos://USER:PASSWORD@HOST.",
                )
        is_sent = bool(hub.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT))
        reasons = _mask(log.getvalue(), [*settings.secrets()])
    if not is_sent:
        raise ConnectorError(
            f"the message was not delivered{f': {reasons}' if reasons else ''}",
            code="not_delivered",
        )


@contextmanager
def _capture_warnings() -> Iterator[io.StringIO]:
    """Yield the texts of Apprise's warnings. They and those of Python do not reach the terminal."""
    text = io.StringIO()
    handler, logger = logging.StreamHandler(text), logging.getLogger("apprise")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate, logger.level = [handler], False, logging.WARNING
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield text
    finally:
        logger.handlers, logger.propagate, logger.level = before


def _mask(text: str, secrets: Sequence[str]) -> str:
    """Return Apprise's log in one line, without secrets."""
    found = "; ".join(dict.fromkeys(each.strip().rstrip(".") for each in text.splitlines()))
    for secret in secrets:
        for word in secret.split():
            found = found.replace(word, "***")
    return found


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
    """Return the keys of the problems in the last delivered message."""
    for path in (_spare_file(folder), folder / NOTIFIED_FILE):
        try:
            if path.stat().st_uid == os.getuid():
                return [str(each) for each in json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError):
            continue
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
    """Return the file that remembers the problems of a folder that cannot be written to."""
    name = "".join(each if each.isalnum() else "-" for each in str(folder.absolute()))
    return Path(tempfile.gettempdir()) / f"connector{name}-{NOTIFIED_FILE}"


# -- Network ---------------------------------------------------------------------------------------


@contextmanager
def _network_settings(settings: Settings) -> Iterator[None]:
    """Let Apprise use the account's proxy and additional certificate authority.

    Apprise reads both from the environment. The authorities of `ca_file` are added to the usual
    ones.
    """
    before, bundle = dict(os.environ), None
    try:
        if settings.proxy is not None:
            os.environ["HTTPS_PROXY"] = settings.proxy
        if settings.ca_file is not None:
            import certifi  # noqa: PLC0415  # installed with Apprise

            usual = Path(certifi.where()).read_bytes()
            with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as bundle:
                bundle.write(usual + b"\n" + settings.ca_file.read_bytes())
            os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = bundle.name
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        if bundle is not None:
            Path(bundle.name).unlink(missing_ok=True)

"""Delivery of alerts to a webhook and by email.

No error or log line contains the address of a sink, or anything that it answers.
"""

from __future__ import annotations

import html
import json
import logging
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from connector.errors import NotDelivered
from connector.log import neutralise
from connector.operations.alerts import ALERTS, BY_CODE, ERROR_RUNBOOK, RUNBOOK, Message
from connector.settings.model import Settings
from connector.settings.values import PORTS, Security, Style

SEND_SECONDS = 10.0
"""How long a webhook may take for one message, and a mail server for one answer."""

ANSWERS_WAITED_FOR = 3
"""How many times what one answer may take all of a mail server's may take together."""

_SILENT_HOOK = "the webhook has not answered"
_SILENT_MAIL = "the mail server has not taken it"


class Sink(Protocol):
    """Something that takes messages; `name` says which of those that can be set it is."""

    @property
    def name(self) -> str:
        """Name of the sink: `webhook` or `email`."""

    def send(self, message: Message) -> None:
        """Send the message; once this returns it has arrived. Raises `NotDelivered`."""


def sinks_of(settings: Settings) -> tuple[Webhook | Email, ...]:
    """Return the sinks that are set."""
    origin, found = Origin.of(settings), list[Webhook | Email]()
    if (address := settings.alert_webhook.value) is not None:
        found.append(Webhook(address, settings.alert_webhook_style.value, origin))
    host, sender = settings.alert_email_host.value, settings.alert_email_from.value
    if host is not None and sender is not None:
        security = settings.alert_email_security.value
        email = Email(
            host=host,
            port=settings.alert_email_port.value or PORTS[security],
            security=security,
            sender=sender,
            recipients=settings.alert_email_to.value,
            origin=origin,
            user=settings.alert_email_user.value,
            password=settings.alert_email_password.value,
        )
        found.append(email)
    return tuple(found)


def _within(seconds: float, act: Callable[[], None], too_late: str) -> None:
    """Act for so long at most; raises what that raised, or `NotDelivered` if too long.

    A peer that sends a byte now and then never keeps a single read waiting for too long.
    """
    failed = list[Exception]()

    def acting() -> None:
        try:
            act()
        except Exception as error:  # raised again by whoever waits
            failed.append(error)

    clerk = threading.Thread(target=acting, daemon=True)
    clerk.start()
    clerk.join(seconds)
    if clerk.is_alive():
        raise NotDelivered(f"{too_late} in {seconds:g} s")
    if failed:
        raise failed[0]


# -- Messages --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of an account's messages: its name, its folder, its time zone and this host."""

    account: str | None
    folder: Path
    zone: tzinfo = UTC
    host: str = field(default_factory=socket.gethostname)

    @classmethod
    def of(cls, settings: Settings) -> Origin:
        """Origin of the messages about a configured account."""
        zone = ZoneInfo(settings.time_zone.value)
        return cls(settings.account.value, settings.folder, zone)


def headline(message: Message, origin: Origin) -> str:
    """Return one line: the account, the resources and the title."""
    about = f"{', '.join(message.about)}: " if message.about else ""
    end = "Resolved: " if message.change == "ended" else ""
    return neutralise(f"{origin.account or 'connector'}: {end}{about}{message.title}")


def text(message: Message, origin: Origin) -> str:
    """Return the headline, what happened, since when, the action, the runbook and the code."""
    lines = [headline(message, origin), neutralise(message.happened)]
    if message.change != "test":
        lines.append(f"Started: {message.since.astimezone(origin.zone):%Y-%m-%d %H:%M %Z}.")
    if message.action:
        lines += [f"What to do: {neutralise(message.action)}", f"Runbook: {_runbook(message)}"]
    lines.append(f"Host: {origin.host}, folder {origin.folder}")
    causes = f" ({', '.join(message.causes)})" if message.causes else ""
    lines.append(neutralise(f"Code: {message.code}{causes}"))
    return "\n".join(filter(None, lines))


def _runbook(message: Message) -> str:
    is_by_code = message.code in ALERTS and ALERTS[message.code].action == BY_CODE
    return ERROR_RUNBOOK if is_by_code else RUNBOOK


def generic(message: Message, origin: Origin) -> Mapping[str, Any]:
    """Return the message as an object. A message that arrives twice has the same `id`."""
    return {
        "id": message.id,
        "change": message.change,
        "kind": ALERTS[message.code].kind if message.code in ALERTS else None,
        "code": message.code,
        "account": origin.account,
        "about": ", ".join(message.about) or None,
        "at": message.at.isoformat(),
        "since": message.since.isoformat(),
        "title": headline(message, origin),
        "happened": message.happened,
        "action": message.action,
        "runbook": _runbook(message),
        "host": origin.host,
        "folder": str(origin.folder),
        "text": text(message, origin),
    }


def slack(message: Message, origin: Origin) -> Mapping[str, Any]:
    """Return the message for Slack and compatible services, with markup escaped."""
    return {"text": html.escape(text(message, origin), quote=False)}


# -- Webhook ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Webhook:
    """Webhook that is sent messages of an account, each within so many seconds."""

    address: SecretStr
    style: Style
    origin: Origin
    seconds: float = SEND_SECONDS
    name = "webhook"

    def send(self, message: Message) -> None:
        """Post the message; any answer from 200 to 299 says that it has arrived.

        Redirects are not followed. Raises `NotDelivered`.
        """
        shape = generic if self.style == "generic" else slack
        body = json.dumps(shape(message, self.origin)).encode("ascii")
        _within(self.seconds, lambda: self._post(body), _SILENT_HOOK)

    def reach(self) -> None:
        """Connect, and send nothing. Raises `NotDelivered`."""
        _within(self.seconds, self._connect, _SILENT_HOOK)

    def _post(self, body: bytes) -> None:
        # Whoever only looks at alerts need not load what sends them: a tenth of a second.
        import httpx  # noqa: PLC0415

        headers = {"Content-Type": "application/json", "User-Agent": "recruitment-connector"}
        address = self.address.get_secret_value()
        # The answer's body is nothing to us, and could be of any length.
        with (
            self._naming_errors(),
            _quiet(logging.getLogger("httpx")),
            httpx.Client(trust_env=False, timeout=self.seconds) as client,
            client.stream("POST", address, content=body, headers=headers) as response,
        ):
            status = response.status_code
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook answered {status}")

    def _connect(self) -> None:
        parts = urlsplit(self.address.get_secret_value())
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        address = (host, parts.port or (443 if is_tls else 80))
        with self._naming_errors(), socket.create_connection(address, self.seconds) as plain:
            if is_tls:
                ssl.create_default_context().wrap_socket(plain, server_hostname=host).close()

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:
        import httpx  # noqa: PLC0415

        try:
            yield
        except (TimeoutError, httpx.TimeoutException):
            raise NotDelivered(f"{_SILENT_HOOK} in {self.seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise NotDelivered(f"the webhook was not reached ({type(error).__name__})") from None


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep out of httpx's log where it posts: the path of the address may be a secret."""

    def refuse(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(refuse)
    try:
        yield
    finally:
        logger.removeFilter(refuse)


# -- Email -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Email:
    """Emails about an account, over a connection that is protected off this machine.

    `seconds` is how long any one answer of the server may take; `trust` makes
    what certificates are checked against.
    """

    host: str
    port: int
    security: Security
    sender: str
    recipients: tuple[str, ...]
    origin: Origin
    user: str | None = None
    password: SecretStr | None = None
    seconds: float = SEND_SECONDS
    trust: Callable[[], ssl.SSLContext] = ssl.create_default_context
    name = "email"

    def send(self, message: Message) -> None:
        """Hand the message in for all recipients; it has arrived if any of them is taken.

        Raises `NotDelivered`.
        """
        _within(ANSWERS_WAITED_FOR * self.seconds, lambda: self._hand_in(message), _SILENT_MAIL)

    def reach(self) -> None:
        """Connect and be greeted, and send nothing. Raises `NotDelivered`."""
        _within(ANSWERS_WAITED_FOR * self.seconds, self._greet, "the mail server has not greeted")

    def _greet(self) -> None:
        with self._naming_errors(), self._connected():
            pass

    def _hand_in(self, message: Message) -> None:
        with self._naming_errors(), self._connected() as server:
            if self.user is not None and self.password is not None:
                server.login(self.user, self.password.get_secret_value())
            server.send_message(self._letter(message), self.sender, self.recipients)

    def _connected(self) -> smtplib.SMTP:
        if self.security == "ssl":
            return smtplib.SMTP_SSL(
                self.host, self.port, timeout=self.seconds, context=self.trust()
            )
        server = smtplib.SMTP(self.host, self.port, timeout=self.seconds)
        if self.security == "starttls":
            try:
                server.starttls(context=self.trust())
            except BaseException:
                server.close()
                raise
        return server

    def _letter(self, message: Message) -> EmailMessage:
        letter = EmailMessage()
        letter["Subject"] = headline(message, self.origin)
        letter["From"] = self.sender
        letter["To"] = ", ".join(self.recipients)
        letter["Date"] = format_datetime(message.at)
        # The same for a second sending of the same message, so that programs show it once.
        letter["Message-ID"] = f"<{message.id}@{self.sender.rpartition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(text(message, self.origin))
        return letter

    @contextmanager
    def _naming_errors(self) -> Iterator[None]:

        try:
            yield
        except smtplib.SMTPRecipientsRefused:
            raise NotDelivered("the mail server has refused every recipient") from None
        except smtplib.SMTPAuthenticationError as error:
            reason = f"has refused the name and the password ({error.smtp_code})"
            raise NotDelivered(f"the mail server {reason}") from None
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(f"the mail server answered {error.smtp_code}") from None
        except smtplib.SMTPNotSupportedError:
            # Of the extensions that are used, STARTTLS and AUTH are the ones a server may lack.
            raise NotDelivered(
                "the mail server does not offer STARTTLS or passwords on port"
                f" {self.port}: set alert_email_security to 'ssl' (port 465), or to 'none' for a"
                " server on this machine"
            ) from None
        except TimeoutError:
            raise NotDelivered(f"the mail server has not answered in {self.seconds:g} s") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            name = type(error).__name__
            raise NotDelivered(f"the mail server was not reached ({name})") from None

"""Delivery of alerts to a webhook and by email.

No error or log line contains the address of a sink or any part of its response.
"""

from __future__ import annotations

import html
import json
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from connector.errors import NotDelivered
from connector.log import escape_control_characters
from connector.operations.alerts import Message
from connector.operations.findings import ALERTS, BY_CODE
from connector.settings.model import Settings
from connector.settings.values import PORTS

SEND_SECONDS = 10.0
"""Maximum time for one message to a webhook, and for one response of a mail server."""

ANSWERS_MAX = 3
"""Maximum time for all responses of a mail server, as a multiple of the time for one."""


class Sink(Protocol):
    """Channel that delivers messages: a webhook or email."""

    @property
    def name(self) -> str:
        """Name of the sink: `webhook` or `email`."""

    def send(self, message: Message) -> None:
        """Send the message. Raises `NotDelivered`."""


def configured_sinks(settings: Settings) -> tuple[Webhook | Email, ...]:
    """Return the configured sinks."""
    has_webhook = settings.alert_webhook.value is not None
    has_email = settings.alert_email_host.value and settings.alert_email_from.value
    return (
        *([Webhook(settings)] if has_webhook else []),
        *([Email(settings)] if has_email else []),
    )


def _run_with_timeout(seconds: float, act: Callable[[], None], too_late: str) -> None:
    """Call `act`. If it takes longer, raise `NotDelivered` with the text `too_late`.

    A peer that sends a byte from time to time would never exceed the timeout of a single read.
    """
    failed = list[Exception]()

    def run() -> None:
        try:
            act()
        except Exception as error:  # raised again by the waiting thread
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise NotDelivered(f"{too_late} in {seconds:g} s")
    if failed:
        raise failed[0]


# -- Messages --------------------------------------------------------------------------------------


def headline(message: Message, settings: Settings) -> str:
    """Return the account, the resources and the title in one line."""
    about = f"{', '.join(message.about)}: " if message.about else ""
    end = "Resolved: " if message.change == "ended" else ""
    return escape_control_characters(
        f"{settings.account.value or 'connector'}: {end}{about}{message.title}"
    )


def as_text(message: Message, settings: Settings) -> str:
    """Return the message as lines of text, with its action, runbook, host and code."""
    lines = [headline(message, settings), message.happened]
    if message.change != "test":
        since = message.since.astimezone(ZoneInfo(settings.time_zone.value))
        lines[1] = f"{message.happened} Started: {since:%Y-%m-%d %H:%M %Z}.".lstrip()
    if message.action:
        lines += [f"What to do: {message.action}", f"Runbook: {ALERTS[message.code].runbook}"]
    lines.append(f"Host: {socket.gethostname()}, folder {settings.folder}")
    is_by_code = message.code in ALERTS and ALERTS[message.code].action == BY_CODE
    causes = f" ({', '.join(message.causes)})" if is_by_code and message.causes else ""
    lines.append(f"Code: {message.code}{causes}")
    return "\n".join(escape_control_characters(each) for each in lines if each)


def to_json_object(message: Message, settings: Settings) -> dict[str, Any]:
    """Return the message as the JSON object of a webhook. A repeated message has the same `id`."""
    kind = ALERTS.get(message.code)
    return {
        "id": message.id,
        "change": message.change,
        "kind": kind and kind.kind,
        "code": message.code,
        "account": settings.account.value,
        "about": ", ".join(message.about) or None,
        "at": message.at.isoformat(),
        "since": message.since.isoformat(),
        "title": headline(message, settings),
        "happened": message.happened,
        "action": message.action,
        "runbook": kind and kind.runbook,
        "host": socket.gethostname(),
        "folder": str(settings.folder),
        "text": as_text(message, settings),
    }


# -- Webhook ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Webhook:
    """Channel that posts messages to the account's webhook."""

    settings: Settings
    seconds: float = SEND_SECONDS
    name = "webhook"

    def send(self, message: Message) -> None:
        """Post the message. A status from 200 to 299 is a success. Raises `NotDelivered`."""
        shown: dict[str, Any] = to_json_object(message, self.settings)
        if self.settings.alert_webhook_style.value == "slack":
            shown = {"text": html.escape(shown["text"], quote=False)}
        body = json.dumps(shown).encode("ascii")
        _run_with_timeout(self.seconds, lambda: self._post(body), "the webhook did not answer")

    def check_connection(self) -> None:
        """Connect without sending anything. Raises `NotDelivered`."""
        _run_with_timeout(self.seconds, self._open_and_close, "the webhook did not answer")

    @property
    def _webhook_address(self) -> str:
        """Secret address of the webhook; empty if none is configured."""
        address = self.settings.alert_webhook.value
        return "" if address is None else address.get_secret_value()

    def _post(self, body: bytes) -> None:
        """Post the body without following redirects. Raises `NotDelivered`."""
        # Commands that only show alerts need not load httpx.
        import httpx  # noqa: PLC0415

        headers = {"Content-Type": "application/json", "User-Agent": "recruitment-connector"}
        # A transport, unlike a client, follows no redirects and logs no address. The body of the
        # response is not read, because it could have any length.
        timeout = {"timeout": httpx.Timeout(self.seconds).as_dict()}
        try:
            with httpx.HTTPTransport(trust_env=False) as transport:
                request = httpx.Request(
                    "POST", self._webhook_address, headers=headers, content=body, extensions=timeout
                )
                response = transport.handle_request(request)
                response.close()
        except httpx.TimeoutException:
            raise NotDelivered(f"the webhook did not answer in {self.seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise NotDelivered(f"the webhook was not reached ({type(error).__name__})") from None
        if not response.is_success:
            raise NotDelivered(f"the webhook answered {response.status_code}")

    def _open_and_close(self) -> None:
        """Open and close a TCP or TLS connection. Raises `NotDelivered`."""
        try:
            parts = urlsplit(self._webhook_address)
            host, is_tls = parts.hostname or "", parts.scheme == "https"
            address = (host, parts.port or (443 if is_tls else 80))
            with socket.create_connection(address, self.seconds) as connection:
                if is_tls:
                    ssl.create_default_context().wrap_socket(
                        connection, server_hostname=host
                    ).close()
        except (OSError, ValueError) as error:
            raise NotDelivered(f"the webhook was not reached ({type(error).__name__})") from None


# -- Email -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Email:
    """Channel that sends messages to the account's email addresses.

    `trust` creates the context that verifies the server's certificate.
    """

    settings: Settings
    seconds: float = SEND_SECONDS
    trust: Callable[[], ssl.SSLContext] = ssl.create_default_context
    name = "email"

    def send(self, message: Message) -> None:
        """Send the message to all recipients. It is delivered if the server accepts one of them.

        Raises `NotDelivered`.
        """

        def hand_in() -> None:
            sender, to = self.settings.alert_email_from.value, self.settings.alert_email_to.value
            user, password = (
                self.settings.alert_email_user.value,
                self.settings.alert_email_password.value,
            )
            with self._open_server() as server:
                if user is not None and password is not None:
                    server.login(user, password.get_secret_value())
                server.send_message(self._build_email(message), sender, to)

        _run_with_timeout(
            ANSWERS_MAX * self.seconds, hand_in, "the mail server did not accept the message"
        )

    def check_connection(self) -> None:
        """Connect without logging in or sending anything. Raises `NotDelivered`."""

        def greet() -> None:
            with self._open_server():
                pass

        _run_with_timeout(ANSWERS_MAX * self.seconds, greet, "the mail server did not answer")

    @property
    def _port(self) -> int:
        """Configured port, or the default port of the configured security."""
        port = self.settings.alert_email_port.value
        return port or PORTS[self.settings.alert_email_security.value]

    def _build_email(self, message: Message) -> EmailMessage:
        """Return the message with its headers, as plain text."""
        letter, sender = EmailMessage(), self.settings.alert_email_from.value or ""
        letter["Subject"] = headline(message, self.settings)
        letter["From"] = sender
        letter["To"] = ", ".join(self.settings.alert_email_to.value)
        letter["Date"] = format_datetime(message.at)
        # The same for a repeated message, so that mail programs show it once.
        letter["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(as_text(message, self.settings))
        return letter

    @contextmanager
    def _open_server(self) -> Iterator[smtplib.SMTP]:
        """Connect with the configured security. Errors are raised as `NotDelivered`."""
        host, security = (
            self.settings.alert_email_host.value or "",
            self.settings.alert_email_security,
        )
        try:
            if security.value == "ssl":
                server: smtplib.SMTP = smtplib.SMTP_SSL(
                    host, self._port, timeout=self.seconds, context=self.trust()
                )
            else:
                server = smtplib.SMTP(host, self._port, timeout=self.seconds)
            with server:
                if security.value == "starttls":
                    server.starttls(context=self.trust())
                yield server
        except smtplib.SMTPRecipientsRefused:
            reason = "the mail server rejected every recipient"
        except smtplib.SMTPAuthenticationError as error:
            reason = f"the mail server rejected the user name or the password ({error.smtp_code})"
        except smtplib.SMTPResponseException as error:
            reason = f"the mail server answered {error.smtp_code}"
        except smtplib.SMTPNotSupportedError:
            # Of the extensions used, a server may lack STARTTLS and AUTH.
            reason = (
                f"the mail server does not offer STARTTLS or passwords on port {self._port}: set"
                " alert_email_security to 'ssl' (port 465), or to 'none' for a server on this"
                " machine"
            )
        except TimeoutError:
            reason = f"the mail server did not answer in {self.seconds:g} s"
        except (smtplib.SMTPException, OSError, ValueError) as error:
            reason = f"the mail server was not reached ({type(error).__name__})"
        else:
            return
        raise NotDelivered(reason)

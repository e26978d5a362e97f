"""Where alerts go: what is set, as things that messages can be sent to."""

from __future__ import annotations

import asyncio
import json
import logging
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Protocol

import httpx
from pydantic import SecretStr

from connector.engine.quota import shown
from connector.errors import NotDelivered
from connector.ledger.alert_states import MessageRecord
from connector.operations.alerts import DECLARED
from connector.settings.model import Settings
from connector.settings.values import PORTS, Security, Style

SEND_SECONDS = 10.0
"""How long a sink may take for one message."""


class Sink(Protocol):
    """Something that takes messages; `name` says which of those that can be set it is."""

    @property
    def name(self) -> str:
        """Which of the sinks that can be set it is."""

    def send(self, message: MessageRecord) -> None:
        """Send the message; once this returns it has arrived. Raises `NotDelivered`."""


def sinks_of(settings: Settings) -> tuple[Sink, ...]:
    """The sinks that are set; none where alerts are told to nobody."""
    account = settings.account.value
    found: list[Sink] = []
    address = settings.alert_webhook.value
    if address is not None:
        # Commands that only look should not wait for what sends.

        style = settings.alert_webhook_style.value
        found.append(Webhook(address, style, account, seconds=SEND_SECONDS))
    host, sender = settings.alert_email_host.value, settings.alert_email_from.value
    if host is not None and sender is not None:
        server = MailServer(
            host,
            settings.alert_email_port.value,
            settings.alert_email_security.value,
            settings.alert_email_user.value,
            settings.alert_email_password.value,
        )
        to = settings.alert_email_to.value
        found.append(Email(server, sender, to, account, seconds=SEND_SECONDS))
    return tuple(found)


# -- Telling ---------------------------------------------------------------------------------------
# A message in the forms in which it leaves: an object, a text for Slack and its like, an email.


_UNNAMED = "the unnamed account"


def headline(message: MessageRecord, account: str | None) -> str:
    """One line: the kind or that it is over, the account, the code, and what it is about."""
    declared = DECLARED.get(message.code)
    kind = declared.kind if declared is not None else message.code
    what = {"opened": kind, "ended": f"over: {kind}", "test": "test"}[message.change]
    about = f" ({message.about})" if message.about else ""
    return f"[{what}] {account or _UNNAMED}: {message.code}{about}"


def text(message: MessageRecord, account: str | None) -> str:
    """The headline, what happened, since when, and what to do next."""
    lines = [headline(message, account), message.happened]
    lines += [f"Since {shown(message.since)}."] if message.change != "test" else []
    if message.change == "ended":
        lines[-1] = f"It had been so since {shown(message.since)}."
    return "\n".join((*lines, f"Next: {message.action}"))


def generic(message: MessageRecord, account: str | None) -> Mapping[str, Any]:
    """The message as an object of its own. A second arrival is known by its `id`."""
    declared = DECLARED.get(message.code)
    return {
        "id": message.id,
        "change": message.change,
        "kind": declared.kind if declared is not None else None,
        "code": message.code,
        "account": account,
        "about": message.about or None,
        "at": message.at.isoformat(),
        "since": message.since.isoformat(),
        "happened": message.happened,
        "action": message.action,
        "text": text(message, account),
    }


def slack(message: MessageRecord, account: str | None) -> Mapping[str, Any]:
    """The message as Slack and its like take it. What their markup would obey is escaped."""
    said = text(message, account)
    for character, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        said = said.replace(character, name)
    return {"text": said}


# -- Mail ------------------------------------------------------------------------------------------
# Alerts by email: one each, over a connection that is protected where it leaves this machine.


ANSWERS_WAITED_FOR = 3
"""How many times what one answer may take all of them may take together."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where emails are handed in, and as whom; `port` None is the usual one of `security`."""

    host: str
    port: int | None
    security: Security
    user: str | None = None
    password: SecretStr | None = None


class Email:
    """Emails to people, about an account. `seconds` is how long any one answer of the server may
    take, and `ANSWERS_WAITED_FOR` times that all of them; `trust` makes what certificates are
    checked against.
    """

    name = "email"

    def __init__(
        self,
        server: MailServer,
        sender: str,
        recipients: Sequence[str],
        account: str | None,
        *,
        seconds: float,
        trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._server, self._sender, self._recipients = server, sender, tuple(recipients)
        self._account, self._seconds, self._trust = account, seconds, trust

    def send(self, message: MessageRecord) -> None:
        """Hand the message in for all recipients; where the server takes it for any of them, it has
        arrived. Raises `NotDelivered`, which holds no address and nothing that the server said.
        """
        failed = list[Exception]()

        def hand_in() -> None:
            try:
                self._hand_in(message)
            except Exception as error:  # raised again by whoever waits
                failed.append(error)

        # A server that sends a byte now and then never keeps a single answer waiting for too long.
        clerk = threading.Thread(target=hand_in, daemon=True)
        clerk.start()
        clerk.join(ANSWERS_WAITED_FOR * self._seconds)
        if clerk.is_alive():
            seconds = ANSWERS_WAITED_FOR * self._seconds
            raise NotDelivered(f"the mail server has not taken it in {seconds:g} s")
        if failed:
            raise failed[0]

    def _hand_in(self, message: MessageRecord) -> None:
        try:
            with self._connected() as server:
                if self._server.user is not None and self._server.password is not None:
                    server.login(self._server.user, self._server.password.get_secret_value())
                server.send_message(self._letter(message), self._sender, self._recipients)
        except smtplib.SMTPRecipientsRefused:
            raise NotDelivered("the mail server has refused every recipient") from None
        except smtplib.SMTPAuthenticationError as error:
            reason = f"has refused the name and the password ({error.smtp_code})"
            raise NotDelivered(f"the mail server {reason}") from None
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(f"the mail server answered {error.smtp_code}") from None
        except TimeoutError:
            raise NotDelivered(f"the mail server has not answered in {self._seconds:g} s") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            name = type(error).__name__
            raise NotDelivered(f"the mail server was not reached ({name})") from None

    def _connected(self) -> smtplib.SMTP:
        told = self._server
        port = told.port or PORTS[told.security]
        if told.security == "ssl":
            return smtplib.SMTP_SSL(told.host, port, timeout=self._seconds, context=self._trust())
        server = smtplib.SMTP(told.host, port, timeout=self._seconds)
        if told.security == "starttls":
            try:
                server.starttls(context=self._trust())
            except BaseException:
                server.close()
                raise
        return server

    def _letter(self, message: MessageRecord) -> EmailMessage:
        letter = EmailMessage()
        letter["Subject"] = headline(message, self._account)
        letter["From"] = self._sender
        letter["To"] = ", ".join(self._recipients)
        letter["Date"] = format_datetime(message.at)
        # The same for a second sending of the same message, so that programs show it once.
        letter["Message-ID"] = f"<{message.id}@{self._sender.rpartition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(text(message, self._account))
        return letter


# -- Webhook ---------------------------------------------------------------------------------------
# Alerts to a webhook: one POST each, at one address, which is shown nowhere.


_SHAPES = {"generic": generic, "slack": slack}


class _WithoutAddress(logging.Filter):
    """Keeps out of httpx's log what it sends where while a webhook is posted to: the path of the
    address may be a secret.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Refuse the record."""
        return False


class Webhook:
    """A webhook that is sent messages of an account. `seconds` is how long one may take."""

    name = "webhook"

    def __init__(
        self, address: SecretStr, style: Style, account: str | None, *, seconds: float
    ) -> None:
        self._address, self._account, self._seconds = address, account, seconds
        self._shape = _SHAPES[style]

    def send(self, message: MessageRecord) -> None:
        """Post the message. Any answer from 200 to 299 says that it has arrived; redirects are not
        followed. Raises `NotDelivered`, which holds nothing of the address or of the answer.
        """
        self._post(self._shape(message, self._account))

    def _post(self, body: Mapping[str, Any]) -> None:
        quiet, logger = _WithoutAddress(), logging.getLogger("httpx")
        logger.addFilter(quiet)
        try:
            status = asyncio.run(self._answer(json.dumps(body).encode("ascii")))
        except (TimeoutError, httpx.TimeoutException):
            said = f"the webhook has not answered in {self._seconds:g} s"
            raise NotDelivered(said) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise NotDelivered(f"the webhook was not reached ({type(error).__name__})") from None
        finally:
            logger.removeFilter(quiet)
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook answered {status}")

    async def _answer(self, body: bytes) -> int:
        """The answer's status. Its body is nothing to us, and could be of any length."""
        address = self._address.get_secret_value()
        headers = {"Content-Type": "application/json", "User-Agent": "recruitment-connector"}
        async with (
            asyncio.timeout(self._seconds),
            httpx.AsyncClient(trust_env=False, timeout=self._seconds) as client,
            client.stream("POST", address, content=body, headers=headers) as response,
        ):
            return response.status_code

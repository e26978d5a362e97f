"""Alerts by email: one each, over a connection that is protected where it leaves this machine."""

from __future__ import annotations

import smtplib
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime

from pydantic import SecretStr

from connector.alert_settings import PORTS, Security
from connector.alerts.telling import headline, text
from connector.errors import NotDelivered
from connector.ledger.alerts import MessageRecord

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

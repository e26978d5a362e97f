"""Where alerts go: what is set, as things that messages can be sent to."""

from __future__ import annotations

from typing import Protocol

from connector.ledger.alerts import MessageRecord
from connector.settings import Settings

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
        from connector.alerts.webhook import Webhook  # noqa: PLC0415

        style = settings.alert_webhook_style.value
        found.append(Webhook(address, style, account, seconds=SEND_SECONDS))
    host, sender = settings.alert_email_host.value, settings.alert_email_from.value
    if host is not None and sender is not None:
        from connector.alerts.mail import Email, MailServer  # noqa: PLC0415  # as above

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

"""Email alerts: sent over a verified connection, and errors repeat no text of the server."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connector.errors import NotDelivered
from connector.operations.alert_check import check_alerts, make_test_message
from connector.operations.delivery import Email
from connector.settings.values import Security
from tests.alerts.agency import START, load_account_settings
from tests.alerts.receivers import MailServer
from tests.support.clock import Clock
from tests.support.tls import PEM, make_server_context

PASSWORD = "planted password 4d1f"
TO = ("ops@acme.example", "night@acme.example")


def trust_test_certificate() -> ssl.SSLContext:
    """Return a client's TLS context that trusts the server's certificate."""
    return ssl.create_default_context(cafile=str(PEM))


def make_email_sink(
    port: int, security: Security, password: str | None = None, **overrides: Any
) -> Email:
    """Return the email sink of an account with this server; `overrides` replaces its fields."""
    given: dict[str, Any] = (
        {"alert_email_user": "connector", "alert_email_password": PASSWORD} if password else {}
    )
    settings = load_account_settings(
        *(Path("/srv"), "acme"),
        alert_email_to=", ".join(TO),
        alert_email_from="connector@acme.example",
        alert_email_host="127.0.0.1",
        alert_email_port=str(port),
        alert_email_security=security,
        **given,
    )
    return replace(Email(settings, 5.0, trust_test_certificate), **overrides)


@pytest.mark.parametrize("security", ["starttls", "ssl"])
def test_an_email_is_sent_over_a_verified_tls_connection(security: Security) -> None:
    with MailServer(
        tls=make_server_context(), is_wrapped=security == "ssl", password=PASSWORD
    ) as server:
        make_email_sink(server.port, security, server.password).send(make_test_message(START))

    (email,) = server.emails
    assert [True] == server.protected
    assert [list(TO)] == server.recipients
    assert "acme: test of the alerts" == email["Subject"]
    assert "Alerts of this account arrive here." in str(email.get_payload())
    assert email["Message-ID"].startswith("<20261120T220000000000Z-test-")
    assert "auto-generated" == email["Auto-Submitted"]
    if security == "starttls":
        assert server.commands.index("STARTTLS") < server.commands.index("AUTH")


@pytest.mark.parametrize("security", ["starttls", "ssl"])
def test_a_mail_server_with_an_untrusted_certificate_receives_nothing(security: Security) -> None:
    with MailServer(
        tls=make_server_context(), is_wrapped=security == "ssl", password=PASSWORD
    ) as server:
        distrusting = make_email_sink(
            server.port, security, server.password, trust=ssl.create_default_context
        )
        with pytest.raises(NotDelivered, match="was not reached"):
            distrusting.send(make_test_message(START))
        with pytest.raises(NotDelivered, match="was not reached"):
            distrusting.check_connection()

    assert [] == server.emails
    assert not {"AUTH", "MAIL"} & set(server.commands)


def test_a_mail_server_that_never_ends_its_response_is_given_up() -> None:
    given_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send_slowly() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                while not given_up.wait(0.02):
                    connection.sendall(b"2")

        dripping = threading.Thread(target=send_slowly)
        dripping.start()
        sink = make_email_sink(listener.getsockname()[1], "none", seconds=0.1)
        try:
            with pytest.raises(NotDelivered, match=r"did not accept the message in 0\.3 s"):
                sink.send(make_test_message(START))
        finally:
            given_up.set()
            dripping.join()


def test_a_mail_server_without_starttls_receives_no_password_and_no_email() -> None:
    with MailServer(password=PASSWORD) as server, pytest.raises(NotDelivered) as caught:
        make_email_sink(server.port, "starttls", server.password).send(make_test_message(START))

    assert "does not offer STARTTLS or passwords on port" in str(caught.value)
    assert ["EHLO"] == server.commands[:1]
    assert not {"AUTH", "MAIL"} & set(server.commands)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rejected_recipients": TO}, "the mail server rejected every recipient"),
        ({"data_response": "554 Annabel Quist is spam"}, "the mail server answered 554"),
    ],
)
def test_rejections_are_reported_without_the_mail_servers_text(
    options: dict[str, object], message: str
) -> None:
    rejecting = MailServer(**options)  # type: ignore[arg-type] # of a test
    with rejecting as server, pytest.raises(NotDelivered) as caught:
        make_email_sink(server.port, "none", server.password).send(make_test_message(START))

    assert message == str(caught.value)


def test_a_wrong_password_is_reported_and_not_shown() -> None:
    with (
        MailServer(tls=make_server_context(), password="another") as server,
        pytest.raises(NotDelivered) as caught,
    ):
        make_email_sink(server.port, "starttls", server.password).send(make_test_message(START))

    assert "the mail server rejected the user name or the password (535)" == str(caught.value)


def test_a_rejected_recipient_does_not_keep_the_email_from_others() -> None:
    with MailServer(rejected_recipients=TO[:1]) as server:
        make_email_sink(server.port, "none", server.password).send(make_test_message(START))

    assert [[TO[1]]] == server.recipients


def test_a_check_sends_its_alert_to_the_configured_mail_server(tmp_path: Path) -> None:
    with MailServer() as server:
        settings = load_account_settings(
            tmp_path,
            alert_email_to=", ".join(TO),
            alert_email_from="connector@acme.example",
            alert_email_host="127.0.0.1",
            alert_email_port=str(server.port),
            alert_email_security="none",
        )
        done = check_alerts(settings, now=Clock(START))

    (email,) = server.emails
    assert (1, ()) == (done.delivered, done.failures)
    assert "connector: no pull has verified the local copy yet" == email["Subject"]
    assert [] == [f for f in settings.folder.iterdir() if b"acme.example" in f.read_bytes()]

"""Alert settings: accepted and refused values, and no secret is shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.settings.model import load_settings

ADDRESS = "https://hooks.example/planted-token-19?x=planted-query"
MAIL = {
    "CONNECTOR_ALERT_EMAIL_TO": "ops@acme.example, night@acme.example",
    "CONNECTOR_ALERT_EMAIL_FROM": "connector@acme.example",
    "CONNECTOR_ALERT_EMAIL_HOST": "smtp.acme.example",
}


def test_an_account_inherits_the_alert_settings_of_the_top_level(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text(f"{ADDRESS}\n", encoding="utf-8")
    (tmp_path / "hook").chmod(0o600)
    (tmp_path / "connector.toml").write_text(
        "alert_webhook_file = 'hook'\nalert_max_age = '2d'\nalert_kinds = ['silent', 'failed']\n"
        "alert_email_to = ['ops@acme.example']\nalert_email_from = 'c@acme.example'\n"
        "alert_email_host = 'smtp.acme.example'\n"
        "[accounts.acme]\nalert_max_age = '90min'\n",
        encoding="utf-8",
    )
    settings = load_settings({"account": "acme"}, {}, tmp_path)

    assert settings.alert_webhook.value is not None
    assert ADDRESS == settings.alert_webhook.value.get_secret_value()
    assert timedelta(minutes=90) == settings.alert_max_age.value.length
    assert ("failed", "silent") == settings.alert_kinds.value
    assert ("ops@acme.example",) == settings.alert_email_to.value
    shown = str(list(settings.display_rows()))
    assert "planted" not in f"{shown}{settings.alert_webhook!r}"
    assert "ops@" not in shown
    assert "('alert_email_to', 'set', 'connector.toml')" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://hooks.example/x", "http would show alerts to others"),
        ("ftp://hooks.example/x", "must be an address"),
        ("https://ann:secret@hooks.example/x", "without a user name or a password"),
        ("https://hooks.example/a b", "without spaces"),
        ("planted-token-19", "must be an address"),
        ("https://hooks.example/x#planted", "must be an address"),
    ],
)
def test_an_invalid_webhook_address_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings({}, {"CONNECTOR_ALERT_WEBHOOK": text}, tmp_path)

    assert text not in f"{caught.value} {caught.value.action}"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"CONNECTOR_ALERT_EMAIL_TO": "not-an-address"}, r"alert_email_to \(from .* must be 1 to"),
        ({"CONNECTOR_ALERT_EMAIL_FROM": "a@b, c@d"}, "must be one address"),
        ({"CONNECTOR_ALERT_EMAIL_HOST": "smtp.acme.example:25"}, "without a port"),
        ({"CONNECTOR_ALERT_EMAIL_HOST": "smtp.acme.example"}, "are missing"),
        ({**MAIL, "CONNECTOR_ALERT_EMAIL_SECURITY": "none"}, "a server on this machine"),
        ({**MAIL, "CONNECTOR_ALERT_EMAIL_USER": "ann"}, "set together"),
        ({**MAIL, "CONNECTOR_ALERT_EMAIL_PASSWORD": "p"}, "set together"),
        ({"CONNECTOR_ALERT_KINDS": "failed, loud"}, "some of: failed, degraded, silent"),
        ({"CONNECTOR_ALERT_MAX_AGE": "soon"}, "such as 26h"),
        ({"CONNECTOR_ALERT_WEBHOOK_STYLE": "teams"}, "one of: generic, slack"),
    ],
)
def test_invalid_alert_settings_are_refused(
    tmp_path: Path, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings({}, environ, tmp_path)

    assert "night@" not in str(caught.value)
    assert "not-an-address" not in str(caught.value)


def test_an_email_password_can_contain_spaces_and_is_not_shown(tmp_path: Path) -> None:
    named = {**MAIL, "CONNECTOR_ALERT_EMAIL_USER": "ann"}
    settings = load_settings({}, {**named, "CONNECTOR_ALERT_EMAIL_PASSWORD": "abcd efgh"}, tmp_path)

    assert settings.alert_email_password.value is not None
    assert "abcd efgh" == settings.alert_email_password.value.get_secret_value()
    assert "abcd" not in f"{settings!r}{list(settings.display_rows())}"
    with pytest.raises(SettingsError, match="printable ASCII") as caught:
        load_settings({}, {**named, "CONNECTOR_ALERT_EMAIL_PASSWORD": "abcd\nefgh"}, tmp_path)
    assert "abcd" not in str(caught.value)

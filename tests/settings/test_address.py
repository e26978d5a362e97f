"""The base address: accepted, normalized and refused values."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.settings import load_settings
from connector.settings.model import redact_address
from connector.settings.values import parse_address


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://acme.example", "https://acme.example"),
        ("https://acme.example/", "https://acme.example"),
        ("https://acme.example//", "https://acme.example"),
        ("https://acme.example/api/v1", "https://acme.example"),
        ("https://acme.example/api/v1/", "https://acme.example"),
        ("https://ACME.example:8443", "https://acme.example:8443"),
        ("https://acme.example/Workspace/", "https://acme.example/Workspace"),
        ("https://acme.example/Workspace/api/v1", "https://acme.example/Workspace"),
        ("  https://acme.example\n", "https://acme.example"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.8.9.1", "http://127.8.9.1"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_a_base_address_is_normalized(written: str, read: str) -> None:
    assert read == parse_address(written)
    assert read == parse_address(read)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("acme.example", "such as https://acme.example"),
        ("ftp://acme.example", "such as https://acme.example"),
        ("https://", "such as https://acme.example"),
        ("https:///api/v1", "such as https://acme.example"),
        ("http://acme.example", "http would show the key to others"),
        ("http://10.0.0.1", "http would show the key to others"),
        ("http://localhost.acme.example", "http would show the key to others"),
        ("https://me:secret@acme.example", "without a user name or a password"),
        ("https://me@acme.example", "without a user name or a password"),
        ("https://acme.example?x=1", "without '?' or '#'"),
        ("https://acme.example#x", "without '?' or '#'"),
        ("https://acme.example?", "without '?' or '#'"),
        ("https://acme.example/api/v1/jobs", "the part of the address before /api/v1"),
        ("https://acme.example:99999", "with a port from 1 to 65535"),
        ("https://acme.example:0", "such as https://acme.example"),
        ("https://acme.example:x", "with a port from 1 to 65535"),
        ("https://ac me.example", "without spaces or backslashes"),
        ("https://acme.example\\@evil.example", "without spaces or backslashes"),
        ("https://[::1", "with a port from 1 to 65535"),
    ],
)
def test_an_invalid_base_address_is_refused(tmp_path: Path, written: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {"CONNECTOR_BASE_URL": written}, tmp_path)

    assert "(from CONNECTOR_BASE_URL): it must be " in str(caught.value)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("raw", [None, 1, True, ["https://acme.example"], ""])
def test_a_base_address_that_is_empty_or_no_string_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="an address such as"):
        parse_address(raw)


def test_a_refused_address_is_shown_without_user_and_query() -> None:
    assert "'https://acme.example/x'" == redact_address("https://u:p@acme.example/x?key=1#f")
    assert "a value without 'https://'" == redact_address("0123456789")

"""The key and personal data are sent to the API, and appear in no error, object or log."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from connector.client.client import Client
from connector.client.session import Limits
from connector.errors import ConnectorError, SettingsError
from tests.client.calls import KEY, READS, WRITES, make_client
from tests.client.peer import (
    Peer,
    Reply,
    found,
    listed,
    make_response,
    send_and_close,
    send_bytes,
    send_nothing,
)

FORMS = (
    KEY,
    json.dumps(KEY)[1:-1].replace("/", "\\/"),
    quote(KEY),
    quote(KEY, safe=""),
    base64.b64encode(KEY.encode()).decode(),
)
PERSONAL = ("anna", "search=")
"""What the calls of these tests carry in queries and bodies."""


def format_error(error: BaseException) -> str:
    """Return message, repr, action, and traceback with local variables of an error."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    action = getattr(error, "action", "")
    return "\n".join([str(error), repr(error), action, *trace.format(chain=True)])


def find_key_forms(text: str) -> list[str]:
    """Return the forms of the key that the text contains."""
    return [form for form in FORMS if form in text]


def reply_with_key(status: int) -> Reply:
    """Return a reply with this status whose texts and headers contain the key in several forms."""
    message = f"The key {KEY} (Bearer {KEY}) is wrong for anna@example.com."
    document = {
        "error": KEY,
        "message": message,
        "errors": {"key": [message, *FORMS[2:4]], KEY: message},
    }
    # As careful as servers can be: slashes escaped, and a letter written as its number.
    body = json.dumps(document).replace("/", "\\/").replace("planted", "plante\\u0064").encode()
    return send_bytes(
        make_response(
            status, body, {"Location": "https://other.example/" + "/".join((KEY, *FORMS[2:4]))}
        )
    )


FAULTS: dict[str, Reply] = {
    **{f"echo {n}": reply_with_key(n) for n in (302, 400, 401, 403, 404, 409, 422, 429, 500)},
    "lost": send_and_close(),
    "silent": send_nothing,
    "header": send_and_close(f"HTTP/1.1 200 OK\r\nbad header {KEY}\r\n\r\n".encode()),
    "html": send_bytes(make_response(200, b"<html>")),
    "large": send_bytes(make_response(200, b" " * 3000)),
    "redirect": send_bytes(make_response(301, b"", {"Location": f"https://x.example/?k={KEY}"})),
}


def collect_errors(reply: Reply) -> list[ConnectorError]:
    """Return the errors of all operations when the server sends this reply."""
    limits = Limits(deadline_seconds=0.2, attempts_max=2, body_bytes_max=2000)

    async def act() -> list[ConnectorError]:
        errors = []
        for call in (*READS.values(), *WRITES.values()):
            async with Peer(reply) as peer, make_client(peer.base_url, limits=limits) as client:
                try:
                    await call(client)
                except ConnectorError as error:
                    errors.append(error)
        return errors

    return asyncio.run(act())


@pytest.mark.parametrize("fault", FAULTS)
def test_no_error_contains_the_key_or_the_query(fault: str) -> None:
    errors = collect_errors(FAULTS[fault])

    assert len(READS) + len(WRITES) == len(errors)
    for error in errors:
        assert [] == find_key_forms(format_error(error))
        assert [] == [each for each in PERSONAL if each in f"{error} {error!r} {error.action}"]
        assert [] == find_key_forms(repr(getattr(error, "errors", {})))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Client("http://acme.example", KEY),
        lambda: Client("https://acme.example", SecretStr(KEY), ca_file=Path("none.pem")),
        lambda: Client("https://acme.example", f"{KEY}\n"),
        lambda: Client("https://acme.example", SecretStr(f"{KEY} ")),
    ],
)
def test_the_error_for_invalid_client_options_does_not_contain_the_key(
    make: Callable[[], Client],
) -> None:
    with pytest.raises(SettingsError) as caught:
        make()

    assert [] == find_key_forms(format_error(caught.value))


def test_no_log_contains_the_key_or_the_query(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "httpx", "httpcore", "httpcore.http11", "anyio", "asyncio", "connector"):
        caplog.set_level(logging.DEBUG, logger=name)

    async def act() -> None:
        for fault in (listed, reply_with_key(401), send_and_close()):
            async with Peer(fault, found) as peer, make_client(peer.base_url) as client:
                for call in (*READS.values(), *WRITES.values()):
                    try:
                        await call(client)
                    except ConnectorError as error:
                        logging.getLogger("tests").exception("%s", error, exc_info=error)

    asyncio.run(act())
    log = "\n".join([caplog.text, *(repr(vars(each)) for each in caplog.records)])

    assert "was answered 401" in log
    assert [] == find_key_forms(log)
    assert [] == [each for each in PERSONAL if each in log]

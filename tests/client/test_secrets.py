"""The key and personal data: on the wire where they belong, and nowhere that people look."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from connector.client.client import Client, Limits
from connector.errors import ConnectorError, SettingsError
from tests.client.calls import KEY, READS, WRITES, client_of, records
from tests.client.peer import Peer, Reply, answers, breaks_off, found, http, listed, sends, silent
from tests.support.clock import ClientClock

FORMS = (
    KEY,
    json.dumps(KEY)[1:-1].replace("/", "\\/"),
    quote(KEY),
    quote(KEY, safe=""),
    base64.b64encode(KEY.encode()).decode(),
)
PERSONAL = ("anna", "search=")
"""What the calls of these tests carry in queries and bodies."""


def shown(error: BaseException) -> str:
    """Everything that a report of an error can show: text, repr, action, a trace with locals."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    action = getattr(error, "action", "")
    return "\n".join([str(error), repr(error), action, *trace.format(chain=True)])


def leaks(text: str) -> list[str]:
    """The forms of the key that a text holds."""
    return [form for form in FORMS if form in text]


def echo(status: int) -> Reply:
    """An error that quotes the whole request's key back, in its message and by field."""
    said = f"The key {KEY} (Bearer {KEY}) is wrong for anna@example.com."
    document = {"error": KEY, "message": said, "errors": {"key": [said, *FORMS[2:4]], KEY: said}}
    # As careful as servers can be: slashes escaped, and a letter written as its number.
    body = json.dumps(document).replace("/", "\\/").replace("planted", "plante\\u0064").encode()
    return sends(
        http(status, body, {"Location": "https://other.example/" + "/".join((KEY, *FORMS[2:4]))})
    )


FAULTS: dict[str, Reply] = {
    **{f"echo {n}": echo(n) for n in (302, 400, 401, 403, 404, 409, 422, 429, 500)},
    "lost": breaks_off(),
    "silent": silent,
    "header": breaks_off(f"HTTP/1.1 200 OK\r\nbad header {KEY}\r\n\r\n".encode()),
    "html": sends(http(200, b"<html>")),
    "large": sends(http(200, b" " * 3000)),
    "redirect": sends(http(301, b"", {"Location": f"https://x.example/?k={KEY}"})),
}


def errors_of(fault: Reply) -> list[ConnectorError]:
    """The errors of all calls that meet the fault."""
    limits = Limits(deadline_seconds=0.2, attempts_max=2, body_bytes_max=2000)

    async def act() -> list[ConnectorError]:
        errors = []
        for call in (*READS.values(), *WRITES.values()):
            async with Peer(fault) as peer, client_of(peer.base_url, limits=limits) as client:
                try:
                    await call(client)
                except ConnectorError as error:
                    errors.append(error)
        return errors

    return asyncio.run(act())


@pytest.mark.parametrize("fault", FAULTS)
def test_no_error_holds_the_key_or_what_was_asked(fault: str) -> None:
    errors = errors_of(FAULTS[fault])

    assert len(READS) + len(WRITES) == len(errors)
    for error in errors:
        assert [] == leaks(shown(error))
        assert [] == [each for each in PERSONAL if each in f"{error} {error!r} {error.action}"]
        assert [] == leaks(repr(getattr(error, "errors", {})))


def test_an_unreachable_server_is_told_without_the_key() -> None:
    async def act() -> ConnectorError:
        async with Peer(silent) as peer:
            address = peer.base_url
        async with client_of(address) as client:
            with pytest.raises(ConnectorError) as caught:
                await records(client, "jobs").get("5d1c")
        return caught.value

    assert [] == leaks(shown(asyncio.run(act())))


def with_wrong_address() -> Client:
    """A client whose address is refused."""
    return Client("http://acme.example", KEY)


def with_wrong_file() -> Client:
    """A client whose authority's file is refused, with the key as a secret."""
    return Client("https://acme.example", SecretStr(KEY), ca_file=Path("none.pem"))


def with_wrong_key() -> Client:
    """A client whose key cannot stand in a header."""
    return Client("https://acme.example", f"{KEY}\n")


def with_wrong_secret() -> Client:
    """A client whose key cannot stand in a header, given as a secret."""
    return Client("https://acme.example", SecretStr(f"{KEY} "))


@pytest.mark.parametrize(
    "make", [with_wrong_address, with_wrong_file, with_wrong_key, with_wrong_secret]
)
def test_a_client_that_cannot_be_made_does_not_show_the_key(make: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        make()

    assert [] == leaks(shown(caught.value))


def test_a_record_may_hold_what_it_likes() -> None:
    async def act() -> None:
        reply = answers(200, {"data": {"id": "5d1c", "title": KEY}})
        async with Peer(reply) as peer, client_of(peer.base_url) as client:
            assert KEY == (await records(client, "jobs").get("5d1c")).title

    asyncio.run(act())


def reachable(root: object) -> Iterator[object]:
    """Every object that an inspector reaches from another by attributes and members.

    A secret is not opened: not showing what it holds is what it is for.
    """
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        closed = (type, ModuleType, FunctionType, MethodType)
        if id(each) in seen or isinstance(each, closed):
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, SecretStr):
            continue
        if isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each
        slots = [s for kind in type(each).__mro__ for s in getattr(kind, "__slots__", ())]
        waiting += [getattr(each, slot, None) for slot in slots if isinstance(slot, str)]
        waiting += getattr(each, "__dict__", {}).values()


def test_nothing_that_belongs_to_a_client_shows_the_key() -> None:
    async def act() -> None:
        async with Peer(listed) as peer, client_of(peer.base_url, ClientClock()) as client:
            page = await records(client, "jobs").list()
            assert f"<Client of {peer.base_url}>" == repr(client)
            for root in (client, records(client, "jobs"), page, client.limiter, client.rate):
                found_below = list(reachable(root))
                assert [] == [each for each in found_below if leaks(repr(each))]
            # The walk goes all the way: to the key itself, which hides what it holds.
            assert any(isinstance(each, SecretStr) for each in reachable(client))

    asyncio.run(act())


def test_no_log_holds_the_key_or_what_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "httpx", "aiohttp", "asyncio", "connector"):
        caplog.set_level(logging.DEBUG, logger=name)

    async def act() -> None:
        for fault in (listed, echo(401), breaks_off()):
            async with Peer(fault, found) as peer, client_of(peer.base_url) as client:
                for call in (*READS.values(), *WRITES.values()):
                    try:
                        await call(client)
                    except ConnectorError as error:
                        logging.getLogger("tests").exception("%s", error, exc_info=error)

    asyncio.run(act())
    said = "\n".join([caplog.text, *(repr(vars(each)) for each in caplog.records)])

    assert "was answered 401" in said
    assert [] == leaks(said)
    assert [] == [each for each in PERSONAL if each in said]

"""The client connects to the configured address only, over verified TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from connector.client.client import Client
from connector.errors import NotTheApi, SettingsError, Unreachable
from tests.client.calls import KEY, READS, WRITES, make_client
from tests.client.peer import Peer, found, listed, make_response, send_bytes
from tests.support.tls import PEM, make_server_context


@pytest.mark.parametrize("status", [302, 308])
@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_redirects_are_not_followed(status: int, call: str) -> None:
    async def act() -> str:
        async with Peer(found) as other:
            target = f"{other.base_url}/api/v1/jobs?token=1"
            async with Peer(send_bytes(make_response(status, b"", {"Location": target}))) as peer:
                async with make_client(peer.base_url) as client:
                    with pytest.raises(Exception, match="redirect to http://127") as caught:
                        await {**READS, **WRITES}[call](client)
                assert 1 == len(peer.requests)
            assert [] == other.requests
            assert f"{other.base_url}/api/v1/jobs" in str(caught.value)
            assert "token" not in str(caught.value)
            return type(caught.value).__name__

    assert (NotTheApi.__name__ if call in READS else "InDoubt") == asyncio.run(act())


def test_an_untrusted_certificate_is_refused() -> None:
    async def act() -> None:
        async with Peer(found, tls=make_server_context()) as peer:
            async with make_client(peer.base_url) as client:
                with pytest.raises(Unreachable, match="is not trusted") as caught:
                    await client.detail("jobs", "5d1c")
            assert "authority" in caught.value.action
            assert [] == peer.requests

    asyncio.run(act())


def test_a_certificate_signed_by_the_configured_authority_is_accepted() -> None:
    async def act() -> None:
        async with Peer(found, tls=make_server_context()) as peer:
            async with make_client(peer.base_url, ca_file=PEM) as client:
                assert "5d1c" == (await client.detail("jobs", "5d1c")).id
            assert 1 == len(peer.requests)

    asyncio.run(act())


def test_a_certificate_of_another_host_is_refused() -> None:
    async def act() -> None:
        async with Peer(found, tls=make_server_context()) as peer:
            address = peer.base_url.replace("127.0.0.1", "localhost")
            async with make_client(address, ca_file=PEM) as client:
                with pytest.raises(Unreachable, match="is not for localhost"):
                    await client.detail("jobs", "5d1c")
            assert [] == peer.requests

    asyncio.run(act())


def test_a_port_without_tls_is_named() -> None:
    async def act() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1_000)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with make_client(f"https://127.0.0.1:{port}") as client:
                with pytest.raises(Unreachable, match="does not answer with TLS") as caught:
                    await client.detail("jobs", "5d1c")
        assert "no_tls" == caught.value.code
        assert "port" in caught.value.action

    asyncio.run(act())


@pytest.mark.parametrize(("name", "reason"), [
    ("missing.pem", "No such file"), ("empty.pem", "no certificates"),
])  # fmt: skip
def test_a_ca_file_without_certificates_is_a_settings_error(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "empty.pem").write_text("nothing", encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"ca_file is .*{name}: .*{reason}"):
        Client("https://acme.example", KEY, ca_file=tmp_path / name)


@pytest.mark.parametrize(
    "address",
    ["http://acme.example", "ftp://acme.example", "acme.example", "https://a@b.example", ""],
)
def test_an_address_without_https_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="the base address must be"):
        Client(address, KEY)


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        async with Peer(found) as proxy, Peer(found) as peer:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.base_url)
                monkeypatch.setenv(name.lower(), proxy.base_url)
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            async with make_client(peer.base_url) as client:
                await client.detail("jobs", "5d1c")
            assert [] == proxy.requests
            assert 1 == len(peer.requests)

    asyncio.run(act())


def test_cookies_are_not_stored() -> None:
    cookie = {"Set-Cookie": "session=abc; Path=/", "X-More": "1"}

    async def act() -> None:
        body = b'{"data": {"id": "5d1c"}}'
        peer = Peer(send_bytes(make_response(200, body, cookie)))
        async with peer, make_client(peer.base_url) as client:
            await client.detail("jobs", "5d1c")
            await client.detail("jobs", "5d1c")
        assert 2 == len(peer.requests)
        assert not any("cookie" in each.headers for each in peer.requests)

    asyncio.run(act())


@pytest.mark.parametrize("path", ["", "/", "/tenant", "/tenant/", "/tenant/api/v1/", "/api/v1"])
def test_every_request_is_sent_below_the_base_address(path: str) -> None:
    async def act() -> None:
        async with Peer(listed) as peer, make_client(peer.base_url + path) as client:
            await client.page("jobs", search="a&b=c#d")
            target = peer.requests[0].target
        tenant = "/tenant" if "tenant" in path else ""
        assert f"{tenant}/api/v1/jobs?page=1&per_page=100&search=a%26b%3Dc%23d" == target

    asyncio.run(act())

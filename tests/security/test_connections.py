"""The client connects to the configured address only, over verified TLS, by a configured proxy."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connector.client.client import Client
from connector.errors import InDoubt, NotTheApi, SettingsError, Unreachable
from tests.client.calls import KEY, READS, WRITES, make_client
from tests.client.peer import Peer, found, listed, make_response, send_bytes
from tests.support.tls import PEM, make_server_context

pytestmark = pytest.mark.anyio

EXPIRED = Path(__file__).with_name("expired.pem")


async def read_error(address: str, **options: Any) -> Unreachable:
    """Return the error of a read."""
    async with make_client(address, **options) as client:
        with pytest.raises(Unreachable) as caught:
            await client.detail("jobs", "5d1c")
    return caught.value


def make_outdated_context() -> ssl.SSLContext:
    """Return a server's TLS context that accepts only outdated versions."""
    context = make_server_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


# -- TLS -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize(
    ("make", "ca_file", "host", "code", "text"),
    [
        (make_server_context, None, "127.0.0.1", "certificate_untrusted", "127.0.0.1 is refused"),
        (make_server_context, PEM, "localhost", "certificate_of_another_host", "not valid"),
        (lambda: make_server_context(EXPIRED), EXPIRED, "127.0.0.1", "certificate_expired",
         "has expired; this machine's clock shows"),
        (make_outdated_context, PEM, "127.0.0.1", "no_tls", "cannot be reached"),
    ],
)  # fmt: skip
async def test_a_server_without_a_valid_certificate_gets_no_request(
    make: Any, ca_file: Path | None, host: str, code: str, text: str
) -> None:
    async with Peer(found, tls=make()) as peer:
        address = peer.base_url.replace("127.0.0.1", host)
        error = await read_error(address, ca_file=ca_file)
        assert [] == peer.requests
    assert code == error.code
    assert text in str(error)


async def test_a_certificate_signed_by_the_configured_authority_is_accepted() -> None:
    async with Peer(found, tls=make_server_context()) as peer:
        async with make_client(peer.base_url, ca_file=PEM) as client:
            assert "5d1c" == (await client.detail("jobs", "5d1c")).id
        assert 1 == len(peer.requests)


async def test_a_port_without_tls_and_an_unknown_host_are_named() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert "no_tls" == (await read_error(f"https://127.0.0.1:{port}")).code
    assert "name_not_resolved" == (await read_error("https://acme.invalid")).code
    assert "connection_refused" == (await read_error("http://127.0.0.1:9")).code


@pytest.mark.parametrize(("name", "reason"), [
    ("missing.pem", "No such file"), ("empty.pem", "no certificates"),
])  # fmt: skip
def test_a_ca_file_without_certificates_is_a_settings_error(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "empty.pem").write_text("nothing", encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"ca_file is .*{name}: .*{reason}"):
        Client("https://acme.example", KEY, ca_file=tmp_path / name)


# -- Address ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://acme.example", "acme.example", "https://a@b.example"])
def test_an_address_without_https_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="the base address must be"):
        Client(address, KEY)


@pytest.mark.parametrize("path", ["", "/", "/tenant", "/tenant/", "/tenant/api/v1/", "/api/v1"])
async def test_every_request_is_sent_below_the_base_address(path: str) -> None:
    async with Peer(listed) as peer, make_client(peer.base_url + path) as client:
        await client.page("jobs", search="a&b=c#d")
        target = peer.requests[0].target
    tenant = "/tenant" if "tenant" in path else ""
    assert f"{tenant}/api/v1/jobs?page=1&per_page=100&search=a%26b%3Dc%23d" == target


@pytest.mark.parametrize("status", [302, 308])
@pytest.mark.parametrize("name", [*READS, *WRITES])
async def test_redirects_are_not_followed(status: int, name: str) -> None:
    async with Peer(found) as other:
        target = f"{other.base_url}/api/v1/jobs?token=1"
        async with Peer(send_bytes(make_response(status, b"", {"Location": target}))) as peer:
            async with make_client(peer.base_url) as client:
                expected = NotTheApi if name in READS else InDoubt
                with pytest.raises(expected, match=r"redirect to http://127\S*/jobs, ") as error:
                    await {**READS, **WRITES}[name](client)
            assert 1 == len(peer.requests)
        assert [] == other.requests
        assert "token" not in str(error.value)


async def test_cookies_are_not_stored() -> None:
    body, cookie = b'{"data": {"id": "5d1c"}}', {"Set-Cookie": "session=abc; Path=/"}
    peer = Peer(send_bytes(make_response(200, body, cookie)))
    async with peer, make_client(peer.base_url) as client:
        await client.detail("jobs", "5d1c")
        await client.detail("jobs", "5d1c")
    assert [False, False] == ["cookie" in each.headers for each in peer.requests]


# -- Proxy -----------------------------------------------------------------------------------------


class TunnelProxy:
    """HTTP proxy that opens tunnels, and records the requests for them and all bytes that pass. If
    it `refuses`, it responds 407.
    """

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.asked: list[str] = []
        self.seen = b""

    async def __aenter__(self) -> TunnelProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Open the tunnel that a client requests, or refuse it."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.seen += head
            self.asked.append(head.split(b"\r\n")[0].decode())
            if self.refuses:
                writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                writer.close()
                return
            host, _, port = head.split(b" ")[1].decode().rpartition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await asyncio.gather(
                self._copy_bytes(reader, far_writer), self._copy_bytes(far_reader, writer)
            )

    async def _copy_bytes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes from one connection to another until the first one ends."""
        with suppress(OSError):
            while part := await reader.read(65_536):
                self.seen += part
                writer.write(part)
                await writer.drain()
        writer.close()


async def test_a_configured_proxy_is_used_and_sees_only_encrypted_data() -> None:
    async with TunnelProxy() as proxy, Peer(found, tls=make_server_context()) as peer:
        async with make_client(peer.base_url, ca_file=PEM, proxy=proxy.address) as client:
            assert "5d1c" == (await client.detail("jobs", "5d1c")).id
        assert [f"CONNECT 127.0.0.1:{peer.port} HTTP/1.1"] == proxy.asked
        assert "authorization" in peer.requests[0].headers
    assert b"planted" not in proxy.seen
    assert b"uthorization" not in proxy.seen

    async with TunnelProxy(refuses=True) as proxy, Peer(found, tls=make_server_context()) as peer:
        error = await read_error(peer.base_url, ca_file=PEM, proxy=proxy.address)
        assert ("proxy_refused", []) == (error.code, peer.requests)


async def test_no_other_proxy_is_used_and_none_for_unencrypted_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with TunnelProxy() as proxy, Peer(found) as peer:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
            monkeypatch.setenv(name.lower(), proxy.address)
        for address in (None, proxy.address):
            async with make_client(peer.base_url, proxy=address) as client:
                await client.detail("jobs", "5d1c")
        assert ([], 2) == (proxy.asked, len(peer.requests))

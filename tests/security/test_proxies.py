"""The proxy: used only if a setting names it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from connector.errors import Unreachable
from tests.client.calls import make_client
from tests.client.peer import Peer, found
from tests.support.command import call, variables
from tests.support.tls import PEM, make_server_context


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


def test_a_configured_proxy_is_used_and_sees_only_encrypted_data() -> None:
    async def act() -> None:
        async with TunnelProxy() as proxy, Peer(found, tls=make_server_context()) as peer:
            async with make_client(peer.base_url, ca_file=PEM, proxy=proxy.address) as client:
                assert "5d1c" == (await client.detail("jobs", "5d1c")).id
            assert [f"CONNECT 127.0.0.1:{peer.port} HTTP/1.1"] == proxy.asked
            assert "authorization" in peer.requests[0].headers
        assert b"planted" not in proxy.seen
        assert b"uthorization" not in proxy.seen

    asyncio.run(act())


def test_unencrypted_requests_do_not_use_the_proxy() -> None:
    async def act() -> None:
        async with TunnelProxy() as proxy, Peer(found) as peer:
            async with make_client(peer.base_url, proxy=proxy.address) as client:
                await client.detail("jobs", "5d1c")
            assert [] == proxy.asked
            assert 1 == len(peer.requests)

    asyncio.run(act())


def test_a_proxy_that_rejects_the_connection_is_reported() -> None:
    async def act() -> None:
        async with (
            TunnelProxy(refuses=True) as proxy,
            Peer(found, tls=make_server_context()) as peer,
        ):
            async with make_client(peer.base_url, ca_file=PEM, proxy=proxy.address) as client:
                with pytest.raises(Unreachable):
                    await client.detail("jobs", "5d1c")
            assert [] == peer.requests

    asyncio.run(act())


def test_doctor_shows_proxies_of_the_environment_as_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://name:word@proxy.example:3128")
    called = call(["doctor", "--json"], variables(None, tmp_path, None))

    (check,) = (each for each in called.object["checks"] if each["name"] == "proxy")
    assert "HTTPS_PROXY" in check["found"]
    assert "CONNECTOR_PROXY" in check["action"]
    assert "name:word" not in called.out + called.err

"""TLS: expired certificates, outdated protocol versions, and the setting of the authority."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from connector.client.client import Client
from connector.errors import Unreachable
from connector.settings import load_settings
from tests.client.calls import KEY, make_client
from tests.client.peer import Peer, found
from tests.support.tls import PEM

EXPIRED = Path(__file__).with_name("expired.pem")


def make_server_tls(pem: Path) -> ssl.SSLContext:
    """Return a server's TLS context with a certificate for 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def test_an_expired_certificate_is_refused() -> None:
    async def act() -> None:
        async with Peer(found, tls=make_server_tls(EXPIRED)) as peer:
            async with make_client(peer.base_url, ca_file=EXPIRED) as client:
                with pytest.raises(Unreachable, match="has expired; this machine"):
                    await client.detail("jobs", "5d1c")
            assert [] == peer.requests

    asyncio.run(act())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_an_outdated_tls_version_is_refused() -> None:
    context = make_server_tls(PEM)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1

    async def act() -> None:
        async with Peer(found, tls=context) as peer:
            async with make_client(peer.base_url, ca_file=PEM) as client:
                with pytest.raises(Unreachable, match="cannot be reached"):
                    await client.detail("jobs", "5d1c")
            assert [] == peer.requests

    asyncio.run(act())


def test_a_certificate_of_the_configured_authority_is_accepted(tmp_path: Path) -> None:
    async def act() -> None:
        async with Peer(found, tls=make_server_tls(PEM)) as peer:
            given = {"CONNECTOR_BASE_URL": peer.base_url, "CONNECTOR_API_KEY": KEY}
            trusted = {**given, "CONNECTOR_CA_FILE": str(PEM)}
            for environ in (given, trusted):
                connection = load_settings({}, environ, tmp_path).connection()
                client = Client(
                    connection.base_url, connection.api_key, **connection.client_options()
                )
                async with client:
                    if environ is given:
                        with pytest.raises(Unreachable) as caught:
                            await client.detail("jobs", "5d1c")
                        assert "CONNECTOR_CA_FILE" in caught.value.action
                    else:
                        assert "5d1c" == (await client.detail("jobs", "5d1c")).id
            assert 1 == len(peer.requests)

    asyncio.run(act())

"""Transport over aiohttp, for a third of the processor time of httpx, with the errors of httpx.

One attempt is one request on the wire: nothing is repeated, redirected or unpacked here, no cookie
is kept and no proxy or password is taken from the environment.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import aiohttp
import httpx
from yarl import URL

IDLE_SECONDS_MAX = 5.0
"""Idle time of a connection after which it is not used again.

The server may be closing it, which would put a write in doubt.
"""

CONNECT_SECONDS_MAX = 10.0
"""Time for making a connection, of the whole deadline."""

_PART_BYTES = 64 * 1024
_HEADERS_MAX = 1_000


class SendState:
    """Departure of a request: before it has begun, nothing was sent for certain."""

    has_begun: bool = False


class Transport:
    """Sends requests over at most `count` connections, to `https` through the proxy.

    Errors are those of httpx: `ProxyError` and `ConnectError` if nothing was sent,
    `LocalProtocolError` for a request that cannot be sent, and `ReadError` or
    `RemoteProtocolError` if no complete answer came.
    """

    def __init__(self, *, count: int, trust: ssl.SSLContext, proxy: str | None = None) -> None:
        self._count, self._trust, self._proxy = count, trust, proxy
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        departure: SendState,
    ) -> StreamedResponse:
        """Send one request, and return the answer before its body is read.

        Marks `departure` when the first byte may leave.
        """
        if self._session is None:
            self._session = self._opened()
        with _errors_of_httpx():
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                # What is not encrypted never goes through a proxy, which would see the key.
                proxy=self._proxy if url.startswith("https:") else None,
                trace_request_ctx=departure,
            )
        return StreamedResponse(response)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return a session of the running event loop."""
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_departure)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._count, ssl=self._trust, keepalive_timeout=IDLE_SECONDS_MAX
            ),
            # The caller sets the deadline of the whole attempt.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX),
            # The caller judges how many headers an answer may have.
            max_headers=_HEADERS_MAX,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            middlewares=(_send_once,),
            trace_configs=[tracing],
        )


class StreamedResponse:
    """Answer whose body is still to be read, part by part."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.header_count = len(response.raw_headers)

    def headers(self) -> dict[str, str]:
        """Return the headers by their names in lower case; repeated ones are joined."""
        joined: dict[str, str] = {}
        for raw_name, raw_value in self._response.raw_headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode(errors="replace")
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return joined

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it is received."""
        with _errors_of_httpx():
            async for part in self._response.content.iter_chunked(_PART_BYTES):
                yield part

    def close(self) -> None:
        """Release the connection, which is closed unless the body was read to its end."""
        if not self._response.content.at_eof():
            self._response.close()
        self._response.release()


async def _note_departure(
    session: aiohttp.ClientSession,
    context: SimpleNamespace,
    sent: aiohttp.TraceRequestHeadersSentParams,
) -> None:
    context.trace_request_ctx.has_begun = True


async def _send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send the request; by itself aiohttp would send some twice, and count one."""
    with _errors_of_httpx():
        return await handler(request)


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    """Raise the errors of aiohttp as those of httpx that say the same."""
    try:
        yield
    except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise httpx.ProxyError(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        number, reason = error.os_error.errno or 0, error.os_error.strerror
        if isinstance(error, aiohttp.ClientSSLError):
            reason = str(error)
        elif number > 0:
            reason = os.strerror(number)
        raise httpx.ConnectError(reason or str(error)) from error
    except TimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except ValueError as error:
        raise httpx.LocalProtocolError(str(error)) from error
    except aiohttp.ClientResponseError as error:
        raise httpx.RemoteProtocolError(error.message) from error
    except (aiohttp.ClientError, OSError) as error:
        raise httpx.ReadError(str(error)) from error

"""Transport of httpx over aiohttp, for a third of the processor time of httpx's own.

One attempt is one request on the wire: nothing is repeated, redirected or unpacked here, no cookie
is kept and no proxy or password is taken from the environment.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterator
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


class Transport(httpx.AsyncBaseTransport):
    """Sends requests over at most `count` connections, to `https` through the proxy.

    A request's extension `departure` is marked when its first byte may leave. Errors are those of
    httpx: `ProxyError` and `ConnectError` if nothing was sent, `LocalProtocolError` for a request
    that cannot be sent, and `ReadError` or `RemoteProtocolError` if no whole answer came.
    """

    def __init__(self, *, count: int, trust: ssl.SSLContext, proxy: str | None = None) -> None:
        self._count, self._trust, self._proxy = count, trust, proxy
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; its answer's body is still to be read."""
        if self._session is None:
            self._session = self._opened()
        url = str(request.url)
        with _errors_of_httpx():
            response = await self._session.request(
                request.method,
                URL(url, encoded=True),
                headers=request.headers.multi_items(),
                data=request.content or None,
                allow_redirects=False,
                # What is not encrypted never goes through a proxy, which would see the key.
                proxy=self._proxy if url.startswith("https:") else None,
                trace_request_ctx=request.extensions["departure"],
            )
        return httpx.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_Body(response),
            request=request,
        )

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
            # The caller has a deadline of its own for the whole attempt.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX),
            # The caller judges how many headers an answer may have.
            max_headers=_HEADERS_MAX,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            middlewares=(_send_once,),
            trace_configs=[tracing],
        )


class _Body(httpx.AsyncByteStream):
    """The body of an answer as it came, part by part."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for part in self._response.content.iter_chunked(_PART_BYTES):
                yield part

    async def aclose(self) -> None:
        # A body that was not read to its end leaves the connection unfit for another request.
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

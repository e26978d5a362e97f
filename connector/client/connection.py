"""Connections to one workspace: one attempt at a request, with limits of size and time.

Nothing is repeated here. The raised error shows whether the request may have been applied.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import aiohttp
import httpx
from pydantic import SecretStr
from yarl import URL

from connector.client.messages import BodyDecoder, Request, Response, parse_json
from connector.client.response_parsing import doubt_error
from connector.errors import ConnectorError, Misused, SettingsError
from connector.errors_api import (
    AnswerTooLarge,
    InDoubt,
    NoAnswer,
    NotTheApi,
    Unreachable,
    UnreadableAnswer,
)
from connector.log import MASK, encoded_forms

# -- Transport ------------------------------------------------------------------------------------
# Transport over aiohttp, for a third of the processor time of httpx, with the errors of httpx.
#
# One attempt is one request on the wire: nothing is repeated, redirected or unpacked here, no
# cookie is kept and no proxy or password is taken from the environment.


IDLE_SECONDS_MAX = 5.0
"""Idle time of a connection after which it is not used again.

The server may be closing it, which would put a write in doubt.
"""

CONNECT_SECONDS_MAX = 10.0
"""Time for making a connection, of the whole deadline."""

_PART_BYTES = 64 * 1024
_HEADERS_MAX = 1_000


class SendState:
    """`has_begun` is False as long as certainly no part of the request was sent."""

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
        send_state: SendState,
    ) -> StreamedResponse:
        """Send one request, and return the answer before its body is read.

        Sets `send_state.has_begun` when the first byte may have been sent.
        """
        if self._session is None:
            self._session = self._create_session()
        with _convert_errors():
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                # What is not encrypted never goes through a proxy, which would see the key.
                proxy=self._proxy if url.startswith("https:") else None,
                trace_request_ctx=send_state,
            )
        return StreamedResponse(response)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _create_session(self) -> aiohttp.ClientSession:
        """Return a session for the running event loop."""
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_mark_sent)
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
        with _convert_errors():
            async for part in self._response.content.iter_chunked(_PART_BYTES):
                yield part

    def close(self) -> None:
        """Release the connection, which is closed unless the body was read to its end."""
        if not self._response.content.at_eof():
            self._response.close()
        self._response.release()


async def _mark_sent(
    session: aiohttp.ClientSession,
    context: SimpleNamespace,
    sent: aiohttp.TraceRequestHeadersSentParams,
) -> None:
    """Set `has_begun` of the request's `SendState`."""
    context.trace_request_ctx.has_begun = True


async def _send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send the request exactly once. Without this middleware, aiohttp repeats some requests."""
    with _convert_errors():
        return await handler(request)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Raise errors of aiohttp as the corresponding errors of httpx."""
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


# -- Connection -----------------------------------------------------------------------------------


_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",  # With every request (API 5.1).
    "User-Agent": "recruitment-connector",
}

HEADERS_MAX = 200
"""More header lines than this are not an answer of this API."""


class HttpSession:
    """Pool of connections to one workspace.

    Args:
        deadline_seconds: Limit of an attempt from its first byte to its last.
        body_bytes_max: Limit of an unpacked answer.
        ca_file: An additional certificate authority. Verification is never turned off.
        proxy: Proxy for `https` addresses. It sees only the host.
    """

    def __init__(
        self,
        base_url: str,
        key: SecretStr,
        *,
        count: int,
        deadline_seconds: float,
        body_bytes_max: int,
        ca_file: Path | None,
        proxy: str | None = None,
    ) -> None:
        self._base_url, self._bearer = base_url, _Bearer(key)
        self._deadline_seconds, self._body_bytes_max = deadline_seconds, body_bytes_max
        self._is_closed = False
        self._address = str(httpx.URL(base_url)).rstrip("/")
        self._transport = Transport(count=count, trust=_create_ssl_context(ca_file), proxy=proxy)

    async def aclose(self) -> None:
        """Close the connections. A closed session cannot be used again."""
        self._is_closed = True
        await self._transport.aclose()

    async def exchange(self, request: Request) -> Response:
        """Send the request once and return the answer, with any status.

        Raises `Unreachable` or `Misused` if nothing was sent. If no complete answer came, a read
        raises `NoAnswer` or `NotTheApi`, and a write raises `InDoubt`.
        """
        if self._is_closed:
            raise Misused(f"{request.method_and_path} was not sent: the client is closed")
        send_state = SendState()
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await self._send_and_read(request, send_state)
        except httpx.LocalProtocolError as error:
            raise Misused(
                f"{request.method_and_path} cannot be sent: {self._describe_error(error, '')}"
            ) from None
        except httpx.ProxyError as error:
            # No tunnel was made, so that the request itself was never sent.
            reason = f"the proxy refused: {self._describe_error(error, '')}"
            raise self._unreachable_error(reason) from None
        except (httpx.HTTPError, TimeoutError) as error:
            if not send_state.has_begun:
                raise self._unreachable_error(
                    self._describe_error(error, "no connection")
                ) from None
            raise _lost_answer_error(
                request, self._describe_error(error, "no complete answer")
            ) from None
        except NotTheApi as error:
            if request.is_read:
                raise
            raise doubt_error(request, error) from None

    async def _send_and_read(self, request: Request, send_state: SendState) -> Response:
        """Send the request and read the answer. Raises `AnswerTooLarge` beyond the limits."""
        # The characters of a path need no escapes (see `build_list_request`).
        query = f"?{urlencode(request.query)}" if request.query else ""
        response = await self._transport.send(
            request.method,
            f"{self._address}{request.path}{query}",
            headers=_HEADERS | self._bearer.header(),
            body=request.body,
            send_state=send_state,
        )
        try:
            if response.header_count > HEADERS_MAX:
                raise AnswerTooLarge(
                    request.method_and_path, f"answered with more than {HEADERS_MAX} headers"
                )
            headers = response.headers()
            encoding = headers.get("content-encoding", "")
            body = await self._read_body(request, encoding, response.parts())
        finally:
            response.close()
        return self._bearer.without_key(Response(response.status, headers, body))

    async def _read_body(
        self, request: Request, encoding: str, parts: AsyncIterator[bytes]
    ) -> bytes:
        """Read and decompress the body. Raises `AnswerTooLarge` and `UnreadableAnswer`."""
        try:
            body = BodyDecoder(encoding, self._body_bytes_max)
            async for part in parts:
                body.add(part)
            return body.finish()
        except OverflowError:
            raise AnswerTooLarge(
                request.method_and_path, f"answered with more than {self._body_bytes_max} bytes"
            ) from None
        except ValueError as error:
            raise UnreadableAnswer(request.method_and_path, f"answered with {error}") from None

    def _unreachable_error(self, reason: str) -> Unreachable:
        """Return the error for an address that was not reached, with an action for certificates."""
        message = f"{self._base_url} cannot be reached: {reason}"
        if "CERTIFICATE_VERIFY_FAILED" not in reason:
            return Unreachable(message)
        return Unreachable(
            message,
            action="Check CONNECTOR_BASE_URL. If the server uses a private certificate "
            "authority, set CONNECTOR_CA_FILE to its certificate file.",
        )

    def _describe_error(self, error: Exception, missing: str) -> str:
        """Return the error in a few words; `missing` names what timed out."""
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            return f"{missing} in time, of {self._deadline_seconds:g} s"
        return self._bearer.mask(str(error)) or type(error).__name__


def _lost_answer_error(request: Request, reason: str) -> ConnectorError:
    """Return `NoAnswer` for a read, `InDoubt` for a write."""
    if request.is_read:
        return NoAnswer(request.method_and_path, reason)
    return InDoubt(request.method_and_path, reason)


class _Bearer:
    """API key as an Authorization header (API 5.1). No error or log contains the key."""

    def __init__(self, key: SecretStr) -> None:
        self._key = key

    def header(self) -> dict[str, str]:
        """Return the header with the key."""
        return {"Authorization": f"Bearer {self._key.get_secret_value()}"}

    def mask(self, text: str) -> str:
        """Replace the key in the text, in each of its encoded encoded_forms."""
        for form in encoded_forms(self._key.get_secret_value()):
            text = text.replace(form, MASK)
        return text

    def without_key(self, answer: Response) -> Response:
        """Return the answer with the key masked if it is an error, because errors are printed."""
        if 200 <= answer.status < 300:
            return answer
        headers = {name: self.mask(value) for name, value in answer.headers.items()}
        try:
            # Written again, so that no escape hides the key. Text that is not JSON is never shown.
            body = self.mask(json.dumps(parse_json(answer.body))).encode()
        except ValueError:
            body = answer.body
        return Response(answer.status, headers, body)


def _create_ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that trusts the default certificate authorities and those in the file.

    Raises `SettingsError` if the file cannot be read.
    """
    if ca_file is None:
        return _default_ssl_context()
    context = httpx.create_ssl_context(trust_env=False)
    try:
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"{ca_file} cannot be read as certificates: {error}") from None
    return context


@cache
def _default_ssl_context() -> ssl.SSLContext:
    """Return a context with the default certificate authorities; cached because loading is slow."""
    return httpx.create_ssl_context(trust_env=False)

"""HTTP session: sends a request once, and says if anything of it may have left this machine.

Nothing is repeated or redirected here, no cookie is kept, and no proxy or password comes from the
environment. The client decides about the next attempt.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import certifi
import httpx
from pydantic import SecretStr

from connector import errors
from connector.client.messages import Request, Response, doubtful, parse_json
from connector.log import mask_secrets

# The server may be closing a connection that is idle for longer: a write would be left in doubt.
IDLE_SECONDS_MAX = 5.0
CONNECT_SECONDS_MAX = 10.0  # Of the deadline, for a connection and for its TLS handshake.
HEADERS_MAX = 200  # Lines; more are not an answer of this API.

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",  # With every request (API 5.1).
    "User-Agent": "recruitment-connector",
}

# By the code of OpenSSL; any other certificate is not trusted. A certificate before its first day
# (9) counts as expired, because the clock of this machine may be wrong.
_CERTIFICATE_CODES = {
    **dict.fromkeys((9, 10), "certificate_expired"),
    **dict.fromkeys((62, 64), "certificate_of_another_host"),
}

# Errors of an established TLS connection arrive as they are.
_FAILURES = (httpx.TransportError, OSError)

# The log of httpcore has the headers of answers, which may repeat the key. A filter holds where a
# program or a debugger would change a level.
for _part in ("connection", "http11", "proxy"):
    logging.getLogger(f"httpcore.{_part}").addFilter(lambda each: each.levelno >= logging.WARNING)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client.

    Args:
        deadline_seconds: Limit of one attempt, from first byte to last.
        attempts_max: Maximum number of attempts at one request.
        retry_seconds_max: Limit of all attempts at one request, and of one wait for the rate limit.
        body_bytes_max: Limit of an unpacked answer.
    """

    deadline_seconds: float = 60.0
    attempts_max: int = 5
    retry_seconds_max: float = 300.0
    body_bytes_max: int = 32 * 1024 * 1024


class HttpSession:
    """Connections to one workspace, with the arguments of `Client`. No error contains the key.

    The caller limits the connections in use. Raises `SettingsError` for an unusable `ca_file`.
    """

    def __init__(
        self,
        base_url: str,
        key: SecretStr,
        limits: Limits,
        *,
        connections: int,
        ca_file: Path | None = None,
        proxy: str | None = None,
    ) -> None:
        self._base_url, self._key, self._limits = httpx.URL(base_url), key, limits
        self._opened = list[Any]()
        # The transport of httpx without its client: redirects, cookies, proxies of the environment
        # and authentication are impossible instead of turned off.
        self._transport = httpx.AsyncHTTPTransport(
            verify=_create_ssl_context(ca_file),
            # The pool loses the place of a request that is cancelled while it waits for a
            # connection (encode/httpcore#1093). So none ever waits in it.
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=connections,
                keepalive_expiry=IDLE_SECONDS_MAX,
            ),
            # What is not encrypted never goes through a proxy, which would see the key.
            proxy=proxy if proxy and self._base_url.scheme == "https" else None,
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
        # If a request is cancelled while the pool closes idle connections, it forgets the others.
        for stream in self._opened:
            await stream.aclose()

    async def exchange(self, request: Request) -> Response:
        """Send the request once and return the answer, with any status.

        Raises `Unreachable` if nothing was sent. After any other fault, a read raises `NoAnswer` or
        `NotTheApi`, and a write `InDoubt`.
        """
        has_begun = False  # False as long as certainly no byte of the request was sent.

        async def trace(event: str, info: dict[str, Any]) -> None:
            nonlocal has_begun
            if event == "http11.send_request_headers.started":
                # A tunnel through a proxy is a separate request.
                has_begun |= info["request"].method != b"CONNECT"
            elif event == "connection.connect_tcp.complete":
                self._opened.append(info["return_value"])

        try:
            async with asyncio.timeout(self._limits.deadline_seconds):
                return await self._send(request, trace)
        except errors.NotTheApi as error:
            raise doubtful(request, error) from None
        except _FAILURES as error:
            if not has_begun:
                code, reason = self._cause(error)
                message = f"{self._base_url} cannot be reached: {reason}"
                raise errors.Unreachable(message, code=code) from None
            lost = errors.NoAnswer if request.is_read else errors.InDoubt
            reason = self._describe(error, "no complete answer")
            raise lost(request.method_and_path, reason) from None

    async def _send(
        self, request: Request, trace: Callable[[str, dict[str, Any]], Awaitable[None]]
    ) -> Response:
        """Send the request and read the answer. `trace` is called before and after each step."""
        # Two steps have this limit. The socket is closed after a step that takes too long, but not
        # if the deadline interrupts a TLS handshake.
        connect_seconds = min(CONNECT_SECONDS_MAX, self._limits.deadline_seconds / 2)
        query = f"?{urlencode(request.query)}" if request.query else ""
        path = f"{self._base_url.path.rstrip('/')}{request.path}{query}"
        sent = httpx.Request(
            request.method,
            self._base_url.copy_with(raw_path=path.encode()),
            headers={**_HEADERS, "Authorization": f"Bearer {self._key.get_secret_value()}"},
            content=request.body,
            extensions={"trace": trace, "timeout": {"connect": connect_seconds}},
        )
        where = request.method_and_path
        answer = await self._transport.handle_async_request(sent)
        try:
            if len(answer.headers.raw) > HEADERS_MAX:
                raise errors.AnswerTooLarge(where, f"answered with more than {HEADERS_MAX} headers")
            encoding = answer.headers.get("content-encoding", "")
            parts = answer.aiter_raw()
            body = await read_body(where, parts, encoding, self._limits.body_bytes_max)
        finally:
            await answer.aclose()
        headers = dict(answer.headers)
        if not 200 <= answer.status_code < 300:  # Errors are printed, so the key is masked.
            headers = {name: self._mask(value) for name, value in headers.items()}
            # Written again, so that no escape hides the key. Text that is not JSON is never shown.
            with suppress(ValueError):
                body = self._mask(json.dumps(parse_json(body))).encode()
        return Response(answer.status_code, headers, body)

    def _cause(self, error: BaseException | None) -> tuple[str | None, str]:
        """Return a code and a text for the cause of a failed connection."""
        first, host = error, self._base_url.host
        while error is not None:
            match error:
                case TimeoutError() | httpx.TimeoutException():
                    break  # What was under way then is not the cause.
                case httpx.ProxyError():
                    return "proxy_refused", f"the proxy refused: {self._mask(str(error))}"
                case ssl.SSLCertVerificationError(verify_code=number, verify_message=reason):
                    clock = f"this machine's clock shows {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
                    return (
                        _CERTIFICATE_CODES.get(number, "certificate_untrusted"),
                        f"the certificate of {host} is refused: {reason.rstrip('.')}; {clock}",
                    )
                case ssl.SSLError():
                    return "no_tls", f"{host} does not answer with TLS"
                case socket.gaierror():
                    return "name_not_resolved", f"the name {host} was not found ({error.strerror})"
                case ConnectionRefusedError():
                    return "connection_refused", f"{host} refused the connection"
            error = error.__cause__ or error.__context__
        return None, self._describe(first, "no connection")

    def _describe(self, error: BaseException | None, missing: str) -> str:
        """Return the error in a few words; `missing` names what did not arrive in time."""
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            return f"{missing} in time, of {self._limits.deadline_seconds:g} s"
        return self._mask(str(error)) or type(error).__name__

    def _mask(self, text: str) -> str:
        return mask_secrets(text, [self._key.get_secret_value()])


async def read_body(
    where: str, parts: AsyncIterator[bytes], encoding: str, bytes_max: int
) -> bytes:
    """Return the unpacked body, at most `bytes_max` of which are in memory.

    Raises `AnswerTooLarge`, and `UnreadableAnswer` if it is not plain or complete gzip data.
    """
    if encoding not in ("", "identity", "gzip"):
        raise errors.UnreadableAnswer(where, "answered with an unknown compression")
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding == "gzip" else None
    body = bytearray()
    try:
        async for part in parts:
            # One byte more than the limit is enough to know: a bomb is never unpacked.
            room = bytes_max - len(body) + 1
            body += part if unpacking is None else unpacking.decompress(part, room)
            if len(body) > bytes_max:
                raise errors.AnswerTooLarge(where, f"answered with more than {bytes_max} bytes")
    except zlib.error:
        raise errors.UnreadableAnswer(where, "answered with damaged gzip data") from None
    if body and unpacking is not None and not unpacking.eof:
        raise errors.UnreadableAnswer(where, "answered with incomplete gzip data")
    return bytes(body)


@cache
def _create_ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context with the default authorities and those in the file; loading is slow."""
    context = ssl.create_default_context(cafile=certifi.where())
    try:
        if ca_file is not None:
            context.load_verify_locations(cafile=ca_file)
    except OSError as error:
        reason = "no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise errors.SettingsError(f"ca_file is {ca_file}: {reason}") from None
    return context

"""The API's routes, derived from the declarations: keys, scopes, limits, errors (API 4, 5, 7, 8).

The store performs the operations; `exchange.py` adds headers and faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Operation
from connector.sandbox.api_answer import ApiAnswer, Body, Rejection
from connector.sandbox.exchange import BODY_BYTES_MAX, PREFIX
from connector.sandbox.request_limits import RequestLimits
from connector.sandbox.store import Store

ALL_SCOPES = "*"
# The operations by method, at each path below the resource's (API 4).
_PATHS: Mapping[str, Mapping[str, Operation]] = {
    "": {"GET": "list", "POST": "create"},
    "/{id}": {"GET": "get", "PUT": "update", "DELETE": "delete"},
    "/{id}/convert": {"POST": "convert"},
}

Between = Callable[[Store], None]
"""What happens to the data between two requests."""


class Api:
    """Application `app` that answers the API's requests, without the HTTP server.

    The hook `between` is called with the store before each request that reaches the store, except
    for the first one.
    """

    def __init__(
        self, store: Store, *, keys: Mapping[str, Iterable[str]], limits: RequestLimits
    ) -> None:
        self.between: Between | None = None
        self._called_next: Between | None = None
        self._store, self._limits = store, limits
        self._scopes = {key: frozenset(scopes) for key, scopes in keys.items()}
        self.app = Starlette(
            routes=list(self._routes()),
            exception_handlers={
                Rejection: self._rejection_response,
                HTTPException: self._unknown_path_response,
            },
        )
        store.interlude = self._call_between

    def _routes(self) -> Iterator[Route]:
        """Yield the routes of every resource for the methods that its operations use."""
        for declaration in CATALOG.values():
            for suffix, listed in _PATHS.items():
                offered = {m: each for m, each in listed.items() if each in declaration.operations}
                if offered:
                    endpoint = partial(self._answer_request, declaration, offered)
                    yield Route(PREFIX + declaration.path + suffix, endpoint, methods=[*offered])

    async def _answer_request(
        self, declaration: Declaration, offered: Mapping[str, Operation], request: Request
    ) -> Response:
        """Perform the operation of a request on the store; return its response.

        `offered` are the operations of the path by method. Raises `Rejection`.
        """
        operation = offered["GET" if request.method == "HEAD" else request.method]
        self._check_access(request, declaration, operation)
        arguments: dict[str, Any] = dict(request.path_params)
        if operation == "list":
            arguments["query"] = dict(request.query_params)
        if operation in ("create", "update"):
            arguments["body"] = _parse_json_object(await request.body())
        if operation in ("create", "update", "convert"):
            arguments["at"] = request.scope["sandbox.at"]
        if operation != "list" or self._store.behaviours.total == "exact":
            self._call_between()
        # The store's methods are named after the operations, their parameters after the path's.
        answer: ApiAnswer = getattr(self._store, operation)(declaration.name, **arguments)
        self._called_next = self.between
        if answer.body is None:
            return Response(status_code=answer.status)
        return JSONResponse(answer.body, answer.status)

    def _call_between(self) -> None:
        """Call the hook `between`, unless it was set after the previous request."""
        between, self._called_next = self._called_next, None
        if between is not None and between is self.between:
            between(self._store)

    def _check_access(
        self, request: Request, declaration: Declaration, operation: Operation
    ) -> None:
        """Raise `Rejection` 401, 429 or 403 if key, limits or scope forbid it (API 5, 8)."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        scopes = self._scopes.get(key.strip()) if scheme.lower() == "bearer" else None
        if scopes is None:
            raise Rejection(401, "The API key is missing or not valid.")
        if not self._limits.try_to_count(self._store.clock()):
            raise Rejection(429, "Too many requests.")
        is_read = operation in ("list", "get")
        scope = declaration.read_scope() if is_read else declaration.write_scope()
        if scope not in scopes and ALL_SCOPES not in scopes:
            raise Rejection(403, f"The API key lacks the scope {scope}.")

    async def _rejection_response(self, request: Request, rejection: Exception) -> Response:
        """Return the response to a rejected request."""
        assert isinstance(rejection, Rejection)  # Starlette maps classes to handlers
        headers = {}
        if rejection.status == 401:
            headers = {"www-authenticate": "Bearer"}
        elif rejection.status == 429 and self._store.behaviours.retry_after != "absent":
            now = self._store.clock()
            is_timestamp = self._store.behaviours.retry_after == "timestamp"
            since = 0 if is_timestamp else int(now.timestamp())
            headers = {"retry-after": str(self._limits.rate_figures(now).reset_at - since)}
        body = rejection.error_body()
        return JSONResponse(body, rejection.status, headers)

    async def _unknown_path_response(self, request: Request, error: Exception) -> Response:
        """Return 404 for an unknown path, or 405 for an unsupported method of a known path."""
        assert isinstance(error, HTTPException)  # as above
        message = "There is nothing at this address."
        if error.status_code == 405:
            message = f"The method {request.method} is not allowed at this address."
        body = Rejection(error.status_code, message).error_body()
        return JSONResponse(body, error.status_code, error.headers)


def _parse_json_object(body: bytes) -> Body:
    """Parse a request body that must be a JSON object. Raises `Rejection` 400 (API 7)."""
    if len(body) > BODY_BYTES_MAX:
        raise Rejection(400, f"The body is longer than {BODY_BYTES_MAX} bytes.")
    try:
        read = json.loads(body.decode("utf-8"), parse_constant=_refuse_nan_and_infinity)
        # A lone surrogate is valid in JSON's escapes and in no text that can be stored.
        json.dumps(read, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Rejection(400, "The body is not valid JSON.") from error
    if not isinstance(read, dict):
        raise Rejection(400, "The body is not a JSON object.")
    return read


def _refuse_nan_and_infinity(constant: str) -> None:
    """Raise `ValueError`, because NaN and Infinity are not JSON."""
    raise ValueError(constant)

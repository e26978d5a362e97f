"""Airbyte's incremental form: `python airbyte_peer.py read --config F --catalog F [--state F]`.

An incremental stream of its Python CDK: the list sorted by what changed last, each detail read
until one is older than the cursor. The exact form is declarative: `airbyte_exact.yaml`. Its
environment alone has the CDK: `make peers`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import requests
from airbyte_cdk.entrypoint import launch
from airbyte_cdk.models import ConnectorSpecification
from airbyte_cdk.sources import AbstractSource
from airbyte_cdk.sources.streams import CheckpointMixin, Stream
from airbyte_cdk.sources.streams.http import HttpStream
from airbyte_cdk.sources.streams.http.error_handlers import (
    BackoffStrategy,
    ErrorHandler,
    HttpStatusErrorHandler,
)
from airbyte_cdk.sources.streams.http.error_handlers.default_error_mapping import (
    DEFAULT_ERROR_MAPPING,
)
from airbyte_cdk.sources.streams.http.error_handlers.response_models import (
    ErrorResolution,
    ResponseAction,
)
from airbyte_cdk.sources.streams.http.requests_native_auth import TokenAuthenticator

_GONE = ErrorResolution(ResponseAction.IGNORE, None, "gone since it was listed")


class _WaitUntilReset(BackoffStrategy):
    """Backoff that waits until the rate limit is reset, as the response headers announce."""

    def backoff_time(self, response_or_exception: Any, attempt_count: int) -> float | None:
        """Return the seconds to wait; None if the response has no such header."""
        reset = getattr(response_or_exception, "headers", {}).get("X-RateLimit-Reset")
        return None if reset is None else max(1.0, float(reset) - time.time())


class ChangedCandidatesStream(HttpStream, CheckpointMixin):
    """Stream of the candidates that changed since the cursor, the latest change first."""

    name = "candidates"
    primary_key = "id"
    cursor_field = "updated_at"

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url, self._cursor, self._newest, self._is_done = base_url, "", "", False
        super().__init__(authenticator=TokenAuthenticator(key))

    @property
    def state(self) -> MutableMapping[str, Any]:
        """Cursor for the next run: the latest `updated_at` that was read."""
        return {self.cursor_field: max(self._cursor, self._newest)}

    @state.setter
    def state(self, value: MutableMapping[str, Any]) -> None:
        """Continue from the cursor of the previous run."""
        self._cursor = value.get(self.cursor_field, "")

    @property
    def url_base(self) -> str:
        """Address before each path."""
        return f"{self._base_url}/api/v1/"

    def path(self, **_: Any) -> str:
        """Return the path of the list."""
        return "candidates"

    def request_params(
        self, next_page_token: Mapping[str, Any] | None = None, **_: Any
    ) -> MutableMapping[str, Any]:
        """Return the query of a page of the list, the latest change first."""
        page = (next_page_token or {"page": 1})["page"]
        return {"page": page, "per_page": 100, "sort": "updated_at", "order": "desc"}

    def next_page_token(self, response: requests.Response) -> Mapping[str, Any] | None:
        """Return the next page; None after the last page or a record older than the cursor."""
        seen = response.json()["pagination"]
        is_last = self._is_done or seen["page"] >= seen["total_pages"]
        return None if is_last else {"page": seen["page"] + 1}

    def parse_response(self, response: requests.Response, **_: Any) -> Iterable[Mapping[str, Any]]:
        """Yield the details of the items of a page until one is older than the cursor."""
        for item in response.json()["data"]:
            _, answer = self._http_client.send_request(
                "GET", f"{self.url_base}candidates/{item['id']}", request_kwargs={}
            )
            if answer.status_code == 404:
                continue
            record = answer.json()["data"]
            if record[self.cursor_field] < self._cursor:
                self._is_done = True
                return
            self._newest = max(self._newest, record[self.cursor_field])
            yield record

    def get_backoff_strategy(self) -> BackoffStrategy:
        """Wait for the reset of the rate limit."""
        return _WaitUntilReset()

    def get_error_handler(self) -> ErrorHandler:
        """Ignore 404, because a record can be deleted after it was listed."""
        return HttpStatusErrorHandler(
            self.logger, error_mapping={**DEFAULT_ERROR_MAPPING, 404: _GONE}
        )

    def get_json_schema(self) -> Mapping[str, Any]:
        """Accept records with any fields."""
        return {"type": "object", "additionalProperties": True, "properties": {}}


class ChangedSource(AbstractSource):
    """Airbyte source with the stream of changed candidates."""

    def spec(self, *_: Any) -> ConnectorSpecification:
        """Accept any configuration."""
        return ConnectorSpecification(connectionSpecification={"type": "object", "properties": {}})

    def check_connection(self, *_: Any) -> tuple[bool, Any]:
        """Skip the check: a run fails if the server cannot be reached."""
        return True, None

    def streams(self, config: Mapping[str, Any]) -> list[Stream]:
        """Return the only stream."""
        return [ChangedCandidatesStream(config["base_url"], config["api_key"])]


if __name__ == "__main__":
    launch(ChangedSource(), sys.argv[1:])

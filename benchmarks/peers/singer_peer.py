"""A Singer tap as its SDK's documents advise: `python singer_peer.py --config FILE [--state FILE]`.

Exact: a list and, as its child stream, the details, replicated whole. Incremental: the list sorted
by what changed last, each detail read until one is older than the bookmark. A spent limit is waited
for until the moment that the headers name. Its environment alone has the SDK: `make peers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import requests
from singer_sdk import RESTStream, Stream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.pagination import BasePageNumberPaginator


class _PageNumbers(BasePageNumberPaginator):
    """Numbers of the pages of a list."""

    def has_more(self, response: requests.Response) -> bool:
        """Return True if the list has more pages."""
        pages: int = response.json()["pagination"]["total_pages"]
        return self.current_value < pages


class _AuthorisedStream(RESTStream[Any]):
    """Base class for streams: address, API key, and waits for the rate limit."""

    primary_keys = ("id",)

    @property
    def url_base(self) -> str:
        """Address before each path."""
        return f"{self.config['base_url']}/api/v1"

    @property
    def authenticator(self) -> BearerTokenAuthenticator:
        """Authenticator that sends the API key as a header."""
        return BearerTokenAuthenticator(token=self.config["api_key"])

    def backoff_wait_generator(self) -> Callable[..., Generator[float, Any, None]]:
        """Return waits until the reset that the response headers announce."""

        def seconds(error: Any) -> float:
            reset = getattr(error.response, "headers", {}).get("X-RateLimit-Reset", 0)
            return max(1.0, float(reset) - time.time())

        return self.backoff_runtime(value=seconds)


class CandidateList(_AuthorisedStream):
    """Stream of list items, used to find the ids of candidates."""

    name = "candidate_list"
    path = "/candidates"
    records_jsonpath = "$.data[*]"
    selected_by_default = False
    schema: ClassVar = th.PropertiesList(th.Property("id", th.StringType)).to_dict()

    def get_new_paginator(self) -> _PageNumbers:
        """Return a paginator that starts at the first page."""
        return _PageNumbers(1)

    def get_url_params(self, _: Any, next_page_token: Any) -> dict[str, Any]:
        """Return the query of a page: oldest first in the exact form, else latest change first."""
        is_exact = self.config["form"] == "exact"
        order = ("created_at", "asc") if is_exact else ("updated_at", "desc")
        named = dict(zip(("sort", "order"), order, strict=True))
        return {"page": next_page_token, "per_page": 100, **named}

    def get_child_context(self, record: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Return the id of the list item, which the path of the child stream contains."""
        return {"id": record["id"]}


class _CandidateDetails(_AuthorisedStream):
    """Base class for streams of complete candidates."""

    name = "candidates"
    path = "/candidates/{id}"
    records_jsonpath = "$.data"

    @property
    def schema_filepath(self) -> Path:
        """File with the JSON Schema of a candidate."""
        return Path(self.config["schema"])

    def validate_response(self, response: requests.Response) -> None:
        """Accept 404, because a record can be deleted after it was listed."""
        if response.status_code != 404:
            super().validate_response(response)

    def parse_response(self, response: requests.Response) -> Iterable[dict[str, Any]]:
        """Return the record, or nothing for a 404."""
        return [] if response.status_code == 404 else super().parse_response(response)


class AllCandidates(_CandidateDetails):
    """Stream of all candidates: one detail request for each list item."""

    parent_stream_type = CandidateList
    state_partitioning_keys: ClassVar[list[str]] = []


class ChangedCandidates(_CandidateDetails):
    """Stream of the candidates that changed since the bookmark."""

    replication_key = "updated_at"
    is_sorted = False

    def get_records(self, context: Any) -> Iterable[dict[str, Any]]:
        """Yield candidates, the latest change first, until one is older than the bookmark."""
        since = self.get_starting_replication_key_value(context)
        for item in CandidateList(self._tap).request_records(None):
            for record in self.request_records({"id": item["id"]}):
                if since and record["updated_at"] < since:
                    return
                yield record


class RecruitmentTap(Tap):
    """Singer tap for candidates, in the form that its configuration names."""

    name = "tap-recruitment"
    config_jsonschema: ClassVar = th.PropertiesList(
        *(
            th.Property(each, th.StringType, required=True)
            for each in ("base_url", "api_key", "form", "schema")
        )
    ).to_dict()

    def discover_streams(self) -> list[Stream]:
        """Return the streams of the configured form."""
        if self.config["form"] == "exact":
            return [CandidateList(self), AllCandidates(self)]
        return [ChangedCandidates(self)]


if __name__ == "__main__":
    RecruitmentTap.cli()

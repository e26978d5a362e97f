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


class _Pages(BasePageNumberPaginator):
    """Pages until the last."""

    def has_more(self, response: requests.Response) -> bool:
        """Whether the server says that there are more."""
        pages: int = response.json()["pagination"]["total_pages"]
        return self.current_value < pages


class _Authorised(RESTStream[Any]):
    """What both streams of this API share."""

    primary_keys = ("id",)

    @property
    def url_base(self) -> str:
        """The address before each path."""
        return f"{self.config['base_url']}/api/v1"

    @property
    def authenticator(self) -> BearerTokenAuthenticator:
        """The key as a header."""
        return BearerTokenAuthenticator(token=self.config["api_key"])

    def backoff_wait_generator(self) -> Callable[..., Generator[float, Any, None]]:
        """Wait until the moment that the answer's headers name."""

        def seconds(error: Any) -> float:
            reset = getattr(error.response, "headers", {}).get("X-RateLimit-Reset", 0)
            return max(1.0, float(reset) - time.time())

        return self.backoff_runtime(value=seconds)


class CandidateList(_Authorised):
    """The pages of the list: the parent, whose own records nobody wants."""

    name = "candidate_list"
    path = "/candidates"
    records_jsonpath = "$.data[*]"
    selected_by_default = False
    schema: ClassVar = th.PropertiesList(th.Property("id", th.StringType)).to_dict()

    def get_new_paginator(self) -> _Pages:
        """Pages from the first."""
        return _Pages(1)

    def get_url_params(self, _: Any, next_page_token: Any) -> dict[str, Any]:
        """What changed last comes first where only changes are wanted; else the oldest."""
        is_exact = self.config["form"] == "exact"
        order = ("created_at", "asc") if is_exact else ("updated_at", "desc")
        named = dict(zip(("sort", "order"), order, strict=True))
        return {"page": next_page_token, "per_page": 100, **named}

    def get_child_context(self, record: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Which detail belongs to an item."""
        return {"id": record["id"]}


class _Details(_Authorised):
    """The details of candidates."""

    name = "candidates"
    path = "/candidates/{id}"
    records_jsonpath = "$.data"

    @property
    def schema_filepath(self) -> Path:
        """The fields of a candidate."""
        return Path(self.config["schema"])

    def validate_response(self, response: requests.Response) -> None:
        """A record that has gone since it was listed is no failure."""
        if response.status_code != 404:
            super().validate_response(response)

    def parse_response(self, response: requests.Response) -> Iterable[dict[str, Any]]:
        """The record, where there is one."""
        return [] if response.status_code == 404 else super().parse_response(response)


class AllCandidates(_Details):
    """Every record, each read for its item of the list."""

    parent_stream_type = CandidateList
    state_partitioning_keys: ClassVar[list[str]] = []


class ChangedCandidates(_Details):
    """The records that changed since the bookmark."""

    replication_key = "updated_at"
    is_sorted = False

    def get_records(self, context: Any) -> Iterable[dict[str, Any]]:
        """Details until one is older than the bookmark."""
        since = self.get_starting_replication_key_value(context)
        for item in CandidateList(self._tap).request_records(None):
            for record in self.request_records({"id": item["id"]}):
                if since and record["updated_at"] < since:
                    return
                yield record


class RecruitmentTap(Tap):
    """The tap of one form."""

    name = "tap-recruitment"
    config_jsonschema: ClassVar = th.PropertiesList(
        *(
            th.Property(each, th.StringType, required=True)
            for each in ("base_url", "api_key", "form", "schema")
        )
    ).to_dict()

    def discover_streams(self) -> list[Stream]:
        """The streams of the form."""
        if self.config["form"] == "exact":
            return [CandidateList(self), AllCandidates(self)]
        return [ChangedCandidates(self)]


if __name__ == "__main__":
    RecruitmentTap.cli()

"""dlt as its documents advise: `python dlt_peer.py exact|incremental URL KEY FOLDER`.

Exact: its REST source with a list, a dependent resource for the details that reads several at
once, and `replace`. Incremental: the list sorted by what changed last, each detail read until one
is older than the cursor, and `merge`. Its environment alone has dlt: `make peers`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

KEY_DEFAULT = "sandbox-key"
# Nothing is sent to anybody, and a limit of a minute is waited for: five attempts last 15 s.
os.environ |= {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__REQUEST_MAX_ATTEMPTS": "10"}

import dlt  # noqa: E402  # it reads the environment
from dlt.sources.helpers import requests  # noqa: E402  # as above
from dlt.sources.helpers.rest_client import RESTClient  # noqa: E402  # as above
from dlt.sources.helpers.rest_client.auth import BearerTokenAuth  # noqa: E402  # as above
from dlt.sources.helpers.rest_client.paginators import PageNumberPaginator  # noqa: E402  # as above
from dlt.sources.rest_api import rest_api_source  # noqa: E402  # as above


def full_source(url: str, key: str) -> Any:
    """Return a source that reads all candidates."""
    return rest_api_source(
        {
            "client": {
                "base_url": url,
                "auth": {"type": "bearer", "token": key},
                "paginator": {
                    "type": "page_number",
                    "base_page": 1,
                    "total_path": "pagination.total_pages",
                },
            },
            "resources": [
                {
                    "name": "listed",
                    "selected": False,
                    "endpoint": {
                        "path": "candidates",
                        "params": {"per_page": 100, "sort": "created_at", "order": "asc"},
                        "data_selector": "data",
                    },
                },
                {
                    "name": "candidates",
                    "primary_key": "id",
                    "write_disposition": "replace",
                    "parallelized": True,
                    "endpoint": {
                        "path": "candidates/{resources.listed.id}",
                        "paginator": "single_page",
                        "data_selector": "data",
                        "response_actions": [{"status_code": 404, "action": "ignore"}],
                    },
                },
            ],
        }
    ).with_resources("candidates")


def changed_candidates(url: str, key: str) -> Any:
    """Return a resource that reads the candidates that changed since its cursor."""
    client = RESTClient(
        base_url=url,
        auth=BearerTokenAuth(key),
        paginator=PageNumberPaginator(base_page=1, total_path="pagination.total_pages"),
        data_selector="data",
    )

    # It closes the resource at the first record that is older than what it has seen.
    cursor = dlt.sources.incremental("updated_at", row_order="desc")

    @dlt.resource(name="candidates", primary_key="id", write_disposition="merge")
    def candidates(updated_at: Any = cursor) -> Iterator[Any]:
        query = {"per_page": 100, "sort": "updated_at", "order": "desc"}
        for page in client.paginate("candidates", params=query):
            for item in page:
                try:
                    yield client.get(f"candidates/{item['id']}").json()["data"]
                except requests.HTTPError as error:
                    if error.response.status_code != 404:
                        raise

    return candidates


def main(form: str, base_url: str, key: str, folder: str) -> None:
    """Copy the candidates into `peers.duckdb` of the folder; `form` is "exact" or "incremental"."""
    pipeline = dlt.pipeline(
        "peers",
        pipelines_dir=f"{folder}/state",
        destination=dlt.destinations.duckdb(f"{folder}/peers.duckdb"),
        dataset_name="landed",
    )
    form_of = {"exact": full_source, "incremental": changed_candidates}[form]
    pipeline.run(form_of(f"{base_url}/api/v1/", key))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Keys of the assets, and the external assets, which Dagster shows and does not materialize.

External assets are the resources of the API, the inbox folders and the report. The graph then
begins with the sources and ends with the outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration
from connector.pushes.push import ORDER
from pipelines.accounts import Accounts

LANDING = "landing"
API = "recruitment_api"
INBOX = "inbox"
PUBLISHING = "publishing"

KEYS = {name: dg.AssetKey([LANDING, name]) for name in CATALOG}
"""The loaded table of each resource."""

API_KEYS = {name: dg.AssetKey([API, name]) for name in CATALOG}
"""Each resource in the API."""

INBOX_KEYS = {name: dg.AssetKey([INBOX, name]) for name in ORDER}
"""The inbox folder of each resource that can be pushed."""

PUBLISHED = dg.AssetKey(["published"])
"""The file that analysts open."""

PUSH_FROM_QUERY = dg.AssetKey(["push_from_query"])
"""The push of the rows of a query, which runs only when it is requested."""

REPORT = dg.AssetKey(["report"])

DATA_TEAM = ("team:data",)
RECRUITING_TEAM = ("team:recruiting",)


def source_metadata(path: Path | str) -> Mapping[str, dg.CodeReferencesMetadataValue]:
    """Return the metadata that links an asset to this source file."""
    with warnings.catch_warnings():
        # Beta in Dagster 1.13, which the requirements pin.
        warnings.simplefilter("ignore", dg.BetaWarning)
        reference = dg.LocalFileCodeReference(file_path=str(path), line_number=1)
        return {
            "dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[reference])
        }


def external_assets(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """Yield the assets that Dagster shows but does not build: API, inboxes, report."""
    shared: dict[str, Any] = {"partitions_def": accounts.partitions}
    for name, key in INBOX_KEYS.items():
        yield dg.AssetSpec(
            key,
            description=f"Spreadsheets in `inbox/{name}/` of the data folder. With `inbox_sensor`"
            " switched on, each file is pushed once.",
            group_name=INBOX,
            kinds={"csv", "excel"},
            owners=RECRUITING_TEAM,
            **shared,
        )
    for name, resource in CATALOG.items():
        yield dg.AssetSpec(
            API_KEYS[name],
            deps=[INBOX_KEYS[name]] if name in INBOX_KEYS else [],
            description=f"{resource.about} A push that changes records is shown as an observation.",
            group_name=API,
            kinds={"api"},
            owners=RECRUITING_TEAM,
            metadata=_address_metadata(resource, accounts),
            **shared,
        )
    yield dg.AssetSpec(
        REPORT,
        deps=[PUBLISHED],
        description="Page for directors with the main figures. `connector report` writes it from"
        " the published file.",
        group_name=PUBLISHING,
        kinds={"html"},
        owners=DATA_TEAM,
        **shared,
    )


def _address_metadata(resource: Declaration, accounts: Accounts) -> Mapping[str, str]:
    """Return metadata with the resource's URL; empty if accounts have different addresses."""
    base_url = accounts.common.base_url
    if accounts.names or base_url is None:
        return {}
    return {"dagster/uri": f"{base_url}/api/v1{resource.path}"}

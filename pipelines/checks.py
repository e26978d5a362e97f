"""The check of each landed resource: the landing holds as many live rows as the API counts."""

from __future__ import annotations

import dagster as dg

from connector import Declaration, ResourceRun, difference

NAME = "matches_api_total"


def spec_of(resource: Declaration, asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """The check of one resource."""
    return dg.AssetCheckSpec(
        NAME,
        asset=asset,
        description=f"The live rows of landing.{resource.name} are as many as the `total` of the"
        " last list that the API gave (API 4.1).",
    )


def result_of(done: ResourceRun, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """How the check came out; a total that is not known fails it.

    Where the pull is proven all the same, the API changed meanwhile, and failing is a warning.
    """
    metadata: dict[str, int] = {"live": done.live, "pending": done.pending}
    if done.total is not None:
        metadata["total"] = done.total
    return dg.AssetCheckResult(
        passed=done.live == done.total,
        check_name=NAME,
        asset_key=asset,
        severity=dg.AssetCheckSeverity.WARN if done.proven else dg.AssetCheckSeverity.ERROR,
        description=difference(done),
        metadata=metadata,
    )

"""The jobs that pull: the night's, the day's, and the weekly one that looks twice.

All of them are the same assets; they differ in how much of them they take, and how closely the
pull looks.
"""

from __future__ import annotations

import dagster as dg

from pipelines import freshness, landing, models

PULL = "pull"
INTRADAY = "intraday"
SCRUB = "scrub"
FRESHNESS = "freshness"

PULLING = (PULL, INTRADAY, SCRUB)
"""The jobs of which one at a time runs for an account."""

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

UNDER_WAY = [each for each in dg.DagsterRunStatus if each not in ENDED]
"""A run that waits for its turn is under way as well."""

# A retry that Dagster begins by itself, or a person in its page, leaves out what has landed.
_TAGS = {"dagster/retry_strategy": "FROM_ASSET_FAILURE"}
# One check is of all accounts, and so it belongs to no run of one of them.
_FRESH = dg.AssetSelection.checks(dg.AssetCheckKey(freshness.PUBLISHED, freshness.NAME))
_DEEP = {"ops": {"pull_landing": {"config": {"deep": True}}}}

pull_job = dg.define_asset_job(
    PULL,
    # Everything there is: what lands, what is made of it, and the file in the end.
    selection=dg.AssetSelection.all() - _FRESH,
    tags=_TAGS,
    description="Pull every resource, build and check the models, and publish.",
)

intraday_job = dg.define_asset_job(
    INTRADAY,
    selection=dg.AssetSelection.assets(*landing.KEYS.values(), models.PUBLISHED) - _FRESH,
    tags=_TAGS,
    description="Pull every resource and publish, unless nothing has changed; models are built with"
    " the file, and only their outcome is recorded.",
)

scrub_job = dg.define_asset_job(
    SCRUB,
    selection=dg.AssetSelection.all() - _FRESH,
    config=_DEEP,
    tags=_TAGS,
    description="As `pull`, and compare every page of the lists, and spend scrub_requests on"
    " looking again at what was verified longest ago.",
)

freshness_job = dg.define_asset_job(
    FRESHNESS, selection=_FRESH, description="Check how old the proven data is; no request is sent."
)

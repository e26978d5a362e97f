"""The jobs that pull, and the check of the data's age.

The pulls use the same assets. They differ in the assets that they select and in how much of the
unchanged data they verify.
"""

from __future__ import annotations

import dagster as dg

from pipelines import freshness
from pipelines.graph import KEYS, PUBLISHED, PUSH_FROM_QUERY

NIGHTLY = "nightly_pull"
INTRADAY = "intraday_pull"
WEEKLY = "weekly_verification"
FRESHNESS = "hourly_freshness_check"

PULLING = (NIGHTLY, INTRADAY, WEEKLY)
"""Jobs that pull. Only one of them runs for an account at a time."""

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

UNDER_WAY = [each for each in dg.DagsterRunStatus if each not in ENDED]
"""Includes queued runs."""

# A retry, by Dagster or by a user, leaves out the resources that were loaded.
_TAGS = {"dagster/retry_strategy": "FROM_ASSET_FAILURE"}
# This check covers all accounts, so it is not part of the run of one account.
_FRESH = dg.AssetSelection.checks(dg.AssetCheckKey(PUBLISHED, freshness.NAME))
_ALL = dg.AssetSelection.all() - _FRESH - dg.AssetSelection.assets(PUSH_FROM_QUERY)

CONFIG = {WEEKLY: {"ops": {"pull_landing": {"config": {"verify_unchanged": True}}}}}
"""Configuration of the jobs, by name."""

nightly_pull_job = dg.define_asset_job(
    NIGHTLY,
    selection=_ALL,
    tags=_TAGS,
    description="Pull all resources, build and check the models, and publish the file that analysts"
    " open.",
)

intraday_pull_job = dg.define_asset_job(
    INTRADAY,
    selection=dg.AssetSelection.assets(*KEYS.values(), PUBLISHED) - _FRESH,
    tags=_TAGS,
    description="Pull all resources, build the models and publish. Records only the loaded"
    " resources and the published file.",
)

weekly_verification_job = dg.define_asset_job(
    WEEKLY,
    selection=_ALL,
    config=CONFIG[WEEKLY],
    tags=_TAGS,
    description="Do the same as nightly_pull, and also compare every page of the API's lists and"
    " re-read the least recently verified records. The setting `verification_requests` limits the"
    " extra requests.",
)

hourly_freshness_job = dg.define_asset_job(
    FRESHNESS,
    selection=_FRESH,
    description="Check the age of each account's data. Sends no API requests.",
)

"""The states of Dagster's runs, as those that are under way and those that have ended."""

from __future__ import annotations

import dagster as dg

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

UNDER_WAY = [each for each in dg.DagsterRunStatus if each not in ENDED]
"""A run that waits for its turn is under way as well."""

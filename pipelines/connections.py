"""The resource that assets reach their account through. It reads settings and opens nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from connector import ConnectorError, Settings, TryAgain, Watch, explain, load_settings


@dataclass(frozen=True)
class Account:
    """Where assets find the account's settings, at the moment when they run.

    `environ` and `cwd` are this process's own unless they are given; the environment chooses the
    account (`CONNECTOR_ACCOUNT`). A plain object rather than a configurable resource: nothing of
    it is part of a run's configuration, which Dagster stores and shows. `watch` is told of a pull's
    progress, in place of the run's log.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    cwd: Path | None = None
    watch: Watch | None = None

    def settings(self) -> Settings:
        """The settings as they are now. Raises `dagster.Failure`, which says what to set."""
        try:
            return load_settings({}, self.environ, self.cwd or Path.cwd())
        except ConnectorError as error:
            raise failure_of(error) from None


def failure_of(error: ConnectorError) -> dg.Failure:
    """The error as Dagster shows it: what happened, what to do, and no traceback to read first.

    It is worth a retry where nobody need do anything first: another pull may be under way.
    """
    return dg.Failure(
        description=explain(error),
        metadata={"code": error.code, "action": error.action},
        allow_retries=isinstance(error, TryAgain),
    )

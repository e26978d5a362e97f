"""The resource that assets reach their account through. It reads settings and opens nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from connector import ConnectorError, LeaseHeld, Settings, TryAgain, Watch, explain, load_settings

_CHOICE = "CONNECTOR_ACCOUNT"
_OF_ONE_ACCOUNT = tuple(
    f"CONNECTOR_{name}" for name in ("BASE_URL", "API_KEY", "API_KEY_FILE", "API_KEY_KEYRING")
)
"""Variables that would give every account the same address or key."""


@dataclass(frozen=True)
class Account:
    """Where assets find the account's settings, at the moment when they run.

    `environ` and `cwd` are this process's own unless they are given; the partition chooses the
    account, and, where there are none, the environment (`CONNECTOR_ACCOUNT`). A plain object
    rather than a configurable resource: nothing of it is part of a run's configuration, which
    Dagster stores and shows. `watch` is told of a pull's progress, in place of the run's log.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    cwd: Path | None = None
    watch: Watch | None = None

    @property
    def folder(self) -> Path:
        """The project's folder."""
        return self.cwd or Path.cwd()

    @property
    def unnamed(self) -> Mapping[str, str]:
        """The environment without its choice of an account."""
        return {name: value for name, value in self.environ.items() if name != _CHOICE}

    def settings(self, name: str | None = None) -> Settings:
        """The settings of the account as they are now; `name` is its partition, if it has one.

        Raises `dagster.Failure`, which says what to set.
        """
        try:
            settings = load_settings({"account": name}, self.environ, self.folder)
        except ConnectorError as error:
            raise failure_of(error) from None
        if name is not None and len(settings.accounts) > 1:
            _refuse_one_for_all(settings)
        return settings


def _refuse_one_for_all(settings: Settings) -> None:
    """Raise `dagster.Failure` where the environment would give all accounts one address or key,
    so that each of them would be a copy of the same workspace.
    """
    for each in (settings.base_url, settings.api_key):
        for variable in _OF_ONE_ACCOUNT:
            if each.origin == variable or each.origin.endswith(f"named by {variable}"):
                raise dg.Failure(
                    description=f"{variable} is set, and would be that of every account. Unset it:"
                    " an address and a key belong into each account's table of the project file.",
                    allow_retries=False,
                )


def failure_of(error: ConnectorError, *, waits: bool = False) -> dg.Failure:
    """The error as Dagster shows it: what happened, what to do, and no traceback to read first.

    It is worth a retry where the same request may succeed later without anybody's doing anything.
    Another run's lease is not: that run does the work, and a second one would only queue behind
    it, unless this run `waits`, since it takes the place of one that was killed and whose lease may
    still have to run out.
    """
    is_worth_it = isinstance(error, TryAgain) and (waits or not isinstance(error, LeaseHeld))
    return dg.Failure(
        description=explain(error),
        metadata={"code": error.code, "action": error.action},
        allow_retries=is_worth_it,
    )

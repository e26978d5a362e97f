"""Accounts: where assets find their settings, and the partition that each account is.

Where the project file names accounts, each is a partition of every asset, so that Dagster keeps a
state, runs and retries of its own for each. Where it names none there are no partitions. After a
change of the project file the definitions must be loaded again; what was recorded of an account
that is gone stays recorded.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import dagster as dg

from connector import (
    ConfiguredAccount,
    ConnectorError,
    LeaseHeld,
    Settings,
    TryAgain,
    Watch,
    configured_accounts,
    explain,
    load_settings,
    refuse_one_for_all,
)

PARTITION_TAG = "dagster/partition"
"""The tag of a run that names its account, where accounts are partitions."""

_NAME = re.compile(r"[a-z0-9_-]+")
_NOWHERE = Path(os.devnull)
"""A folder without a project file."""

_CHOICE = "CONNECTOR_ACCOUNT"


@dataclass(frozen=True)
class Account:
    """Resource that gives assets the settings of their account when they run.

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
            return settings if name is None else refuse_one_for_all(settings)
        except ConnectorError as error:
            raise failure_of(error) from None


Context = dg.AssetExecutionContext | dg.OpExecutionContext
"""Context of a step that may be retried."""


def failure_of(
    error: ConnectorError, context: Context | None = None, *, waits: bool = False
) -> dg.Failure:
    """Return the error as a failure that Dagster shows without a traceback.

    Dagster retries the step if the same request may succeed later without anybody's help. It does
    not wait for another run's lease: that run does the same work. The exception is a run that
    `waits`, because it replaces a killed run whose lease may not have expired yet.
    """
    is_worth_it = isinstance(error, TryAgain) and (waits or not isinstance(error, LeaseHeld))
    return dg.Failure(
        description=explain(error),
        metadata={"code": error.code, "action": error.action},
        allow_retries=is_worth_it and not (context and is_last_try(context)),
    )


def is_last_try(context: Context) -> bool:
    """Return True if Dagster does not retry the step again.

    A failure of the last try must not allow retries: Dagster would show "Exceeded max_retries"
    instead of the failure.
    """
    policy = context.op_def.retry_policy
    return policy is None or context.retry_number >= policy.max_retries


@dataclass(frozen=True)
class Accounts:
    """The named accounts, none where the project file names none; `common` are the settings that
    hold where an account says nothing of its own. `problem` says what is wrong with the project
    file as a whole: no account is known then, and no run can succeed. `nameless` are sentences on
    tables whose name no account can have, and so no partition either.
    """

    named: tuple[ConfiguredAccount, ...]
    common: Settings
    problem: str | None = None
    nameless: tuple[str, ...] = ()

    @classmethod
    def none(cls, problem: str | None = None) -> Accounts:
        """No account is named, and nothing is set."""
        return cls((), load_settings({}, {}, _NOWHERE), problem)

    @classmethod
    def of(cls, account: Account) -> Accounts:
        """The accounts as they are configured now. Nothing is raised: what is wrong with one is
        told by its runs.
        """
        try:
            found = configured_accounts(account.environ, account.folder)
        except ConnectorError as error:
            return cls.none(explain(error))
        is_name = {each.name: bool(_NAME.fullmatch(each.name)) for each in found if each.name}
        named = tuple(each for each in found if each.name and is_name[each.name])
        nameless = tuple(
            explain(each.error) for each in found if each.name and each.error and each not in named
        )
        try:
            common = load_settings({}, account.unnamed, account.folder, heeds_all=False)
        except ConnectorError:
            common = cls.none().common
        return cls(named, common, nameless=nameless)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the project file's order."""
        return tuple(each.name for each in self.named if each.name is not None)

    @cached_property
    def partitions(self) -> dg.StaticPartitionsDefinition | None:
        """The partitions of every asset: one for each account; None where no account is named."""
        return dg.StaticPartitionsDefinition(self.names) if self.named else None

    @property
    def pool(self) -> str | None:
        """The pool of what speaks to the API. Runs of different accounts do not wait for each
        other, and those of one are kept apart by the limit on `dagster/partition`.
        """
        return None if self.named else "api"


def account_of(
    context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext,
) -> str | None:
    """The account of a run, None where accounts are no partitions."""
    return context.partition_key if context.has_partition_key else None


def check_of(
    accounts: Accounts, key: dg.AssetCheckKey, about: str, *, is_blocking: bool = False
) -> dg.AssetCheckSpec:
    """Return a check with a separate state for each account, like its asset."""
    with warnings.catch_warnings():
        # Dagster says that it may change; without it the last account's result is everybody's.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            key.name,
            asset=key.asset_key,
            blocking=is_blocking,
            description=about,
            partitions_def=accounts.partitions,
        )


def keys_asked(context: dg.AssetExecutionContext) -> set[dg.AssetKey]:
    """Return the assets of which the step has to materialize the asset or run a check."""
    checked = {each.asset_key for each in context.selected_asset_check_keys}
    return {*context.selected_asset_keys, *checked}

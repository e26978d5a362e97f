"""Accounts: the settings of assets, and one partition per account.

If the project file names accounts, each is a partition of every asset, with a separate state, runs
and retries in Dagster. Otherwise there are no partitions. After a change of the project file,
reload the definitions. Records of removed accounts are kept.
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

from connector.errors import AccountBusy, ConnectorError, TryAgain
from connector.pulls.report import Watch, explain
from connector.settings import (
    ConfiguredAccount,
    Settings,
    configured_accounts,
    load_settings,
    refuse_shared_credentials,
)

PARTITION_TAG = "dagster/partition"
"""Tag of a run that names its account, if accounts are partitions."""

_NAME = re.compile(r"[a-z0-9_-]+")
_NOWHERE = Path(os.devnull)
"""Folder without a project file."""

_CHOICE = "CONNECTOR_ACCOUNT"


@dataclass(frozen=True)
class Account:
    """Dagster resource that loads the settings of an asset's account.

    It is a plain object, not a configurable resource, so that no part of it is stored in a run's
    configuration. The partition selects the account; without partitions, the environment does
    (`CONNECTOR_ACCOUNT`).

    Attributes:
        environ: Environment variables. Default: those of this process.
        cwd: Working folder. Default: that of this process.
        watch: Called with a pull's progress, instead of writing it to the run's log.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    cwd: Path | None = None
    watch: Watch | None = None

    @property
    def folder(self) -> Path:
        """Folder of the project."""
        return self.cwd or Path.cwd()

    @property
    def environ_without_account(self) -> Mapping[str, str]:
        """Environment variables without the selection of an account."""
        return {name: value for name, value in self.environ.items() if name != _CHOICE}

    def settings(self, name: str | None = None) -> Settings:
        """Load the settings of the account; `name` is its partition, None without partitions.

        Raises `dagster.Failure` with the setting to change.
        """
        try:
            settings = load_settings({"account": name}, self.environ, self.folder)
            return settings if name is None else refuse_shared_credentials(settings)
        except ConnectorError as error:
            raise to_failure(error) from None


Context = dg.AssetExecutionContext | dg.OpExecutionContext
"""Context of a step that may be retried."""


def to_failure(error: ConnectorError, context: Context | None = None) -> dg.Failure:
    """Return the error as a failure that Dagster shows without a traceback.

    Dagster retries the step if the same request may succeed later without a change. It does not
    wait again for a process that uses the account: that one does the same work, or ends late.
    """
    is_worth_it = isinstance(error, TryAgain) and not isinstance(error, AccountBusy)
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
    """Accounts of the project file.

    Attributes:
        named: Named accounts; empty if the project file names none.
        common: Settings that apply unless an account overrides them.
        problem: Error of the whole project file. No account is known then, and every run fails.
        nameless: Sentences on tables whose name is no valid account name, so they have no
            partition.
    """

    named: tuple[ConfiguredAccount, ...]
    common: Settings
    problem: str | None = None
    nameless: tuple[str, ...] = ()

    @classmethod
    def unconfigured(cls, problem: str | None = None) -> Accounts:
        """Return default settings without accounts; `problem` is the error of the project file."""
        return cls((), load_settings({}, {}, _NOWHERE), problem)

    @classmethod
    def read(cls, account: Account) -> Accounts:
        """Read the project file. Errors are stored and not raised, because runs report them."""
        try:
            found = configured_accounts(account.environ, account.folder)
        except ConnectorError as error:
            return cls.unconfigured(explain(error))
        is_name = {each.name: bool(_NAME.fullmatch(each.name)) for each in found if each.name}
        named = tuple(each for each in found if each.name and is_name[each.name])
        nameless = tuple(
            explain(each.error) for each in found if each.name and each.error and each not in named
        )
        try:
            common = load_settings({}, account.environ_without_account, account.folder)
        except ConnectorError:
            common = cls.unconfigured().common
        return cls(named, common, nameless=nameless)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the accounts, in the order of the project file."""
        return tuple(each.name for each in self.named if each.name is not None)

    @cached_property
    def partitions(self) -> dg.StaticPartitionsDefinition | None:
        """One partition per named account; None if no account is named."""
        return dg.StaticPartitionsDefinition(self.names) if self.named else None

    @property
    def pool(self) -> str | None:
        """Dagster pool of steps that send requests; None if accounts are partitions.

        The limit on `dagster/partition` then separates the runs of one account, and runs of
        different accounts do not wait for each other.
        """
        return None if self.named else "api"


def account_of(
    context: dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext,
) -> str | None:
    """Return the run's partition, the name of its account; None without partitions."""
    return context.partition_key if context.has_partition_key else None


def asset_check_spec(
    accounts: Accounts, key: dg.AssetCheckKey, about: str, *, is_blocking: bool = False
) -> dg.AssetCheckSpec:
    """Return the specification of a check, with a separate state for each account."""
    with warnings.catch_warnings():
        # Dagster documents this argument as unstable. Without it, all accounts share the last
        # result.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            key.name,
            asset=key.asset_key,
            blocking=is_blocking,
            description=about,
            partitions_def=accounts.partitions,
        )


def selected_keys(context: dg.AssetExecutionContext) -> set[dg.AssetKey]:
    """Return the assets that the step must materialize or check."""
    checked = {each.asset_key for each in context.selected_asset_check_keys}
    return {*context.selected_asset_keys, *checked}

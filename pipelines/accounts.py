"""Accounts: settings of a run, one partition per named account, and the keys of the assets.

If the project file names accounts, each is a partition of every asset, with its own state and runs
in Dagster. After a change of the project file, reload the definitions.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

from connector.errors import AccountBusy, ConnectorError, TryAgain
from connector.models.project import Project, load_project
from connector.pulls.report import Watch, explain
from connector.settings import (
    ConfiguredAccount,
    Settings,
    configured_accounts,
    load_settings,
    refuse_shared_credentials,
)

ACCOUNT_TAG = "connector/account"
"""Tag of a run with the name of its account. `dagster.yaml` allows one run for each value."""

PARTITION_TAG = "dagster/partition"
"""Dagster's tag of a run with its partition."""

UNNAMED = "unnamed"
"""Value of `ACCOUNT_TAG` if the project file names no account."""

LANDING, API, INBOX = "landing", "recruitment_api", "inbox"
"""Second-last part of asset keys, and the groups of the assets."""

DATA_TEAM, RECRUITING_TEAM = ("team:data",), ("team:recruiting",)

RETRY_SECONDS = (60, 180)
"""Seconds before the second and the third try of a step that failed for a temporary reason."""

Result = TypeVar("Result")
Context = dg.AssetExecutionContext | dg.OpExecutionContext


@dataclass(frozen=True)
class Account:
    """Dagster resource that loads the settings of a run's account.

    It is a plain object, so that no part of it is stored in a run's configuration. The partition
    selects the account; without partitions, `CONNECTOR_ACCOUNT` does.

    Attributes:
        environ: Environment variables. Default: those of this process.
        cwd: Folder of the project. Default: the working folder of this process.
        watch: Called with a pull's progress, instead of writing it to the run's log.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    cwd: Path | None = None
    watch: Watch | None = None

    @property
    def folder(self) -> Path:
        """Folder of the project."""
        return self.cwd or Path.cwd()

    def settings(self, name: str | None = None) -> Settings:
        """Load the settings of the account; `name` is its partition, None without partitions.

        Raises `dagster.Failure` with the setting to change.
        """
        try:
            settings = load_settings({"account": name}, self.environ, self.folder)
            return settings if name is None else refuse_shared_credentials(settings)
        except ConnectorError as error:
            raise to_failure(error) from None


@dataclass(frozen=True)
class Accounts:
    """Accounts of the project file, as the definitions need them.

    Attributes:
        named: Named accounts; empty if the project file names none.
        common: Settings that apply unless an account overrides them.
        prefix: First parts of every asset key.
    """

    named: tuple[ConfiguredAccount, ...]
    common: Settings = field(repr=False)
    prefix: tuple[str, ...]

    @classmethod
    def read(cls, account: Account, prefix: Sequence[str] = ()) -> Accounts:
        """Read the project file. Its errors are not raised, because every run reports them."""
        environ = {n: value for n, value in account.environ.items() if n != "CONNECTOR_ACCOUNT"}
        named: tuple[ConfiguredAccount, ...] = ()
        common = load_settings({}, {}, Path(os.devnull))
        with suppress(ConnectorError):
            found = configured_accounts(environ, account.folder)
            # A name with other characters is no partition, and its settings are invalid.
            named = tuple(each for each in found if re.fullmatch(r"[a-z0-9_-]+", each.name or ""))
            common = load_settings({}, environ, account.folder)
        return cls(named, common, tuple(prefix))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the accounts, in the order of the project file."""
        return tuple(each.name for each in self.named if each.name is not None)

    @property
    def settings(self) -> Mapping[str | None, Settings]:
        """Settings by account, without partitions by None. Common ones if they are invalid."""
        named = {each.name: each.settings or self.common for each in self.named}
        return named or {None: self.common}

    @cached_property
    def partitions(self) -> dg.StaticPartitionsDefinition | None:
        """One partition per named account; None if no account is named."""
        return dg.StaticPartitionsDefinition([*self.names]) if self.named else None

    @cached_property
    def project(self) -> Project:
        """Shipped models, and the own models of all accounts.

        Own models with errors are left out, because the run that builds them reports the errors.
        """
        shipped = load_project()
        nodes, checks = {**shipped.nodes}, {each.name: each for each in shipped.checks}
        for own in {each.models_folder for each in self.settings.values()} - {None}:
            with suppress(ConnectorError):
                found = load_project(own=own)
                nodes |= found.nodes
                checks |= {each.name: each for each in found.checks}
        return Project(nodes, shipped.sources, tuple(checks.values()))

    @property
    def freshness_policy(self) -> dg.FreshnessPolicy:
        """Freshness policy of loaded tables and of the published file: the shortest `max_age`."""
        ages = [each.max_age.length for each in self.settings.values()]
        # Dagster accepts no shorter window than a minute.
        return dg.FreshnessPolicy.time_window(fail_window=max(timedelta(minutes=1), min(ages)))

    def key(self, *parts: str) -> dg.AssetKey:
        """Return the key of an asset: the prefix and its own parts."""
        return dg.AssetKey([*self.prefix, *parts])

    def asset_spec(self, *parts: str, path: Path | str, **given: Any) -> dg.AssetSpec:
        """Return an asset of every account, with a link to its source file."""
        with warnings.catch_warnings():
            # Beta in Dagster 1.13, which the requirements pin.
            warnings.simplefilter("ignore", dg.BetaWarning)
            reference = dg.LocalFileCodeReference(file_path=str(path), line_number=1)
            code = dg.CodeReferencesMetadataValue(code_references=[reference])
        metadata = {**given.pop("metadata", {}), "dagster/code_references": code}
        return dg.AssetSpec(
            self.key(*parts),
            metadata=metadata,
            partitions_def=self.partitions,
            skippable=True,
            **{"owners": DATA_TEAM, **given},
        )

    def check_spec(
        self, key: dg.AssetKey, name: str, description: str, *, blocking: bool = False
    ) -> dg.AssetCheckSpec:
        """Return a check with a separate state for each account."""
        with warnings.catch_warnings():
            # Dagster documents `partitions_def` of a check as unstable.
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.AssetCheckSpec(
                name,
                asset=key,
                blocking=blocking,
                description=description,
                partitions_def=self.partitions,
            )


def as_identifier(name: str) -> str:
    """Return an account's name in the letters that Dagster allows; two names stay different."""
    return name.replace("-", "_DASH_")  # an account's name has no capitals


def account_of(context: Context) -> str | None:
    """Return the run's partition, the name of its account; None without partitions."""
    return context.partition_key if context.has_partition_key else None


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work to its end. *Terminate* and Ctrl-C cancel it, so loaded records are kept.

    Dagster's own handler raises an exception wherever Python is, and it can be lost in a callback.
    Raises KeyboardInterrupt if the work was canceled.
    """
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {each: signal.getsignal(each) for each in signals}

    async def cancel_on_signals() -> Result:
        task = asyncio.ensure_future(work)
        for each in signals:
            asyncio.get_running_loop().add_signal_handler(each, task.cancel)
        return await task

    try:
        return asyncio.run(cancel_on_signals())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def retry(context: Context, reason: dg.Failure) -> None:
    """Raise the exception with which Dagster runs the step again later, if it has tries left.

    The steps have no retry policy: with one, Dagster also repeats a step that a user terminated.
    """
    tries = len(RETRY_SECONDS)
    if context.retry_number < tries:
        seconds = RETRY_SECONDS[context.retry_number]
        raise dg.RetryRequested(max_retries=tries, seconds_to_wait=seconds) from reason


def to_failure(
    error: ConnectorError, context: Context | None = None, metadata: Mapping[str, Any] | None = None
) -> dg.Failure:
    """Return the error as a failure that Dagster shows without a traceback.

    Retries the step instead if the same request may succeed later without a change. It does not
    wait again for a process that uses the account: that one does the same work, or ends late.
    """
    about = {"code": error.code, "action": error.action, **(metadata or {})}
    failure = dg.Failure(description=explain(error), metadata=about, allow_retries=False)
    if context is not None and isinstance(error, TryAgain) and not isinstance(error, AccountBusy):
        retry(context, failure)
    return failure

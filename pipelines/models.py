"""Models: one asset for each SQL file and seed, and a check for each of their tests.

`published` builds all of them in one file. A run records those that it selects.
"""

# Annotations are not postponed here: Dagster reads those of an asset at import.
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import dagster as dg

from connector.catalog import CATALOG
from connector.publishing.dictionary import ModelDescription, describe_models
from connector.publishing.project import BuildResult, BuiltModel, CheckResult, Project, Severity
from connector.publishing.project_loader import load_project
from pipelines.accounts import Accounts, asset_check_spec
from pipelines.graph import DATA_TEAM, KEYS, source_metadata

TOLD_SECONDS_MIN = 1.0
"""Seconds after which a model is logged; a log entry costs more than building most models."""

_PARTS = {"content_type_fields": "content_types"}
"""Resource whose pull loads a table that belongs to no resource."""


def asset_key(project: Project, name: str) -> dg.AssetKey:
    """Return the asset key of a seed or model: its schema and its name."""
    return dg.AssetKey([project.node(name).schema, name])


def landed_key(table: str) -> dg.AssetKey | None:
    """Return the asset that updates a source table; None for the connector's own tables.

    Every pull writes the connector's own tables.
    """
    schema, _, name = table.partition(".")
    resource = _PARTS.get(name, name)
    is_landed = schema in ("landing", "history") and resource in CATALOG
    return KEYS[resource] if is_landed else None


def asset_spec(project: Project, name: str) -> dg.AssetSpec:
    """Return the asset of a seed or model, with its dependencies."""
    model = project.models.get(name)
    deps = [asset_key(project, each) for each in project.parents[name]]
    for table in model.query.sources if model is not None else ():
        key = landed_key(table)
        deps += KEYS.values() if key is None else [key]
    return dg.AssetSpec(
        asset_key(project, name),
        deps=list(dict.fromkeys(deps)),
        description=_header_as_markdown(project.node(name).about),
        group_name=project.node(name).schema,
        kinds={"csv"} if model is None else {"sql", "duckdb"},
        owners=DATA_TEAM,
        skippable=True,
        metadata={
            "dagster/table_name": project.node(name).table,
            **source_metadata(project.node(name).path),
        },
    )


def _header_as_markdown(text: str) -> str:
    """Return a model's header comment as Markdown, with a paragraph per label such as Grain."""
    paragraphs = re.split(r"\n(?=[A-Z][a-z]+: )", text)
    return "\n\n".join(
        re.sub(r"^([A-Z][a-z]+:) ", r"**\1** ", each.replace("\n", " ")) for each in paragraphs
    )


# -- Checks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Test or audit of the models, as a check of an asset in Dagster."""

    key: dg.AssetCheckKey
    severity: Severity
    about: str

    @property
    def is_blocking(self) -> bool:
        """True if the file is not published when the check fails."""
        return self.severity == "error"

    def spec(self, accounts: Accounts) -> dg.AssetCheckSpec:
        """Return the specification of the check in Dagster."""
        return asset_check_spec(accounts, self.key, self.about, is_blocking=self.is_blocking)

    def event(self, result: CheckResult, account: str | None) -> dg.AssetCheckEvaluation:
        """Return the result in Dagster's form. Its examples are ids, never personal values."""
        is_error = self.severity == "error"
        examples = {"examples": ", ".join(result.examples)} if result.examples else {}
        return dg.AssetCheckEvaluation(
            self.key.asset_key,
            self.key.name,
            passed=result.passed,
            severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
            description=self.about,
            metadata={"failing_rows": result.failing, **examples},
            blocking=self.is_blocking,
            partition=account,
        )


def model_checks(project: Project) -> dict[str, ModelCheck]:
    """Return every test and audit of the project by name."""
    return {
        each.name: ModelCheck(
            dg.AssetCheckKey(_checked_asset(project, each.about), each.name),
            each.severity,
            each.sentence,
        )
        for each in project.checks
    }


def _checked_asset(project: Project, about: str) -> dg.AssetKey:
    """Return the asset of a model or source table that a check is about.

    A test of a source table belongs to the first model that reads the table, because the step that
    builds the model runs the test.
    """
    if about in project.parents:
        return asset_key(project, about)
    readers = (m for m in project.models.values() if about in m.query.sources)
    return asset_key(project, next((each.name for each in readers), project.build_order[0]))


# -- Building --------------------------------------------------------------------------------------


class BuildLog:
    """Observer that writes the progress of a build to a run's log.

    Attributes:
        checks: Results so far, also of a build that is refused because of them.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self.checks: list[CheckResult] = []

    def on_plan(self, models: int, checks: int) -> None:
        """Log the number of models and checks."""
        self._log.info(f"{models} seeds and models to build, {checks} checks to run")

    def on_model_start(self, name: str) -> None:
        """Log nothing."""

    def on_model_end(self, model: BuiltModel) -> None:
        """Log a model that took `TOLD_SECONDS_MIN` or longer."""
        if model.seconds >= TOLD_SECONDS_MIN:
            self._log.info(f"{model.name}: built in {model.seconds:.1f} s")

    def on_check_end(self, check: CheckResult) -> None:
        """Keep the result, and log a check that failed."""
        self.checks.append(check)
        if not check.passed:
            self._log.warning(f"{check.name}: {check.failing} rows ({check.severity})")


PROJECT = load_project()
"""Models as shipped; an account's own seeds are read when they are built."""

CHECKS = model_checks(PROJECT)
"""Tests and audits of the models."""

MODEL_KEYS = {name: asset_key(PROJECT, name) for name in PROJECT.build_order}
"""Asset of each seed and model."""

LAST_KEYS = tuple(
    key
    for name, key in MODEL_KEYS.items()
    if not any(name in parents for parents in PROJECT.parents.values())
)
"""Assets of the models that no other model reads."""


Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def build_events(built: BuildResult, account: str | None) -> Iterator[Event]:
    """Yield the materialization of each built model, and the result of each check.

    Own models are left out, because they are no assets. `account` is the partition, None if the
    account has no name.
    """
    shown = _inventory()
    for model in built.models:
        if model.name in MODEL_KEYS:
            metadata = model_metadata(shown[model.name], model)
            yield dg.AssetMaterialization(
                MODEL_KEYS[model.name], metadata=metadata, partition=account
            )
    yield from check_events(built.checks, account)


def check_events(checks: Iterable[CheckResult], account: str | None) -> Iterator[Event]:
    """Yield the result of each check of the shipped models."""
    for check in checks:
        if check.name in CHECKS:
            yield CHECKS[check.name].event(check, account)


@cache
def _inventory() -> Mapping[str, ModelDescription]:
    """Return the shipped models by name; cached because it builds them over empty tables."""
    return {each.name: each for each in describe_models(PROJECT)}


def model_metadata(shown: ModelDescription, built: BuiltModel) -> dict[str, Any]:
    """Return the metadata of a built model: rows, seconds and columns."""
    columns = [dg.TableColumn(e.name, e.type, description=e.about or None) for e in shown.columns]
    count = {} if built.rows is None else {"dagster/row_count": built.rows}
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "seconds": round(built.seconds, 3),
        **count,
    }

"""Models: one asset for each SQL file and seed, and a check for each of their tests.

`published` builds all of them in one file. A run records those that it selects.
"""

# Annotations are not postponed here: Dagster reads those of an asset at import.
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from connector.catalog import CATALOG
from connector.models.project import Check, Project, load_project
from connector.models.runner import BuildResult, BuiltModel, CheckResult, describe
from pipelines.accounts import Accounts, asset_check_spec
from pipelines.graph import DATA_TEAM, KEYS, source_metadata

TOLD_SECONDS_MIN = 1.0
"""Seconds after which a model is logged; a log entry costs more than building most models."""

_PARTS = {"content_type_fields": "content_types"}
"""Resource whose pull loads a table that belongs to no resource."""


def asset_key(project: Project, name: str) -> dg.AssetKey:
    """Return the asset key of a seed or model: its schema and its name."""
    return dg.AssetKey([project.nodes[name].schema, name])


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
    node = project.nodes[name]
    deps = [asset_key(project, each) for each in node.parents]
    for table in node.sources:
        key = landed_key(table)
        deps += KEYS.values() if key is None else [key]
    return dg.AssetSpec(
        asset_key(project, name),
        deps=list(dict.fromkeys(deps)),
        description=_about_as_markdown(node.about),
        group_name=node.schema,
        kinds={"csv"} if node.kind == "seed" else {"sql", "duckdb"},
        owners=DATA_TEAM,
        skippable=True,
        metadata={"dagster/table_name": node.table, **source_metadata(node.path)},
    )


def _about_as_markdown(text: str) -> str:
    """Return a description as Markdown, with a paragraph per label such as Grain."""
    paragraphs = re.split(r"\n(?=[A-Z][a-z]+: )", text)
    return "\n\n".join(
        re.sub(r"^([A-Z][a-z]+:) ", r"**\1** ", each.replace("\n", " ")) for each in paragraphs
    )


# -- Checks ----------------------------------------------------------------------------------------


def check_key(project: Project, check: Check) -> dg.AssetCheckKey:
    """Return the key of a test or audit: the checked asset and the name of the check."""
    return dg.AssetCheckKey(_checked_asset(project, check.model), check.name)


def check_spec(accounts: Accounts, check: Check) -> dg.AssetCheckSpec:
    """Return a test or audit as a check of an asset. It blocks if its severity is error."""
    is_blocking = check.severity == "error"
    key = check_key(PROJECT, check)
    return asset_check_spec(accounts, key, check.about, is_blocking=is_blocking)


def _checked_asset(project: Project, about: str) -> dg.AssetKey:
    """Return the asset of a model or source table that a check is about.

    A test of a source table belongs to the model that reads the fewest other sources, because the
    step that builds the model runs the test.
    """
    if about in project.nodes:
        return asset_key(project, about)
    readers = {name: node for name, node in project.nodes.items() if about in node.sources}
    first = min(readers or project.nodes, key=lambda name: len(project.nodes[name].sources))
    return asset_key(project, first)


# -- Building --------------------------------------------------------------------------------------


class BuildLog:
    """Observer that writes the progress of a build to a run's log.

    Attributes:
        checks: Results so far, also of a build that is refused because of them.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self.checks: list[CheckResult] = []

    def __call__(self, done: BuiltModel | CheckResult, steps: int) -> None:
        """Log a model that took `TOLD_SECONDS_MIN` or longer, and a check that failed."""
        if isinstance(done, CheckResult):
            self.checks.append(done)
            if done.failing:
                check = done.check
                self._log.warning(f"{check.name}: {done.failing} rows ({check.severity})")
        elif done.seconds >= TOLD_SECONDS_MIN:
            self._log.info(f"{done.name}: built in {done.seconds:.1f} s")


PROJECT = load_project()
"""Models as shipped; an account's own seeds are read when they are built."""

CHECKS = {each.name: each for each in PROJECT.checks}
"""Tests and audits of the models."""

LAST_KEYS = tuple(
    asset_key(PROJECT, name)
    for name in PROJECT.nodes
    if not any(name in node.parents for node in PROJECT.nodes.values())
)
"""Assets of the models that no other model reads."""


Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def build_events(built: BuildResult, account: str | None) -> Iterator[Event]:
    """Yield the materialization of each built model, and the result of each check.

    Own models are left out, because they are no assets. `account` is the partition, None if the
    account has no name.
    """
    for model in built.models:
        if model.name in PROJECT.nodes:
            yield dg.AssetMaterialization(
                asset_key(PROJECT, model.name), metadata=_metadata(model), partition=account
            )
    yield from check_events(built.checks, account)


def check_events(results: Iterable[CheckResult], account: str | None) -> Iterator[Event]:
    """Yield the result of each check of the shipped models. Its examples are ids."""
    for result in results:
        check = CHECKS.get(result.check.name)
        if check is None:
            continue
        key, is_error = check_key(PROJECT, check), check.severity == "error"
        examples = {"examples": ", ".join(result.examples)} if result.examples else {}
        yield dg.AssetCheckEvaluation(
            key.asset_key,
            key.name,
            passed=not result.failing,
            severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
            description=check.about,
            metadata={"failing_rows": result.failing, **examples},
            blocking=is_error,
            partition=account,
        )


def _metadata(built: BuiltModel) -> dict[str, Any]:
    """Return the rows, seconds and columns of a built model."""
    table = PROJECT.nodes[built.name].table
    columns = [
        dg.TableColumn(each.name, each.type, description=each.comment or None)
        for each in describe(PROJECT)[table]
    ]
    count = {} if built.rows is None else {"dagster/row_count": built.rows}
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "seconds": round(built.seconds, 3),
        **count,
    }

"""Models: one asset for each SQL file and seed, all built in one draft by one step.

It is one step because a draft is one file that is published as a whole: models that were not
selected are copied from the published file. The step leaves the draft, and `published` publishes
it.
"""

# Annotations are not postponed here: Dagster reads those of an asset at import.
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg

from connector import (
    CATALOG,
    BuildResult,
    BuiltModel,
    CheckResult,
    ConnectorError,
    ModelDescription,
    Project,
    Severity,
    describe_models,
    load_project,
    prepare_draft,
    query,
)
from pipelines.accounts import (
    Account,
    Accounts,
    account_of,
    asset_check_spec,
    selected_keys,
    to_failure,
)
from pipelines.graph import DATA_TEAM, KEYS, source_metadata

DRAFT_TAG = "connector/draft"
"""Tag of a run that names the draft with its models."""

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


# -- Figures ---------------------------------------------------------------------------------------
# Dagster plots every number of an asset's materializations over time: its rows, and one figure.

_OF_ALL = "any_value({}) filter (group_by = 'all')"

FIGURES: Mapping[str, tuple[str, str]] = {
    "data_freshness": ("hours behind", "max(hours_behind)"),
    "dim_candidates": ("candidates read completely", "count(*) filter (is_fully_read)"),
    "dim_companies": ("placements", "sum(placements)"),
    "dim_days": ("holidays", "count(holiday_name)"),
    "dim_jobs": ("open jobs", "count(*) filter (is_open)"),
    "dim_leads": ("leads converted", "count(*) filter (is_converted)"),
    "dim_people": ("people without a name", "count(*) filter (not is_mapped)"),
    "dim_sources": ("sources without a group", "count(*) filter (not is_mapped)"),
    "fct_bookings": ("bookings that are counted", "count(*) filter (counts_as <> 'not_counted')"),
    "fct_candidate_journey": (
        "median days from submission to interview",
        "median(days_submitted_to_interview)",
    ),
    "fct_candidate_stages": ("candidates with a stage", "count(*) filter (is_current)"),
    "fct_company_counters": ("counters with differences", "count(*) filter (difference <> 0)"),
    "fct_contract_months": ("working days", "sum(working_days)"),
    "fct_contractors_ending": ("ending in 30 days", "count(*) filter (ends_within_30_days)"),
    "fct_interviews": ("interviews held", "count(*) filter (outcome = 'held')"),
    "fct_job_ageing": ("median age in days", "median(age_days)"),
    "fct_job_funnel": ("candidates placed", "sum(candidates_placed)"),
    "fct_job_openings": ("openings marked filled", "count(*) filter (is_marked_filled)"),
    "fct_job_statuses": ("jobs with a status", "count(*) filter (is_current)"),
    "fct_lead_conversion": ("leads converted", "count(*) filter (is_converted)"),
    "fct_pipeline_candidates": ("active candidates", "count(*) filter (is_active)"),
    "fct_pipeline_days": ("stage visits that began", "sum(entered)"),
    "fct_pipeline_jobs": ("open positions", "sum(positions_open)"),
    "fct_placement_outcomes": ("placements cancelled", "count(*) filter (is_fall_off)"),
    "fct_placements": ("reporting fee", "sum(reporting_fee)"),
    "fct_stage_conversion": ("candidates", "count(distinct candidate_id)"),
    "fct_time_in_stage": ("median days observed", "median(days_observed)"),
    "fct_time_to_fill": ("median days to fill", "median(days_to_fill)"),
    "fct_time_to_hire": ("median days to hire", "median(days_to_hire)"),
    "sum_client_fill_rate": ("jobs marked filled", "sum(jobs_marked_filled)"),
    "sum_consultant_activity": ("placements", "sum(placements) filter (period = 'month')"),
    "sum_consultant_load": ("most open jobs of a consultant", "max(open_jobs)"),
    "sum_content_items": ("items published", "sum(items_published)"),
    "sum_contract_billings": ("reporting billings", "sum(reporting_billings)"),
    "sum_coverage": ("lowest coverage", "min(coverage)"),
    "sum_fall_off": ("fall-off rate", _OF_ALL.format("fall_off_rate")),
    "sum_fee_forecast": ("reporting fee", "sum(reporting_fee)"),
    "sum_goal_attainment": ("goals reached", "count(*) filter (is_reached)"),
    "sum_job_funnel": ("interview to placement", _OF_ALL.format("interview_to_placement_rate")),
    "sum_lead_conversion": ("conversion rate", _OF_ALL.format("conversion_rate")),
    "sum_offer_acceptance": ("acceptance rate", _OF_ALL.format("acceptance_rate")),
    "sum_source_effectiveness": ("candidates placed", "sum(candidates_placed)"),
    "sum_stage_conversion": ("lowest conversion", "min(conversion_rate) filter (group_by = 'all')"),
    "sum_stage_survival": ("stage visits in the estimate", "max(at_risk)"),
    "sum_time_in_stage": ("longest median in days", "max(p50_days)"),
    "sum_time_to_fill": ("median days to fill", _OF_ALL.format("p50_days")),
    "sum_time_to_hire": ("median days to hire", _OF_ALL.format("p50_days")),
}
"""Main figure of each mart: its name, and its aggregate."""


def query_figures(built: BuildResult, file: Path) -> dict[str, dict[str, float]]:
    """Return the main figure of each mart that was built, by mart and name; nulls are left out."""
    names = [each.name for each in built.models if each.name in FIGURES]
    if not names:
        return {}
    queries = (f"(SELECT {FIGURES[name][1]} FROM marts.{name})" for name in names)
    (row,) = query(file, f"SELECT {', '.join(queries)}").rows
    return {
        name: {FIGURES[name][0]: float(value)}
        for name, value in zip(names, row, strict=True)
        if value is not None
    }


# -- Building --------------------------------------------------------------------------------------


class BuildLog:
    """Observer that writes the progress of a build to a run's log."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

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
        """Log a check that failed."""
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


def model_assets(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the step that builds the models, with one asset per model and seed."""

    @dg.multi_asset(
        name="build_models",
        description="Build the selected models in one draft of the published file, and run their"
        " tests. A failed step is retried as a whole, because the draft is one file. To rebuild a"
        " single model, materialize it together with `published`: the other models are copied from"
        " the published file.",
        specs=[
            asset_spec(PROJECT, name).replace_attributes(partitions_def=accounts.partitions)
            for name in PROJECT.build_order
        ],
        check_specs=[each.spec(accounts) for each in CHECKS.values()],
        can_subset=True,
    )
    def models(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        """Build and check the selected models, and name the draft in the run's tags.

        If models are switched off, the assets are materialized without being built, because Dagster
        would skip `published` otherwise.

        Raises `dagster.Failure` with file and line if a model cannot be built.
        """
        wanted = selected_keys(context)
        selected = tuple(name for name in PROJECT.build_order if MODEL_KEYS[name] in wanted)
        chosen = () if len(selected) == len(PROJECT.build_order) else selected
        settings = account.settings(account_of(context))
        try:
            draft = prepare_draft(settings, select=chosen, watch=BuildLog(context.log))
            events = list(build_events(draft.built, draft.file, account_of(context)))
        except ConnectorError as error:
            raise to_failure(error, context) from None
        context.instance.add_run_tags(context.run.run_id, {DRAFT_TAG: draft.publication})
        if settings.models.value == "off":
            off = {"models": f"off (from {settings.models.origin})"}
            for name in selected:
                yield dg.MaterializeResult(asset_key=MODEL_KEYS[name], metadata=off)
        for event in events:
            if isinstance(event, dg.AssetMaterialization):
                if event.asset_key in context.selected_asset_keys:
                    yield dg.MaterializeResult(asset_key=event.asset_key, metadata=event.metadata)
            elif event.asset_check_key in context.selected_asset_check_keys:
                yield dg.AssetCheckResult(
                    passed=event.passed,
                    asset_key=event.asset_key,
                    check_name=event.check_name,
                    metadata=event.metadata,
                    severity=event.severity,
                    description=event.description,
                )

    return models


Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def build_events(built: BuildResult, file: Path, account: str | None) -> Iterator[Event]:
    """Yield the materialization of each built model, and the result of each check.

    `file` is the draft or published file with the models. Own models are left out, because they are
    no assets. `account` is the partition, None if the account has no name.
    """
    shown, figures = _inventory(), query_figures(built, file)
    for model in built.models:
        if model.name in MODEL_KEYS:
            metadata = model_metadata(PROJECT, shown[model.name], model) | figures.get(
                model.name, {}
            )
            yield dg.AssetMaterialization(
                MODEL_KEYS[model.name], metadata=metadata, partition=account
            )
    for check in built.checks:
        if check.name in CHECKS:
            yield CHECKS[check.name].event(check, account)


@cache
def _inventory() -> Mapping[str, ModelDescription]:
    """Return the shipped models by name; cached because tracing the lineage takes seconds."""
    return {each.name: each for each in describe_models(PROJECT)}


def model_metadata(project: Project, shown: ModelDescription, built: BuiltModel) -> dict[str, Any]:
    """Return the metadata of a built model: rows, seconds, columns and lineage."""
    columns = [dg.TableColumn(e.name, e.type, description=e.about or None) for e in shown.columns]
    count = {} if built.rows is None else {"dagster/row_count": built.rows}
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "dagster/column_lineage": column_lineage(project, shown),
        "origins": {e.name: [".".join(named) for named in e.origins] for e in shown.columns},
        "seconds": round(built.seconds, 3),
        **count,
    }


def column_lineage(project: Project, shown: ModelDescription) -> dg.TableColumnLineage:
    """Return the source columns of each column, as far as they are columns of assets.

    A column of `history` is the API's field with the same name, so it refers to the landing column.
    """
    tables = {project.node(name).table: asset_key(project, name) for name in project.build_order}
    deps: dict[str, list[dg.TableColumnDep]] = {}
    for column in shown.columns:
        for table, name in column.parents:
            key = tables.get(table) or landed_key(table)
            if key is not None:
                deps.setdefault(column.name, []).append(dg.TableColumnDep(key, name))
    return dg.TableColumnLineage(deps)

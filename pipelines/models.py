"""The models: one asset for each SQL file and seed, all of them built in one draft by one step.

One step, since a draft is one file and is published whole: what was not selected is copied
from the file that analysts have. The step leaves the draft in place, and `published` takes it up.
What a model is, and how it is built, is the connector's affair.
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from connector import (
    CATALOG,
    Checked,
    ConnectorError,
    ModelBuilt,
    Prepared,
    Project,
    Published,
    PublishingRefused,
    Shown,
    explain,
    inventory_of,
    load_project,
    prepare,
    publish,
    query,
)
from pipelines import freshness, landing
from pipelines.accounts import (
    Account,
    Accounts,
    account_of,
    by_account,
    check_of,
    failure_of,
    keys_asked,
)

DRAFT_TAG = "connector/draft"
"""The tag of a run that names the draft which its models were built in."""

TOLD_SECONDS_MIN = 1.0
"""From how many seconds on a model is worth a line of the log, which costs more than most."""

PUBLISHED = freshness.PUBLISHED

_PARTS = {"content_type_fields": "content_types"}
"""The resource whose pull lands a table that is no resource's own."""


def key_of(project: Project, name: str) -> dg.AssetKey:
    """The asset of a seed or model: its schema and its name."""
    return dg.AssetKey([project.node(name).schema, name])


def landed_key(table: str) -> dg.AssetKey | None:
    """The asset that brings a source table up to date; None for the connector's own records,
    which every pull writes.
    """
    schema, _, name = table.partition(".")
    resource = _PARTS.get(name, name)
    is_landed = schema in ("landing", "history") and resource in CATALOG
    return landing.KEYS[resource] if is_landed else None


def spec_of(project: Project, name: str) -> dg.AssetSpec:
    """The asset of a seed or model, with what it is made of."""
    model = project.models.get(name)
    deps = [key_of(project, each) for each in project.parents[name]]
    for table in project.sources_of(model) if model is not None else ():
        key = landed_key(table)
        deps += landing.KEYS.values() if key is None else [key]
    return dg.AssetSpec(
        key_of(project, name),
        deps=list(dict.fromkeys(deps)),
        # Markdown breaks a line after two spaces alone.
        description="  \n".join(project.node(name).about.splitlines()),
        group_name=project.node(name).schema,
        kinds={"csv"} if model is None else {"sql", "duckdb"},
        skippable=True,
        metadata={"dagster/table_name": project.node(name).table},
    )


# -- Checks ----------------------------------------------------------------------------------------
# One for each audit, and one for all tests of a model of one severity. Together, since what Dagster
# writes down of a check costs more than the check itself: 179 of them took as long as all models
# together. Which test failed, and for which ids, is in the check's metadata.

TESTS = {"error": "tests", "warn": "tests_that_warn"}
"""The name of the check that has a model's tests, by their severity."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of an asset: the tests that it has, or one audit."""

    key: dg.AssetCheckKey
    severity: str
    names: tuple[str, ...]
    about: str

    def spec(self, accounts: Accounts) -> dg.AssetCheckSpec:
        """The check as Dagster knows it; one of severity error keeps `published` from running."""
        return check_of(accounts, self.key, self.about, is_blocking=self.severity == "error")


Keys = Mapping[str, dg.AssetKey]
"""The asset of each seed and model, by name."""


def checks_of(project: Project, keys: Keys) -> tuple[Check, ...]:
    """Every test and audit of the project, each in one check."""
    tests: dict[dg.AssetCheckKey, list[tuple[str, str, str]]] = {}
    for test in project.tests:
        key = dg.AssetCheckKey(_asset(project, keys, test.about), TESTS[test.severity])
        tests.setdefault(key, []).append((test.severity, test.name, test.sentence))
    joined = (
        Check(key, each[0][0], tuple(name for _, name, _ in each), " ".join(s for _, _, s in each))
        for key, each in tests.items()
    )
    audits = (
        Check(
            dg.AssetCheckKey(_asset(project, keys, audit.about), audit.name),
            audit.severity,
            (audit.name,),
            audit.sentence,
        )
        for audit in project.audits
    )
    return (*joined, *audits)


def _asset(project: Project, keys: Keys, about: str) -> dg.AssetKey:
    """The asset that a test or audit belongs to. One of a source table belongs to the first model
    that reads it: what landed is judged in the step that builds on it.
    """
    if about in project.parents:
        return keys[about]
    readers = (m for m in project.models.values() if about in project.sources_of(m))
    return keys[next((each.name for each in readers), project.order[0])]


def results_of(checks: Iterable[Check], done: Iterable[Checked]) -> Iterator[dg.AssetCheckResult]:
    """How the checks came out; one of which nothing was run has no result."""
    by_name = {each.name: each for each in done}
    for check in checks:
        run = [by_name[name] for name in check.names if name in by_name]
        if run:
            yield _result(check, run)


def _result(check: Check, run: list[Checked]) -> dg.AssetCheckResult:
    failed = [each for each in run if not each.passed]
    told: dict[str, Any] = {"run": len(run), "failing": sum(each.failing for each in failed)}
    for each in failed:
        # Examples are ids alone.
        ids = f": {', '.join(each.examples)}" if each.examples else ""
        told[f"failed/{each.name}"] = f"{each.failing} rows{ids}"
    is_error = check.severity == "error"
    return dg.AssetCheckResult(
        passed=not failed,
        asset_key=check.key.asset_key,
        check_name=check.key.name,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=" ".join(each.about for each in failed) or check.about,
        metadata=told,
    )


# -- Figures ---------------------------------------------------------------------------------------
# Dagster plots every number of an asset's materializations over time: its rows, and one figure.

_OF_ALL = "any_value({}) filter (group_by = 'all')"

FIGURES: Mapping[str, tuple[str, str]] = {
    "data_freshness": ("hours behind", "max(hours_behind)"),
    "dim_candidates": ("candidates read whole", "count(*) filter (is_fully_read)"),
    "dim_companies": ("placements", "sum(placements)"),
    "dim_days": ("holidays", "count(holiday_name)"),
    "dim_jobs": ("open jobs", "count(*) filter (is_open)"),
    "dim_leads": ("leads converted", "count(*) filter (is_converted)"),
    "dim_people": ("people without a name", "count(*) filter (not is_mapped)"),
    "dim_sources": ("sources without a group", "count(*) filter (not is_mapped)"),
    "fct_bookings": ("bookings that count", "count(*) filter (counts_as <> 'not_counted')"),
    "fct_candidate_journey": (
        "median days from submission to interview",
        "median(days_submitted_to_interview)",
    ),
    "fct_candidate_stages": ("candidates with a stage", "count(*) filter (is_current)"),
    "fct_company_counters": ("counters that differ", "count(*) filter (difference <> 0)"),
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
    "sum_stage_survival": ("visits at risk", "max(at_risk)"),
    "sum_time_in_stage": ("longest median in days", "max(p50_days)"),
    "sum_time_to_fill": ("median days to fill", _OF_ALL.format("p50_days")),
    "sum_time_to_hire": ("median days to hire", _OF_ALL.format("p50_days")),
}
"""The main figure of each mart: its name, and the aggregate that it is."""


def figures_of(made: Prepared) -> dict[str, dict[str, float]]:
    """The main figure of each mart that was built, by its name; none where it is null."""
    names = [each.name for each in made.built.models if each.name in FIGURES]
    if not names:
        return {}
    asked = (f"(SELECT {FIGURES[name][1]} FROM marts.{name})" for name in names)
    (row,) = query(made.file, f"SELECT {', '.join(asked)}").rows
    return {
        name: {FIGURES[name][0]: float(value)}
        for name, value in zip(names, row, strict=True)
        if value is not None
    }


# -- Building --------------------------------------------------------------------------------------


class Narrator:
    """Tells a run's log how a build goes on."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def planned(self, models: int, checks: int) -> None:
        """So much is to be done."""
        self._log.info(f"{models} seeds and models to build, {checks} checks to make")

    def building(self, name: str) -> None:
        """The model's turn has come."""

    def built(self, model: ModelBuilt) -> None:
        """The model stands; what is quick is told by its materialization alone."""
        if model.seconds >= TOLD_SECONDS_MIN:
            self._log.info(f"{model.name}: built in {model.seconds:.1f} s")

    def checked(self, check: Checked) -> None:
        """A check has ended."""
        if not check.passed:
            self._log.warning(f"{check.name}: {check.failing} rows ({check.severity})")


PROJECT = load_project()
"""The models as shipped; an account's own seeds are read when they are built."""

CHECKS = checks_of(PROJECT, {name: key_of(PROJECT, name) for name in PROJECT.order})
"""Their tests and audits."""


def models_of(accounts: Accounts) -> dg.AssetsDefinition:
    """The models of the accounts."""

    @dg.multi_asset(
        name="build_models",
        description="Build the selected models in a draft of the published file, and check them.",
        specs=[
            spec_of(PROJECT, name).replace_attributes(partitions_def=accounts.partitions)
            for name in PROJECT.order
        ],
        check_specs=[each.spec(accounts) for each in CHECKS],
        can_subset=True,
    )
    def models(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        """Build and check the selected models; the draft stays for `published`, and the run's tags
        name it. With models switched off nothing is built, and the assets say so: were they left
        out, `published` would be skipped.

        Raises `dagster.Failure`, which names file and line, where a model cannot be built.
        """
        wanted = keys_asked(context)
        selected = tuple(name for name in PROJECT.order if key_of(PROJECT, name) in wanted)
        chosen = () if len(selected) == len(PROJECT.order) else selected
        settings = account.settings(account_of(context))
        try:
            made = prepare(settings, select=chosen, watch=Narrator(context.log))
            shown = {each.name: each for each in inventory_of(PROJECT)}
            figures = figures_of(made)
        except ConnectorError as error:
            raise failure_of(error) from None
        context.instance.add_run_tags(context.run.run_id, {DRAFT_TAG: made.publication})
        if settings.models.value == "off":
            off = {"models": f"off (from {settings.models.origin})"}
            for name in selected:
                yield dg.MaterializeResult(asset_key=key_of(PROJECT, name), metadata=off)
        for each in made.built.models:
            # Models of the account's own are built with all others, and are not assets.
            is_shipped = each.name in PROJECT.parents
            if is_shipped and key_of(PROJECT, each.name) in context.selected_asset_keys:
                told = of_model(PROJECT, shown[each.name], each, made)
                told |= figures.get(each.name, {})
                yield dg.MaterializeResult(
                    asset_key=key_of(PROJECT, each.name), metadata=by_account(context, told)
                )
        asked = [each for each in CHECKS if each.key in context.selected_asset_check_keys]
        for result in results_of(asked, made.built.checks):
            yield result._replace(metadata=by_account(context, result.metadata))

    return models


def of_model(project: Project, shown: Shown, built: ModelBuilt, made: Prepared) -> dict[str, Any]:
    """What Dagster shows of a model that was built: rows, seconds, columns, their lineage."""
    columns = [dg.TableColumn(e.name, e.type, description=e.about or None) for e in shown.columns]
    count = {} if built.rows is None else {"dagster/row_count": built.rows}
    return {
        "dagster/column_schema": dg.TableSchema(columns),
        "dagster/column_lineage": lineage_of(project, shown),
        "origins": {e.name: [".".join(named) for named in e.origins] for e in shown.columns},
        "seconds": round(built.seconds, 3),
        "draft": made.publication,
        **count,
    }


def lineage_of(project: Project, shown: Shown) -> dg.TableColumnLineage:
    """The columns that each column is made of, as far as they are columns of assets.

    A column of `history` is the API's field of the same name, so it leads to the landed one.
    """
    tables = {project.node(name).table: key_of(project, name) for name in project.order}
    deps: dict[str, list[dg.TableColumnDep]] = {}
    for column in shown.columns:
        for table, name in column.parents:
            key = tables.get(table) or landed_key(table)
            if key is not None:
                deps.setdefault(column.name, []).append(dg.TableColumnDep(key, name))
    return dg.TableColumnLineage(deps)


# -- Publishing ------------------------------------------------------------------------------------
# The published file, as the last asset: what landed and what the models made of it, or the reason
# why analysts keep what they have.


def published_of(accounts: Accounts) -> dg.AssetsDefinition:
    """The published file of each of the accounts."""

    @dg.asset(
        key=PUBLISHED,
        group_name="publishing",
        deps=[*landing.KEYS.values(), *(key_of(PROJECT, name) for name in PROJECT.order)],
        kinds={"duckdb"},
        description="`recruitment.duckdb`, the file that analysts open: replaced whole and at"
        " once, and only where no check that blocks has failed.",
        partitions_def=accounts.partitions,
        freshness_policy=freshness.policy_of(accounts),
        retry_policy=dg.RetryPolicy(max_retries=1, delay=60),
    )
    def published(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> dg.MaterializeResult[None]:
        """Publish the draft that this run's models were built in; without one, build it first.

        Without a draft, nothing is published if nothing has changed.

        Raises `dagster.Failure`, which names the checks that failed.
        """
        # As the run is now: the tag was written by a step before this one.
        run = context.instance.get_run_by_id(context.run.run_id)
        draft = run.tags.get(DRAFT_TAG) if run is not None else None
        try:
            settings = account.settings(account_of(context))
            done = publish(settings, prepared=draft, if_changed=True)
        except PublishingRefused as error:
            failure = failure_of(error)
            raise dg.Failure(
                description=explain(error),
                metadata={**failure.metadata, "failed_checks": list(error.failed)},
                allow_retries=False,
            ) from None
        except ConnectorError as error:
            raise failure_of(error) from None
        if done.unshared is not None:
            context.log.warning(f"Not in the lakehouse: {explain(done.unshared)}")
        return dg.MaterializeResult(metadata=by_account(context, _of_publication(done)))

    return published


def _of_publication(done: Published) -> dict[str, Any]:
    """What Dagster shows of a publication."""
    row = done.publication
    told: dict[str, Any] = {
        "file": done.file,
        "outcome": row.outcome,
        "personal": row.personal,
        "seconds": round(row.seconds or 0.0, 3),
    }
    if not done.is_unchanged:
        told |= {
            "bytes": row.bytes or 0,
            "models": row.models,
            "checks": row.checks,
            "warnings": ", ".join(row.failed_checks) or "none",
        }
    if row.true_of is not None:
        told["true_of"] = dg.MetadataValue.timestamp(row.true_of)
    if done.shared is not None:
        told["lakehouse"] = done.shared.outcome
    return told

"""The models: one asset for each SQL file and seed, all of them built in one draft by one step.

One step, since a draft is one file and is published whole: what was not selected is carried over
from the file that analysts have. The step leaves the draft in place, and `published` takes it up.
What a model is, and how it is built, is the connector's affair.
"""

# Annotations stay as they are, and not text: Dagster reads those of an asset at import.
import logging
from collections.abc import Iterator

import dagster as dg

from connector import (
    CATALOG,
    Checked,
    ConnectorError,
    ModelBuilt,
    Prepared,
    Project,
    Shown,
    inventory_of,
    load_project,
    prepare,
)
from pipelines import landing
from pipelines.accounts import Accounts, account_of
from pipelines.connections import Account, failure_of
from pipelines.model_checks import checks_of, results_of

DRAFT_TAG = "connector/draft"
"""The tag of a run that names the draft which its models were built in."""

TOLD_SECONDS_MIN = 1.0
"""From how many seconds on a model is worth a line of the log, which costs more than most."""

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
        description=project.seeds[name].sentence if model is None else model.about,
        group_name=project.node(name).schema,
        kinds={"csv"} if model is None else {"sql", "duckdb"},
        skippable=True,
        metadata={"dagster/table_name": project.node(name).table},
    )


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
        check_specs=[each.spec for each in CHECKS],
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
        selected = _selected(context)
        chosen = () if len(selected) == len(PROJECT.order) else selected
        settings = account.settings(account_of(context))
        try:
            made = prepare(
                settings,
                select=chosen,
                watch=Narrator(context.log),
            )
            shown = {each.name: each for each in inventory_of(PROJECT)}
        except ConnectorError as error:
            raise failure_of(error) from None
        context.instance.add_run_tags(context.run.run_id, {DRAFT_TAG: made.publication})
        if settings.models.value == "off":
            off = {"models": dg.MetadataValue.text(f"off (from {settings.models.origin})")}
            for name in selected:
                yield dg.MaterializeResult(asset_key=key_of(PROJECT, name), metadata=off)
        for each in made.built.models:
            if key_of(PROJECT, each.name) in context.selected_asset_keys and not each.is_carried:
                yield dg.MaterializeResult(
                    asset_key=key_of(PROJECT, each.name),
                    metadata=of_model(PROJECT, shown[each.name], each, made),
                )
        asked = [each for each in CHECKS if each.key in context.selected_asset_check_keys]
        yield from results_of(asked, made.built.checks)

    return models


def _selected(context: dg.AssetExecutionContext) -> tuple[str, ...]:
    """The seeds and models whose assets or checks were asked for."""
    checked = {each.asset_key for each in context.selected_asset_check_keys}
    wanted = context.selected_asset_keys | checked
    return tuple(name for name in PROJECT.order if key_of(PROJECT, name) in wanted)


def of_model(
    project: Project, shown: Shown, built: ModelBuilt, made: Prepared
) -> dict[str, dg.MetadataValue]:
    """What Dagster shows of a model that was built: rows, seconds, columns, their lineage."""
    told: dict[str, dg.MetadataValue] = {
        "dagster/column_schema": dg.MetadataValue.table_schema(
            dg.TableSchema(
                [
                    dg.TableColumn(each.name, each.type, description=each.about or None)
                    for each in shown.columns
                ]
            )
        ),
        "dagster/column_lineage": dg.MetadataValue.column_lineage(lineage_of(project, shown)),
        "origins": dg.MetadataValue.json(
            {each.name: [".".join(named) for named in each.origins] for each in shown.columns}
        ),
        "seconds": dg.MetadataValue.float(round(built.seconds, 3)),
        "draft": dg.MetadataValue.text(made.publication),
    }
    if built.rows is not None:
        told["dagster/row_count"] = dg.MetadataValue.int(built.rows)
    return told


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

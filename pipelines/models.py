"""Models and the published file: one step builds all of them and publishes.

Each mart and each own model is an asset with one check, which names its failing tests. Staging
views and seeds are external assets: a run builds them with the marts and does not record them.
"""

# Dagster reads the annotations of an asset at import, so they are not postponed here.
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from connector.catalog import CATALOG
from connector.errors import ConnectorError, PublishingRefused
from connector.models.project import Check, Node
from connector.models.publish import PublishResult, publish
from connector.models.runner import CheckResult, read_columns
from connector.pulls.account import check_account
from connector.pulls.report import explain
from connector.settings import Settings
from connector.state.lock import hold
from connector.warehouse.file import make_folder, open_read_only
from pipelines.accounts import LANDING, Account, Accounts, account_of, to_failure

PUBLISHED = "published"
PUBLISHING = "publishing"
TESTS = "tests"
"""Name of the check of a model, which includes all its tests."""

SOURCES = "sources_and_staging"
"""Name of the check of the published file with the tests of all tables that are no models."""

_PARTS = {"content_type_fields": "content_types"}
"""Resource whose pull loads a table that belongs to no resource."""


def is_recorded(node: Node) -> bool:
    """Return True for models that are materialized as assets: marts and own models."""
    return node.schema == "marts" or node.is_own


def model_assets(accounts: Accounts) -> tuple[dg.AssetsDefinition, list[dg.AssetSpec]]:
    """Return the step that builds and publishes, and the external assets of views and seeds."""
    nodes = accounts.project.nodes
    recorded = [node for node in nodes.values() if is_recorded(node)]
    published = accounts.key(PUBLISHED)
    keys = {node.name: accounts.key(node.schema, node.name) for node in recorded}

    @dg.multi_asset(
        name="publish",
        description="Build all models over the loaded rows, check them, and replace the published"
        " file. It is one step, because the file is published as a whole.",
        specs=[
            *(_model_spec(accounts, node) for node in recorded),
            accounts.asset_spec(
                PUBLISHED,
                path=__file__,
                group_name=PUBLISHING,
                deps=[*(accounts.key(LANDING, name) for name in CATALOG), *keys.values()],
                kinds={"python", "duckdb"},
                description="`recruitment.duckdb`, the file that analysts open. It is replaced as a"
                " whole, and only if no blocking check failed.",
                freshness_policy=accounts.freshness_policy,
            ),
        ],
        check_specs=list(_check_specs(accounts)),
        can_subset=True,
    )
    def publish_file(
        context: dg.AssetExecutionContext, account: dg.ResourceParam[Account]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.AssetMaterialization]:
        """Publish, and record the selected models and checks.

        Raises `dagster.Failure` with the names of the failed checks, or with file and line of a
        model that cannot be built.
        """
        try:
            done, metadata = publish_and_describe(account.settings(account_of(context)))
        except PublishingRefused as error:
            yield from _check_results(accounts, context, error.results)
            raise dg.Failure(
                description=explain(error),
                metadata={"code": error.code, "failed_checks": list(error.failed)},
                allow_retries=False,
            ) from None
        except ConnectorError as error:
            raise to_failure(error, context) from None
        shown = dict[dg.AssetKey, dict[str, Any]]()
        with open_read_only(done.file) as connection:
            columns = read_columns(connection, accounts.project)
        for model in done.built.models:
            if model.name in keys:
                table = f"{model.schema}.{model.name}"
                shown[keys[model.name]] = {
                    "dagster/uri": metadata["dagster/uri"],
                    "dagster/column_schema": table_schema(columns[table]),
                    "dagster/row_count": model.rows,
                    "seconds": round(model.seconds, 3),
                }
        # The published file is last: Dagster wants assets in the order of their dependencies.
        for key, about in (*shown.items(), (published, metadata)):
            if key in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=key, metadata=about)
        if published not in context.selected_asset_keys:
            yield dg.AssetMaterialization(
                published, metadata=metadata, partition=account_of(context)
            )
        yield from _check_results(accounts, context, done.built.checks)

    external = [_model_spec(accounts, each) for each in nodes.values() if not is_recorded(each)]
    return publish_file, external


def _model_spec(accounts: Accounts, node: Node) -> dg.AssetSpec:
    """Return the asset of a seed or model. Its dependencies are what it reads."""
    deps = [accounts.key(accounts.project.nodes[each].schema, each) for each in node.parents]
    for table in node.sources:
        schema, _, name = table.partition(".")
        resource = _PARTS.get(name, name)
        is_loaded = schema in ("landing", "history") and resource in CATALOG
        # Every pull writes the connector's own tables.
        deps += [accounts.key(LANDING, each) for each in ([resource] if is_loaded else CATALOG)]
    columns = [
        dg.TableColumn(each.name, description=each.description or None)
        for each in node.entry.columns
    ]
    # Dagster shows Markdown: a paragraph per label such as Grain.
    joined = re.sub(r"\n(?![A-Z][a-z]+:)", " ", node.entry.description)
    description = re.sub(r"(?:^|\n)([A-Z][a-z]+:)", r"\n\n**\1**", joined)
    return accounts.asset_spec(
        node.schema,
        node.name,
        path=node.path,
        deps=list(dict.fromkeys(deps)),
        description=description.strip(),
        group_name=node.schema,
        kinds={"csv"} if node.kind == "seed" else {"sql", "duckdb"},
        metadata={
            "dagster/table_name": node.table,
            "dagster/column_schema": dg.TableSchema(columns),
        },
    )


# -- Checks ----------------------------------------------------------------------------------------


def _check_specs(accounts: Accounts) -> Iterator[dg.AssetCheckSpec]:
    """Yield one check per model that has tests, one per audit, and one for all other tables."""
    grouped = defaultdict(list)
    for check in accounts.project.checks:
        grouped[_check_key(accounts, check)].append(check)
    for key, found in grouped.items():
        if key.name == TESTS:
            about = f"The {len(found)} tests of this model in its schema file."
        elif key.name == SOURCES:
            about = "The tests of the loaded tables, the seeds and the staging views."
        else:
            about = found[0].about
        is_blocking = any(each.severity == "error" for each in found)
        yield accounts.check_spec(key.asset_key, key.name, about, blocking=is_blocking)


def _check_results(
    accounts: Accounts, context: dg.AssetExecutionContext, results: Iterable[CheckResult]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of each selected check. The examples of a failed test are ids."""
    grouped = defaultdict(list)
    for result in results:
        grouped[_check_key(accounts, result.check)].append(result)
    for key, found in grouped.items():
        if key not in context.selected_asset_check_keys:
            continue
        failed = [each for each in found if each.failing]
        is_error = any(each.check.severity == "error" for each in failed or found)
        yield dg.AssetCheckResult(
            passed=not failed,
            asset_key=key.asset_key,
            check_name=key.name,
            severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
            description=" ".join(
                f"{each.check.name}: {each.failing} rows. {each.check.about}" for each in failed
            )
            or None,
            metadata={
                "tests": len(found),
                **{f"{r.check.name}/rows": r.failing for r in failed},
                **{f"{r.check.name}/examples": ", ".join(r.examples) for r in failed if r.examples},
            },
        )


def _check_key(accounts: Accounts, check: Check) -> dg.AssetCheckKey:
    """Return the check of Dagster to which a test or an audit belongs."""
    if check.line is None:  # an audit
        return dg.AssetCheckKey(accounts.key(PUBLISHED), check.name)
    node = accounts.project.nodes.get(check.model)
    if node is None or not is_recorded(node):
        return dg.AssetCheckKey(accounts.key(PUBLISHED), SOURCES)
    return dg.AssetCheckKey(accounts.key(node.schema, node.name), TESTS)


# -- Publication -----------------------------------------------------------------------------------


def publish_and_describe(
    settings: Settings, run_id: str | None = None
) -> tuple[PublishResult, dict[str, Any]]:
    """Publish, and return the result and the metadata of the published file. Raises as `publish`.

    `run_id` is the connector's run whose records are published.
    """
    make_folder(settings.folder)
    with hold(settings.folder, "publish"):  # The work file can be read by one process only.
        check_account(settings)
        done = publish(settings, run_id=run_id)
    metadata = {name: value for name, value in done.as_json().items() if value is not None}
    return done, {"dagster/uri": done.file.absolute().as_uri(), **metadata}


def table_schema(columns: Iterable[Any]) -> dg.TableSchema:
    """Return columns with `name`, `type` and `comment` in Dagster's form."""
    return dg.TableSchema([dg.TableColumn(e.name, e.type, description=e.comment) for e in columns])

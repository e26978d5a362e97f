"""The jobs that push one spreadsheet or the rows of a query, and the assets of what they change.

They are jobs and no assets, so that nothing writes to the platform without its own request. Cell
values are never logged or recorded here: the report has them.
"""

# Dagster reads the annotations of an op at import, so they are not postponed here.
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.pushes.inbox import DeliveryResult, deliver
from connector.pushes.options import PushFile, PushOptions, parse_options
from connector.pushes.query import file_from_query
from connector.pushes.report import ORDER
from pipelines.accounts import (
    ACCOUNT_TAG,
    API,
    INBOX,
    RECRUITING_TEAM,
    UNNAMED,
    Account,
    Accounts,
    account_of,
    run,
    to_failure,
)
from pipelines.landing import ProgressLog

NAME, OP = "push_spreadsheet", "push_file"
"""Name of the job that pushes a file, and of its only step."""


class RowConfig(dg.PermissiveConfig):
    """What files and queries have in common. Other keys are the options of `connector push`.

    Their names and values are those of `push.toml` in an inbox.
    """

    resource: str = Field(description=f"One of: {', '.join(ORDER)}.")

    def options(self, folder: Path) -> PushOptions:
        """Return the options; a mapping file is relative to `folder`. Raises `Misused`."""
        given = dict(self.model_extra or {})
        if mapping := given.get("mapping"):
            given["mapping"] = str(folder / mapping)
        return parse_options(given)


class PushConfig(RowConfig):
    """Configuration of the job that pushes a file."""

    file: str = Field(description="Path of the spreadsheet, relative to the project folder.")
    inbox_digest: str | None = Field(
        default=None, description="SHA-256 of the file in the inbox. Set by inbox_sensor."
    )


class QueryConfig(RowConfig):
    """Configuration of the job that pushes the rows of a query."""

    query: str = Field(
        description="SELECT on the published file, or the path of a .sql file, relative"
        " to the project folder."
    )
    clear_nulls: bool = Field(
        default=False, description="Empty the fields that are null. Default: they do not change."
    )


def push_jobs(accounts: Accounts) -> Iterator[dg.JobDefinition]:
    """Yield the jobs that push one file and the rows of one query."""

    @dg.op(name=OP, out=dg.Out(dg.Nothing))
    def push_file(
        context: dg.OpExecutionContext, config: PushConfig, account: dg.ResourceParam[Account]
    ) -> None:
        """Push the file. Raises `dagster.Failure` if the push was stopped or failed."""
        path = account.folder / config.file
        try:
            file = config.options(account.folder).push_file(config.resource, path)
            _push(context, accounts, account, file, config.inbox_digest)
        except ConnectorError as error:
            raise to_failure(error, context) from None

    @dg.op(out=dg.Out(dg.Nothing))
    def push_query(
        context: dg.OpExecutionContext, config: QueryConfig, account: dg.ResourceParam[Account]
    ) -> None:
        """Push the rows of the query. Raises `dagster.Failure` if the query or the push fails."""
        path = account.folder / config.query
        is_file = path.suffix.lower() == ".sql"
        try:
            file = file_from_query(
                account.settings(account_of(context)),
                config.resource,
                str(path) if is_file else config.query,
                config.options(account.folder),
                clears_nulls=config.clear_nulls,
            )
            if file is None:
                context.log.info("The query returned no rows, so nothing was pushed.")
            else:
                _push(context, accounts, account, file)
        except ConnectorError as error:
            raise to_failure(error, context) from None

    for name, step, what in (
        (NAME, push_file, "one spreadsheet"),
        ("push_from_query", push_query, "the rows of a query on the published file"),
    ):
        yield dg.GraphDefinition(name, node_defs=[step]).to_job(
            description=f"Push {what} to the API. Only previews the changes unless `apply` is true."
            " A run again sends only the rows that were not applied.",
            partitions_def=accounts.partitions,
            tags={} if accounts.names else {ACCOUNT_TAG: UNNAMED},
            executor_def=dg.in_process_executor,
        )


def _push(
    context: dg.OpExecutionContext,
    accounts: Accounts,
    account: Account,
    file: PushFile,
    digest: str | None = None,
) -> None:
    """Push the file, and record observations, warnings, and the metadata of the result.

    Raises `dagster.Failure`, after the observations, if the push was stopped or failed.
    """
    name = account_of(context)
    watch = account.watch or ProgressLog(context.log)
    done = run(deliver(account.settings(name), file, digest=digest, watch=watch))
    metadata, report = push_metadata(done), done.report
    for kind in [INBOX] * (digest is not None) + [API] * file.options.apply:
        key = accounts.key(kind, file.resource)
        context.log_event(dg.AssetObservation(key, metadata=metadata, partition=name))
    if report.outcome in ("stopped", "failed"):
        if report.error is not None:
            raise to_failure(report.error, context, metadata)
        raise dg.Failure("The push failed. See the log of the run.", metadata, allow_retries=False)
    for question in report.preview.blocking_questions:
        context.log.warning(
            f"Nothing was sent. The push has an open question ({question.code}). {question.repair}"
        )
    if report.exit_status == 3:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(report.counts.items()))
        context.log.warning(
            f"Some rows need corrections: {counts}. Correct the report {report.file} and push it."
        )
    context.add_output_metadata(metadata)


def push_metadata(result: DeliveryResult) -> dict[str, Any]:
    """Return the push's counts of rows and problems, its requests, and its report."""
    report = result.report
    metadata = {
        "outcome": report.outcome,
        "rows": report.summary.rows,
        "requests": report.requests,
        "requests_planned": report.preview.requests,
        "seconds": round(report.seconds, 3),
        **{f"rows/{name}": count for name, count in report.counts.items()},
        **{f"problems/{code}": count for code, count in report.summary.codes.items()},
        "batch": report.batch or None,
        "report": report.file,
        "put_away": result.archived,
    }
    return {name: value for name, value in metadata.items() if value is not None}


def external_assets(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """Yield the assets that Dagster shows and does not build: inboxes and the API's resources."""
    for name, resource in CATALOG.items():
        if name in ORDER:
            yield accounts.asset_spec(
                INBOX,
                name,
                path=__file__,
                description=f"Spreadsheets in `inbox/{name}/` of the data folder. With"
                " `inbox_sensor` switched on, each file is pushed once.",
                group_name=INBOX,
                kinds={"csv", "excel"},
                owners=RECRUITING_TEAM,
            )
        yield accounts.asset_spec(
            API,
            name,
            path=__file__,
            deps=[accounts.key(INBOX, name)] if name in ORDER else [],
            description=f"{resource.about} A push that changes records is shown as an observation.",
            group_name=API,
            kinds={"api"},
            owners=RECRUITING_TEAM,
        )

"""The job that pushes one spreadsheet, and the asset that pushes the rows of a query.

The inbox sensor starts the job for each file.

Cell values are never logged or recorded here: a problem is shown by its row, column and code, and
the report has the rest.
"""

# Dagster reads the annotations of an op at import, so they are not postponed here.
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from connector.errors import ConnectorError, TryAgain
from connector.pulls.report import explain
from connector.pushes.inbox import DeliveryResult, deliver
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.pushes.preview import PushFile
from connector.pushes.query import file_from_query
from connector.pushes.report import ORDER, PushReport, PushRunOptions
from connector.spreadsheet.problems import PROBLEMS
from pipelines.accounts import Account, Accounts, Context, account_of, is_last_try, to_failure
from pipelines.graph import (
    API_KEYS,
    DATA_TEAM,
    INBOX_KEYS,
    PUBLISHED,
    PUBLISHING,
    PUSH_FROM_QUERY,
    source_metadata,
)
from pipelines.landing import RETRIES, ProgressLog

NAME = "push_spreadsheet"
"""Name of the job."""

OP = "push_file"
"""Name of its only step."""

PROBLEMS_SHOWN_MAX = 100
"""Maximum number of problems in the run's table, which has the first rows of each kind; the report
has all of them."""

_IN_THE_REPORT = "Unknown problem: see this row in the report."
_COLUMNS = (("row", "int"), *((name, "string") for name in ("code", "column", "message", "fix")))
_SCHEMA = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in _COLUMNS])


def _push_option_field(name: str, default: Any = None) -> Any:
    """Return a configuration field with the description of the option of `connector push`."""
    return Field(default=default, description=PUSH_OPTIONS[name])


class RowConfig(dg.Config):
    """Options of `connector push` that files and queries have in common, under the same names."""

    resource: str = Field(description=f"One of: {', '.join(ORDER)}.")
    mode: Literal["create", "update", "upsert", "convert"] = _push_option_field("mode", ...)
    match: list[str] = _push_option_field("match", [])
    apply: bool = Field(default=False, description="Send the rows. Default: preview only.")
    mapping_file: str | None = _push_option_field("mapping_file")
    ignore: list[str] = _push_option_field("ignore", [])
    content_type: str | None = _push_option_field("content_type")
    region: str | None = _push_option_field("region")
    day_hours: str | None = _push_option_field("day_hours")
    set_values: list[str] = _push_option_field("set_values", [])
    clear: str | None = _push_option_field("clear")
    accept_warnings: bool = _push_option_field("accept_warnings", False)  # a default, and no switch
    accept: list[str] = _push_option_field("accept", [])
    overwrite: bool = _push_option_field("overwrite", False)  # a default, and no switch
    resend: bool = _push_option_field("resend", False)  # a default, and no switch
    pull: bool = Field(default=True, description="Pull before applying.")
    output: str | None = Field(
        default=None, description="Path of the report. Default: next to the pushed file."
    )
    report: Literal["problems", "all"] = Field(
        default="problems",
        description="Rows in the report of a preview: only rows with problems, or all.",
    )
    max_requests: int | None = Field(
        default=None, description="Maximum number of API requests, including retries."
    )

    def options(self, folder: Path) -> PushOptions:
        """Return the options for reading the file; file names are relative to `folder`."""
        given = {name: getattr(self, name) for name in PUSH_OPTIONS if hasattr(self, name)}
        given |= {name: tuple(given[name]) for name in ("match", "ignore", "set_values", "accept")}
        given["mapping_file"] = None if self.mapping_file is None else folder / self.mapping_file
        return PushOptions(**given)

    def run_options(self, options: PushOptions) -> PushRunOptions:
        """Return the options for sending the rows."""
        output = Path(self.output) if self.output is not None else None
        return PushRunOptions(
            applies=self.apply,
            pulls=self.pull,
            output=output,
            report_rows=self.report,
            policy=options.policy(),
        )


class PushConfig(RowConfig):
    """Options of `connector push` with a file."""

    file: str = Field(
        description="Path of the csv, tsv, txt or xlsx file, relative to the project folder."
    )
    sheet: str | None = _push_option_field("sheet")
    encoding: str | None = _push_option_field("encoding")
    delimiter: str | None = _push_option_field("delimiter")
    header_row: int | None = _push_option_field("header_row")
    date_format: str | None = _push_option_field("date_format")
    decimal: str | None = _push_option_field("decimal")
    inbox_digest: str | None = Field(
        default=None, description="SHA-256 of the file in the inbox. Set by inbox_sensor."
    )


class QueryConfig(RowConfig):
    """Options of `connector push` with `--query`."""

    query: str = Field(
        description="SELECT on the published file, or the path of a .sql or .parquet file, relative"
        " to the project folder."
    )
    clear_nulls: bool = Field(
        default=False, description="Empty the fields that are null. Default: they do not change."
    )


def create_push_job(accounts: Accounts) -> dg.JobDefinition:
    """Return the job that pushes one file of one account."""

    @dg.op(
        description="Check the rows of a spreadsheet and preview the changes. If `apply` is true,"
        " send them. A retry sends only the rows that were not applied.",
        pool=accounts.pool,
        retry_policy=RETRIES,
    )
    def push_file(
        context: dg.OpExecutionContext, config: PushConfig, account: dg.ResourceParam[Account]
    ) -> dg.Output[None]:
        """Push the file, and log warnings for refused rows.

        Raises `dagster.Failure` with the reason if the push was stopped or failed.
        """
        path = account.folder / config.file
        with _convert_errors(context):
            file = config.options(account.folder).push_file(config.resource, path)
            return dg.Output(None, metadata=_push_and_log(context, account, config, file))

    @dg.job(
        name=NAME,
        description="Push one spreadsheet to the API. Previews the changes unless `apply` is true.",
        partitions_def=accounts.partitions,
    )
    def push_job() -> None:
        """Push one file per run."""
        push_file()

    return push_job


def push_from_query_asset(accounts: Accounts) -> dg.AssetsDefinition:
    """Return the asset that pushes the rows of a query. It is not part of the nightly job."""

    @dg.asset(
        key=PUSH_FROM_QUERY,
        group_name=PUBLISHING,
        deps=[PUBLISHED],
        kinds={"duckdb", "api"},
        owners=DATA_TEAM,
        metadata=source_metadata(__file__),
        description="Check the rows of a query on the published file and preview the changes. If"
        " `apply` is true, send them. A query without rows sends nothing.",
        partitions_def=accounts.partitions,
        pool=accounts.pool,
        retry_policy=RETRIES,
    )
    def push_from_query(
        context: dg.AssetExecutionContext, config: QueryConfig, account: dg.ResourceParam[Account]
    ) -> dg.MaterializeResult[None]:
        """Push the rows of the query, and log warnings for refused rows.

        Raises `dagster.Failure` with the reason if the query or the push fails.
        """
        folder = account.folder
        is_file = (folder / config.query).suffix.lower() in (".sql", ".parquet")
        with _convert_errors(context):
            file = file_from_query(
                account.settings(account_of(context)),
                config.resource,
                str(folder / config.query) if is_file else config.query,
                config.options(folder),
                clears_nulls=config.clear_nulls,
            )
            if file is None:
                return dg.MaterializeResult(metadata={"rows": 0})
            return dg.MaterializeResult(metadata=_push_and_log(context, account, config, file))

    return push_from_query


@contextmanager
def _convert_errors(context: Context) -> Iterator[None]:
    """Raise errors of the connector as `dagster.Failure`."""
    try:
        yield
    except ConnectorError as error:
        raise to_failure(error, context) from None


def _push_and_log(
    context: Context, account: Account, config: RowConfig, file: PushFile
) -> dict[str, Any]:
    """Push the file, log observations and warnings, and return the metadata of the result.

    Raises `dagster.Failure`, after the observations, if the push was stopped or failed.
    """
    pushing = deliver(
        account.settings(account_of(context)),
        file,
        config.run_options(config.options(account.folder)),
        digest=config.inbox_digest if isinstance(config, PushConfig) else None,
        budget=config.max_requests,
        watch=account.watch or ProgressLog(context.log),
    )
    done = asyncio.run(pushing)
    metadata = push_metadata(done)
    for event in _observations(config, metadata, account_of(context)):
        context.log_event(event)
    _raise_if_failed(context, done.report, metadata)
    for warning in _warnings(done):
        context.log.warning(warning)
    return metadata


def _observations(
    config: RowConfig, metadata: dict[str, Any], account: str | None
) -> Iterator[dg.AssetObservation]:
    """Yield observations of the file's inbox and of the resource in the API."""
    counts = {name: value for name, value in metadata.items() if name != "problems_table"}
    if isinstance(config, PushConfig) and config.inbox_digest is not None:
        yield dg.AssetObservation(INBOX_KEYS[config.resource], metadata=counts, partition=account)
    if config.apply:
        yield dg.AssetObservation(API_KEYS[config.resource], metadata=counts, partition=account)


def _raise_if_failed(context: Context, report: PushReport, metadata: dict[str, Any]) -> None:
    """Raise `dagster.Failure` if the push was stopped or failed."""
    if report.outcome not in ("stopped", "failed"):
        return
    error = report.error
    raise dg.Failure(
        description=explain(error) if error else "The push failed. See the log of the run.",
        metadata=metadata,
        allow_retries=isinstance(error, TryAgain) and not is_last_try(context),
    )


def _warnings(result: DeliveryResult) -> Iterator[str]:
    """Yield sentences on rows and questions that need the user, without cell values."""
    report = result.report
    if merged := report.preview.table.merged_ranges:
        yield f"Merged cells {', '.join(merged)}: each of their rows has the value."
    for question in report.preview.blocking_questions:
        yield (
            f"Nothing was sent. The push has an open question ({question.code}). {question.repair}"
        )
    if report.exit_status == 3:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(report.counts.items()))
        yield f"Some rows need corrections: {counts}. Correct the report {report.file} and push it."


# -- What Dagster shows ----------------------------------------------------------------------------


def push_metadata(result: DeliveryResult) -> dict[str, Any]:
    """Return the push's counts, requests, report and first problems."""
    report = result.report
    metadata: dict[str, Any] = {
        "outcome": report.outcome,
        "rows": report.summary.rows,
        "requests": report.requests,
        "requests_planned": report.preview.requests,
        "seconds": round(report.seconds, 3),
        **{f"rows/{name}": count for name, count in report.counts.items()},
        "batch": report.batch or None,
        "report": report.file,
        "put_away": result.archived,
        "problems": report.summary.codes.total(),
    }
    problems = [
        _problem_row(number, problem.code, problem.column)
        for group in report.summary.problems.values()
        for number, problem in group.examples
    ]
    if problems:
        metadata["problems_table"] = dg.MetadataValue.table(problems[:PROBLEMS_SHOWN_MAX], _SCHEMA)
    return {name: value for name, value in metadata.items() if value is not None}


def _problem_row(number: int, code: str, column: str | None) -> dg.TableRecord:
    """Return a row of the table of problems, with the general text of the code."""
    message, _, fix = PROBLEMS.get(code, _IN_THE_REPORT).partition(": ")
    values = {"code": code, "column": column or "", "message": message}
    return dg.TableRecord({"row": number, **values, "fix": fix[:1].upper() + fix[1:]})

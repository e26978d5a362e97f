"""The jobs that push one spreadsheet or the rows of a query, and the assets of what they change.

The inbox sensor starts the job for each file.

Cell values are never logged or recorded here: a problem is shown by its row, column and code, and
the report has the rest.
"""

# Dagster reads the annotations of an op at import, so they are not postponed here.
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.pushes.inbox import DeliveryResult, deliver
from connector.pushes.options import PUSH_OPTIONS, PushFile, PushOptions
from connector.pushes.query import file_from_query
from connector.pushes.report import ORDER
from connector.spreadsheet.problems import PROBLEMS
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
from pipelines.models import PUBLISHED, PUBLISHING

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
    apply: bool = _push_option_field("apply", False)  # a default, and no switch
    mapping: str | None = _push_option_field("mapping")
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
    output: str | None = _push_option_field("output")
    report: Literal["problems", "all"] = _push_option_field("report", "problems")
    max_requests: int | None = Field(
        default=None, description="Maximum number of API requests, including retries."
    )

    def options(self, folder: Path) -> PushOptions:
        """Return the options of the push; the mapping file is relative to `folder`."""
        given = {name: getattr(self, name) for name in PUSH_OPTIONS if hasattr(self, name)}
        given |= {name: tuple(given[name]) for name in ("match", "ignore", "set_values", "accept")}
        given["mapping"] = None if self.mapping is None else folder / self.mapping
        given["output"] = None if self.output is None else Path(self.output)
        return PushOptions(**given, pull=self.pull, max_requests=self.max_requests)


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


def external_assets(accounts: Accounts) -> Iterator[dg.AssetSpec]:
    """Yield the assets that Dagster shows and does not build: inboxes, API and report."""
    base_url = None if accounts.names else accounts.common.base_url
    for name in ORDER:
        yield accounts.asset_spec(
            INBOX,
            name,
            path=__file__,
            description=f"Spreadsheets in `inbox/{name}/` of the data folder. With `inbox_sensor`"
            " switched on, each file is pushed once.",
            group_name=INBOX,
            kinds={"csv", "excel"},
            owners=RECRUITING_TEAM,
        )
    for name, resource in CATALOG.items():
        yield accounts.asset_spec(
            API,
            name,
            path=__file__,
            deps=[accounts.key(INBOX, name)] if name in ORDER else [],
            description=f"{resource.about} A push that changes records is shown as an observation.",
            group_name=API,
            kinds={"api"},
            owners=RECRUITING_TEAM,
            metadata={"dagster/uri": f"{base_url}/api/v1{resource.path}"} if base_url else {},
        )
    yield accounts.asset_spec(
        "report",
        path=__file__,
        deps=[accounts.key(PUBLISHED)],
        description="Page for directors with the main figures. `connector report` writes it from"
        " the published file.",
        group_name=PUBLISHING,
        kinds={"html"},
    )


def push_jobs(accounts: Accounts) -> list[dg.JobDefinition]:
    """Return the jobs that push one file and the rows of one query.

    They are no assets: nothing that writes to the platform runs without its own request.
    """
    partitions = accounts.partitions
    tags = {} if accounts.names else {ACCOUNT_TAG: UNNAMED}

    @dg.op(
        description="Check the rows of a spreadsheet and preview the changes. If `apply` is true,"
        " send them. A retry sends only the rows that were not applied.",
        out=dg.Out(dg.Nothing),
    )
    def push_file(
        context: dg.OpExecutionContext, config: PushConfig, account: dg.ResourceParam[Account]
    ) -> None:
        """Push the file. Raises `dagster.Failure` if the push was stopped or failed."""
        with _convert_errors(context):
            path = account.folder / config.file
            file = config.options(account.folder).push_file(config.resource, path)
            _push(context, accounts, account, config, file)

    @dg.op(
        description="Check the rows of a query on the published file and preview the changes. If"
        " `apply` is true, send them. A query without rows sends nothing.",
        out=dg.Out(dg.Nothing),
    )
    def push_query(
        context: dg.OpExecutionContext, config: QueryConfig, account: dg.ResourceParam[Account]
    ) -> None:
        """Push the rows of the query. Raises `dagster.Failure` if the query or the push fails."""
        path = account.folder / config.query
        is_file = path.suffix.lower() in (".sql", ".parquet")
        with _convert_errors(context):
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
                _push(context, accounts, account, config, file)

    @dg.job(
        name=NAME,
        description="Push one spreadsheet to the API. Previews the changes unless `apply` is true.",
        partitions_def=partitions,
        tags=tags,
        executor_def=dg.in_process_executor,
    )
    def push_spreadsheet() -> None:
        push_file()

    @dg.job(
        description="Push the rows of a query on the published file to the API. Previews the"
        " changes unless `apply` is true.",
        partitions_def=partitions,
        tags=tags,
        executor_def=dg.in_process_executor,
    )
    def push_from_query() -> None:
        push_query()

    return [push_spreadsheet, push_from_query]


@contextmanager
def _convert_errors(context: dg.OpExecutionContext) -> Iterator[None]:
    """Raise errors of the connector as `dagster.Failure`."""
    try:
        yield
    except ConnectorError as error:
        raise to_failure(error, context) from None


def _push(
    context: dg.OpExecutionContext,
    accounts: Accounts,
    account: Account,
    config: RowConfig,
    file: PushFile,
) -> None:
    """Push the file, and record observations, warnings, and the metadata of the result.

    Raises `dagster.Failure`, after the observations, if the push was stopped or failed.
    """
    name = account_of(context)
    digest = config.inbox_digest if isinstance(config, PushConfig) else None
    pushing = deliver(
        account.settings(name), file, digest=digest, watch=account.watch or ProgressLog(context.log)
    )
    done = run(pushing)
    metadata = push_metadata(done)
    counts = {each: value for each, value in metadata.items() if each != "problems_table"}
    observed = [INBOX] * (digest is not None) + [API] * config.apply
    for kind in observed:
        key = accounts.key(kind, config.resource)
        context.log_event(dg.AssetObservation(key, metadata=counts, partition=name))
    report = done.report
    if report.outcome in ("stopped", "failed"):
        if report.error is not None:
            raise to_failure(report.error, context, metadata)
        raise dg.Failure("The push failed. See the log of the run.", metadata, allow_retries=False)
    for warning in _warnings(done):
        context.log.warning(warning)
    context.add_output_metadata(metadata)


def _warnings(result: DeliveryResult) -> Iterator[str]:
    """Yield sentences on rows and questions that need the user, without cell values."""
    report = result.report
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

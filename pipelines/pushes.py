"""The job that pushes one spreadsheet. The inbox sensor starts it for each file.

Cell values are never logged or recorded here: a problem is shown by its row, column and code, and
the report has the rest.
"""

# Dagster reads the annotations of an op at import, so they are not postponed here.
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from connector import (
    ORDER,
    PROBLEMS,
    PUSH_OPTIONS,
    ConnectorError,
    DeliveryResult,
    Manner,
    PushOptions,
    PushReport,
    TryAgain,
    deliver,
    explain,
)
from pipelines.accounts import Account, Accounts, account_of, failure_of, is_last_try
from pipelines.graph import API_KEYS, INBOX_KEYS
from pipelines.landing import RETRIES, ProgressLog

NAME = "push_spreadsheet"
"""Name of the job."""

OP = "push_file"
"""Name of its only step."""

PROBLEMS_SHOWN_MAX = 100
"""Maximum number of problems in the run's table; the report has all of them."""

_IN_THE_REPORT = "Unknown problem: See this row in the report."
_COLUMNS = (("row", "int"), *((name, "string") for name in ("code", "column", "message", "fix")))
_SCHEMA = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in _COLUMNS])


def _option(name: str, default: Any = None) -> Any:
    """Return the field of an option of `connector push`, with the option's own description."""
    return Field(default=default, description=PUSH_OPTIONS[name])


class PushConfig(dg.Config):
    """Options of `connector push`, under the same names."""

    resource: str = Field(description=f"One of: {', '.join(ORDER)}.")
    file: str = Field(
        description="Path of the csv, tsv, txt or xlsx file, relative to the project folder."
    )
    mode: Literal["create", "update", "upsert", "convert"] = _option("mode", ...)
    match: list[str] = _option("match", [])
    apply: bool = Field(default=False, description="Send the rows. Default: preview only.")
    mapping_file: str | None = _option("mapping_file")
    ignore: list[str] = _option("ignore", [])
    content_type: str | None = _option("content_type")
    sheet: str | None = _option("sheet")
    encoding: str | None = _option("encoding")
    delimiter: str | None = _option("delimiter")
    header_row: int | None = _option("header_row")
    date_format: str | None = _option("date_format")
    century: int | None = _option("century")
    decimal: str | None = _option("decimal")
    region: str | None = _option("region")
    clear: str | None = _option("clear")
    accept_warnings: bool = _option("accept_warnings", False)  # a default, and no switch
    overwrite: bool = _option("overwrite", False)  # a default, and no switch
    resend: bool = _option("resend", False)  # a default, and no switch
    unconfirmed: str = _option("unconfirmed", "hold")
    marker_field: str | None = _option("marker_field")
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
    inbox_digest: str | None = Field(
        default=None, description="SHA-256 of the file in the inbox. Set by inbox_sensor."
    )

    def options(self, folder: Path) -> PushOptions:
        """Return the options of the command; file names are relative to the folder."""
        options = {name: getattr(self, name) for name in PUSH_OPTIONS}
        options |= {"match": tuple(self.match), "ignore": tuple(self.ignore)}
        options["mapping_file"] = None if self.mapping_file is None else folder / self.mapping_file
        return PushOptions(**options)

    def manner(self, options: PushOptions) -> Manner:
        """Return the options of the push that are not about the file."""
        output = Path(self.output) if self.output is not None else None
        return Manner(
            applies=self.apply,
            pulls=self.pull,
            output=output,
            report=self.report,
            terms=options.policy(),
        )


def push_job_of(accounts: Accounts) -> dg.JobDefinition:
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
        settings, folder = account.settings(account_of(context)), account.folder
        try:
            options = config.options(folder)
            pushing = deliver(
                settings,
                options.push_file(config.resource, folder / config.file),
                config.manner(options),
                digest=config.inbox_digest,
                budget=config.max_requests,
                watch=account.watch or ProgressLog(context.log),
            )
            result = asyncio.run(pushing)
        except ConnectorError as error:
            raise failure_of(error, context) from None
        metadata = push_metadata(result)
        for event in _observed(config, metadata, account_of(context)):
            context.log_event(event)
        _refuse(context, result.report, metadata)
        for warning in _warnings(result):
            context.log.warning(warning)
        return dg.Output(None, metadata=metadata)

    @dg.job(
        name=NAME,
        description="Push one spreadsheet to the API. Previews the changes unless `apply` is true.",
        partitions_def=accounts.partitions,
    )
    def push_job() -> None:
        """Push one file per run."""
        push_file()

    return push_job


def _observed(
    config: PushConfig, metadata: dict[str, Any], account: str | None
) -> Iterator[dg.AssetObservation]:
    """Yield observations of the inbox that the file was in, and of the resource that it changed."""
    counts = {name: value for name, value in metadata.items() if name != "problems_table"}
    if config.inbox_digest is not None:
        yield dg.AssetObservation(INBOX_KEYS[config.resource], metadata=counts, partition=account)
    if config.apply:
        yield dg.AssetObservation(API_KEYS[config.resource], metadata=counts, partition=account)


def _refuse(context: dg.OpExecutionContext, report: PushReport, metadata: dict[str, Any]) -> None:
    """Raise `dagster.Failure` if the push was stopped or failed."""
    if report.outcome not in ("stopped", "failed"):
        return
    error = report.error or (report.batch.error if report.batch is not None else None)
    raise dg.Failure(
        description=explain(error) if error else "The push failed. See the log of the run.",
        metadata=metadata,
        allow_retries=isinstance(error, TryAgain) and not is_last_try(context),
    )


def _warnings(result: DeliveryResult) -> Iterator[str]:
    """Yield sentences on what the user has to check, without cell values."""
    report = result.report
    if merged := report.preview.table.merged:
        yield f"Merged cells {', '.join(merged)}: only the first cell of each has a value."
    for question in report.preview.stopping:
        yield f"The push needs an answer first ({question.code}). {question.repair}"
    if report.exit_status == 3:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(report.counts.items()))
        yield f"Some rows need corrections: {counts}. Correct the report {report.file} and push it."
    if result.put_away is not None and result.put_away.file is None:
        yield "The file in the inbox was changed or removed during the push, so it was not moved."


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
        "batch": report.batch.batch if report.batch is not None else None,
        "report": report.file,
        "put_away": result.put_away.file if result.put_away is not None else None,
        "problems": report.summary.codes.total(),
    }
    problems = [
        _problem(row.number, problem.code, problem.column)
        for row in report.summary.first
        for problem in row.problems
    ]
    if problems:
        metadata["problems_table"] = dg.MetadataValue.table(problems[:PROBLEMS_SHOWN_MAX], _SCHEMA)
    return {name: value for name, value in metadata.items() if value is not None}


def _problem(number: int, code: str, column: str | None) -> dg.TableRecord:
    """Return a row of the table. It has the general text of the code, without cell values."""
    message, _, fix = PROBLEMS.get(code, _IN_THE_REPORT).partition(": ")
    row = {"code": code, "column": column or "", "message": message}
    return dg.TableRecord({"row": number, **row, "fix": fix[:1].upper() + fix[1:]})

"""The push of one spreadsheet, as a job with typed configuration; files of the inbox go through it.

What becomes of a row is the connector's affair. Nothing that a cell holds is logged or recorded
here: a problem is told by its row, its column and its code, and the report has the rest.
"""

# Annotations stay as they are, and not text: Dagster reads those of an op at import.
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
    Delivered,
    Manner,
    PushOptions,
    PushReport,
    TryAgain,
    deliver,
    explain,
)
from pipelines.accounts import Account, Accounts, account_of, failure_of
from pipelines.landing import RETRIES, Narrator

NAME = "push_spreadsheet"
"""The job."""

OP = "push_file"
"""Its one step."""

PROBLEMS_SHOWN_MAX = 100
"""Problems in the run's table; the report has them all."""

_IN_THE_REPORT = "The report says what it is: look at the row there."
_COLUMNS = (("row", "int"), *((name, "string") for name in ("code", "column", "message", "fix")))
_SCHEMA = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in _COLUMNS])


def _option(name: str, default: Any = None) -> Any:
    """An option of the command, in its own words."""
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
        default=None,
        description="Set by the sensor: the SHA-256 of a file in the inbox, which `file` names.",
    )

    def options(self, folder: Path) -> PushOptions:
        """What was said, as the command takes it; files are named from the folder."""
        said = {name: getattr(self, name) for name in PUSH_OPTIONS}
        said |= {"match": tuple(self.match), "ignore": tuple(self.ignore)}
        said["mapping_file"] = None if self.mapping_file is None else folder / self.mapping_file
        return PushOptions(**said)

    def manner(self, options: PushOptions) -> Manner:
        """How the push goes about it."""
        output = Path(self.output) if self.output is not None else None
        return Manner(
            applies=self.apply,
            pulls=self.pull,
            output=output,
            report=self.report,
            terms=options.policy(),
        )


def push_job_of(accounts: Accounts) -> dg.JobDefinition:
    """The job that pushes one file, for one of the accounts."""

    @dg.op(
        description="Check a spreadsheet's rows, say what they would do, and do it where it is"
        " asked.",
        pool=accounts.pool,
        # What was applied is in the journal, so that a repeat sends the rest alone.
        retry_policy=RETRIES,
    )
    def push_file(
        context: dg.OpExecutionContext, config: PushConfig, account: dg.ResourceParam[Account]
    ) -> dg.Output[None]:
        """Push the file. Rows that were refused are warned of; a push that did not end is a
        `dagster.Failure` that says why.
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
                watch=account.watch or Narrator(context.log),
            )
            done = asyncio.run(pushing)
        except ConnectorError as error:
            raise failure_of(error) from None
        told = of_push(done)
        _refuse(done.report, told)
        for warning in _warnings(done):
            context.log.warning(warning)
        return dg.Output(None, metadata=told)

    @dg.job(
        name=NAME,
        description="Push one spreadsheet; without `apply`, say what it would do.",
        partitions_def=accounts.partitions,
    )
    def push_job() -> None:
        """One file, one run."""
        push_file()

    return push_job


def _refuse(report: PushReport, told: dict[str, Any]) -> None:
    """Raise `dagster.Failure` where the push did not end, with what it came to."""
    if report.outcome not in ("stopped", "failed"):
        return
    error = report.error or (report.batch.error if report.batch is not None else None)
    reason = explain(error) if error is not None else "Look into the run's log."
    raise dg.Failure(
        description=f"The push {'was stopped' if report.outcome == 'stopped' else 'failed'}."
        f" {reason}",
        metadata=told,
        allow_retries=isinstance(error, TryAgain),
    )


def _warnings(done: Delivered) -> Iterator[str]:
    """What a person has to look at, in sentences without any cell."""
    report = done.report
    if merged := report.preview.table.merged:
        yield f"Merged cells, of which only the first has a value: {', '.join(merged)}."
    for question in report.preview.stopping:
        yield f"The file waits for an answer ({question.code}). {question.repair}"
    if report.exit_status == 3:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(report.counts.items()))
        yield f"Rows need a person's hand: {counts}. Correct the report {report.file} and push it."
    if done.put_away is not None and done.put_away.file is None:
        yield "The file was changed or taken away while it was pushed; what is there now was left."


# -- What Dagster shows ----------------------------------------------------------------------------


def of_push(done: Delivered) -> dict[str, Any]:
    """What a push came to: counts, cost, where the report is, and the first of the problems."""
    report = done.report
    told: dict[str, Any] = {
        "outcome": report.outcome,
        "rows": report.summary.rows,
        "requests": report.requests,
        "requests_foreseen": report.preview.requests,
        "seconds": round(report.seconds, 3),
        **{f"rows/{name}": count for name, count in report.counts.items()},
        "batch": report.batch.batch if report.batch is not None else None,
        "report": report.file,
        "put_away": done.put_away.file if done.put_away is not None else None,
        "problems": report.summary.codes.total(),
    }
    problems = [
        _problem(row.number, problem.code, problem.column)
        for row in report.summary.first
        for problem in row.problems
    ]
    if problems:
        told["problems_table"] = dg.MetadataValue.table(problems[:PROBLEMS_SHOWN_MAX], _SCHEMA)
    return {name: value for name, value in told.items() if value is not None}


def _problem(number: int, code: str, column: str | None) -> dg.TableRecord:
    """A line of the table. A problem's own words may quote the cell; those of its code cannot."""
    message, _, fix = PROBLEMS.get(code, _IN_THE_REPORT).partition(": ")
    told = {"code": code, "column": column or "", "message": message}
    return dg.TableRecord({"row": number, **told, "fix": fix[:1].upper() + fix[1:]})

"""Report on a batch, and a person's decisions on its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from connector.errors import ConnectorError
from connector.errors_api import Stopped
from connector.ledger.journal_records import RowRecord
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import RowOutcome
from connector.ledger.quota import MonthUse
from connector.pulls.outcome import RunOutcome
from connector.pushes.spill_file import SpillFile

GOOD: frozenset[RowOutcome] = frozenset(("created", "updated", "converted", "unchanged"))
"""Outcomes that need no attention."""


@dataclass(frozen=True, slots=True)
class DeclaredRecord:
    """Statement of a person that the row was applied to this record.

    `is_sure`: even if the record differs from the row.
    """

    record_id: str
    is_sure: bool = False


Decision = Literal["look", "resend", "drop"] | DeclaredRecord
"""Decision on an unconfirmed row: look it up again, send it again, drop it, or name its record."""


_ROW_FIELDS = tuple(each.name for each in fields(RowRecord) if each.name != "problems")


class EndedRows:
    """Rows of a batch with their outcomes, in a spill file, and counts of the outcomes."""

    def __init__(self, folder: Path, rows: Iterable[RowRecord]) -> None:
        self.rows: SpillFile[RowRecord] = SpillFile(folder, _packed, _unpacked)
        self.counts: Counter[RowOutcome] = Counter()
        for row in rows:
            self.rows.add(row)
            self.counts[row.outcome] += 1

    @property
    def need_no_attention(self) -> bool:
        """Whether all rows have an outcome that needs no attention."""
        return self.counts.keys() <= GOOD


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Result of a run of a batch.

    Attributes:
        ended: The rows.
        unlanded: Number of answers that could not be loaded; the next pull loads their records.
        error: Error that ended the run early.
        month: Requests of the month, if they could be read.
        unpublished: Error that kept the results from being published.
    """

    outcome: RunOutcome
    batch: str
    ended: EndedRows = field(repr=False)
    requests: int
    seconds: float
    waited_seconds: float
    rate_limited: int
    unlanded: int = 0
    error: ConnectorError | None = None
    month: MonthUse | None = None
    unpublished: ConnectorError | None = None

    @property
    def rows(self) -> Collection[RowRecord]:
        """Rows of the batch, by number."""
        return self.ended.rows

    @property
    def counts(self) -> Mapping[RowOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return self.ended.counts

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed or unpublished, 3 some rows need attention, 4 stopped; or that of the
        error.
        """
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        status = {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]
        return 1 if self.unpublished is not None and status in (0, 3) else status

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, without the rows, which are in a file."""
        shown: dict[str, Any] = {
            "outcome": self.outcome,
            "batch": self.batch,
            "rows": len(self.rows),
            **{str(outcome): count for outcome, count in self.counts.items()},
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "waited_seconds": round(self.waited_seconds, 3),
            "rate_limited": self.rate_limited,
        }
        if self.error is not None:
            shown["error"] = self.error.as_json()
        if self.unpublished is not None:
            shown["unpublished"] = self.unpublished.as_json()
        return shown


def outcome_of_rows(rows: EndedRows, error: ConnectorError | None) -> RunOutcome:
    """Return the outcome of a run: by its error, else by whether a row needs attention."""
    if error is not None:
        return "stopped" if isinstance(error, Stopped) else "failed"
    return "done" if rows.need_no_attention else "partial"


def _packed(row: RowRecord) -> str:
    values = [getattr(row, name) for name in _ROW_FIELDS]
    problems = [astuple(each) for each in row.problems]
    return json.dumps([*values, problems], default=datetime.isoformat)


def _unpacked(text: str) -> RowRecord:
    *values, problems = json.loads(text)
    values_by_name: dict[str, Any] = dict(zip(_ROW_FIELDS, values, strict=True))
    for name in ("undone_at", "moved_at"):
        values_by_name[name] = (
            None if values_by_name[name] is None else datetime.fromisoformat(values_by_name[name])
        )
    return RowRecord(**values_by_name, problems=tuple(Problem(*each) for each in problems))

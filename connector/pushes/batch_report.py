"""Report on a batch, and what a person decides of a row."""

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
"""Outcomes that no one needs to look at."""


@dataclass(frozen=True, slots=True)
class DeclaredRecord:
    """A person's word that the row was applied, and made or changed this record.

    `is_sure`: although the record is not like the row.
    """

    record_id: str
    is_sure: bool = False


Decision = Literal["look", "resend", "drop"] | DeclaredRecord
"""What a person decides of a row in doubt: look for it again, send it again, give it up, or say
which record it is.
"""


_ROW_FIELDS = tuple(each.name for each in fields(RowRecord) if each.name != "problems")


class EndedRows:
    """Ended rows of a batch in their order, in a spill file, with their counts."""

    def __init__(self, folder: Path, rows: Iterable[RowRecord]) -> None:
        self.rows: SpillFile[RowRecord] = SpillFile(folder, _packed, _unpacked)
        self.counts: Counter[RowOutcome] = Counter()
        for row in rows:
            self.rows.add(row)
            self.counts[row.outcome] += 1

    @property
    def need_no_attention(self) -> bool:
        """Whether no one needs to look at any of them."""
        return self.counts.keys() <= GOOD


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Result of a run of a batch, with the status of each row.

    `ended` are the rows. `error` is what ended it early, if anything did. `unlanded` counts the
    answers that could not be landed at once, and that the next pull brings. `month` is what the
    month's requests had come to, None where that could not be read. `unpublished` is why analysts
    do not see yet what a person has settled.
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
        """The rows of the batch, in order, read from the disk."""
        return self.ended.rows

    @property
    def counts(self) -> Mapping[RowOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return self.ended.counts

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed or unpublished, 3 rows need a look, 4 stopped; or the error's."""
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        status = {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]
        return 1 if self.unpublished is not None and status in (0, 3) else status

    def as_json(self) -> dict[str, Any]:
        """The report as `--json` prints it, without the rows, which are in a file."""
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
    """The name for a run's end: by what ended it, else by whether a row needs a look."""
    if error is not None:
        return "stopped" if isinstance(error, Stopped) else "failed"
    return "done" if rows.need_no_attention else "partial"


def _packed(row: RowRecord) -> str:
    values = [getattr(row, name) for name in _ROW_FIELDS]
    problems = [astuple(each) for each in row.problems]
    return json.dumps([*values, problems], default=datetime.isoformat)


def _unpacked(text: str) -> RowRecord:
    *values, problems = json.loads(text)
    told: dict[str, Any] = dict(zip(_ROW_FIELDS, values, strict=True))
    for name in ("undone_at", "moved_at"):
        told[name] = None if told[name] is None else datetime.fromisoformat(told[name])
    return RowRecord(**told, problems=tuple(Problem(*each) for each in problems))

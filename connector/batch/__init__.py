"""Writing a file's rows to the API: one batch, from its plan to its report.

`apply` begins a batch or goes on with one that the same file began, `resume` goes on with one by
its name, and `resolve` carries out what a person decided of a row in doubt. What to write is the
engine's decision (`engine/push.py`), what was written is the journal's (`ledger/journal.py`).
"""

from connector.batch.apply import apply, resolve, resume
from connector.batch.report import (
    BatchReport,
    BatchWatch,
    Decision,
    Declared,
    UnwatchedBatch,
)

__all__ = [
    "BatchReport",
    "BatchWatch",
    "Decision",
    "Declared",
    "UnwatchedBatch",
    "apply",
    "resolve",
    "resume",
]

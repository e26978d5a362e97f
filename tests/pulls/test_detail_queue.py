"""Details are loaded in batches, so an interrupted pull loses at most one batch."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from connector.catalog.job import Job
from connector.pulls.deletion_guard import MassDeletionGuard
from connector.pulls.detail_queue import DetailReads
from connector.warehouse.pull_commands import (
    BATCH_RECORDS_MAX,
    Bookmark,
    Commit,
    DeletionProof,
    FoundDetail,
    Outcome,
    ReadRecords,
    Steps,
    UnreadableDetail,
)

AT = datetime(2026, 11, 22, tzinfo=UTC)
RAW = {"created_at": "2026-11-20T00:00:00Z", "updated_at": "2026-11-20T00:00:00Z"}
KINDS = ("found", "gone", "unread")


def make_detail(kind: str, id: str) -> Outcome:
    """Return the result of reading a record: found, gone or unread."""
    if kind == "found":
        return FoundDetail(Job({"id": id, **RAW}), AT)
    return DeletionProof(AT) if kind == "gone" else UnreadableDetail("server_failed")


def test_the_detail_queue_never_holds_more_than_a_batch() -> None:
    @given(st.lists(st.integers(1, 230), min_size=1, max_size=4), st.integers(1, 50))
    def check(sizes: list[int], spared: int) -> None:
        reads = DetailReads(Bookmark(), MassDeletionGuard(10_000, 10_000, accepts=True))
        landed, waiting = list[str](), 0
        kinds = {
            f"{n}-{m}": KINDS[m // spared % 3 if m % spared == 0 else 0]
            for n, size in enumerate(sizes)
            for m in range(size)
        }

        def perform(steps: Steps[None]) -> None:
            nonlocal waiting
            answer = None
            try:
                while True:
                    wanted = steps.send(answer)
                    answer = None
                    if isinstance(wanted, ReadRecords):
                        waiting += len(wanted.ids)
                        assert waiting <= BATCH_RECORDS_MAX
                        answer = {id: make_detail(kinds[id], id) for id in wanted.ids}
                    elif isinstance(wanted, Commit):
                        waiting = 0
                        landed.extend(each.record.id for each in wanted.records)
            except StopIteration:
                return

        for number, size in enumerate(sizes):
            perform(reads.read(tuple(f"{number}-{m}" for m in range(size))))
        perform(reads.commit_end(Bookmark(), None))

        assert sorted(landed) == sorted(id for id, kind in kinds.items() if kind == "found")

    check()

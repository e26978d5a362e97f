"""Totals of lists: a pull does not use a total that the rows contradict.

A total decides where a list ends, whether records are missing, and which deletions are suspicious.
A total that contradicts the rows and pages is requested again, and is only used if a second
response agrees. A list whose pages all show the same records is unreadable.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.errors import ConnectorError
from connector.errors_api import UnreadableAnswer
from connector.pulls.deletion_guard import GONE_MIN, deviation_limit
from connector.pulls.listing import ids_of
from connector.warehouse.bookmark import Bookmark
from connector.warehouse.pull_commands import CountLive, ListPage, Steps, T

ANSWERS_MAX = 3
"""Maximum number of responses to one page request, until two of them agree."""

GROWTH_FACTOR, GROWTH_MIN = 2, 1_000
"""Growth factor of a list between two pulls that needs no second response."""

FIRST_MAX = 1_000_000
"""Largest total of a list that was never loaded that needs no second response."""

SAME_PAGES_MAX = 2
"""Maximum number of consecutive page numbers that may show the same records."""


def with_checked_totals(steps: Steps[T], bookmark: Bookmark) -> Steps[T]:
    """Pass on the commands of `steps`, and request a page again if its total cannot be right."""
    live = yield from CountLive()
    known = _KnownTotal(
        expected=max(live, bookmark.listed or 0),
        offset=bookmark.total_offset or 0,
        is_loaded=bookmark.proven_at is not None,
    )
    answer: object = None
    error: ConnectorError | None = None
    while True:
        try:
            command = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result
        error = None
        try:
            if isinstance(command, ListPage):
                answer = yield from _page(command, known)
            else:
                answer = yield command
        except ConnectorError as raised:
            error = raised


@dataclass(slots=True)
class _KnownTotal:
    """Approximate number of records of a list before a response.

    Attributes:
        offset: Number of records by which the list exceeds its total.
        shown: Last full page.
        same: Numbers of the consecutive pages that were equal to it.
    """

    expected: int
    offset: int
    is_loaded: bool
    shown: tuple[str | None, str, tuple[str, ...]] = (None, "", ())
    same: frozenset[int] = frozenset()

    def contradicts(self, page: Page[Resource]) -> bool:
        """Return True if the rows and pages contradict the page's total."""
        total = page.total + self.offset
        before = (page.page - 1) * page.per_page
        if page.offset is not None:
            return abs(page.offset - self.offset) > deviation_limit(page.count)
        if not page.items:
            return total - before > deviation_limit(before)
        if total < before + len(page.items):
            return True
        expected = max(self.expected, before + len(page.items))
        maximum = expected * GROWTH_FACTOR + (GROWTH_MIN if self.is_loaded else FIRST_MAX)
        return total > maximum

    def remember(self, command: ListPage, page: Page[Resource]) -> None:
        """Remember a page. Raises `UnreadableAnswer` if another page number shows the same
        records.
        """
        ids = ids_of(page.items)
        shown = (command.sort, command.order, ids)
        is_same = page.is_full and len(ids) > 1 and shown == self.shown
        self.same = (self.same if is_same else frozenset()) | {page.page}
        self.shown = shown
        if len(self.same) > SAME_PAGES_MAX:
            numbers = ", ".join(map(str, sorted(self.same)))
            raise UnreadableAnswer("the list", f"answered with the same records on pages {numbers}")


def _page(command: ListPage, known: _KnownTotal) -> Steps[Page[Resource]]:
    """Read a page whose total fits the rows or was shown by two responses."""
    totals: list[int] = []
    for _ in range(ANSWERS_MAX):
        page = yield from command
        known.remember(command, page)
        if not known.contradicts(page):
            return page
        if any(abs(page.total - total) <= GONE_MIN for total in totals):
            known.expected = max(known.expected, page.total + known.offset)
            return page
        totals.append(page.total)
    totals_text = ", ".join(f"{each:,}" for each in totals)
    raise UnreadableAnswer(
        f"page {command.page} of the list",
        f"answered with totals that do not match its records: {totals_text}",
    )

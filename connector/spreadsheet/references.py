"""References: a company by its name, a candidate by their email, a job by its code.

Each is looked up in the landing, a batch at a time. Nothing found and several found are problems;
which of several is meant is never chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from connector.catalog import CATALOG
from connector.spreadsheet.aim import Aim
from connector.spreadsheet.identity import folded
from connector.spreadsheet.lookups import Lookups
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.reading import Draft
from connector.spreadsheet.row import Problem
from connector.spreadsheet.slots import Reference
from connector.spreadsheet.unreadable import shown

IDS_SHOWN_MAX = 5
"""As many ids of several as a problem lists."""


class References:
    """Puts ids in the place of what a file says about other records."""

    def __init__(self, aim: Aim, columns: ColumnMap, lookups: Lookups) -> None:
        self._lookups = lookups
        headings: list[tuple[str | None, str, Reference]] = [
            (each.heading, each.slot.key, each.slot.reference)
            for each in columns.columns
            if each.slot.reference is not None
        ]
        headings += [
            (None, slot.key, slot.reference)
            for slot, _, _ in columns.constants
            if slot.reference is not None
        ]
        self._references = headings

    def resolve(self, drafts: Sequence[Draft]) -> None:
        """Look up the references of a batch of rows."""
        for heading, key, reference in self._references:
            pending = [draft for draft in drafts if draft.values.get(key) is not None]
            if not pending:
                continue
            holds = self._lookups.holds(reference.resource)
            # An id of something that was never pulled cannot be checked here: the API does it.
            if not holds and reference.by is None:
                continue
            # Ids are compared as they stand; what people write, without regard to letter case.
            word = str if reference.by is None else folded
            texts = list(dict.fromkeys(word(draft.values[key]) for draft in pending))
            found = dict(zip(texts, self._ids(reference, texts, holds), strict=True))
            for draft in pending:
                text = draft.values[key]
                ids = found[word(text)]
                if len(ids) == 1:
                    draft.values[key] = ids[0]
                else:
                    draft.fail(key, _problem(heading, text, reference, ids, holds))

    def _ids(
        self, reference: Reference, texts: Sequence[str], holds: bool
    ) -> Sequence[tuple[str, ...]]:
        if not holds:
            return [()] * len(texts)
        by = reference.by or "id"
        return self._lookups.ids(reference.resource, (by,), [(text,) for text in texts])


def _problem(
    heading: str | None, text: str, reference: Reference, ids: Sequence[str], holds: bool
) -> Problem:
    singular = CATALOG[reference.resource].singular
    by = reference.by or "id"
    if ids:
        return Problem(
            "reference_ambiguous",
            f"Several {reference.resource} have this {by}: {listed(ids)}.",
            heading,
            shown(text),
            fix=f"Give the id of the one that is meant, in a column {singular}_id.",
        )
    return Problem(
        "reference_unknown",
        f"No {singular} with this {by} is landed."
        if holds
        else f"No {reference.resource} have been pulled, so none can be looked up.",
        heading,
        shown(text),
        allowed=f"the {by} of a {singular} that exists",
        fix=f"Correct it, or push the {singular} first."
        if holds
        else f"Run 'connector pull {reference.resource}' and try again.",
    )


def listed(ids: Sequence[str]) -> str:
    """Ids in one line, the first few where they are many."""
    more = len(ids) - IDS_SHOWN_MAX
    return ", ".join(ids[:IDS_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")

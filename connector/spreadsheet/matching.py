"""Which record a row is about: found by its id or by fields, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connector.catalog import CATALOG
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.row import Problem, shown
from connector.spreadsheet.row_reader import RowDraft
from connector.spreadsheet.target_columns import Lookups, PushTarget, Reference, folded

# -- References ------------------------------------------------------------------------------------
# References: a company by its name, a candidate by their email, a job by its code.
#
# Each is looked up in the landing, a batch at a time. Nothing found and several found are problems;
# which of several is meant is never chosen.


IDS_SHOWN_MAX = 5
"""As many ids of several as a problem lists."""


class References:
    """Puts ids in the place of what a file says about other records."""

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._lookups = lookups
        headings: list[tuple[str | None, str, Reference]] = [
            (each.heading, each.target.key, each.target.reference)
            for each in columns.columns
            if each.target.reference is not None
        ]
        headings += [
            (None, column.key, column.reference)
            for column, _, _ in columns.constants
            if column.reference is not None
        ]
        self._references = headings

    def resolve(self, drafts: Sequence[RowDraft]) -> None:
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


# -- Finding ---------------------------------------------------------------------------------------
#


class Finder:
    """Finds the records of a file's rows, and with it what each row is: a create, an update or a
    conversion.
    """

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._singular = target.resource.singular
        there = {each.target.key for each in columns.columns}
        there |= {column.key for column, _, _ in columns.constants}
        self.by = target.match or _found_by_itself(target, there)

    def find(self, drafts: Sequence[RowDraft]) -> None:
        """Give each row its operation and, where it has one, its record with what is landed."""
        if self._target.mode == "create":
            for draft in drafts:
                draft.operation = "create"
            return
        by_id = self.by == ("id",)
        keyed = [draft for draft in drafts if self._has_key(draft)]
        if by_id:
            for draft in keyed:
                draft.record_id = draft.values.pop("id")
        else:
            self._match(keyed)
        self._land(draft for draft in drafts if draft.record_id is not None)
        for draft in drafts:
            if self._target.mode != "upsert":
                draft.operation = "convert" if self._target.mode == "convert" else "update"
            elif draft.record_id is not None:
                draft.operation = "update"

    def _has_key(self, draft: RowDraft) -> bool:
        """Whether the row has all that its record is found by; else that is a problem."""
        if draft.is_misshapen:
            return False
        for key in self.by:
            if draft.values.get(key) is None:
                if key not in draft.failed:
                    column = self._columns.column_of(key)
                    draft.fail(
                        key,
                        Problem(
                            "match_missing",
                            f"The row's {self._singular} is found by {key}, which is blank.",
                            column,
                            fix="Fill the cell in.",
                        ),
                    )
                return False
        return True

    def _match(self, drafts: Sequence[RowDraft]) -> None:
        keys = [tuple(draft.values[key] for key in self.by) for draft in drafts]
        resource, parent = self._target.resource.name, self._target.parent
        found = self._lookups.ids(resource, self.by, keys, parent) if keys else ()
        for draft, key, ids in zip(drafts, keys, found, strict=True):
            if len(ids) == 1:
                draft.record_id = ids[0]
            elif ids:
                named = ", ".join(self.by)
                draft.add(
                    Problem(
                        "record_ambiguous",
                        f"Several {resource} have this {named}: {listed(ids)}.",
                        self._columns.column_of(self.by[0]),
                        shown(" · ".join(map(str, key))),
                        fix="Give the id of the one that is meant, with --mode update.",
                    )
                )
            elif self._target.mode == "upsert":
                draft.operation = "create"
            else:
                draft.add(self._unknown(draft, str(key[0]), self.by[0]))

    def _land(self, drafts: Iterable[RowDraft]) -> None:
        found = list(drafts)
        if not found:
            return
        ids = {draft.record_id for draft in found if draft.record_id}
        landed = self._lookups.landed(self._target.resource.name, ids)
        for draft in found:
            id = draft.record_id
            assert id is not None
            draft.landed = landed.get(id)
            if draft.landed is None:
                draft.add(self._unknown(draft, id, "id"))
            elif draft.landed.is_deleted:
                draft.add(self._deleted(id))

    def _unknown(self, draft: RowDraft, text: str, key: str) -> Problem:
        resource = self._target.resource.name
        return Problem(
            "record_unknown",
            f"No {self._singular} with this {key} is landed.",
            self._columns.column_of(key),
            shown(text),
            allowed=f"the {key} of a {self._singular} that exists",
            fix=f"Correct it, or run 'connector pull {resource}' if it is new.",
        )

    def _deleted(self, id: str) -> Problem:
        key = self.by[0]
        perhaps = ", or converted" if self._target.mode == "convert" else ""
        return Problem(
            "record_deleted",
            f"The {self._singular} is known to be deleted{perhaps}.",
            self._columns.column_of(key),
            shown(id),
            fix="Take the row out.",
        )


def _found_by_itself(target: PushTarget, there: set[str]) -> tuple[str, ...]:
    """What finds a row's record where nobody said: its id; a lead's email where it is converted."""
    if target.mode == "convert" and "id" not in there:
        return ("email",)
    return ("id",)


def comparable(values: Iterable[object]) -> str:
    """Values as one text that is the same for values that mean the same."""
    return "\x1f".join([folded(each) for each in values])

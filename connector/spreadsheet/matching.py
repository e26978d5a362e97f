"""Matching of rows with their records, and comparison of both.

No match and several matches are problems: one of several records is never chosen automatically.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field_comparison import is_same_value, normalize_text
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import LandedRecord
from connector.spreadsheet.cells import ColumnPolicy
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import problem_of
from connector.spreadsheet.row_reader import RowDraft
from connector.spreadsheet.target_columns import (
    CONTENT_PREFIX,
    Lookups,
    PushTarget,
    Reference,
    TargetColumn,
    comparison_text,
)

_IDS_SHOWN_MAX, _FOUND_MAX = 5, 50


def join_ids(ids: Sequence[str]) -> str:
    """Return the ids in one line, shortened to the first few if there are many."""
    more = len(ids) - _IDS_SHOWN_MAX
    return ", ".join(ids[:_IDS_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _in_words(name: str) -> str:
    """Return the name in words, for example "reference code" for `reference_code`."""
    return "ID" if name == "id" else name.replace("_", " ")


def with_article(singular: str) -> str:
    """Return a resource's singular with "a" or "an" before it."""
    return f"{'an' if singular[0] in 'aeiou' else 'a'} {_in_words(singular)}"


# -- References ------------------------------------------------------------------------------------


class ReferenceResolver:
    """Replaces names, email addresses and codes of other records in rows by the records' ids."""

    def __init__(self, columns: ColumnMap, lookups: Lookups) -> None:
        self._lookups = lookups
        filled = [(each.heading, each.target) for each in columns.columns]
        constants = [(None, column) for column, _, _ in columns.constants]
        self._references: list[tuple[str | None, str, Reference]] = [
            (heading, column.key, column.reference)
            for heading, column in (*filled, *constants)
            if column.reference is not None
        ]

    def resolve(self, drafts: Sequence[RowDraft]) -> None:
        """Replace the references in a batch of rows; add a problem if not exactly one record
        matches.
        """
        for heading, key, reference in self._references:
            pending = [draft for draft in drafts if draft.values.get(key) is not None]
            if not pending:
                continue
            resource, by = reference.resource, reference.by
            is_pulled = self._lookups.has_records(resource)
            # An id of a resource that was never pulled cannot be checked here; the API checks it.
            if not is_pulled and by is None:
                continue
            # Ids are compared exactly; other texts without regard to letter case.
            word = str if by is None else comparison_text
            texts = dict.fromkeys(word(draft.values[key]) for draft in pending)
            found: Mapping[str, tuple[str, ...]] = {}
            if is_pulled:
                values = [(text,) for text in texts]
                ids = self._lookups.find_ids(resource, (by or "id",), values)
                found = dict(zip(texts, ids, strict=True))
                if by is not None:
                    found |= self._find_by_id(resource, [t for t, ids in found.items() if not ids])
            for draft in pending:
                text = draft.values[key]
                match = found.get(word(text), ())
                if len(match) == 1:
                    draft.values[key] = match[0]
                else:
                    draft.fail(key, _unresolved_problem(heading, text, reference, match, is_pulled))

    def _find_by_id(self, resource: str, texts: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the texts that are ids themselves, each with this id in a tuple.

        The user may have entered the id of one of several records.
        """
        ids = (
            self._lookups.find_ids(resource, ("id",), [(text,) for text in texts]) if texts else ()
        )
        return {text: found for text, found in zip(texts, ids, strict=True) if found}


def _unresolved_problem(
    heading: str | None, text: str, reference: Reference, ids: Sequence[str], is_pulled: bool
) -> Problem:
    """Return the problem that no record matches a reference, or that these `ids` match.

    `is_pulled` is False if the local copy has no record of the resource.
    """
    resource, by = reference.resource, reference.by or "id"
    singular = CATALOG[resource].singular
    if ids:
        ambiguous = problem_of(
            "reference_ambiguous",
            f"The value is the {_in_words(by)} of several {_in_words(resource)}: {join_ids(ids)}.",
            heading,
            received=text,
            fix=f"Enter the ID of one {_in_words(singular)}.",
        )
        return replace(ambiguous, found=" ".join(ids[:_FOUND_MAX]))
    if is_pulled:
        message = f"The value is not the {_in_words(by)} of a known {_in_words(singular)}."
        fix = f"Correct the value, or import the {_in_words(singular)} first."
    else:
        message = f"The local copy has no {_in_words(resource)}, so the value cannot be found."
        fix = "Ask an administrator to update the local copy."
    return problem_of("reference_unknown", message, heading, received=text, fix=fix)


# -- Rows' own records -----------------------------------------------------------------------------


class RecordFinder:
    """Finds the record of each row, and decides the row's operation."""

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._singular = target.resource.singular
        self.by = target.match or ("id",)
        if not target.match and target.mode == "convert" and "id" not in columns.targets:
            self.by = ("email",)

    def find_records(self, drafts: Sequence[RowDraft]) -> None:
        """Set the operation of each row and its loaded record, if it exists; else add a problem."""
        mode = self._target.mode
        if mode == "create":
            for draft in drafts:
                draft.operation = "create"
            return
        keyed = [draft for draft in drafts if self._has_key(draft)]
        if self.by == ("id",):
            for draft in keyed:
                draft.record_id = draft.values.pop("id")
        elif keyed:
            self._match_by_fields(keyed)
        self._load_records([draft for draft in drafts if draft.record_id is not None])
        for draft in drafts:
            if mode != "upsert":
                draft.operation = mode
            elif draft.record_id is not None:
                draft.operation = "update"

    def _has_key(self, draft: RowDraft) -> bool:
        """Return True if the row has the fields that identify its record; else add a problem."""
        if draft.is_misshapen:
            return False
        blank = next((key for key in self.by if draft.values.get(key) is None), None)
        if blank is not None and blank not in draft.failed_keys:
            message = (
                f"The cell is empty, but it is needed to find the {_in_words(self._singular)}."
            )
            column = self._columns.heading_of(blank)
            draft.fail(blank, problem_of("match_missing", message, column))
        return blank is None

    def _match_by_fields(self, drafts: Sequence[RowDraft]) -> None:
        """Set the record id of each row whose fields match one record.

        A row without a match is a create in mode upsert; otherwise it has a problem.
        """
        keys = [tuple(draft.values[key] for key in self.by) for draft in drafts]
        resource = self._target.resource.name
        found = self._lookups.find_ids(resource, self.by, keys, self._target.parent)
        for draft, key, ids in zip(drafts, keys, found, strict=True):
            if len(ids) == 1:
                draft.record_id = ids[0]
            elif draft.row.record_id in ids:
                draft.record_id = draft.row.record_id
            elif ids:
                ambiguous = problem_of(
                    "record_ambiguous",
                    f"The value belongs to several {_in_words(resource)}: {join_ids(ids)}.",
                    self._columns.heading_of(self.by[0]),
                    received=" · ".join(map(str, key)),
                    fix=f"Use the ID of one {_in_words(self._singular)}.",
                )
                draft.add(replace(ambiguous, found=" ".join(ids)))
            elif self._target.mode == "upsert":
                draft.operation = "create"
            else:
                draft.add(self._unknown_record_problem(str(key[0]), self.by[0]))

    def _load_records(self, drafts: Sequence[RowDraft]) -> None:
        """Set the loaded record of each row; add a problem if it is unknown or deleted."""
        if not drafts:
            return
        ids = {draft.record_id for draft in drafts if draft.record_id}
        landed = self._lookups.landed_records(self._target.resource.name, ids)
        for draft in drafts:
            assert draft.record_id is not None
            draft.landed = landed.get(draft.record_id)
            if draft.landed is None:
                draft.add(self._unknown_record_problem(draft.record_id, "id"))
            elif draft.landed.is_deleted:
                perhaps = ", or converted" if self._target.mode == "convert" else ""
                draft.add(
                    problem_of(
                        "record_deleted",
                        f"The {_in_words(self._singular)} was deleted{perhaps}.",
                        self._columns.heading_of(self.by[0]),
                        received=draft.record_id,
                    )
                )

    def _unknown_record_problem(self, text: str, key: str) -> Problem:
        """Return the problem that the text is not the field `key` of a known record."""
        return problem_of(
            "record_unknown",
            f"The value is not the {_in_words(key)} of a known {_in_words(self._singular)}.",
            self._columns.heading_of(key),
            received=text,
            fix=f"Correct the value, or add the {_in_words(self._singular)} instead.",
        )


# -- Differences -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes that an update would make, by the keys of target columns.

    Attributes:
        new_values: New values of the fields that change.
        loaded_values: Loaded values of these fields, as the user last saw them; none if write-only.
        unknown_key: First key whose loaded value is unknown, so that the difference is unknown.
    """

    new_values: dict[str, Any] = field(default_factory=dict)
    loaded_values: dict[str, Any] = field(default_factory=dict)
    unknown_key: str | None = None

    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Return old and new values by field."""
        return {key: (self.loaded_values.get(key), value) for key, value in self.new_values.items()}


class LandedComparison:
    """Compares the rows of a file with their loaded records, to find the fields that change."""

    def __init__(self, target: PushTarget, columns: ColumnMap, match_keys: tuple[str, ...]) -> None:
        self._found_by = frozenset(match_keys)
        self._columns: dict[str, tuple[TargetColumn, ColumnPolicy]] = {
            each.target.key: (each.target, each.options.policy) for each in columns.columns
        }
        for key, column in columns.targets.items():
            self._columns.setdefault(key, (column, "overwrite"))
        # A currency may be part of the cell of its number.
        self._columns |= {
            each.key: (each, "overwrite")
            for each in target.columns
            if each.field.format == "currency" and each.key not in self._columns
        }

    def difference(self, values: Mapping[str, Any], landed: LandedRecord) -> Difference:
        """Return the fields that the row changes in the loaded record, by the policy of each
        column.
        """
        wanted: dict[str, Any] = {}
        base: dict[str, Any] = {}
        unread = None
        for key, value in values.items():
            column, policy = self._columns[key]
            # The record already has the value that found it, except for letter case.
            if key in self._found_by or policy == "never":
                continue
            if column.field.write_only:
                wanted[key] = value
                continue
            now, is_known = _landed_value(column, landed)
            if not is_known:
                unread = unread or key
                continue
            then = append_text(now, value) if policy == "append" else value
            if _is_equal_value(column, now, then) or (policy == "fill" and not _is_empty(now)):
                continue
            record = landed if landed.seen is None else LandedRecord(landed.seen)
            wanted[key], base[key] = then, _landed_value(column, record)[0]
        return Difference(wanted, base, unread)


APPENDED_AFTER = "\n\n"
"""Separator between an appended text and the text before it."""


def append_text(current: Any, text: Any) -> Any:
    """Return the long text with another one appended, or unchanged if it has these lines already.

    Sending a file again therefore appends nothing.
    """
    if _is_empty(current) or _is_empty(text):
        return text if _is_empty(current) else current
    if f"\n{_lines_of(text)}\n" in f"\n{_lines_of(current)}\n":
        return current
    return f"{str(current).rstrip()}{APPENDED_AFTER}{text}"


def _lines_of(text: Any) -> str:
    """Return the lines of a text that are not blank, without outer blanks."""
    return "\n".join(line for each in str(text).splitlines() if (line := normalize_text(each)))


def _landed_value(column: TargetColumn, landed: LandedRecord) -> tuple[Any, bool]:
    """Return the loaded value under the column's key, and True if it is known."""
    record = landed.record
    if column.is_content:
        content = record.get(CONTENT_PREFIX.removesuffix("."))
        # Some serialisers write an empty map as an empty array.
        content_fields = content if isinstance(content, Mapping) else {}
        return content_fields.get(column.key.removeprefix(CONTENT_PREFIX)), landed.is_whole
    # A detail may omit fields without a value.
    return record.get(column.key), landed.is_whole or column.key in record


def _is_equal_value(column: TargetColumn, current: Any, wanted: Any) -> bool:
    """Return True if both values are empty, or equal apart from the API's own formatting."""
    if current == wanted or (_is_empty(current) and _is_empty(wanted)):
        return True
    return is_same_value(column.field, wanted, current)


def _is_empty(value: Any) -> bool:
    """Return True for None, an empty text and an empty list."""
    return value is None or value in ("", [])


# -- Claimed keys ----------------------------------------------------------------------------------
# Digests in flat arrays, for files of any length: a million keys take 25 MB, and 45 MB while the
# arrays grow. The digest is Python's own 64-bit hash, with a random key per process. Among a
# million keys, two have the same digest in one of about thirty million files.


def comparison_key(values: Iterable[object]) -> str:
    """Return one text for several values, equal for values with the same meaning."""
    return "\x1f".join([comparison_text(each) for each in values])


_SLOTS_FIRST = 1 << 10


class ClaimedKeys:
    """Keys of a file's rows, each with the number of the first row that has it.

    A hash table of the keys' digests, at most half full.
    """

    def __init__(self) -> None:
        self._digests = array("q", bytes(8 * _SLOTS_FIRST))
        self._rows = array("I", bytes(4 * _SLOTS_FIRST))
        self._count = 0

    def claim(self, key: str, row: int) -> int | None:
        """Claim the key for the row; return the earlier row that has it, or None."""
        digest = _digest(key)
        slot = self._slot_of(digest)
        if self._digests[slot]:
            return self._rows[slot] if self._rows[slot] != row else None
        self._digests[slot], self._rows[slot] = digest, row
        self._count += 1
        if self._count * 2 >= len(self._digests):
            self._double_size()
        return None

    def first_row(self, key: str) -> int | None:
        """Return the number of the first row that claimed the key; None if no row did."""
        slot = self._slot_of(_digest(key))
        return self._rows[slot] if self._digests[slot] else None

    def _slot_of(self, digest: int) -> int:
        """Return the index of the digest, or of the free slot for it."""
        digests = self._digests
        mask = len(digests) - 1
        slot = digest & mask
        while (stored := digests[slot]) and stored != digest:
            slot = (slot + 1) & mask
        return slot

    def _double_size(self) -> None:
        """Double the number of slots, and insert all digests again."""
        before = zip(self._digests, self._rows, strict=True)
        size = len(self._digests) * 2
        self._digests, self._rows = array("q", bytes(8 * size)), array("I", bytes(4 * size))
        for digest, row in before:
            if digest:
                slot = self._slot_of(digest)
                self._digests[slot], self._rows[slot] = digest, row


def _digest(key: str) -> int:
    """Return the key's digest; never 0, which marks a free slot."""
    return hash(key) or 1

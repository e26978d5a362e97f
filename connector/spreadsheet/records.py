"""Records that rows refer to or change: found by id or by name, and compared with the rows.

No match and several matches are problems: one of several records is never chosen automatically.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field_comparison import is_same_value, normalize_text
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import LandedRecord
from connector.spreadsheet.cells import ChosenText
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import problem_of, text_of, visible_text
from connector.spreadsheet.row_reader import RowDraft
from connector.spreadsheet.targets import (
    CONTENT_PREFIX,
    UNLISTED,
    ColumnPolicy,
    KnownId,
    Lookups,
    PushTarget,
    Reference,
    TargetColumn,
    comparison_text,
)
from connector.spreadsheet.words import LEGAL_FORMS, is_typing_error, normalized_words

_IDS_SHOWN_MAX, _FOUND_MAX, _NEAR_MAX, _KNOWN_MAX = 5, 50, 3, 20
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch
_PERSON = ("first_name", "last_name")


def join_ids(ids: Sequence[str]) -> str:
    """Return the ids in one line, shortened to the first few if there are many."""
    more = len(ids) - _IDS_SHOWN_MAX
    return ", ".join(ids[:_IDS_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _in_words(name: str) -> str:
    return "ID" if name == "id" else name.replace("_", " ")


def with_article(singular: str) -> str:
    """Return a resource's singular with "a" or "an" before it."""
    return f"{'an' if singular[0] in 'aeiou' else 'a'} {_in_words(singular)}"


# -- References ------------------------------------------------------------------------------------


class ReferenceResolver:
    """Replaces ids, names, email addresses and codes of other records in rows by the records'
    ids.
    """

    def __init__(self, columns: ColumnMap, lookups: Lookups) -> None:
        self._lookups = lookups
        filled = [(each.heading, each.target) for each in columns.columns]
        constants = [(None, column) for column, _, _ in columns.constants]
        self._references: list[tuple[str | None, str, Reference]] = [
            (heading, column.key, column.reference)
            for heading, column in (*filled, *constants)
            if column.reference is not None
        ]
        self._names: dict[str, dict[str, list[str]]] = {}

    def resolve(self, drafts: Sequence[RowDraft]) -> None:
        """Replace the references in a batch of rows; add a problem if not exactly one record
        matches.
        """
        for heading, key, reference in self._references:
            pending = [draft for draft in drafts if draft.values.get(key) is not None]
            texts = list(dict.fromkeys(str(draft.values[key]) for draft in pending))
            if not texts:
                continue
            known = self._lookups.known_ids(key) if key in UNLISTED else ()
            if key in UNLISTED:
                found = _find_unlisted(known, texts)
            else:
                found = self._find_records(reference, texts)
            for draft in pending:
                value = draft.values[key]
                match = found.get(str(value))
                if match is not None and len(match) == 1:
                    draft.values[key] = match[0]
                elif match is not None and not (isinstance(value, ChosenText) and _UUID(value)):
                    if key in UNLISTED:
                        problem = _unlisted_problem(key, match, known)
                    else:
                        problem = self._record_problem(value, reference, match)
                    draft.fail(
                        key, replace(problem, column=heading, received=visible_text(str(value)))
                    )

    def _find_records(
        self, reference: Reference, texts: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the ids of the records with these ids or names; texts that are not checked are
        left out.
        """
        resource = reference.resource
        if not self._lookups.has_records(resource):
            # An id of a resource that was never pulled cannot be checked here; the API checks it.
            return {} if reference.by is None else dict.fromkeys(texts, ())
        found: dict[str, Sequence[str]] = dict.fromkeys(texts, ())
        for by in dict.fromkeys(filter(None, (reference.by, "id", *CATALOG[resource].found_by))):
            left = [text for text, ids in found.items() if not ids]
            matches = self._lookups.find_ids(resource, (by,), [(text,) for text in left])
            found |= zip(left, map(tuple, matches), strict=True)
        if {*_PERSON} <= CATALOG[resource].fields.keys():
            for text in [text for text, ids in found.items() if not ids]:
                found[text] = tuple(self._record_names(resource).get(_whole_name(text), ()))
        return found

    def _record_names(self, resource: str) -> Mapping[str, Sequence[str]]:
        """Return the ids of a resource's records by their names, without letter case."""
        if resource not in self._names:
            has_people = {*_PERSON} <= CATALOG[resource].fields.keys()
            fields = [_PERSON] if has_people else [(by,) for by in CATALOG[resource].found_by]
            names: dict[str, list[str]] = {}
            for each in fields:
                for id, *parts in self._lookups.list_texts(resource, each):
                    names.setdefault(comparison_text(" ".join(parts)), []).append(id)
            self._names[resource] = names
        return self._names[resource]

    def _record_problem(self, text: str, reference: Reference, ids: Sequence[str]) -> Problem:
        """Return the problem that no record matches a reference, or that these `ids` match."""
        resource, by = reference.resource, reference.by
        singular, plural = _in_words(CATALOG[resource].singular), _in_words(resource)
        if ids:
            others = "; ".join(self._describe(resource, ids[:_IDS_SHOWN_MAX]))
            message = f"The value names several {plural}: {others}."
            fix = f"Enter the ID or the email address of one {singular}."
            problem = problem_of("reference_ambiguous", message, fix=fix)
            return replace(problem, found=" ".join(ids[:_FOUND_MAX]))
        if not self._lookups.has_records(resource):
            message = f"The local copy has no {plural}, so the value cannot be found."
            fix = "Ask an administrator to update the local copy."
        else:
            names = ", ".join(dict.fromkeys(("name", _in_words(by or "name"))))
            message = f"The value is not the {names} or ID of a known {singular}."
            near = self._near_names(resource, text)
            fix = f"Did you mean {' or '.join(near)}? " if near else ""
            fix += f"Correct the value, or import the {singular} first."
        return problem_of("reference_unknown", message, fix=fix)

    def _describe(self, resource: str, ids: Sequence[str]) -> Iterator[str]:
        """Yield each record's id with the company, job and email that tell it from the others."""
        records = self._lookups.landed_records(resource, ids)
        for id in ids:
            record = records[id].record if id in records else {}
            texts = (record.get(name) for name in _TELLING)
            yield f"{id} ({', '.join(str(each) for each in texts if each) or 'no details'})"

    def _near_names(self, resource: str, text: str) -> list[str]:
        """Return names that differ only in a legal form, signs or one or two letters."""
        wanted = _bare_name(_whole_name(text))
        return [
            name
            for name in self._record_names(resource)
            if wanted == (bare := _bare_name(name)) or is_typing_error(wanted, bare)
        ][:_NEAR_MAX]


_TELLING = ("current_company", "current_job_title", "company_name", "title", "location", "email")


def _find_unlisted(known: Sequence[KnownId], texts: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the ids of users or lead statuses with these ids or names."""
    ids = {each.id for each in known}
    names: dict[str, list[str]] = {}
    for each in known:
        if each.name:
            names.setdefault(comparison_text(each.name), []).append(each.id)
    return {
        text: (text,) if text in ids else tuple(names.get(comparison_text(text), ()))
        for text in texts
        # Without any known id, the API checks the ids.
        if known or not _UUID(text)
    }


def _unlisted_problem(key: str, ids: Sequence[str], known: Sequence[KnownId]) -> Problem:
    """Return the problem that a text is not the id or name of exactly one user or lead status."""
    noun, seed = UNLISTED[key], "people" if UNLISTED[key] == "user" else "lead_statuses"
    often = sorted(known, key=lambda each: -each.records)[:_KNOWN_MAX]
    fix = (
        "Enter a known name or ID, or choose one for this value in a column mapping. New names"
        f" go into seeds/{seed}.csv."
    )
    allowed = ", ".join(map(str, often)) or None
    if ids:
        message = f"The value is the name of several {noun}s."
        return problem_of("reference_ambiguous", message, allowed=allowed, fix=fix)
    message = f"The value is not the name or ID of a known {noun}."
    return problem_of("reference_unknown", message, allowed=allowed, fix=fix)


def _whole_name(text: str) -> str:
    """Return a name as "first last" without letter case, also if it is written "Last, First"."""
    last, comma, first = text.partition(",")
    whole = f"{first.strip()} {last.strip()}" if comma and "," not in first else text
    return comparison_text(" ".join(whole.split()))


def _bare_name(name: str) -> str:
    """Return the words of a name without legal forms, accents and signs."""
    words = normalized_words(name).split()
    return " ".join(each for each in words if each not in LEGAL_FORMS) or " ".join(words)


# -- Rows' own records -----------------------------------------------------------------------------


class RecordFinder:
    """Finds the record of each row, and decides the row's operation."""

    def __init__(self, target: PushTarget, columns: ColumnMap, lookups: Lookups) -> None:
        self._target, self._columns, self._lookups = target, columns, lookups
        self._resource, self._singular = target.resource.name, _in_words(target.resource.singular)
        self.by = target.match or ("id",)
        if not target.match and target.mode == "convert" and "id" not in columns.targets:
            self.by = ("email",)
        self._phones = {e.target.key: e.index for e in columns.columns if e.target.is_phone}

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
            message = f"The cell is empty, but it is needed to find the {self._singular}."
            draft.fail(blank, problem_of("match_missing", message, self._columns.heading_of(blank)))
        return blank is None

    def _match_by_fields(self, drafts: Sequence[RowDraft]) -> None:
        """Set the record id of each row whose fields match one record.

        A row without a match is a create in mode upsert; otherwise it has a problem.
        """
        keys = [tuple(draft.values[key] for key in self.by) for draft in drafts]
        found = list(self._find_ids(keys))
        # The platform may have a telephone number as it is written, before it was normalized.
        written = [tuple(self._written(draft, key) for key in self.by) for draft in drafts]
        others = [n for n, ids in enumerate(found) if not ids and written[n] != keys[n]]
        for n, ids in zip(others, self._find_ids([written[n] for n in others]), strict=True):
            found[n] = ids
        for draft, key, ids in zip(drafts, keys, found, strict=True):
            if len(ids) == 1 or draft.row.record_id in ids:
                draft.record_id = ids[0] if len(ids) == 1 else draft.row.record_id
            elif ids:
                ambiguous = problem_of(
                    "record_ambiguous",
                    f"The value belongs to several {_in_words(self._resource)}: {join_ids(ids)}.",
                    self._columns.heading_of(self.by[0]),
                    received=" · ".join(map(str, key)),
                    fix=f"Use the ID of one {self._singular}.",
                )
                draft.add(replace(ambiguous, found=" ".join(ids)))
            elif self._target.mode == "upsert":
                draft.operation = "create"
            else:
                draft.add(self._unknown_record_problem(str(key[0]), self.by[0]))

    def _find_ids(self, keys: Sequence[tuple[Any, ...]]) -> Sequence[tuple[str, ...]]:
        return self._lookups.find_ids(self._resource, self.by, keys, self._target.parent)

    def _written(self, draft: RowDraft, key: str) -> Any:
        """Return the text of the row's cell for a telephone number; else the field's value."""
        index = self._phones.get(key)
        return draft.values[key] if index is None else text_of(draft.row.cells[index]).strip()

    def _load_records(self, drafts: Sequence[RowDraft]) -> None:
        """Set the loaded record of each row; add a problem if it is unknown or deleted."""
        if not drafts:
            return
        ids = {draft.record_id for draft in drafts if draft.record_id}
        landed = self._lookups.landed_records(self._resource, ids)
        perhaps = ", or converted" if self._target.mode == "convert" else ""
        message = f"The {self._singular} was deleted{perhaps}."
        for draft in drafts:
            assert draft.record_id is not None
            draft.landed = landed.get(draft.record_id)
            if draft.landed is None:
                draft.add(self._unknown_record_problem(draft.record_id, "id"))
            elif draft.landed.is_deleted:
                column = self._columns.heading_of(self.by[0])
                draft.add(problem_of("record_deleted", message, column, received=draft.record_id))

    def _unknown_record_problem(self, text: str, key: str) -> Problem:
        """Return the problem that the text is not the field `key` of a known record."""
        return problem_of(
            "record_unknown",
            f"The value is not the {_in_words(key)} of a known {self._singular}.",
            self._columns.heading_of(key),
            received=text,
            fix=f"Correct the value, or add the {self._singular} instead.",
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
        self._targets = {each.key: each for each in target.columns}
        self._policies: dict[str, ColumnPolicy] = {
            each.target.key: each.options.policy for each in columns.columns
        }
        self._indexes = {each.target.key: each.index for each in columns.columns}

    def difference(self, draft: RowDraft, values: Mapping[str, Any]) -> Difference:
        """Return the fields that the row changes in its loaded record, by each column's policy."""
        landed = draft.landed
        assert landed is not None
        wanted: dict[str, Any] = {}
        base: dict[str, Any] = {}
        unread = None
        for key, value in values.items():
            column, policy = self._targets[key], self._policies.get(key, "overwrite")
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
            is_kept = policy == "fill" and not _is_empty(now)
            if is_kept or self._is_as_written(draft, key, now) or _is_equal(column, now, then):
                continue
            record = landed if landed.seen is None else LandedRecord(landed.seen)
            wanted[key], base[key] = then, _landed_value(column, record)[0]
        return Difference(wanted, base, unread)

    def _is_as_written(self, draft: RowDraft, key: str, now: Any) -> bool:
        """Return True if the record has the cell itself, in a form that is not normalized."""
        index = self._indexes.get(key)
        if index is None or not isinstance(now, str) or index >= len(draft.row.cells):
            return False
        cell = text_of(draft.row.cells[index]).replace("\r\n", "\n")
        return cell.strip() == now.replace("\r\n", "\n").strip() != ""


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


def _is_equal(column: TargetColumn, current: Any, wanted: Any) -> bool:
    """Return True if both values are empty, or equal apart from the API's own formatting."""
    if current == wanted or (_is_empty(current) and _is_empty(wanted)):
        return True
    return is_same_value(column.field, wanted, current)


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [])


# -- Claimed keys ----------------------------------------------------------------------------------


def comparison_key(values: Iterable[object]) -> str:
    """Return one text for several values, equal for values with the same meaning."""
    return "\x1f".join([comparison_text(each) for each in values])

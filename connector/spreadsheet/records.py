"""Records that rows refer to or change: found by id or by name, and compared with the rows.

No match and several matches are problems: one of several records is never chosen automatically.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from connector.catalog import CATALOG
from connector.spreadsheet.cells import ChosenText
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import text_of
from connector.spreadsheet.row_reader import CheckedRow
from connector.spreadsheet.targets import UNLISTED, Lookups, PushTarget, Reference, comparison_text
from connector.spreadsheet.words import LEGAL_FORMS, is_typing_error, normalized_words
from connector.state.row import LandedRecord

_IDS_SHOWN_MAX, _FOUND_MAX, _NEAR_MAX, _KNOWN_MAX = 5, 20, 3, 20
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
    """Replaces ids, names, email addresses and codes of other records by the records' ids."""

    def __init__(self, columns: ColumnMap, lookups: Lookups) -> None:
        self._lookups = lookups
        targets = columns.targets.items()
        self._references = {key: each.reference for key, each in targets if each.reference}
        self._indexes: dict[tuple[str, ...], dict[str, list[str]]] = {}
        self._spellings: dict[str, str] = {}
        self._found = cache(self._find)

    def resolve(self, row: CheckedRow) -> None:
        """Replace the row's references; add a problem if not exactly one record matches."""
        for key, reference in self._references.items():
            text = row.values.get(key)
            if text is None:
                continue
            ids = self._found(key, reference, str(text))
            if ids is not None and len(ids) == 1:
                row.values[key] = ids[0]
            # An id that the user chose need not be known.
            elif ids is not None and not (isinstance(text, ChosenText) and _UUID(text)):
                self._refuse(row, key, reference, str(text), ids[:_FOUND_MAX])

    def _find(self, key: str, reference: Reference, text: str) -> Sequence[str] | None:
        """Return the ids of the records with this id or name; None if that cannot be checked."""
        resource, by, wanted = reference.resource, reference.by, comparison_text(text)
        if key in UNLISTED:
            known = self._lookups.known_ids(key)
            if any(each.id == text for each in known):
                return (text,)
            named = (each.id for each in known if comparison_text(each.name) == wanted)
            # Without any known id, the API checks the ids.
            return None if not known and _UUID(text) else tuple(named)
        if not self._lookups.has_records(resource):
            # An id of a resource that was never pulled cannot be checked here; the API checks it.
            return None if by is None and _UUID(text) else ()
        for name in filter(None, (by, "id", *CATALOG[resource].found_by)):
            if ids := self._ids_by(resource, name).get(wanted):
                return ids
        is_person = {*_PERSON} <= CATALOG[resource].fields.keys()
        return self._ids_by(resource, *_PERSON).get(_whole_name(text), ()) if is_person else ()

    def _ids_by(self, resource: str, *fields: str) -> Mapping[str, Sequence[str]]:
        """Return the ids of a resource's records by the texts of these fields, without case."""
        found = self._indexes.get((resource, *fields))
        if found is None:
            found = self._indexes[resource, *fields] = {}
            for id, *parts in self._lookups.list_texts(resource, fields):
                name = comparison_text(" ".join(parts))
                found.setdefault(name, []).append(id)
                self._spellings[name] = " ".join(parts)
        return found

    def _refuse(
        self, row: CheckedRow, key: str, reference: Reference, text: str, ids: Sequence[str]
    ) -> None:
        resource, noun, allowed = reference.resource, UNLISTED.get(key), None
        singular = noun or _in_words(CATALOG[resource].singular)
        names = ", ".join(dict.fromkeys(("name", _in_words(reference.by or "name"))))
        message = f"The value is not the {names} or ID of a known {singular}."
        if noun:
            often = sorted(self._lookups.known_ids(key), key=lambda each: -each.records)
            allowed = ", ".join(map(str, often[:_KNOWN_MAX])) or None
            fix = "Enter a known name or ID, or choose one for this value in a column mapping. New"
            fix += f" names go into seeds/{'people' if noun == 'user' else 'lead_statuses'}.csv."
        elif ids:
            fix = f"Enter the ID or the email address of one {singular}."
        elif not self._lookups.has_records(resource):
            message = f"The local copy has no {_in_words(resource)}, so the value cannot be found."
            fix = "Ask an administrator to update the local copy."
        else:
            near = " or ".join(self._near_names(resource, text))
            fix = f"Did you mean {near}? " if near else ""
            fix += f"Correct the value, or import the {singular} first."
        code, found = "reference_unknown", None
        if ids:
            code, found = "reference_ambiguous", " ".join(ids)
            described = join_ids(ids) if noun else self._describe(resource, ids)
            message = f"The value is the name of several records: {described}."
        row.fail(key, code, message, received=text, allowed=allowed, fix=fix, found=found)

    def _describe(self, resource: str, ids: Sequence[str]) -> str:
        """Return the first records with the company, job and email that tell them apart."""
        landed, texts = self._lookups.landed_records(resource, ids), []
        for id in ids[:_IDS_SHOWN_MAX]:
            record = landed[id].record if id in landed else {}
            known = ", ".join(str(record[name]) for name in _TELLING if record.get(name))
            texts.append(f"{id} ({known or 'no details'})")
        return "; ".join(texts)

    def _near_names(self, resource: str, text: str) -> list[str]:
        is_person = {*_PERSON} <= CATALOG[resource].fields.keys()
        fields = [_PERSON] if is_person else [(by,) for by in CATALOG[resource].found_by]
        names = dict.fromkeys(name for each in fields for name in self._ids_by(resource, *each))
        wanted, bare = _bare_name(_whole_name(text)), {name: _bare_name(name) for name in names}
        near = [n for n, each in bare.items() if each == wanted or is_typing_error(wanted, each)]
        near.sort(key=lambda name: bare[name] != wanted)
        return [self._spellings[name] for name in near[:_NEAR_MAX]]


_TELLING = ("current_company", "current_job_title", "company_name", "title", "location", "email")


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
        self._target, self._lookups, self._resource = target, lookups, target.resource.name
        self._singular = _in_words(target.resource.singular)
        self.by = target.match or ("id",)
        if not target.match and target.mode == "convert" and "id" not in columns.targets:
            self.by = ("email",)
        self._phones = {e.target.key: e.index for e in columns.columns if e.target.is_phone}

    def find_records(self, rows: Sequence[CheckedRow]) -> None:
        """Set the operation of each row and its loaded record, if it exists; else add a problem."""
        mode = self._target.mode
        for row in rows:
            row.operation = None if mode == "upsert" else mode
            if mode != "create" and not row.row.is_misshapen:
                self._find_id(row)
        ids = {row.record_id for row in rows if row.record_id is not None}
        landed = self._lookups.landed_records(self._resource, ids) if ids else {}
        for row in rows:
            if row.record_id is not None:
                self._take_record(row, landed.get(row.record_id))

    def _find_id(self, row: CheckedRow) -> None:
        """Set the id of the record that the row's fields identify, or create or refuse the row."""
        blank = next((key for key in self.by if row.values.get(key) is None), None)
        if blank is not None:
            if blank not in row.failed_keys:
                message = f"The cell is empty, but it is needed to find the {self._singular}."
                row.fail(blank, "match_missing", message)
            return
        if self.by == ("id",):
            row.record_id = row.values.pop("id")
            return
        key, cells = tuple(row.values[name] for name in self.by), row.row.cells
        # The platform may have a telephone number as it is written, before it was normalized.
        written = (
            text_of(cells[self._phones[name]]).strip() if name in self._phones else value
            for name, value in zip(self.by, key, strict=True)
        )
        ids: Sequence[str] = ()
        for values in dict.fromkeys((key, tuple(written))):
            if not ids:
                (ids,) = self._lookups.find_ids(
                    self._resource, self.by, [values], self._target.parent
                )
        if len(ids) == 1 or row.row.record_id in ids:
            row.record_id = ids[0] if len(ids) == 1 else row.row.record_id
        elif ids:
            row.add(
                "record_ambiguous",
                f"The value belongs to several {_in_words(self._resource)}: {join_ids(ids)}.",
                self.by[0],
                received=" · ".join(map(str, key)),
                fix=f"Use the ID of one {self._singular}.",
                found=" ".join(ids),
            )
        elif self._target.mode == "upsert":
            row.operation = "create"
        else:
            self._add_unknown(row, str(key[0]), self.by[0])

    def _take_record(self, row: CheckedRow, landed: LandedRecord | None) -> None:
        row.landed, row.operation = landed, row.operation or "update"
        if landed is None:
            self._add_unknown(row, str(row.record_id), "id")
        elif landed.is_deleted:
            perhaps = ", or converted" if self._target.mode == "convert" else ""
            message = f"The {self._singular} was deleted{perhaps}."
            row.add("record_deleted", message, self.by[0], received=row.record_id)

    def _add_unknown(self, row: CheckedRow, text: str, key: str) -> None:
        message = f"The value is not the {_in_words(key)} of a known {self._singular}."
        fix = f"Correct the value, or add the {self._singular} instead."
        row.add("record_unknown", message, key, received=text, fix=fix)

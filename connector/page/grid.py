"""What the page shows of an import: the cells, the columns, and what would happen to each row.

Everything is JSON. Texts are data and never HTML; the page shows them as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.page.imports import CONSENTS, MODES, SENT, Import, Imports, Opened, Unread, describe
from connector.pushes.preview import Preview
from connector.pushes.report import with_column
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import FileQuestion, is_blank, message_of, text_of
from connector.spreadsheet.targets import AS_WRITTEN, UNLISTED, TargetColumn
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import Problem, Row
from connector.warehouse.lookups import WarehouseLookups

FILE_MEGABYTES_MAX = 50  # A file of 50,000 rows is smaller.
EXAMPLES, _EXAMPLE_ROWS, _BATCHES_SHOWN, _RECORDS_MAX = 3, 200, 50, 500
_OPTION = re.compile(r" \([^()]*--[a-z][^()]*\)")
_CHOICES_AMONG = ("record_ambiguous", "reference_ambiguous")
"""Codes of problems whose `found` are ids of records from which the user chooses."""

_QUESTIONS: Mapping[str, str] = {
    "columns_lost": "Some columns have values, but no field. Choose their fields or “Do not"
    " import”.",
    "encoding": "The file does not say how its letters are stored. Which words are right?",
    "day_hours": "Some days have no time. When does such a day begin and end?",
    "headings": "The headings look like data, and the first row is not imported as a record.",
    "merged_cells": "Merged cells give their value to all of their rows. Check these rows.",
    "mixed_dates": "A spreadsheet program may have swapped day and month in a column of dates."
    " Compare some dates with their source.",
}
"""Questions about the whole file whose own sentence names options of the command."""


def shown(imports: Imports, each: Import) -> dict[str, Any]:
    """Return an import with its cells and columns, or with the reason why the file is not read."""
    head = {
        "id": each.id,
        "version": each.version,
        "name": each.name,
        "resource": each.resource,
        "mode": each.mode,
        "match": each.match or "id",
        "stage": each.stage,
        "error": each.error,
        "remembered": each.is_remembered,
        "batches": each.batches,
        "reading": each.reading,
    }
    try:
        opened = imports.opened(each)
    except Unread as error:
        return {**head, "unread": describe(error), "sheets": error.names}
    table = opened.table
    return {
        **head,
        "sheet": table.sheet,
        "encoding": table.encoding,
        "header_row": table.heading_rows.index + 1,
        "headings": list(_headings(opened)),
        "columns": columns(imports, each, opened),
        "rows": list(_rows(each, opened)),
    }


def _headings(opened: Opened) -> Iterator[str]:
    """Yield the headings, and a name for each cell beyond the last heading."""
    yield from opened.table.headings
    width = max((len(row.cells) for row in opened.table.rows()), default=0)
    for index in range(len(opened.table.headings), width):
        yield f"(no heading {index + 1})"


def _rows(each: Import, opened: Opened) -> Iterator[list[Any]]:
    """Yield number, cells with edits, indexes of edited cells, and True if the row is left out."""
    for row in opened.table.rows():
        if row.is_outside or is_blank(row.cells):
            continue
        cells, edit = [text_of(cell) for cell in row.cells], each.edits.get(str(row.number), {})
        changed = {int(index): text for index, text in (edit or {}).items() if index != "_id"}
        for index, text in changed.items():
            cells[index] = text
        yield [row.number, cells, [*changed], edit is None]


def columns(imports: Imports, each: Import, opened: Opened) -> dict[str, Any]:
    """Return the columns with their fields, and the fields that columns or values can fill."""
    found, saved = imports.columns(each, opened), each.saved
    filled = {column.heading: column for column in found.columns}
    open_columns = {column.heading: column for column in found.unmapped}
    examples = _examples(opened)
    listed = []
    for index, heading in enumerate(opened.table.headings):
        column, unmapped = filled.get(heading), open_columns.get(heading)
        options = column.options if column is not None else AS_WRITTEN
        listed.append(
            {
                "index": index,
                "heading": heading,
                "examples": examples[index],
                "field": column.target.name if column else "-" if heading in found.ignored else "",
                "reason": unmapped.reason if unmapped else "",
                "suggestions": list(unmapped.suggestions) if unmapped else [],
                "policy": options.policy,
                "by_value": bool(column and _is_by_value(column.target)),
            }
        )
    return {
        "columns": listed,
        "targets": [
            {
                "name": target.name,
                "label": label(target),
                "required": target.field.create.required and each.mode in ("create", "upsert"),
                "choices": list(target.accepted_values(each.mode)) if target.field.values else [],
            }
            for target in opened.target.columns
        ],
        "whole_name": bool(found.name_parts),
        "missing": list(found.missing),
        "constants": dict(saved.constants),
        "region": saved.options.region or "",
    }


def _is_by_value(target: TargetColumn) -> bool:
    """Return True if equal cells get one answer, which is remembered for later files.

    Texts such as names and addresses of people are corrected cell by cell instead.
    """
    is_text = target.field.kind in (Kind.STRING, Kind.UUID) and not target.field.values
    return target.reference is not None or not is_text


def _examples(opened: Opened) -> list[list[str]]:
    """Return a few different cells of each column."""
    found: list[dict[str, None]] = [{} for _ in opened.table.headings]
    for row in islice(opened.table.rows(), _EXAMPLE_ROWS):
        for some, cell in zip(found, () if row.is_outside else row.cells, strict=False):
            if len(some) < EXAMPLES and (text := text_of(cell).strip()):
                some[text] = None
    return [[*some] for some in found]


def label(target: TargetColumn) -> str:
    """Return the name of a field for users."""
    words = target.labels[0] if target.labels else target.name.removeprefix("fields.")
    return words.replace("_", " ") if target.labels else words.replace("_", " ").capitalize()


# -- check -----------------------------------------------------------------------------------------


def checked(imports: Imports, each: Import, found: Preview, *, is_whole: bool) -> dict[str, Any]:
    """Return what would happen to each row, and what the user has to answer."""
    headings = {heading: index for index, heading in enumerate(found.table.headings)}
    rows: dict[str, Any] = {}
    for result in found.rows:
        before_and_after = {name: [now, then] for name, now, then in result.changes}
        if not before_and_after and result.state == "planned":
            before_and_after = {name: [None, then] for name, then in result.values.items()}
        rows[str(result.number)] = _row(result, before_and_after, found.columns, headings)
    answer: dict[str, Any] = {"version": each.version, "whole": is_whole, "rows": rows}
    if not is_whole:
        return answer
    rows |= sent(imports, each, each.batches, found.columns, headings)
    with imports.lookups() as lookups:
        answer["records"] = _records(lookups, found)
        answer["known"] = {
            column.heading: [[known.id, str(known)] for known in lookups.known_ids(key)]
            for column in found.columns.columns
            if (key := column.target.key) in UNLISTED
        }
    month = found.month
    return answer | {
        "titles": _titles(rows),
        "questions": [
            _question(each) for each in found.questions if each.code not in ("warnings", "values")
        ],
        "notices": [_without_option(notice) for notice in found.notices],
        "pulled_at": found.pulled_at,
        "requests": found.requests,
        "minutes": found.minutes,
        "left": month.requests_left(keeps_reserve=False) if month is not None else None,
    }


def _row(
    result: Row, values: Mapping[str, list[Any]], found: ColumnMap, headings: Mapping[str, int]
) -> list[Any]:
    """Return outcome, code, problems, values by column or field, and record of a row."""
    told = [
        [
            headings.get(each.column or "", -1),
            each.code,
            _sentence(each),
            _without_option(each.fix or ""),
            is_only,
            each.found if each.code in _CHOICES_AMONG else None,
        ]
        for some, is_only in ((result.problems, False), (result.warnings, True))
        for each in some
    ]
    placed: dict[str, list[Any]] = {}
    for name, (now, then) in values.items():
        heading = found.heading_of(name)
        # Several fields may come from one column: first and last name of a whole name.
        key = str(headings[heading]) if heading is not None else name
        pair = [None if now is None else _text(now), _text(then)]
        placed[key] = [_joined(a, b) for a, b in zip(placed[key], pair, strict=True)] if (
            key in placed
        ) else pair  # fmt: skip
    return [result.outcome, result.code or "", told, placed, result.record_id or ""]


def _sentence(problem: Problem) -> str:
    """Return the text of a problem, with its field if it belongs to no column."""
    place = f"{problem.field}: " if problem.field and not problem.column else ""
    return place + problem.text


def _joined(first: str | None, second: str | None) -> str | None:
    return " | ".join(each for each in (first, second) if each is not None) or None


def _text(value: Any) -> str:
    """Return a value of the API as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)


def _flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a body by field, with those of a content type as `fields.KEY`."""
    flat: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def _question(question: FileQuestion) -> dict[str, Any]:
    """Return a question in words of the page."""
    return {
        **asdict(question),
        "message": _QUESTIONS.get(question.code) or _without_option(question.message),
        "consent": question.code in CONSENTS,
    }


def _without_option(text: str) -> str:
    """Return a sentence without an option of the command."""
    return _OPTION.sub("", text)


def _records(lookups: WarehouseLookups, found: Preview) -> dict[str, str]:
    """Return a line about each record from which the user chooses, by id."""
    wanted: dict[str, dict[str, None]] = {}
    for result in found.rows:
        for each in result.problems:
            if each.code not in _CHOICES_AMONG or not each.found:
                continue
            column = next((c for c in found.columns.columns if c.heading == each.column), None)
            resource = found.push_file.resource
            if each.code == "reference_ambiguous":
                resource = (column and column.target.referred_resource) or resource
            ids = wanted.setdefault(resource, {})
            if len(ids) < _RECORDS_MAX:
                ids |= dict.fromkeys(re.split(r"[,\s]+", each.found))
    lines: dict[str, str] = {}
    for resource, ids in wanted.items():
        for id, landed in lookups.landed_records(resource, [*ids]).items():
            lines[id] = _line(landed.record, resource)
    return lines


def _line(record: Mapping[str, Any], resource: str) -> str:
    """Return the values of a record that distinguish it from others."""
    names = dict.fromkeys(
        ["first_name", "last_name", "name", "title"]
        + [name for key in CATALOG[resource].natural_keys for name in key]
        + ["company_name", "city", "location", "current_job_title", "reference_code", "status"]
    )
    return " · ".join(str(value) for name in names if (value := record.get(name))) or "(no name)"


# -- results ---------------------------------------------------------------------------------------


def sent(
    imports: Imports,
    each: Import,
    batches: Iterable[str],
    found: ColumnMap,
    headings: Mapping[str, int],
) -> dict[str, Any]:
    """Return the rows of pushes in the journal; of an open import only those with an effect."""
    rows = {}
    for number, row in imports.rows_of(batches).items():
        if each.stage == "open" and (row.outcome not in SENT or row.undone_at is not None):
            continue
        rows[str(number)] = _row(result_of(row, found), {}, found, headings)
    return rows


def result_of(row: Row, found: ColumnMap) -> Row:
    """Return a row of the journal as a result; a row that was undone has the code `undone`."""
    problems = tuple(with_column(each, found) for each in row.problems)
    return replace(row, problems=problems, code="undone" if row.undone_at else row.code)


def results(imports: Imports, each: Import, batch: str | None = None) -> dict[str, Any]:
    """Return the outcome of each row that was sent; `batch` is a push in progress."""
    opened = imports.opened(each)
    headings = {heading: index for index, heading in enumerate(opened.table.headings)}
    batches = dict.fromkeys([*each.batches, *([batch] if batch else [])])
    rows = sent(imports, each, batches, imports.columns(each, opened), headings)
    return {"version": each.version, "whole": True, "rows": rows, "titles": _titles(rows)}


def _titles(rows: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence for each code of the rows' problems."""
    codes = {problem[1] for row in rows.values() for problem in row[2]}
    return {code: text for code in codes if (text := message_of(code))}


def start(imports: Imports, user: str) -> dict[str, Any]:
    """Return what the first screen shows: the account, what can be imported, and past imports."""
    settings = imports.settings
    with imports.lookups() as lookups:
        types = lookups.list_texts("content_types", ["slug", "name"])
    with Database(settings.folder) as database:
        journal = Journal(database)
        batches, unconfirmed = journal.batches()[:_BATCHES_SHOWN], journal.unconfirmed()
    mine = [each for each in imports.load_all() if each.made_by == user]
    ids = {batch: each.id for each in mine for batch in each.batches}
    return {
        "account": settings.account or "",
        "platform": settings.base_url,
        "user": user,
        "megabytes": FILE_MEGABYTES_MAX,
        "record_url": settings.record_url,
        "resources": {
            name: {
                "modes": [mode for mode in MODES if _needs(mode) <= {*declared.operations}],
                "keys": ["id", *dict.fromkeys(k for keys in declared.natural_keys for k in keys)],
            }
            for name, declared in CATALOG.items()
            if {"create", "update", "convert"} & {*declared.operations}
        },
        "content_types": [[slug, name] for _, slug, name in types],
        "open": [
            {key: getattr(each, key) for key in ("id", "name", "resource", "mode", "changed_at")}
            for each in mine
            if each.stage != "sent"
        ],
        "history": [
            {
                "batch": each.batch,
                "file": each.file,
                "resource": each.resource,
                "mode": each.mode,
                "at": each.begun_at.isoformat(),
                "outcome": each.outcome or "running",
                "sent_by": each.sent_by,
                "undone_by": each.undone_by,
                "held": sum(row.batch == each.batch for row in unconfirmed),
                "id": ids.get(each.batch),
            }
            for each in batches
        ],
    }


def _needs(mode: str) -> set[str]:
    """Return the operations of the API that a mode uses."""
    return {"create", "update"} if mode == "upsert" else {mode}

"""What the page shows of an import: the cells, the columns, and what would happen to each row.

Everything is JSON. Texts are data and never HTML; the page shows them as text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.page.imports import Import, Imports
from connector.pushes.options import MODES
from connector.pushes.preview import Preview
from connector.pushes.report import with_column
from connector.spreadsheet.mapping import WHOLE_NAME, ColumnMap, MappedColumn
from connector.spreadsheet.problems import is_blank, message_of, text_of
from connector.spreadsheet.targets import UNLISTED
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import Problem, Row
from connector.warehouse.lookups import WarehouseLookups

FILE_MEGABYTES_MAX = 50  # A file of 50,000 rows is smaller.
_BATCHES_SHOWN, _RECORDS_MAX = 50, 500
_OPTION = re.compile(r" \([^()]*--[a-z][^()]*\)")
"""Remark in a sentence about an option of the command, which the page has not."""


def shown(imports: Imports, each: Import) -> dict[str, Any]:
    """Return an import with its columns and cells.

    A row has its number, its cells, the indexes of edited cells, and True if it is left out.
    """
    table, rows = imports.uploaded(each), []
    for row in table.rows():
        if not row.is_outside and not is_blank(row.cells):
            edit = each.edits.get(row.number, {})
            cells = [edit.get(str(i), text_of(cell)) for i, cell in enumerate(row.cells)]
            changed = [int(key) for key in edit if key.isdecimal()]
            rows.append((row.number, cells, changed, "out" in edit))
    return {
        **each.model_dump(mode="json", exclude={"edits"}),
        "sheet": table.sheet,
        "header_row": table.heading_rows.index + 1,
        "headings": table.headings,
        "columns": columns(imports, each),
        "rows": rows,
    }


def columns(imports: Imports, each: Import) -> dict[str, Any]:
    """Return the columns with their fields, and the fields that columns or values can fill."""
    target, found = imports.columns(each)
    known = {column.heading: _filled(column, found) for column in found.columns}
    known |= {column.heading: {**asdict(column), "field": ""} for column in found.unmapped}
    is_create = each.mode in ("create", "upsert")
    return {
        "columns": [
            {"heading": heading, "field": "-", "keys": (), **known.get(heading, {})}
            for heading in imports.uploaded(each).headings
        ],
        "targets": {
            field.name: {
                "key": field.key,
                "label": field.field.label if field.name == field.key else "",
                "required": field.field.create.required and is_create,
                "choices": field.accepted_values(each.mode) if field.field.values else (),
            }
            for field in target.columns
        },
        "can_split_names": bool(found.name_parts),
        "missing": found.missing,
    }


def _filled(column: MappedColumn, found: ColumnMap) -> dict[str, Any]:
    """Return the field of a column, the keys in records, and how existing values change.

    `by_value`: equal cells get one answer, which is remembered for later files. Texts such as names
    and addresses of people are corrected cell by cell instead.
    """
    target = column.target
    is_text = target.field.kind in (Kind.STRING, Kind.UUID) and not target.field.values
    parts = found.name_parts if target.name == WHOLE_NAME else (target,)
    return {
        "field": target.name,
        "keys": [part.key for part in parts],
        "policy": column.options.policy,
        "by_value": target.reference is not None or not is_text,
    }


# -- check -----------------------------------------------------------------------------------------


def checked(imports: Imports, each: Import, numbers: Set[int] | None = None) -> dict[str, Any]:
    """Return what would happen to all rows, or to some, and what the user has to answer."""
    at, found = datetime.now(UTC), imports.check(each, numbers)
    rows = {row.number: _row(row) for row in found.rows}
    if numbers is not None:
        return {"version": each.version, "whole": False, "rows": rows}
    sent = results(imports, each, each.batches)["rows"] if each.sent else {}
    with imports.lookups() as lookups:
        records = _records(lookups, found)
        known = {key: [[one.id, str(one)] for one in lookups.known_ids(key)] for key in UNLISTED}
    return {
        "version": each.version,
        "whole": True,
        "at": at.isoformat(),
        "rows": rows | {number: sent[number] for number in each.sent},
        "records": records,
        "known": known,
        "questions": [asdict(question) for question in found.questions],
        "notices": [_OPTION.sub("", notice) for notice in found.notices],
        "pulled_at": found.pulled_at,
        "requests": found.requests,
        "minutes": found.minutes,
        "left": found.month.requests_left(keeps_reserve=False),
    }


def _row(row: Row) -> dict[str, Any]:
    """Return the outcome of a row, its problems and warnings, and its values before and after."""
    values = tuple((name, None, then) for name, then in row.values.items())
    return {
        "outcome": row.outcome,
        "code": row.code,
        "record": row.record_id,
        "problems": [
            *(_problem(each, is_warning=False) for each in row.problems),
            *(_problem(each, is_warning=True) for each in row.warnings),
        ],
        "changes": row.changes or (values if row.state == "planned" else ()),
    }


def _problem(problem: Problem, *, is_warning: bool) -> dict[str, Any]:
    texts = {"text": problem.text, "title": message_of(problem.code)}
    fix = _OPTION.sub("", problem.fix or "")
    return {**asdict(problem), **texts, "fix": fix, "is_warning": is_warning}


def _records(lookups: WarehouseLookups, found: Preview) -> dict[str, str]:
    """Return a line about each record from which the user chooses, by id."""
    referred = {each.heading: each.target.referred_resource for each in found.columns.columns}
    wanted: dict[str, list[str]] = {}
    for row in found.rows:
        for each in row.problems:
            is_reference = each.code == "reference_ambiguous"
            if each.found and (is_reference or each.code == "record_ambiguous"):
                resource = (is_reference and referred.get(each.column or "")) or row.resource
                wanted.setdefault(resource, []).extend(re.split(r"[,\s]+", each.found))
    return {
        id: _line(landed.record, resource)
        for resource, ids in wanted.items()
        for id, landed in lookups.landed_records(resource, ids[:_RECORDS_MAX]).items()
    }


def _line(record: Mapping[str, Any], resource: str) -> str:
    """Return the values of a record that distinguish it from others."""
    keys = [name for key in CATALOG[resource].natural_keys for name in key]
    names = ["first_name", "last_name", "name", "title", *keys, "city", "location", "status"]
    return " · ".join(str(record[name]) for name in dict.fromkeys(names) if record.get(name))


def results(imports: Imports, each: Import, batches: Iterable[str]) -> dict[str, Any]:
    """Return the outcome of each row of these pushes. The code of an undone row is `undone`."""
    (_, found), rows = imports.columns(each), {}
    for number, row in imports.rows_of(batches).items():
        row.problems = tuple(with_column(problem, found) for problem in row.problems)
        row.code = "undone" if row.undone_at else row.code
        rows[number] = _row(row)
    return {"version": each.version, "whole": True, "rows": rows}


# -- first screen ----------------------------------------------------------------------------------


def start(imports: Imports, user: str) -> dict[str, Any]:
    """Return what the first screen shows: the account, what can be imported, and past imports."""
    settings = imports.settings
    with imports.lookups() as lookups:
        types = lookups.list_texts("content_types", ["slug", "name"])
    with Database(settings.folder) as database:
        journal = Journal(database)
        batches = journal.batches()[:_BATCHES_SHOWN]
        held = Counter(row.batch for row in journal.unconfirmed())
    mine = [each for each in imports.load_all() if each.made_by == user]
    ids = {batch: each.id for each in mine for batch in each.batches}
    needs = {mode: {mode} for mode in MODES} | {"upsert": {"create", "update"}}
    kept = {"id", "name", "resource", "mode", "changed_at"}
    past = ("file", "resource", "mode", "outcome", "sent_by", "undone_by")
    return {
        "account": settings.account or "",
        "platform": settings.base_url,
        "user": user,
        "megabytes": FILE_MEGABYTES_MAX,
        "record_url": settings.record_url,
        "resources": {
            name: {
                "modes": [mode for mode in MODES if needs[mode] <= {*declared.operations}],
                "keys": ["id", *dict.fromkeys(k for keys in declared.natural_keys for k in keys)],
            }
            for name, declared in CATALOG.items()
            if {"create", "update", "convert"} & {*declared.operations}
        },
        "content_types": [[slug, name] for _, slug, name in types],
        "open": [e.model_dump(mode="json", include=kept) for e in mine if e.stage != "sent"],
        "history": [
            {name: getattr(each, name) for name in past}
            | {"at": each.begun_at.isoformat(), "held": held[each.batch], "id": ids.get(each.batch)}
            for each in batches
        ],
    }

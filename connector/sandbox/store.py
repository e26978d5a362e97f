"""Store of the sandbox: every operation of API 4 on records in memory, without HTTP.

A `Store` has its own clock and random numbers, so that a simulation can use it like the server.
Operations receive names of resources and plain dictionaries. They return answers of the API or
raise `Rejection`. Keys, scopes and limits belong to the application.
"""

from __future__ import annotations

import fcntl
import json
import random as chance
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO, Self
from uuid import UUID

from connector.catalog import CATALOG
from connector.catalog import declaration as declared
from connector.catalog.resource import Declaration, Operation
from connector.errors import SettingsError
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.checks import (
    Body,
    Messages,
    Rejection,
    Write,
    check_body,
    check_content,
    format_time,
    raise_if_any,
    set_server_fields,
)
from connector.sandbox.records import Row, Shape, Table, fold, list_conditions, parse_positive

Clock = Callable[[], datetime]
"""Returns the server's time: an aware datetime. A simulation passes its own."""

PER_PAGE_DEFAULT = 20
_FILE_HEADER = b'{"file": "records of a sandbox", "version": 1}\n'
_PRIME = 2**31 - 1


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """Successful response: its status and its JSON body, which is None for 204."""

    status: int
    body: Body | None

    @property
    def record(self) -> Body:
        """Record in the response. Raises `KeyError` if the response has no `data`."""
        record: Body = (self.body or {})["data"]
        return record

    @property
    def items(self) -> list[Body]:
        """Records of a list. Raises `KeyError` if the response has no `data`."""
        items: list[Body] = (self.body or {})["data"]
        return items

    @property
    def pagination(self) -> dict[str, int]:
        """`pagination` of a list. Raises `KeyError` for other responses."""
        pagination: dict[str, int] = (self.body or {})["pagination"]
        return pagination


class Store:
    """Records of one workspace, and the API's operations. Can be used from several threads.

    Args:
        clock: The server's time.
        random: Source of ids and of the random order of ties.
        behaviours: Behaviours, or values by name.
        path: File that keeps the records; None keeps them in memory only.

    Raises:
        SettingsError: The file is of another kind, or another sandbox uses it.
    """

    interlude: Callable[[], None] | None = None
    """Called between counting a list and reading its rows, if `total` is "earlier"."""

    def __init__(
        self,
        *,
        clock: Clock = utc_now,
        random: chance.Random | None = None,
        behaviours: Mapping[str, str] | None = None,
        path: str | Path | None = None,
    ) -> None:
        self.clock = clock
        self.behaviours = Behaviours(behaviours)
        self._random = random or chance.Random(0)  # noqa: S311  # made-up ids are no secrets
        self._lock = RLock()
        self._tables = {name: Table(each) for name, each in CATALOG.items()}
        self._shapes = {name: Shape(each, self.behaviours) for name, each in CATALOG.items()}
        self._counted: dict[str, Counter[str | None]] | None = None
        self._file: BinaryIO | None = None
        self.is_new = True
        if path is not None:
            self._open_file(Path(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Later operations on a store with a file fail."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    # -- Operations of the API ---------------------------------------------------------------------

    def list(
        self, resource: str, query: Mapping[str, str] | None = None, *, type: str | None = None
    ) -> ApiAnswer:
        """Return one page of a list (API 4.1).

        `query` has the parameters as texts; `type` is the content type's slug or id in the path.
        """
        declaration = self._require_operation(resource, "list")
        # An empty parameter is one that a form left out.
        query = {name: value for name, value in (query or {}).items() if value}
        with self._lock:
            parent = self._find_parent(declaration, type)
            errors: Messages = {}
            conditions = list_conditions(declaration, query, errors)
            page = parse_positive("page", query, 1, errors)
            per_page = parse_positive("per_page", query, PER_PAGE_DEFAULT, errors)
            raise_if_any(errors)
            per_page = min(per_page, int(self.behaviours["per_page_max"]))
            if parent is not None:
                conditions.append(lambda row: row.parent == parent)
            name, is_descending = self._order(declaration, query)
            select = partial(self._tables[resource].select, name, is_descending, conditions)
            rows = select()
            total = len(rows)
            if self.behaviours["total"] == "earlier" and self.interlude is not None:
                self.interlude()
                rows = select()
            pages = -(-total // per_page)
            if page > max(pages, 1) and self.behaviours["page_past_end"] != "empty":
                if self.behaviours["page_past_end"] == "404":
                    raise Rejection(404, "There is no such page.")
                page = max(pages, 1)
            start = (page - 1) * per_page
            if self.behaviours["ties"] == "random" and start < len(rows):
                # A multiplication modulo a prime shuffles serials, differently for each factor.
                factor = self._random.randrange(2**30, 2**31 - 1)
                rows = sorted(rows, key=lambda row: row.serial * factor % _PRIME)
                key = self._tables[resource].sort_key(name)
                rows = sorted(rows, key=key, reverse=is_descending)
            shape = self._shapes[resource]
            shown = [row.record for row in rows[start : start + per_page]]
            data = [shape.item(self._with_counters(resource, each)) for each in shown]
        pagination = {"page": page, "per_page": per_page, "total": total, "total_pages": pages}
        return ApiAnswer(200, {"data": data, "pagination": pagination})

    def _order(self, declaration: Declaration, query: Mapping[str, str]) -> tuple[str, bool]:
        if not declaration.sortable or self.behaviours["sorting"] == "ignored":
            return "created_at", bool(declaration.sortable)
        sort = query.get("sort", "")
        return sort if sort in declaration.sortable else "created_at", query.get("order") != "asc"

    def get(self, resource: str, id: str, *, type: str | None = None) -> ApiAnswer:
        """Return the detail response of a record. Raises `Rejection` 404."""
        declaration = self._require_operation(resource, "get")
        with self._lock:
            row = self._find_row(declaration, id, type)
            return ApiAnswer(200, {"data": self._detail(resource, row.record)})

    def create(
        self, resource: str, body: Body, *, type: str | None = None, at: datetime | None = None
    ) -> ApiAnswer:
        """Create a record from a request body, dated `at` or now. Raises `Rejection` 404 or 422."""
        declaration = self._require_operation(resource, "create")
        with self._lock:
            parent = self._find_parent(declaration, type)
            values = check_body(
                declaration, body, "create", self.behaviours, exists=self._has_record
            )
            if parent is not None:
                values["fields"] = self._checked_content(parent, "create", body, {})
            self._check_unique(declaration, values, None)
            stamp = format_time(at or self.clock(), self.behaviours)
            record = {"id": self._new_id(), "created_at": stamp, "updated_at": stamp, **values}
            set_server_fields(declaration, record, None, stamp)
            self._put(resource, record, parent)
            return self._answer_to_write(declaration, "create", record)

    def update(self, resource: str, id: str, body: Body, *, type: str | None = None) -> ApiAnswer:
        """Change the fields in a request body. Raises `Rejection` 404 or 422.

        `updated_at` changes in any case.
        """
        declaration = self._require_operation(resource, "update")
        with self._lock:
            row = self._find_row(declaration, id, type)
            values = check_body(
                declaration,
                body,
                "update",
                self.behaviours,
                exists=self._has_record,
                stored=row.record,
            )
            if row.parent is not None and "fields" in values:
                kept = row.record.get("fields") or {}
                values["fields"] = self._checked_content(row.parent, "update", body, kept)
            self._check_unique(declaration, values, id)
            stamp = format_time(self.clock(), self.behaviours)
            record = {**row.record, **values, "updated_at": stamp}
            set_server_fields(declaration, record, row.record, stamp)
            self._put(resource, record, row.parent)
            return self._answer_to_write(declaration, "update", record)

    def delete(self, resource: str, id: str, *, type: str | None = None) -> ApiAnswer:
        """Delete a record. Records that refer to it are not changed. Raises `Rejection` 404."""
        declaration = self._require_operation(resource, "delete")
        with self._lock:
            self._find_row(declaration, id, type)
            self._remove(resource, id)
        if self.behaviours["delete"] == "204":
            return ApiAnswer(204, None)
        return ApiAnswer(200, {"message": f"The {declaration.singular} was deleted."})

    def convert(self, resource: str, id: str) -> ApiAnswer:
        """Convert a lead into a customer (API 3.5, 4.6). Raises `Rejection` 404 or 422."""
        declaration = self._require_operation(resource, "convert")
        with self._lock:
            row = self._find_row(declaration, id, None)
            raise_if_any({"status": ["is converted already"]} if "_converted" in row.record else {})
            stamp = format_time(self.clock(), self.behaviours)
            converted = {"status": declaration.converted_status, "converted_at": stamp}
            record = {**row.record, "_converted": True, "updated_at": stamp}
            if self.behaviours["converted_lead"] == "deleted":
                self._remove(resource, id)
                # Nothing changed the lead before it was deleted.
                record["updated_at"] = row.record["updated_at"]
            else:
                is_active = self.behaviours["converted_lead"] == "active"
                self._put(resource, record | converted if is_active else record, row.parent)
            return self._answer_to_write(declaration, "convert", record | converted)

    # -- Reads and writes that bypass the rules of the API -----------------------------------------

    def records(self, resource: str, *, type: str | None = None) -> dict[str, Body]:
        """Return every record by id, with the fields of a detail response.

        `type` is the id of a content type; only its items are returned.
        """
        declared(resource)
        with self._lock:
            rows = self._tables[resource].rows.values()
            shown = [each.record for each in rows if type in (None, each.parent)]
            return {each["id"]: self._detail(resource, each) for each in shown}

    def insert(self, resource: str, record: Mapping[str, Any], *, type: str | None = None) -> str:
        """Store a record without checks, and return its id.

        A missing id is random; missing dates are the current time. `type` is the id of a content
        item's type. Raises `ValueError` if the id exists.
        """
        declared(resource)
        with self._lock:
            id = str(record.get("id") or self._new_id())
            if id in self._tables[resource].rows:
                raise ValueError(f"{resource} has a record {id} already")
            now = self.clock()
            dates = {"created_at": now, "updated_at": record.get("created_at", now)}
            self._put(resource, {"id": id, **dates, **record}, type)
        return id

    def load(self, resource: str, records: Iterable[tuple[Body, str | None]]) -> None:
        """Store many new records, each with the id of its content type; no other record changes."""
        with self._lock:
            for record, parent in records:
                self._write(resource, record, parent)

    def touch(
        self,
        resource: str,
        ids: str | Iterable[str],
        changes: Mapping[str, Any] | None = None,
        *,
        updated_at: datetime | None = None,
    ) -> None:
        """Change records like an edit, or all or none like a bulk edit, without checks.

        They get the same `updated_at` (by default: now). An earlier one simulates a transaction
        that was committed late.
        """
        stamp = updated_at or self.clock()
        ids = (ids,) if isinstance(ids, str) else ids
        self._change_records(resource, ids, {**(changes or {}), "updated_at": stamp})

    def change_silently(self, resource: str, id: str, changes: Mapping[str, Any]) -> None:
        """Change a record without updating its `updated_at`."""
        self._change_records(resource, (id,), changes)

    def remove(self, resource: str, id: str) -> None:
        """Delete a record. Raises `KeyError` if it does not exist."""
        with self._lock:
            self._remove(resource, id)

    def _change_records(
        self, resource: str, ids: Iterable[str], changes: Mapping[str, Any]
    ) -> None:
        """Change records. Raises `KeyError` and changes nothing if one does not exist."""
        declared(resource)
        with self._lock:
            for row in [self._tables[resource].rows[id] for id in ids]:
                self._put(resource, {**row.record, **changes}, row.parent)

    # -- Parts of the operations -------------------------------------------------------------------

    def _require_operation(self, resource: str, operation: Operation) -> Declaration:
        """Return the declaration of a resource. Raises `Rejection` 405 without the operation."""
        declaration = declared(resource)
        if operation not in declaration.operations:
            raise Rejection(405, f"There is no operation {operation!r} on {resource}.")
        return declaration

    def _find_parent(self, declaration: Declaration, type: str | None) -> str | None:
        """Return the id of a content type by its slug or id; None for other resources (API 4.7).

        Raises `Rejection` 404 if the content type does not exist.
        """
        if declaration.parent is None:
            return None
        for id, row in self._tables[declaration.parent].rows.items():
            if type is not None and type in (id, row.record.get("slug")):
                return id
        raise Rejection(404, "There is no such content type.")

    def _find_row(self, declaration: Declaration, id: str, type: str | None) -> Row:
        """Return the row of a record. Raises `Rejection` 404 if it does not exist."""
        # A simulation may leave the type out; a path cannot.
        parent = None if type is None else self._find_parent(declaration, type)
        row = self._tables[declaration.name].rows.get(id)
        if row is None or parent not in (None, row.parent):
            raise Rejection(404, f"There is no {declaration.singular} of that id.")
        return row

    def _has_record(self, resource: str, id: str) -> bool:
        return id in self._tables[resource].rows

    def _checked_content(self, parent: str, operation: Write, body: Body, kept: Body) -> Body:
        """Return the content values to store after a write (API 4.7). Raises `Rejection` 422."""
        type = self._tables["content_types"].rows.get(parent)
        fields = [] if type is None else type.record.get("fields", [])
        values = check_content(fields, body.get("fields", {}), operation, self.behaviours)
        return {**kept, **values} if self.behaviours["content_update"] == "merged" else values

    def _check_unique(self, declaration: Declaration, values: Body, id: str | None) -> None:
        """Raise `Rejection` 422 if another record has the email and that is refused."""
        if self.behaviours["duplicate_emails"] == "allowed" or not values.get("email"):
            return
        email = fold(values["email"])
        for other, row in self._tables[declaration.name].rows.items():
            if other != id and fold(row.record.get("email") or "") == email:
                raise_if_any({"email": ["is taken"]})

    def _answer_to_write(
        self, declaration: Declaration, operation: Operation, record: Body
    ) -> ApiAnswer:
        """Return the response to a write, with the fields that it echoes."""
        detail = self._detail(declaration.name, record)
        echoes = declaration.echoes.get(operation, detail)
        data = {name: value for name, value in detail.items() if name in echoes}
        message = f"The {declaration.singular} was {operation.rstrip('e')}ed."
        return ApiAnswer(201 if operation == "create" else 200, {"data": data, "message": message})

    def _detail(self, resource: str, record: Body) -> Body:
        return self._shapes[resource].detail(self._with_counters(resource, record))

    def _with_counters(self, resource: str, record: Body) -> Body:
        """Return the record, a company with its counters (API 2.3).

        Which jobs are active, and which bookings are placements, is our choice.
        """
        if resource != "companies":
            return record
        if self._counted is None:
            jobs = [row.record for row in self._tables["jobs"].rows.values()]
            placements = [
                row.record.get("company_id")
                for row in self._tables["bookings"].rows.values()
                if row.record.get("booking_type") in ("contract", "permanent")
                and row.record.get("status") in ("confirmed", "in_progress", "completed")
            ]
            self._counted = {
                "jobs_count": Counter(each.get("company_id") for each in jobs),
                "active_jobs_count": Counter(
                    each.get("company_id") for each in jobs if each.get("status") == "published"
                ),
                "placements_count": Counter(placements),
            }
        return {**record, **{name: n[record["id"]] for name, n in self._counted.items()}}

    # -- Writes and their file ---------------------------------------------------------------------

    def _new_id(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _put(self, resource: str, record: Body, parent: str | None) -> None:
        """Store a record, and update the companies that this changes."""
        before = self._tables[resource].rows.get(record["id"])
        self._write(resource, record, parent)
        self._date_companies(resource, record, *([before.record] if before else []))

    def _write(self, resource: str, record: Body, parent: str | None) -> None:
        fields = CATALOG[resource].fields
        stored = {
            name: format_time(value, self.behaviours) if isinstance(value, datetime) else value
            for name, value in record.items()
            if value is not None or name not in fields
        }
        self._append_line(resource, stored, parent)
        self._tables[resource].put(stored, parent)

    def _remove(self, resource: str, id: str) -> None:
        """Delete a record, also from the file. Raises `KeyError` if it does not exist."""
        declared(resource)
        before = self._tables[resource].rows[id].record
        self._append_line(resource, id, None)
        self._tables[resource].remove(id)
        self._date_companies(resource, before)

    def _date_companies(self, resource: str, *versions: Body) -> None:
        """Date the companies whose counters a write changed, with `counters=moving`.

        `versions` are the record before and after the write.
        """
        if self.behaviours["counters"] == "moving" and resource in ("jobs", "bookings"):
            for id in {each.get("company_id") for each in versions} - {None}:
                if row := self._tables["companies"].rows.get(str(id)):
                    self._put("companies", {**row.record, "updated_at": self.clock()}, None)

    def _append_line(self, resource: str, written: Body | str, parent: str | None) -> None:
        if resource in ("jobs", "bookings"):
            self._counted = None
        if self._file is not None:
            line = json.dumps([resource, written, parent], ensure_ascii=False)
            self._file.write(line.encode() + b"\n")
            self._file.flush()

    def _open_file(self, path: Path) -> None:
        """Read the records of a file, which is a log of writes, and open it for further writes."""
        try:
            # Not closed here: the store appends to it until it is closed.
            file = self._file = path.open("a+b")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            header = file.readline()
            if header not in (b"", _FILE_HEADER):
                raise ValueError("it is no file of a sandbox, or of another version")
            end = len(header)
            for line in file:
                if not line.endswith(b"\n"):
                    # A kill cut the last write.
                    break
                resource, written, parent = json.loads(line)
                if isinstance(written, str):
                    self._tables[resource].remove(written)
                else:
                    self._tables[resource].put(written, parent)
                end += len(line)
            file.truncate(end)
        except (OSError, ValueError, KeyError) as error:
            self.close()
            problem, action = f"cannot be used: {error}", "or move this one away"
            if isinstance(error, BlockingIOError):
                problem, action = "is used by another sandbox", "or end that one"
            raise SettingsError(
                f"The data file {path} {problem}", action=f"Name another file, {action}."
            ) from error
        self.is_new = not header
        if self.is_new:
            file.write(_FILE_HEADER)
        else:
            # Another start of the same seed must not draw the ids of the first again.
            drawn = sum(each.serial for each in self._tables.values())
            self._random.seed(f"{self._random.random()}:{drawn}")

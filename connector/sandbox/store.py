"""Store of the sandbox: every operation of API 4, with SQLite and without HTTP.

A `Store` has its own clock and random numbers, so that a simulation can use it like the server.
Operations receive the names of resources and plain dictionaries, and return responses of the API or
raise `Rejection`. Keys, scopes and limits belong to the application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from connector.catalog import CATALOG
from connector.catalog import declaration as declared
from connector.catalog.resource import Declaration, Operation
from connector.sandbox.api_answer import ApiAnswer, Body, Rejection, validation_rejection
from connector.sandbox.direct_writes import DirectStore
from connector.sandbox.list_query import ListQuery, parse_list_query
from connector.sandbox.record_table import (
    RowCondition,
    StoredRecord,
    StoredRow,
    format_shown_time,
    format_stored_time,
)
from connector.sandbox.validation import check_body, check_content, set_server_values

Interlude = Callable[[], None]
"""What happens between counting a list and reading its rows, where `total` is `earlier`."""


class Store(DirectStore):
    """Records of one workspace, and the API's operations on them. Can be used from several threads.

    Args:
        clock: The server's time.
        random: Source of ids and of the random order of ties.
        behaviours: Behaviours, or their values by name.
        path: File with the records, or ":memory:".

    Raises:
        UnknownName: A resource does not exist in the API.
        SettingsError: The file is not a sandbox file of this version.
    """

    interlude: Interlude | None = None

    def list(
        self, resource: str, query: Mapping[str, str] | None = None, *, type: str | None = None
    ) -> ApiAnswer:
        """Return one page of a list (API 4.1).

        `query` has the parameters as texts; `type` is the content type's slug or id in the path.
        """
        declaration = self._require_operation(resource, "list")
        with self._lock:
            parent = self._content_type_id(declaration, type)
            listing = parse_list_query(declaration, query or {}, self.behaviours, parent=parent)
            table = self._tables[resource]
            total = table.count(listing.where)
            if self.behaviours.total == "earlier" and self.interlude is not None:
                self.interlude()
                rows_total = table.count(listing.where)
            else:
                rows_total = total
            pages = -(-total // listing.per_page)
            page = self._page_to_serve(listing.page, pages)
            records = self._records_of_page(resource, listing, page, rows_total)
            computed = self._company_counters(resource, [each["id"] for each in records])
            shape = self._shapes[resource]
            data = [shape.item(each, computed.get(each["id"], {})) for each in records]
        pagination = {
            "page": page,
            "per_page": listing.per_page,
            "total": total,
            "total_pages": pages,
        }
        return ApiAnswer(200, {"data": data, "pagination": pagination})

    def count(
        self, resource: str, query: Mapping[str, str] | None = None, *, type: str | None = None
    ) -> int:
        """Return the `total` of a list with this query."""
        declaration = self._require_operation(resource, "list")
        with self._lock:
            # Without a type, the items of all types: only the API needs one.
            parent = None if type is None else self._content_type_id(declaration, type)
            listing = parse_list_query(declaration, query or {}, self.behaviours, parent=parent)
            return self._tables[resource].count(listing.where)

    def get(self, resource: str, id: str, *, type: str | None = None) -> ApiAnswer:
        """Return the detail response of a record. Raises `Rejection` 404."""
        declaration = self._require_operation(resource, "get")
        with self._lock:
            row = self._require_record(declaration, id, type)
            return ApiAnswer(200, {"data": self._detail_fields(resource, row.record)})

    def create(
        self, resource: str, body: Body, *, type: str | None = None, at: datetime | None = None
    ) -> ApiAnswer:
        """Create a record from a request body, dated `at` or now. Raises `Rejection` 422."""
        declaration = self._require_operation(resource, "create")
        with self._transaction():
            parent = self._content_type_id(declaration, type)
            values = check_body(
                declaration, body, "create", self.behaviours, exists=self._record_exists
            )
            if parent is not None:
                values["fields"] = self._content_values(parent, body, "create", {})
            self._check_unique(declaration, values, None)
            stamp = self._timestamp(at)
            record = {"id": self._new_id(), "created_at": stamp, "updated_at": stamp, **values}
            set_server_values(declaration, record, None, stamp)
            self._insert_record(resource, record, parent)
            detail = self._detail_fields(resource, record)
        echo = self._shapes[resource].echoed_fields(detail, declaration.echoes.get("create"))
        return ApiAnswer(201, {"data": echo, "message": f"The {declaration.singular} was created."})

    def update(
        self,
        resource: str,
        id: str,
        body: Body,
        *,
        type: str | None = None,
        at: datetime | None = None,
    ) -> ApiAnswer:
        """Change the fields in a request body, dated `at` or now. Raises `Rejection` 404 or 422."""
        declaration = self._require_operation(resource, "update")
        with self._transaction():
            row = self._require_record(declaration, id, type)
            before = row.record
            values = check_body(
                declaration,
                body,
                "update",
                self.behaviours,
                exists=self._record_exists,
                stored=before,
            )
            if row.parent is not None and "fields" in values:
                kept = before.get("fields") or {}
                values["fields"] = self._content_values(row.parent, body, "update", kept)
            self._check_unique(declaration, values, id)
            record = self._next_version(declaration, before, values, at)
            self._replace_record(resource, row, record)
            detail = self._detail_fields(resource, record)
        echo = self._shapes[resource].echoed_fields(detail, declaration.echoes.get("update"))
        return ApiAnswer(200, {"data": echo, "message": f"The {declaration.singular} was updated."})

    def delete(self, resource: str, id: str, *, type: str | None = None) -> ApiAnswer:
        """Delete a record. Records that refer to it are not changed. Raises `Rejection` 404."""
        declaration = self._require_operation(resource, "delete")
        with self._transaction():
            self._delete_record(resource, self._require_record(declaration, id, type))
        if self.behaviours.delete == "204":
            return ApiAnswer(204, None)
        return ApiAnswer(200, {"message": f"The {declaration.singular} was deleted."})

    def convert(self, resource: str, id: str, *, at: datetime | None = None) -> ApiAnswer:
        """Convert a lead into a customer (API 3.5, 4.6). Raises `Rejection` 404 or 422."""
        declaration = self._require_operation(resource, "convert")
        with self._transaction():
            row = self._require_record(declaration, id, None)
            record = dict(row.record)
            converted_at = record.get("_converted_at")
            if converted_at is None:
                converted_at = self._timestamp(at)
                self._store_conversion(resource, row, record, converted_at)
            else:
                raise validation_rejection({"status": ["is converted already"]})
            status = declaration.converted_status
            shown = {**record, "status": status, "converted_at": converted_at}
            detail = self._detail_fields(resource, shown)
            detail["converted_at"] = format_shown_time(converted_at, self.behaviours)
        if self.behaviours.convert_fields == "minimal":
            detail = {name: detail[name] for name in ("id", "status", "converted_at")}
        message = f"The {declaration.singular} was converted."
        return ApiAnswer(200, {"data": detail, "message": message})

    def _store_conversion(
        self, resource: str, row: StoredRow, record: StoredRecord, stamp: str
    ) -> None:
        """Store or delete the converted record, as `converted_lead` selects (API 3.5)."""
        if self.behaviours.converted_lead == "deleted":
            self._delete_record(resource, row)
            return
        record |= {"_converted_at": stamp, "updated_at": stamp}
        if self.behaviours.converted_lead == "active":
            status = CATALOG[resource].converted_status
            record |= {"status": status, "converted_at": stamp}
        self._replace_record(resource, row, record)

    def _require_operation(self, resource: str, operation: Operation) -> Declaration:
        """Return the declaration of a resource. Raises `Rejection` 405 without the operation."""
        declaration = declared(resource)
        if operation not in declaration.operations:
            raise Rejection(405, f"There is no operation {operation!r} on {resource}.")
        return declaration

    def _content_type_id(self, declaration: Declaration, type: str | None) -> str | None:
        """Return the id of a content type by its slug or id; None for other resources (API 4.7).

        Raises `Rejection` 404 if the content type does not exist.
        """
        if declaration.parent is None:
            return None
        where = RowCondition("(t.id = ? OR t.slug = ? COLLATE BINARY)", (type, type))
        for record in self._tables[declaration.parent].page(where, "t.serial", limit=1, offset=0):
            id: str = record["id"]
            return id
        raise Rejection(404, "There is no such content type.")

    def _require_record(self, declaration: Declaration, id: str, type: str | None) -> StoredRow:
        """Return the row of a record. Raises `Rejection` 404 if it does not exist."""
        # A simulation may leave the type out; a path cannot.
        parent = None if type is None else self._content_type_id(declaration, type)
        row = self._tables[declaration.name].find(id, parent=parent)
        if row is None:
            raise Rejection(404, f"There is no {declaration.singular} of that id.")
        return row

    def _page_to_serve(self, page: int, pages: int) -> int:
        """Return the page to serve for a requested page. May raise `Rejection` 404 past the end."""
        if page <= max(pages, 1) or self.behaviours.page_past_end == "empty":
            return page
        if self.behaviours.page_past_end == "404":
            raise Rejection(404, "There is no such page.")
        return max(pages, 1)

    def _records_of_page(
        self, resource: str, listing: ListQuery, page: int, total: int
    ) -> Sequence[StoredRecord]:
        """Return the records of a page, with ties in the order of the behaviour `ties`."""
        table = self._tables[resource]
        offset = (page - 1) * listing.per_page
        limit = min(listing.per_page, total - offset)
        if limit <= 0:
            return []
        if self.behaviours.ties == "random":
            # A multiplication modulo a prime shuffles serials, differently for each factor.
            factor = self._random.randrange(2**30, 2**31 - 1)
            direction = "DESC" if listing.is_descending else "ASC"
            order = f"t.{listing.sort} {direction}, (t.serial * {factor}) % 2147483647"
            return table.page(listing.where, order, limit=limit, offset=offset)
        # Far pages are read from the other end, since an offset costs what it skips.
        is_far = offset > total // 2
        direction = "DESC" if listing.is_descending != is_far else "ASC"
        order = f"t.{listing.sort} {direction}, t.serial {direction}"
        if is_far:
            offset = total - offset - limit
        records = table.page(listing.where, order, limit=limit, offset=offset)
        return records[::-1] if is_far else records

    def _record_exists(self, resource: str, id: str) -> bool:
        return self._tables[resource].has(RowCondition("t.id = ?", (id,)))

    def _content_values(
        self, parent: str, body: Body, operation: Any, kept: StoredRecord
    ) -> dict[str, Any]:
        """Return the content values to store after a write (API 4.7). Raises `Rejection` 422.

        `kept` are the stored values.
        """
        row = self._tables["content_types"].find(parent)
        fields = [] if row is None else row.record.get("fields", [])
        given = body.get("fields", {})
        values, errors = check_content(fields, given, operation, self.behaviours)
        if errors:
            raise validation_rejection(errors)
        merges = self.behaviours.content_update == "merged"
        return {**kept, **values} if merges else values

    def _check_unique(self, declaration: Declaration, values: StoredRecord, id: str | None) -> None:
        """Raise `Rejection` 422 if another record has the email and that is refused."""
        if self.behaviours.duplicate_emails == "allowed" or not values.get("email"):
            return
        others = RowCondition("t.email = ? AND t.id IS NOT ?", (values["email"], id))
        if self._tables[declaration.name].has(others):
            raise validation_rejection({"email": ["is taken"]})

    def _next_version(
        self,
        declaration: Declaration,
        before: StoredRecord,
        values: StoredRecord,
        at: datetime | None,
    ) -> StoredRecord:
        """Return the record after an update, which changes `updated_at` in any case."""
        record = {**before, **values}
        stamp = self._timestamp(at)
        set_server_values(declaration, record, before, stamp)
        record["updated_at"] = stamp
        return record

    def _timestamp(self, at: datetime | None) -> str:
        """Return a time, by default the current time, in the stored format."""
        return format_stored_time(self._truncate_time(at or self.clock()))

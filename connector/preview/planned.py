"""The landing as it will be once the earlier files of a push are applied.

Files that depend on each other are foreseen together: a job names a company that only the file
before it would create. Such a record has no id yet, so that its row stands for it; a task with one
in it is foreseen and never sent, since each file is checked anew when its turn comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connector.catalog import ContentTypeField
from connector.engine.task import Task
from connector.spreadsheet.duplicates import Claims
from connector.spreadsheet.finding import comparable
from connector.spreadsheet.lookups import LandedRecord, Lookups

_ROW = "row {number} of {file}"


@dataclass(frozen=True, slots=True)
class Planned:
    """The creates that one file would send; `parent` is the content type, as it was given."""

    resource: str
    parent: str | None
    file: str
    tasks: Collection[Task]

    def id_of(self, number: int) -> str:
        """What stands for the id of the record that this row would create. No id has a blank."""
        return _ROW.format(number=number, file=self.file)


@dataclass(frozen=True, slots=True)
class _Record:
    """A record that will be there, as far as the row says what it will be."""

    record: Mapping[str, Any]
    is_whole: bool = True
    is_deleted: bool = False


class Ahead:
    """Lookups into the landing, with the records that earlier files would create."""

    def __init__(self, landing: Lookups, earlier: Sequence[Planned]) -> None:
        self._landing, self._earlier = landing, earlier
        self._indexes: dict[tuple[int, tuple[str, ...]], _Index] = {}

    def ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """As the landing has them, and the rows that would create such a record."""
        found = list(self._landing.ids(resource, fields, values, parent))
        for place, each in enumerate(self._earlier):
            if each.resource != resource or each.parent != parent or "id" in fields:
                continue
            index = self._index(place, tuple(fields))
            for at, wanted in enumerate(values):
                found[at] += tuple(each.id_of(number) for number in index.rows(wanted))
        return found

    def landed(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """What is landed under these ids, and what rows would create."""
        planned = {id for id in ids if is_planned(id)}
        found = dict(self._landing.landed(resource, [id for id in ids if id not in planned]))
        for each in self._earlier:
            if planned and each.resource == resource:
                for task in each.tasks:
                    id = each.id_of(task.number)
                    if id in planned:
                        found[id] = _Record({**task.fields, **task.afterwards})
        return found

    def holds(self, resource: str) -> bool:
        """Whether any record of the resource was ever landed, or would be created."""
        is_planned = any(each.resource == resource and each.tasks for each in self._earlier)
        return is_planned or self._landing.holds(resource)

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """As the landing has them: no file makes any."""
        return self._landing.content_fields(content_type)

    def _index(self, place: int, fields: tuple[str, ...]) -> _Index:
        known = self._indexes.get((place, fields))
        if known is None:
            known = self._indexes[place, fields] = _Index(fields, self._earlier[place].tasks)
        return known


class _Index:
    """The rows of a file by the values that they give some fields: a digest for each."""

    def __init__(self, fields: tuple[str, ...], tasks: Collection[Task]) -> None:
        self._first = Claims()
        self._others: dict[int, list[int]] = {}
        for task in tasks:
            values = [task.fields.get(name) for name in fields]
            if None in values:
                continue
            first = self._first.claim(comparable(values), task.number)
            if first is not None:
                self._others.setdefault(first, []).append(task.number)

    def rows(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the rows that give these values."""
        first = self._first.first(comparable(values))
        return () if first is None else (first, *self._others.get(first, ()))


def is_planned(id: str) -> bool:
    """Whether this stands for the id of a record that does not exist yet."""
    return " " in id

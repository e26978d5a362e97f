"""Small worlds for the marts: records landed look by look, as a pull lands them, and then built.

The rows go through the warehouse's own commits, so the history is what a pull would have kept. All
moments are written as "2026-01-12 09:00", in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog import CATALOG
from connector.publishing.build import build
from connector.publishing.project import BuildResult, Project
from connector.publishing.project_loader import load_project
from connector.warehouse.bookmark import Bookmark, Stream
from connector.warehouse.pull_commands import Commit, DeletionProof, FoundDetail
from connector.warehouse.runs import Run, begin_run
from connector.warehouse.warehouse import Warehouse

RUN = "run-1"


def moment(text: str) -> datetime:
    """The moment, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class ModelWorld:
    """One account's files, to be filled look by look; `seeds` holds the user's own seeds."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse(folder)
        self.warehouse.prepare()
        self.seeds = folder / "seeds"
        self.seeds.mkdir()
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def seed(self, name: str, *lines: str) -> None:
        """Write a seed of the user's own."""
        (self.seeds / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def look(self, at: str, **resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Details of records as they are at `at`: fields that are not named stay as they were.

        `created` and `updated` stand for the two moments that every record has.
        """
        for name, records in resources.items():
            found = tuple(
                FoundDetail(CATALOG[name].record(self._raw(name, id, fields)), moment(at))
                for id, fields in records.items()
            )
            self._commit(name, at, Commit(records=found))

    def listed(self, at: str, **resources: Mapping[str, Mapping[str, Any]]) -> None:
        """List items, as the list shows them at `at`."""
        for name, records in resources.items():
            shown = [field.name for field in CATALOG[name].item_fields]
            items = []
            for id, fields in records.items():
                raw = self._raw(name, id, fields)
                items.append(
                    CATALOG[name].record(
                        {key: raw.get(key) for key in shown}, is_item=True, served_at=moment(at)
                    )
                )
            self._commit(name, at, Commit(items=tuple(items)))

    def gone(self, at: str, **resources: tuple[str, ...]) -> None:
        """The API said at `at` that these are gone."""
        for name, ids in resources.items():
            self._commit(name, at, Commit(gone={id: DeletionProof(moment(at)) for id in ids}))

    def prove(self, at: str) -> None:
        """Say that every resource is proven up to `at`, which is the models' now."""
        for name in ("jobs", "candidates", "companies", "bookings", "leads"):
            self._commit(name, at, Commit(bookmark=Bookmark(proven_at=moment(at))))
        self.warehouse.write(begin_run, Run(RUN, "pull", moment(at), moment(at), "done"))

    def zone(self, name: str) -> None:
        """Say that the account's days are those of this zone."""
        self.write(
            f"INSERT INTO sync.publications (started_at, time_zone) VALUES (now(), '{name}')"
        )

    def write(self, statement: str) -> None:
        """Run a statement in the work file."""
        self.warehouse.release()
        with duckdb.connect(str(self.warehouse.work)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(statement)

    def built(self, *models: str) -> BuiltWorld:
        """Build models over what landed, with all that they are made of; without names, all."""
        self.warehouse.release()
        project = load_project(seeds=self.seeds)
        select = [f"+{name}" for name in models]
        return BuiltWorld(
            self.warehouse.work, project, build(self.warehouse.work, project, select=select)
        )

    def _raw(self, name: str, id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        raw = self._known.setdefault((name, id), {"id": id, "created_at": None})
        for key, value in fields.items():
            if key in ("created", "updated"):
                raw[f"{key}_at"] = moment(value).isoformat()
            else:
                raw[key] = value
        raw.setdefault("updated_at", raw["created_at"])
        return dict(raw)

    def _commit(self, name: str, at: str, what: Commit) -> None:
        self.warehouse.commit(Stream(CATALOG[name]), what, RUN, moment(at))


class BuiltWorld:
    """A file in which all models stand, what the build said of them, and a connection to it."""

    def __init__(self, path: Path, project: Project, built: BuildResult) -> None:
        self.project = project
        self.built = built
        self.connection = duckdb.connect(str(path))
        self.connection.execute("SET TimeZone = 'UTC'")

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, with days and moments as texts."""
        found = self.connection.execute(f"SELECT to_json(found)::VARCHAR FROM ({query}) AS found")
        return [json.loads(text) for (text,) in found.fetchall()]

    def row(self, table: str, where: str, *columns: str) -> list[Any]:
        """The values of these columns in the one row of a table that the condition leaves."""
        shown = ", ".join(columns)
        found = self.rows(f"SELECT {shown} FROM {table} WHERE {where}")
        assert 1 == len(found), f"{table} WHERE {where}: {len(found)} rows"
        return list(found[0].values())

    def table(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query as tuples, in its order."""
        return [tuple(row.values()) for row in self.rows(query)]

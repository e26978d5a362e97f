"""Small warehouses for tests of the marts: records loaded pull by pull, and then built.

Records go through the warehouse's own commits, so the history is the one that a pull keeps. Times
are written as "2026-01-12 09:00", in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import yaml

from connector.catalog import CATALOG
from connector.models.project import Project, load_project
from connector.models.runner import BuildResult
from connector.warehouse.publish import STATE_TABLES
from connector.warehouse.schema import create_table
from connector.warehouse.stream import Bookmark, Commit, DeletionProof, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.models.account import build_file

RUN = "run-1"
NOW = "2026-03-06 00:00"
BORN = {"created": "2025-06-01 09:00"}


def parse_timestamp(text: str) -> datetime:
    """Parse a text such as "2026-01-12 09:00" as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class ModelWorld:
    """Work file of one account that tests fill pull by pull, and its folder of seed files."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = Warehouse(folder)
        self.warehouse.prepare()
        # A publication copies these tables from the state.
        with self.warehouse.connection() as connection:
            for table in STATE_TABLES:
                create_table(connection, table)
        self.seeds = folder / "seeds"
        self.seeds.mkdir()
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def write_seed(self, name: str, *lines: str) -> None:
        """Write the user's CSV file of a seed, heading first."""
        (self.seeds / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run_steps(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Run steps of a YAML file, in order. Each has a kind and a time.

        A day is 09:00 UTC of that day, for `end` 17:00.
        """
        for step in steps:
            (kind, at), *rest = step.items()
            records = {resource: _with_times(found) for resource, found in rest}
            match kind:
                case "seed":
                    self.write_seed(at, *step["lines"])
                case "sql":
                    self.run_sql(at)
                case "details":
                    self.load_details(at, **records)
                case "list_items":
                    self.load_list_items(at, **records)
                case "deletions":
                    self.load_deletions(at, **records)
                case "verified":
                    self.mark_verified(at)

    def load_details(self, at: str, **resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Load records as their details show them at `at`: per resource, changed fields by id.

        Other fields keep their values. `created` and `updated` set the two timestamps of a record.
        """
        for name, records in resources.items():
            found = tuple(
                FoundDetail(
                    CATALOG[name].record(self._merge_fields(name, id, fields)), parse_timestamp(at)
                )
                for id, fields in records.items()
            )
            self._commit(name, at, Commit(records=found))

    def load_list_items(self, at: str, **resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Load records as the list shows them at `at`: per resource, the changed fields by id."""
        for name, records in resources.items():
            shown = [field.name for field in CATALOG[name].item_fields]
            items = []
            for id, fields in records.items():
                raw = self._merge_fields(name, id, fields)
                items.append(
                    CATALOG[name].record(
                        {key: raw.get(key) for key in shown},
                        is_item=True,
                        served_at=parse_timestamp(at),
                    )
                )
            self._commit(name, at, Commit(items=tuple(items)))

    def load_deletions(self, at: str, **resources: tuple[str, ...]) -> None:
        """Load the deletion of these ids per resource, reported by the API at `at`."""
        for name, ids in resources.items():
            self._commit(
                name, at, Commit(gone={id: DeletionProof(parse_timestamp(at)) for id in ids})
            )

    def mark_verified(self, at: str) -> None:
        """Mark every resource as verified at `at`, which the models then use as the present."""
        for name in ("jobs", "candidates", "companies", "bookings", "leads"):
            self._commit(name, at, Commit(bookmark=Bookmark(proven_at=parse_timestamp(at))))
        self.run_sql(
            "INSERT INTO sync.runs (run_id, command, started_at, ended_at, outcome) VALUES "
            f"('{RUN}', 'pull', '{parse_timestamp(at)}', '{parse_timestamp(at)}', 'done')"
        )

    def run_sql(self, statement: str) -> None:
        """Run a statement in the work file."""
        self.warehouse.close()
        with duckdb.connect(str(self.warehouse.work)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(statement)

    def build(self, *models: str) -> BuiltWorld:
        """Build the named models with their parents, or all models if none is named."""
        self.warehouse.close()
        project = load_project(seeds=self.seeds)
        select = [f"+{name}" for name in models]
        return BuiltWorld(
            self.warehouse.work, project, build_file(self.warehouse.work, project, select)
        )

    def _merge_fields(self, name: str, id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields of a record after these changes, as the API's JSON has them."""
        raw = self._known.setdefault((name, id), {"id": id, "created_at": None})
        for key, value in fields.items():
            if key in ("created", "updated"):
                raw[f"{key}_at"] = parse_timestamp(value).isoformat()
            else:
                raw[key] = value
        raw.setdefault("updated_at", raw["created_at"])
        return dict(raw)

    def _commit(self, name: str, at: str, commit: Commit) -> None:
        """Commit an observation of one resource, made at `at`."""
        self.warehouse.commit(Stream(CATALOG[name]), commit, RUN, parse_timestamp(at))


def _with_times(found: Any) -> Any:
    """Return records with the API's names and forms of times; other values unchanged."""
    if not isinstance(found, dict):
        return found
    return {id: dict(map(_with_time, fields.items())) for id, fields in found.items()}


def _with_time(field: tuple[str, Any]) -> tuple[str, Any]:
    name, value = field
    if name in ("created", "updated") and isinstance(value, date):
        return name, f"{value} 09:00"
    names = {"start": "start_datetime", "end": "end_datetime", "published": "published_at"}
    if name in names:
        return names[name], f"{value}T{'17' if name == 'end' else '09'}:00:00Z"
    return name, str(value) if isinstance(value, date) else value


class BuiltWorld:
    """A database file with all models, the result of the build, and an open connection."""

    def __init__(self, path: Path, project: Project, built: BuildResult) -> None:
        self.project = project
        self.built = built
        self.connection = duckdb.connect(str(path))
        self.connection.execute("SET TimeZone = 'UTC'")

    def query(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query, with dates and timestamps as texts."""
        found = self.connection.execute(f"SELECT to_json(found)::VARCHAR FROM ({query}) AS found")
        return [json.loads(text) for (text,) in found.fetchall()]

    def read_row(self, table: str, where: str, *columns: str) -> list[Any]:
        """Return these columns of the table's only row that meets the condition."""
        shown = ", ".join(columns)
        found = self.query(f"SELECT {shown} FROM {table} WHERE {where}")
        assert 1 == len(found), f"{table} WHERE {where}: {len(found)} rows"
        return list(found[0].values())

    def query_tuples(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query as tuples, with dates and timestamps as texts."""
        return [tuple(row.values()) for row in self.query(query)]

    def assert_rows(self, expected: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        """Assert that each query returns these rows, where a date may be unquoted."""
        for query, rows in expected.items():
            texts = [tuple(str(v) if isinstance(v, date) else v for v in row) for row in rows]
            assert texts == self.query_tuples(query), query


def build_models(world: ModelWorld, *models: str) -> BuiltWorld:
    """Build all or these models as of `NOW`, and assert that no check blocks publishing."""
    world.mark_verified(NOW)
    found = world.build(*models)
    assert () == found.built.failed("error")
    return found


def make_january_booking(kind: str, start: str, status: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a booking that was created on 5 January."""
    shown = {"created": "2026-01-05 09:00", "booking_type": kind, "status": status}
    return {**shown, "start_datetime": start, "end_datetime": None, **fields}


def read_yaml(name: str) -> list[dict[str, Any]]:
    """Return the steps or cases of a YAML file next to this module."""
    found: list[dict[str, Any]] = yaml.safe_load(
        (Path(__file__).parent / f"{name}.yml").read_text("utf-8")
    )
    return found

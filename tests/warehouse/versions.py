"""Details and list items of candidates, and the versions that the warehouse keeps of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.candidate import Candidate
from connector.warehouse.stream import FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows

CANDIDATES = Stream(CATALOG["candidates"])
START = datetime(2026, 2, 3, 4, 0, 0, tzinfo=UTC)
CREATED = START - timedelta(days=30)
LISTED = ("id", "created_at", "first_name", "status")


def timestamp_at(seconds: float) -> datetime:
    """Return the timestamp of a second after `START`."""
    return START + timedelta(seconds=seconds)


def make_detail(id: str, at: float, updated: float, **fields: Any) -> FoundDetail:
    """Return a candidate's detail read at second `at` and last changed at second `updated`."""
    stamps = {"created_at": CREATED.isoformat(), "updated_at": timestamp_at(updated).isoformat()}
    return FoundDetail(Candidate({"id": id, **stamps, **fields}), timestamp_at(at))


def make_item(id: str, at: float, **fields: Any) -> Candidate:
    """Return a candidate as a list showed it at second `at`."""
    raw = {"id": id, "created_at": CREATED.isoformat(), **fields}
    return Candidate(raw, is_item=True, served_at=timestamp_at(at))


def read_versions(warehouse: Warehouse, id: str = "1", table: str = "candidates") -> list[Any]:
    """Return the versions of a record, oldest first."""
    query = f"FROM history.{table} WHERE id = '{id}' ORDER BY _version"  # ids of our own
    return rows(warehouse.work, query)


def read_landed(warehouse: Warehouse, id: str = "1") -> dict[str, Any]:
    """Return the landing row of a candidate."""
    return rows(warehouse.work, f"FROM landing.candidates WHERE id = '{id}'")[0]  # as above


def find_violations(warehouse: Warehouse, table: str = "candidates") -> list[str]:
    """Return all violations of the history's rules in a table, as texts."""
    found = rows(warehouse.work, f"FROM history.{table} ORDER BY id, _version")
    rows_landed = {row["id"]: row for row in rows(warehouse.work, f"FROM landing.{table}")}
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by_id.setdefault(row["id"], []).append(row)
    violations = [] if by_id.keys() == rows_landed.keys() else ["not every landed id has versions"]
    for id, chain in by_id.items():
        violations += [f"{id}: {each}" for each in find_chain_violations(chain)]
        violations += [
            f"{id}: {each}" for each in find_landing_violations(rows_landed[id], chain[-1])
        ]
    return violations


def find_chain_violations(versions: list[dict[str, Any]]) -> list[str]:
    """Return violations in the sequence of one record's versions."""
    violations = []
    if [row["_version"] for row in versions] != list(range(1, len(versions) + 1)):
        violations.append("the numbers have a gap")
    if versions[0]["_changed"] is not None or any(not row["_changed"] for row in versions[1:]):
        violations.append("all but the first version name what changed")
    for row in versions:
        violations += find_interval_violations(row)
    for row, after in pairwise(versions):
        is_deletion = row["_ended_by"] == "deletion"
        if is_deletion != (after["_changed"][0] == "_deleted_at"):
            violations.append("a return is not named")
        if row["_valid_to"] is None or row["_valid_to"] > after["_valid_from"]:
            violations.append("versions overlap")
        elif not is_deletion and row["_valid_to"] != after["_valid_from"]:
            violations.append("there is a gap between versions")
    return violations


def find_interval_violations(row: dict[str, Any]) -> list[str]:
    """Return violations in the timestamps of one version."""
    violations = []
    began = [row["_began_after"], row["_valid_from"], row["_began_before"]]
    ended = [row["_ended_after"], row["_valid_to"], row["_ended_before"]]
    seen = [row["_observed_from"], row["_observed_to"]]
    if row["_valid_to"] is None:
        ended = []
    elif row["_ended_after"] != row["_observed_to"]:
        violations.append("an end's interval does not begin where the version was last seen")
    for times in (began, seen, ended):
        if times != sorted(times):
            violations.append(
                f"the timestamps of version {row['_version']} are out of order: {times}"
            )
    if row["_began_before"] != row["_observed_from"] + timedelta(seconds=1):
        violations.append("a beginning's interval does not end with the second of the first answer")
    return violations


def find_landing_violations(row: dict[str, Any], last: dict[str, Any]) -> list[str]:
    """Return differences between a landing row and the record's last version."""
    if (row["_deleted_at"] is None) != (last["_valid_to"] is None):
        return ["exactly the live records have an open version"]
    if row["_hydrated_at"] is not None and last["_hydrated_at"] is None:
        return []  # A list has shown something else since the detail that is landed.
    own = ("_record", "_hydrated_at", "_seen_at", "_deleted_at", "_run_id")
    violations = [
        f"{name} is {row[name]!r} in the landing, {last[name]!r} in the open version"
        for name in row
        if name not in own and row[name] != last[name]
    ]
    if json.loads(row["_record"]) != json.loads(last["_record"]):
        violations.append("_record differs from the landing's")
    return violations

"""Fields that the API sends and the catalog does not name are columns of a view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.publishing.agency import PublishingAccount, tables_of

SENT: tuple[dict[str, Any], ...] = (
    {
        "shoe size": 41,
        "price": 12.5,
        "zip": "00123",
        "since": "2024-01-02",
        "seen": "2024-01-02T03:04:05+01:00",
        "is_vip": True,
        "a/b~c": {"x": 1},
        "mixed": 1,
        "big": 12345678901234567890,
        "ID": "own",
        "nothing": None,
        'say "x"': "yes",
    },
    {"price": 3, "mixed": "one", "since": None},
)
TYPES = {
    "id": "VARCHAR",
    "ID_2": "VARCHAR",
    "a/b~c": "JSON",
    "big": "VARCHAR",
    "is_vip": "BOOLEAN",
    "mixed": "VARCHAR",
    "nothing": "VARCHAR",
    "price": "DOUBLE",
    'say "x"': "VARCHAR",
    "seen": "TIMESTAMP WITH TIME ZONE",
    "shoe size": "BIGINT",
    "since": "DATE",
    "zip": "VARCHAR",
}


@pytest.fixture
def extended(agency: PublishingAccount) -> PublishingAccount:
    """The agency, whose API sends fields of candidates that are not documented."""
    for number, fields in enumerate(SENT):
        record = {"id": f"c{number}", "city": "Leeds", **fields}
        agency.land(
            "candidates", {"id": record["id"], "city": "Leeds", "_record": json.dumps(record)}
        )
    gone = {"id": "c9", "_deleted_at": "2026-01-01", "_record": '{"id": "c9", "old": 1}'}
    agency.land("candidates", gone)
    agency.land("sync.events", {"resource": "candidates", "kind": "unknown_field", "detail": "zip"})
    return agency


def test_each_field_is_a_column_of_the_type_of_its_values(extended: PublishingAccount) -> None:
    extended.publish()

    rows = extended.rows("FROM staging.candidates_extra ORDER BY id")
    (types,) = extended.rows(
        "SELECT map_from_entries(list((column_name, data_type))) AS types FROM duckdb_columns() "
        "WHERE table_name = 'candidates_extra'"
    )
    assert TYPES == dict(types["types"])
    first, second = rows
    assert (41, 12.5, "00123", True, "1") == tuple(
        first[name] for name in ("shoe size", "price", "zip", "is_vip", "mixed")
    )
    assert ("2024-01-02", "2024-01-02 02:04:05+00:00") == (str(first["since"]), str(first["seen"]))
    assert ({"x": 1}, "12345678901234567890", "own", None, "yes") == (
        json.loads(first["a/b~c"]),
        *(first[name] for name in ("big", "ID_2", "nothing", 'say "x"')),
    )
    assert (3.0, "one", None) == tuple(second[name] for name in ("price", "mixed", "since"))
    assert "staging.jobs_extra" not in tables_of(extended.file)


def test_only_flags_of_undocumented_fields_are_published_if_personal_fields_are_masked(
    extended: PublishingAccount,
) -> None:
    extended.given["CONNECTOR_PUBLISH_PERSONAL"] = "drop"
    extended.publish()

    assert ["id", "is_vip"] == tables_of(extended.file)["staging.candidates_extra"]
    assert b"00123" not in extended.file.read_bytes()


def test_a_column_of_the_view_is_left_out(extended: PublishingAccount) -> None:
    extended.given["CONNECTOR_PUBLISH_WITHOUT"] = "landing,history,staging.candidates_extra.zip"
    extended.publish()

    assert set(TYPES) - {"zip"} == {*tables_of(extended.file)["staging.candidates_extra"]}

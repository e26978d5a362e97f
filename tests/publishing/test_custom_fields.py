"""Fields that the API sends and does not document are columns of a view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.publishing.agency import PublishingAccount, list_columns

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
def extended_agency(agency: PublishingAccount) -> PublishingAccount:
    """Account whose candidates have fields that the API does not document."""
    for number, fields in enumerate(SENT):
        record = {"id": f"c{number}", "city": "Leeds", **fields}
        agency.insert_rows(
            "candidates", {"id": record["id"], "city": "Leeds", "_record": json.dumps(record)}
        )
    gone = {"id": "c9", "_deleted_at": "2026-01-01", "_record": '{"id": "c9", "old": 1}'}
    agency.insert_rows("candidates", gone)
    agency.insert_rows(
        "sync.events", {"resource": "candidates", "kind": "unknown_field", "detail": "zip"}
    )
    return agency


def test_each_undocumented_field_is_a_typed_column_of_candidates_extra(
    extended_agency: PublishingAccount,
) -> None:
    extended_agency.publish()

    rows = extended_agency.query("FROM staging.candidates_extra ORDER BY id")
    (types,) = extended_agency.query(
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
    assert "staging.jobs_extra" not in list_columns(extended_agency.published_file)


def test_masking_keeps_only_boolean_columns_of_undocumented_fields(
    extended_agency: PublishingAccount,
) -> None:
    extended_agency.environ["CONNECTOR_PUBLISH_PERSONAL"] = "drop"
    extended_agency.publish()

    assert ["id", "is_vip"] == list_columns(extended_agency.published_file)[
        "staging.candidates_extra"
    ]
    assert b"00123" not in extended_agency.published_file.read_bytes()


def test_publish_without_leaves_out_a_column_of_candidates_extra(
    extended_agency: PublishingAccount,
) -> None:
    extended_agency.environ["CONNECTOR_PUBLISH_WITHOUT"] = (
        "landing,history,staging.candidates_extra.zip"
    )
    extended_agency.publish()

    assert set(TYPES) - {"zip"} == {
        *list_columns(extended_agency.published_file)["staging.candidates_extra"]
    }

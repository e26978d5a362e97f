"""Mapping files are loaded as saved, and errors name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import Misused, WarehouseError
from connector.spreadsheet.mapping_file import SavedMap, load_map, save_map
from connector.spreadsheet.targets import AS_WRITTEN, CellOptions

FULL = SavedMap(
    "candidates",
    {
        "Mobile No.": ("mobile", AS_WRITTEN),
        'Vertrag "Art"': (
            "employment_type",
            CellOptions(values={"Perm": "permanent", "é\n": ""}, policy="fill"),
        ),
        "Born\x7f": (
            "date_of_birth",
            CellOptions(*("dmy", ",", "Europe/London", "GB"), whole_numbers=True),
        ),
        "bare_key": ("notes", CellOptions(policy="fill")),
    },
    {"source": "Import 2026", "rating": "4"},
    ("Favourite colour", "Été = 1"),
    header_row=3,
)


def test_a_mapping_is_equal_after_saving_and_loading(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    save_map(path, FULL)

    assert FULL == load_map(path)
    assert 'bare_key = { field = "notes", policy = "fill" }' in path.read_text(encoding="utf-8")


def test_options_of_a_mapping_file_apply_to_every_column(tmp_path: Path) -> None:
    """The options of a column take precedence."""
    path = tmp_path / "map.toml"
    path.write_text(
        'resource = "candidates"\ndate_format = "dmy"\ndecimal = ","\n[columns]\n'
        'Born = "date_of_birth"\nFree = { field = "available_from", date_format = "mdy" }\n'
        "[columns.Rate]\nfield = 'rating'\nvalues = { good = '4', bad = '1' }\n[constants]\n"
        "willing_to_relocate = 'true'\n",
        encoding="utf-8",
    )
    saved = load_map(path)

    assert "dmy" == saved.columns["Born"][1].date_format == saved.options.date_format
    assert "mdy" == saved.columns["Free"][1].date_format
    assert {","} == {options.decimal for _, options in saved.columns.values()}
    assert {"good": "4", "bad": "1"} == saved.columns["Rate"][1].values
    assert {"willing_to_relocate": "true"} == saved.constants
    save_map(path, saved)
    assert saved == load_map(path)


@pytest.mark.parametrize(
    ("text", "message", "allowed"),
    [
        ("resource = 'people'", "resource is 'people'", "'candidates'"),
        ("columns = {}", "resource is missing", "required"),
        ("resource = 'jobs'\ncolour = 1", "colour is 1", "not permitted"),
        ("resource = 'jobs'\ndate_format = '%d'", "date_format is '%d'", "dmy, mdy"),
        ("resource = 'jobs'\ndecimal = ';'", "decimal is ';'", "'.' or ','"),
        ("resource = 'jobs'\ntimezone = 'London'", "timezone is 'London'", "Europe/London"),
        ("resource = 'jobs'\nheader_row = 0", "header_row is 0", "or equal to 1"),
        ("resource = 'jobs'\nignored = 'a'", "ignored is 'a'", "list"),
        ("resource = 'jobs'\ncolumns = 1", "columns is 1", "dictionary"),
        ("resource = 'jobs'\n[columns]\na = 1", r"columns\.a is 1", "string"),
        (
            "resource = 'jobs'\n[columns.a]\npolicy = 'fill'",
            r"columns\.a\.field is missing",
            "required",
        ),
        (
            "resource = 'jobs'\n[columns.a]\nfield = 'title'\npolicy = 'maybe'",
            r"columns\.a\.policy is 'maybe'",
            "'overwrite' or 'fill'",
        ),
        (
            "resource = 'jobs'\n[columns.a]\nfield = 'title'\nvalue = 1",
            r"columns\.a\.value",
            "not permitted",
        ),
        (
            "resource = 'jobs'\n[columns.a]\nfield = 'title'\nwhole_numbers = 'yes'",
            r"whole_numbers is 'yes'",
            "boolean",
        ),
        ("resource = \n[columns]", "is not TOML.*line 1", "line"),
    ],
)
def test_an_invalid_mapping_file_is_rejected_with_the_key(
    tmp_path: Path, text: str, message: str, allowed: str
) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(Misused, match=message) as caught:
        load_map(path)
    assert allowed in caught.value.action
    assert str(path) in str(caught.value)


def test_a_missing_or_unreadable_mapping_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Misused, match=r"does not exist"):
        load_map(tmp_path / "none.toml")
    with pytest.raises(Misused, match=r"cannot be used"):
        load_map(tmp_path)
    with pytest.raises(WarehouseError, match=r"cannot be used"):
        save_map(tmp_path / "none" / "map.toml", FULL)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Misused, match=r"not TOML"):
        load_map(tmp_path / "bytes.toml")

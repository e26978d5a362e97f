"""What may be said of a push: the command and the job take the same, and it does what it says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from connector.cli.push import push
from connector.errors import ConnectorError, Misused, UnknownName
from connector.ledger.push_plan import PushPolicy
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.spreadsheet.cells import CellOptions
from pipelines.pushes import PushConfig


def test_the_command_and_the_job_take_the_same_options() -> None:
    names = {each.name: each.default for each in fields(PushOptions)}
    words = {each.name: each for each in push.params}
    config = PushConfig.model_fields

    assert list(PUSH_OPTIONS) == list(names)
    assert set() == names.keys() - words.keys()
    assert set() == names.keys() - config.keys()
    for name, about in PUSH_OPTIONS.items():
        assert about == getattr(words[name], "help", None), name
        assert about == config[name].description, name
    job = PushConfig(resource="jobs", file="x.csv", mode="create")
    assert PushOptions("create") == job.options(Path())


def test_what_is_said_is_meant(tmp_path: Path) -> None:
    options = PushOptions(
        "create",
        date_format="DD/MM/YYYY",
        decimal="comma",
        content_type="news",
        unconfirmed="retry",
        resend=True,
    )
    asked = options.push_file("jobs", tmp_path / "x.csv")
    assert asked.saved is not None
    assert CellOptions(date_format="DD/MM/YYYY", decimal=",") == asked.saved.options
    assert (None, "news") == (asked.parent, options.push_file("content_items", tmp_path).parent)
    assert PushPolicy(policy="retry", again=True) == options.policy()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (PushOptions("insert"), UnknownName, "'insert' is not a mode"),
        (PushOptions("create", decimal=","), UnknownName, "',' is not a decimal sign"),
        (PushOptions("create", date_format="D/D"), Misused, "'D/D' is not a date format"),
        (PushOptions("create", unconfirmed="guess"), UnknownName, "'guess' is not a policy"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    options: PushOptions, error: type[ConnectorError], said: str
) -> None:
    with pytest.raises(error, match=said) as refused:
        assert (options.push_file("jobs", Path("x.csv")), options.policy()) is None
    assert refused.value.action


def test_a_map_names_the_row_of_the_headings(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text('resource = "candidates"\nheader_row = 4', encoding="utf-8")
    told = [
        PushOptions("create", mapping_file=path, header_row=row).push_file("candidates", path)
        for row in (None, 2)
    ]

    assert [4, 2] == [each.header_row for each in told]

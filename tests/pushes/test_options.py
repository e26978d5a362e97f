"""The push command has every option of a push, with the same help."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from connector.cli.push import push
from connector.pushes.options import PUSH_OPTIONS, PushOptions
from connector.spreadsheet.targets import CellOptions


def test_the_push_command_has_every_option_with_its_help() -> None:
    names = {each.name: each.default for each in fields(PushOptions)}
    words = {each.name: each for each in push.params}

    assert list(PUSH_OPTIONS) == list(names)[: len(PUSH_OPTIONS)]
    assert set() == PUSH_OPTIONS.keys() - words.keys()
    for name, about in PUSH_OPTIONS.items():
        assert about == getattr(words[name], "help", None), name


def test_push_options_become_cell_options(tmp_path: Path) -> None:
    options = PushOptions("create", date_format="dmy", decimal="comma", content_type="news")
    file_to_push = options.push_file("jobs", tmp_path / "x.csv")
    assert CellOptions(date_format="dmy", decimal=",") == file_to_push.saved.options

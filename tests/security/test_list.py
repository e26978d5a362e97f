"""The list of security tests is whole: each has at least one test that is named for it."""

from __future__ import annotations

import re

import pytest

from tests.repository import ROOT, Repository

LIST = {
    33: "a planted key is nowhere",
    34: "files and folders are their owner's alone",
    35: "nothing but plain files of the inbox is read",
    36: "names from the platform are no SQL",
    37: "no id leads out of its place in a path",
    38: "no text of the platform is a formula in a report",
    39: "no workbook fills memory or reaches out of itself",
    40: "TLS that is proven, or nothing",
    41: "no redirect is followed",
    42: "no answer is too large, too deep or too odd",
    43: "no name is obeyed by a terminal or breaks a log",
    44: "no proxy but the one that was set",
    45: "no hostile text of the platform reaches a terminal, page, table's name or file raw",
    46: "nothing is installed that is not locked, by its hash, and under a known licence",
}


@pytest.mark.parametrize("number", LIST)
def test_each_point_of_the_list_has_a_test(number: int) -> None:
    """At least one test's name begins with the number, and is collected with the others."""
    named = [
        file.path
        for file in Repository(ROOT).select(".py", inside="tests/")
        if re.search(rf"^(?:async )?def test_{number}_\w+", file.text, re.MULTILINE)
    ]

    assert [] != named, LIST[number]
    assert [] == [path for path in named if not path.rsplit("/", 1)[-1].startswith("test_")]

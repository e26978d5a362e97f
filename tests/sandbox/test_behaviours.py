"""Every value of every behaviour over a socket, with one check per behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connector.errors import SettingsError, UnknownName
from connector.sandbox.behaviour import BEHAVIOURS, Behaviours
from connector.sandbox.server import Sandbox
from tests.sandbox import list_switches, write_switches
from tests.sandbox.world import Open, ServedSandbox

CHECKS: dict[str, Callable[[Open, str], None]] = {**list_switches.CHECKS, **write_switches.CHECKS}


@pytest.mark.parametrize(
    ("name", "value"), [(each.name, v) for each in BEHAVIOURS.values() for v in each.values]
)
def test_every_behaviour_value_has_its_effect(open_world: Open, name: str, value: str) -> None:
    def open_with(**options: Any) -> ServedSandbox:
        return open_world(**{"behaviours": {name: value}, **options})

    CHECKS[name](open_with, value)


def test_every_behaviour_has_one_check() -> None:
    assert set(BEHAVIOURS) == set(CHECKS)


def test_the_first_value_of_each_behaviour_is_the_default() -> None:
    plain = Behaviours()

    for each in BEHAVIOURS.values():
        assert each.values[0] == each.default == getattr(plain, each.name)
        assert each.about.endswith(".")
        assert each.section


def test_unknown_behaviours_and_values_are_rejected_with_the_allowed_ones() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'delete'") as error:
        Sandbox(behaviours={"delet": "204"})
    assert set(BEHAVIOURS) == set(error.value.allowed)
    with pytest.raises(UnknownName, match="value of delete") as error:
        Sandbox(behaviours={"delete": "205"})
    assert ("204", "message") == error.value.allowed


def test_behaviours_are_parsed_from_name_and_value() -> None:
    read = Behaviours.parse_options(("delete=message", "nulls=absent", "delete=204"))

    assert Behaviours(nulls="absent") == read
    with pytest.raises(SettingsError, match="NAME=VALUE"):
        Behaviours.parse_options(("delete",))

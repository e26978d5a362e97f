"""The shapes: those of the catalog, true of what the client returns, and enforced by mypy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from connector.catalog import CATALOG
from connector.client import shapes
from connector.client.client import Client
from connector.client.shapes.item import ListItem
from connector.sandbox.server import Sandbox
from tests.repository import ROOT
from tests.sandbox.world import COUNTS


@pytest.mark.parametrize("name", CATALOG)
@pytest.mark.parametrize("operation", ["create", "update"])
def test_bodies_take_what_the_declaration_takes(name: str, operation: Any) -> None:
    resource = CATALOG[name]
    shape = getattr(shapes, f"{resource.record.__name__}{operation.title()}", None)
    if operation not in resource.operations:
        assert None is shape
        return
    assert shape is not None
    hints = get_type_hints(shape)
    terms = {field.name: (field, each) for field, each in resource.bodies(operation)}

    assert list(terms) == list(hints)
    assert {n for n, (_, each) in terms.items() if each.required} == shape.__required_keys__
    for field_name, (field, each) in terms.items():
        if allowed := each.values or field.values:
            texts = {value for value in choices(hints[field_name]) if isinstance(value, str)}
            assert set(allowed) == texts, field_name


def choices(hint: Any) -> set[Any]:
    """The values of the literals in a type."""
    parts = get_args(hint)
    return set().union(*(choices(part) for part in parts)) if parts else {hint}


@pytest.mark.parametrize("name", CATALOG)
def test_sorts_and_filters_are_the_lists(name: str) -> None:
    resource = CATALOG[name]
    sort = getattr(shapes, f"{resource.record.__name__}Sort", None)
    filters = getattr(shapes, f"{resource.record.__name__}Filters")

    assert resource.sortable == get_args(sort)
    assert is_typeddict(filters)
    assert [each.name for each in resource.filters] == list(get_type_hints(filters))
    assert frozenset() == filters.__required_keys__


def test_items_show_what_their_shape_says() -> None:
    async def act(sandbox: Sandbox) -> None:
        async with Client(sandbox.base_url, sandbox.key) as client:
            types = [each.id async for each in client.content_types.iterate()]
            for name, resource in CATALOG.items():
                shape = getattr(shapes, f"{resource.record.__name__}Item")
                offered = client.content_items(types[0]) if resource.parent else None
                page = await (offered or getattr(client, name)).list()
                shown = [n for n, each in vars(shape).items() if isinstance(each, property)]
                common = [n for n, each in vars(ListItem).items() if isinstance(each, property)]
                assert [each.name for each in resource.item_fields] == shown
                for item in page.items:
                    for attribute in (*shown, *common):
                        getattr(item, attribute)

    with Sandbox(counts=COUNTS) as sandbox:
        asyncio.run(act(sandbox))


def test_mypy_refuses_what_the_api_would() -> None:
    checked = subprocess.run(
        # With the cache of the project's own check: without it this takes ten times as long.
        [sys.executable, "-m", "mypy", "--warn-unused-ignores", "tests/client/typing_api.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Success: no issues found in 1 source file\n" == checked.stdout + checked.stderr

"""Writes the shapes of requests and list items anew from the catalog, for type checkers.

    python -m connector.client.shapes.generate

A file per resource: the list item, the bodies of create and update, the sorts and the filters.
Nothing here is needed when the connector runs; a test holds the files equal to the catalog.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from connector.catalog import CATALOG
from connector.catalog.field import Field, Filter, Input
from connector.catalog.resource import Declaration, Resource
from connector.catalog.value import Kind

_COMMAND = "make shapes"
_COLUMNS_MAX = 100
_WRITES: tuple[Literal["create", "update"], ...] = ("create", "update")
_INPUTS: Mapping[str, str] = {"Uuid": "str", "date": "date | str", "datetime": "datetime | str"}
"""What a request may be given where an answer holds that type."""
_BY_KIND: Mapping[Kind, str] = {Kind.DATE: "date | str", Kind.STRING: "str", Kind.UUID: "str"}


def texts() -> dict[str, str]:
    """Every generated file by its name."""
    files = {f"{each.name}.py": _resource_text(each) for each in CATALOG.values()}
    return {**files, "__init__.py": _package_text()}


def write(folder: Path) -> None:
    """Write them all into the folder."""
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")


# -- a resource ----------------------------------------------------------------------------------


def _resource_text(resource: Declaration) -> str:
    literals: dict[str, tuple[str, ...]] = {}
    shapes = [_item(resource)]
    for operation in _WRITES:
        if operation in resource.operations:
            shapes.append(_body(resource, operation, literals))
    shapes.append(_filters(resource))
    if resource.sortable:
        literals[_named(resource, "Sort")] = resource.sortable
    aliases = "\n".join(_literal(*each) for each in literals.items())
    classes = ["\n".join(each) for each in shapes]
    head = (
        f'"""The shapes of {resource.name} for type checkers.\n\n'
        f"Generated from `connector.catalog` by `{_COMMAND}`; not to be edited.\n"
        '"""\n\n'
    ) + _imports("\n".join([aliases, *classes]))
    return "\n\n\n".join([f"{head}\n\n{aliases}" if aliases else head, *classes]) + "\n"


def _item(resource: Declaration) -> list[str]:
    lines = [
        f"class {_named(resource, 'Item')}(ListItem, Protocol):",
        f'    """A {resource.singular} as lists show it."""',
    ]
    for each in resource.item_fields:
        lines += [
            "",
            "    @property",
            f"    def {each.name}(self) -> {_annotation(resource, each.name)}:",
            f'        """{each.about}"""',
        ]
    return lines


def _body(
    resource: Declaration,
    operation: Literal["create", "update"],
    literals: dict[str, tuple[str, ...]],
) -> list[str]:
    lines = [
        f"class {_named(resource, operation.title())}(TypedDict, total=False):",
        f'    """What the {operation} of a {resource.singular} may be given."""',
        "",
    ]
    for field, terms in resource.bodies(operation):
        type = _input(resource, field.name)
        if _is_narrowed(field, terms):
            type = _named(resource, operation.title()) + field.name.title().replace("_", "")
            literals[type] = terms.values or ()
        if operation == "update" and field.nullable:
            type += " | None"
        lines.append(f"    {field.name}: {f'Required[{type}]' if terms.required else type}")
    return lines


def _is_narrowed(field: Field, terms: Input) -> bool:
    return terms.values is not None and terms.values != field.values


def _filters(resource: Declaration) -> list[str]:
    lines = [
        f"class {_named(resource, 'Filters')}(TypedDict, total=False):",
        f'    """What narrows a list of {resource.name}."""',
    ]
    if resource.filters:
        lines.append("")
    lines += [f"    {each.name}: {_filter(resource, each)}" for each in resource.filters]
    return lines


def _filter(resource: Declaration, filter: Filter) -> str:
    return _input(resource, filter.name) if filter.values else _BY_KIND[filter.kind]


# -- types ---------------------------------------------------------------------------------------


def _annotation(resource: Declaration, name: str) -> str:
    """A field's type as its declaration writes it."""
    hints = {**inspect.get_annotations(Resource), **inspect.get_annotations(resource.record)}
    return str(hints[name])


def _input(resource: Declaration, name: str) -> str:
    """The type that a request may be given for a field, null aside."""
    type = _annotation(resource, name).removesuffix(" | None")
    return _INPUTS.get(type, type)


def _named(resource: Declaration, shape: str) -> str:
    return f"{resource.record.__name__}{shape}"


def _literal(name: str, values: tuple[str, ...]) -> str:
    quoted = [f'"{each}"' for each in values]
    line = f"{name} = Literal[{', '.join(quoted)}]"
    if len(line) <= _COLUMNS_MAX:
        return line
    return "\n".join([f"{name} = Literal[", *(f"    {each}," for each in quoted), "]"])


# -- imports -------------------------------------------------------------------------------------


def _imports(code: str) -> str:
    """The imports that the code needs, in the order that the project keeps."""
    found: dict[str, list[str]] = {}
    words = set(re.findall(r"[A-Za-z]\w*", re.sub(r'""".*?"""|"[^"]*"', "", code)))
    for name, home in sorted(_homes().items()):
        if name in words:
            found.setdefault(home, []).append(name)
    sections = [
        "\n".join(_import(home, found[home]) for home in sorted(found) if is_ours == _is_ours(home))
        for is_ours in (False, True)
    ]
    return "\n\n".join(sections)


def _is_ours(home: str) -> bool:
    return home.startswith("connector.")


def _import(home: str, names: Iterable[str]) -> str:
    line = f"from {home} import {', '.join(names)}"
    if len(line) <= _COLUMNS_MAX:
        return line
    return "\n".join([f"from {home} import (", *(f"    {each}," for each in names), ")"])


@cache
def _homes() -> dict[str, str]:
    """The module of each name that a shape can need."""
    homes = {"date": "datetime", "datetime": "datetime", "Mapping": "collections.abc"}
    homes |= dict.fromkeys(("Literal", "Protocol", "Required", "TypedDict"), "typing")
    homes |= dict.fromkeys(("Uuid", "FieldValue"), "connector.catalog.value")
    homes["ListItem"] = "connector.client.shapes.item"
    for module in {each.record.__module__ for each in CATALOG.values()}:
        # Where it is written, since other modules import it from there.
        for node in ast.parse(inspect.getsource(import_module(module))).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                homes[node.targets[0].id] = module
    return homes


# -- the package ---------------------------------------------------------------------------------


def _package_text() -> str:
    names = {}
    for each in CATALOG.values():
        shapes = ("Create", "Filters", "Item", "Sort", "Update")
        text = _resource_text(each)
        defined = (_named(each, shape) for shape in shapes)
        names[each.name] = [n for n in defined if re.search(rf"^(class )?{n}\b", text, re.M)]
    imports = "\n".join(
        _import(f"connector.client.shapes.{home}", names[home]) for home in sorted(names)
    )
    listed = sorted(name for group in names.values() for name in group)
    return "\n".join(
        [
            '"""The shapes of requests and list items for type checkers, by resource.',
            "",
            f"Generated from `connector.catalog` by `{_COMMAND}`; not to be edited.",
            "A name is a resource's singular and `Item`, `Create`, `Update`, `Sort` or `Filters`.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            imports,
            "",
            "__all__ = [",
            *(f'    "{each}",' for each in listed),
            "]",
            "",
        ]
    )


if __name__ == "__main__":
    write(Path(__file__).parent)
    sys.stdout.write("The shapes are written anew from the catalog.\n")

"""The shapes of requests and list items for type checkers, and the client's properties.

A file per resource: the list item, the bodies of create and update, the sorts and the filters. None
of these is needed when the connector runs. `connector/client/resources.py` is: the client offers
each resource there, with the operations and the types that it has, and `sync_resources.py` is the
same without a word of asyncio.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Literal

from connector.catalog import CATALOG
from connector.catalog.field import Field, Filter, Input
from connector.catalog.resource import Declaration, Resource
from connector.catalog.value import Kind
from generate.files import COMMAND, Texts, read

_FOLDER = "connector/client/shapes"
_SYNC = "connector/client/sync_resources.py"
_VARIABLES = ("C_contra", "F_contra", "R_co", "S_contra", "U_contra", "Written")
_COLUMNS_MAX = 100
_WRITES: tuple[Literal["create", "update"], ...] = ("create", "update")
_INPUTS: Mapping[str, str] = {"Uuid": "str", "date": "date | str", "datetime": "datetime | str"}
"""What a request may be given where an answer holds that type."""
_BY_KIND: Mapping[Kind, str] = {Kind.DATE: "date | str", Kind.STRING: "str", Kind.UUID: "str"}


def texts() -> Texts:
    """Every generated file by its path."""
    files = {f"{_FOLDER}/{each.name}.py": _resource_text(each) for each in CATALOG.values()}
    files[f"{_FOLDER}/__init__.py"] = _package_text()
    files["connector/client/resources.py"] = _client_text()
    return {**files, _SYNC: _sync_text()}


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
        f"Generated from `connector.catalog` by `{COMMAND}`; not to be edited.\n"
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
    return "\n".join(_bracketed(f"{name} = Literal[", quoted, "]"))


def _bracketed(head: str, parts: list[str], tail: str) -> list[str]:
    """Lines of a list in brackets, laid out as the format lays it out."""
    indent = " " * (len(head) - len(head.lstrip()))
    lines = [head + ", ".join(parts) + tail]
    if len(lines[0]) > _COLUMNS_MAX:
        lines = [head, f"{indent}    {', '.join(parts)}", indent + tail]
    if len(lines) > 1 and len(lines[1]) > _COLUMNS_MAX:
        lines = [head, *(f"{indent}    {each}," for each in parts), indent + tail]
    return lines


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
            f"Generated from `connector.catalog` by `{COMMAND}`; not to be edited.",
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


# -- The client's properties -----------------------------------------------------------------------


def _record_imports() -> list[str]:
    records = sorted({(e.record.__module__, e.record.__name__) for e in CATALOG.values()})
    homes = {home: [name for h, name in records if h == home] for home, _ in records}
    return [_import(home, names) for home, names in homes.items()]


def _client_text() -> str:
    ways = sorted({_way(each)[0] for each in CATALOG.values()} | {"Endpoint", "Sender"})
    never = ["from typing import TYPE_CHECKING, Never"]
    if all(each.sortable for each in CATALOG.values()):
        never = ["from typing import TYPE_CHECKING"]
    return "\n".join(
        [
            '"""The resources that a client offers, each with its operations and types.',
            "",
            f"Generated from `connector.catalog` by `{COMMAND}`; not to be edited.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            *never,
            "",
            *_record_imports(),
            _import("connector.client.endpoint", ways),
            "",
            "if TYPE_CHECKING:",
            "    from connector.client import shapes",
            "",
            "",
            "class Resources(Sender):",
            '    """Whoever sends requests, with the resources of the workspace."""',
            *(line for each in CATALOG.values() for line in _property(each, _endpoint(each))),
            "",
        ]
    )


def _way(resource: Declaration) -> tuple[str, tuple[str, ...]]:
    """The protocol of a resource's operations, and the shapes that it takes beside the item."""
    if "create" not in resource.operations:
        return "Readable", ("Sort", "Filters")
    if "update" not in resource.operations:
        return "Creatable", ("Sort", "Filters", "Create")
    shapes = ("Sort", "Filters", "Create", "Update")
    return ("Convertible" if "convert" in resource.operations else "Changeable"), shapes


def _endpoint(resource: Declaration) -> str:
    of = ", type" if resource.parent else ""
    return f"Endpoint(self, {resource.record.__name__}{of})"


def _property(resource: Declaration, value: str) -> list[str]:
    way, shapes = _way(resource)
    record = resource.record.__name__
    types = [record, f"shapes.{record}Item"]
    for shape in shapes:
        is_never = shape == "Sort" and not resource.sortable
        types.append("Never" if is_never else f"shapes.{record}{shape}")
    name = resource.name.replace("_", " ").capitalize()
    of = " of one content type, by its slug or id" if resource.parent else ""
    head = [f"    def {resource.name}(", "        self,"]
    returned = _bracketed(f"    ) -> {way}[", types, "]:")
    if resource.parent:
        head[-1] = "        self, type: str"
    else:
        head.insert(0, "    @property")
    return [
        "",
        *head,
        *returned,
        f'        """{name}{of} (API {resource.section})."""',
        f"        return {value}",
    ]


# -- The same, for those who wait ------------------------------------------------------------------


def _sync_text() -> str:
    """The protocols of `endpoint.py` and the properties of the client, each without `async`."""
    protocols = read("connector/client/endpoint.py")
    protocols = protocols[protocols.index("class Readable(") : protocols.index("class Endpoint(")]
    protocols = protocols.replace("async def", "def").replace("AsyncIterator[", "Iterator[")
    lines = [
        '"""The resources of a client without asyncio, each with its operations and types.',
        "",
        f"Generated from `resources.py` and `endpoint.py` by `{COMMAND}`; not to be edited.",
        '"""',
        "",
        '# mypy: disable-error-code="no-any-return"',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Iterator",
        "from typing import TYPE_CHECKING, Any, Never, Protocol",
        "",
        *_record_imports(),
        "from connector.catalog.page import PER_PAGE_MAX, I_co, Order, Page",
        _import("connector.client.endpoint", _VARIABLES),
        "from connector.client.resources import Resources",
        "",
        "if TYPE_CHECKING:",
        "    from connector.client import shapes",
        "",
        "",
        protocols,
        "class SyncResources:",
        '    """Whoever waits for answers, with the resources of the workspace."""',
        "",
        "    _resources: Resources",
        "",
        "    def _waiting(self, endpoint: Any) -> Any:",
        '        """The endpoint without asyncio: its methods return when they are done."""',
        "        raise NotImplementedError",
        *(line for each in CATALOG.values() for line in _property(each, _waited(each))),
        "",
    ]
    ways = "Readable|Creatable|Changeable|Convertible"
    text = re.sub(rf"\b({ways})\b", r"Sync\1", "\n".join(lines))
    return _formatted(text)


def _formatted(text: str) -> str:
    """The text as the project's format has it, wherever the project is."""
    ruff = (sys.executable, "-m", "ruff", "format", "--isolated", "--stdin-filename", _SYNC)
    style = (
        "--line-length",
        str(_COLUMNS_MAX),
        "--config",
        "format.skip-magic-trailing-comma=true",
    )
    done = subprocess.run(  # noqa: S603  # the format that this project has
        [*ruff, *style, "-"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


def _waited(resource: Declaration) -> str:
    of = "(type)" if resource.parent else ""
    return f"self._waiting(self._resources.{resource.name}{of})"

"""Declarations of all API resources, in the order of the API documentation.

Modules of this package that declare a resource are discovered automatically. `CATALOG` maps the
name of a resource to its declaration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from connector.catalog.resource import Declaration, Resource
from connector.errors import UnknownName

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

CATALOG: Mapping[str, Declaration] = MappingProxyType(
    {
        each.name: each
        for each in sorted(
            (each.declaration for each in Resource.__subclasses__()),
            key=lambda each: [int(part) for part in each.section.split(".")],
        )
    }
)
"""Declarations by resource name, in the order of the API documentation."""

REFERENCES: Mapping[str, str] = MappingProxyType(
    {f"{each.singular.replace(' ', '_')}_id": name for name, each in CATALOG.items()}
)
"""Fields that hold the id of another record, each with the resource of that record.

A field is named after the singular of the resource, plus `_id`. `assigned_to` and `lead_status_id`
are not included, because users and lead statuses have no endpoint.
"""


def declaration(name: str) -> Declaration:
    """Return the declaration of a resource. Raises `UnknownName` with the allowed names."""
    if name not in CATALOG:
        raise UnknownName("resource", name, CATALOG)
    return CATALOG[name]


def references(resource: Declaration) -> dict[str, str]:
    """Map each field that holds the id of another record to the name of that record's resource."""
    return {name: REFERENCES[name] for name in resource.fields if name in REFERENCES}


def _sort_parents_first() -> Iterator[str]:
    """Yield the names of all resources, each after its parent and the resources it refers to."""
    listed: set[str] = set()

    def parents_first(name: str) -> Iterator[str]:
        if name not in listed:
            listed.add(name)
            above = CATALOG[name].parent
            for each in (*references(CATALOG[name]).values(), *([above] if above else ())):
                yield from parents_first(each)
            yield name

    for name in CATALOG:
        yield from parents_first(name)


REFERRED_FIRST = tuple(_sort_parents_first())
"""Names of all resources. A resource comes after the resources that it refers to."""

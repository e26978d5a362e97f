"""All resources of the API, as declared, in the API's own order.

Each file that declares a resource is found here; a new one needs no entry anywhere. `CATALOG` maps
a resource's name to its declaration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from connector.catalog.field import DataSubject
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
"""Every declaration by its resource's name, in the API's order."""

REFERENCES: Mapping[str, str] = MappingProxyType(
    {f"{each.singular.replace(' ', '_')}_id": name for name, each in CATALOG.items()}
)
"""Fields that hold the id of a record, each with the record's resource.

Their names are a resource's singular and `_id`. `assigned_to` and `lead_status_id` are not among
them, since users and lead statuses have no endpoint.
"""


def declaration(name: str) -> Declaration:
    """Declaration of a resource. Raises `UnknownName` with the names allowed."""
    if name not in CATALOG:
        raise UnknownName("resource", name, CATALOG)
    return CATALOG[name]


def references(resource: Declaration) -> dict[str, str]:
    """Fields that hold the id of another record, each with its resource's name."""
    return {name: REFERENCES[name] for name in resource.fields if name in REFERENCES}


def _referred_first() -> Iterator[str]:
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


REFERRED_FIRST = tuple(_referred_first())
"""Names of all resources; those that others refer to come first."""


def subjects_of(resource: str) -> tuple[DataSubject, ...]:
    """Data subjects of a resource; none where there is no such resource."""
    return CATALOG[resource].subjects if resource in CATALOG else ()

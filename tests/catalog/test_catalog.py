"""The catalog equals the API document's tables, and no change of either goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from connector.catalog import CATALOG, declaration
from connector.catalog.content import ContentTypeField
from connector.catalog.field import REFUSED, REQUIRED, Field, Input
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.errors import UnknownName
from tests.catalog.comparison import (
    SECTIONS,
    differences,
    field_differences,
    filter_differences,
)
from tests.catalog.document import (
    API_DOCUMENT,
    FIELD_HEADER,
    Table,
    quoted,
    read_tables,
    read_terms,
    table_of,
)

PAGE = API_DOCUMENT.read_text(encoding="utf-8")
TABLES = read_tables(PAGE)


def test_catalog_equals_document() -> None:
    """Fields, values, rules, lists, sorts, filters, paths, scopes and echoes are those of the
    document, and the document has no others.
    """
    assert [] == differences(TABLES, CATALOG)


@pytest.mark.parametrize("name", CATALOG)
def test_sorts_are_those_of_the_table_of_sorts(name: str) -> None:
    """API 4.1 lists the sortable fields a second time, and all three agree."""
    stated = {
        row["Endpoint"].strip("`"): set(quoted(row["Sortable fields"]))
        for row in table_of(TABLES, "4.1", "Endpoint").records()
    }
    found = declaration(name)

    assert stated.get(found.path, set()) == set(found.sortable)


@pytest.mark.parametrize("name", [name for name, (_, states) in SECTIONS.items() if states])
def test_states_are_those_of_section_3(name: str) -> None:
    """The states of section 3 are the values of `status`, for create, update and list items."""
    status = declaration(name).field("status")
    rows = list(table_of(TABLES, SECTIONS[name][1], "State").records())

    def states(column: str) -> list[str]:
        return [r["State"].strip("`") for r in rows if r.get(column, "yes") == "yes"]

    def accepted(terms: Input) -> list[str]:
        return list(terms.values or status.values) if terms.accepted else []

    assert states("State of an answer") == list(status.values)
    assert states("On create") == accepted(status.create)
    assert states("On update") == accepted(status.update)
    assert states("List item") == list(status.item_values)


def test_content_type_fields_equal_document() -> None:
    """The parts of a content type have the stated types and values, and no body takes them."""
    table = next(t for t in TABLES if t.section == "2.6" and t.header != FIELD_HEADER)
    stated = {
        quoted(row["Field"])[0]: (row["Type"], quoted(row["Values"])) for row in table.records()
    }
    declared = {n: (str(f.kind), f.values) for n, f in ContentTypeField.fields_declared.items()}
    writable = [
        name
        for name, each in ContentTypeField.fields_declared.items()
        if each.create.accepted or each.update.accepted
    ]

    assert stated == declared
    assert [] == writable
    assert ContentTypeField is declaration("content_types").field("fields").part


@pytest.mark.parametrize("name", CATALOG)
def test_detail_only_is_what_details_add(name: str) -> None:
    """A field is detail-only exactly where the table says detail yes and list item no."""
    table = table_of(TABLES, SECTIONS[name][0], *FIELD_HEADER)
    stated = {
        quoted(row["Field"])[0]
        for row in table.records()
        if row["Detail"] == "yes" and row["List item"] == "no"
    }
    found = declaration(name)

    assert stated == {f.name for f in found.fields.values() if f.detail_only}


@pytest.mark.parametrize("name", CATALOG)
def test_names_are_the_documents(name: str) -> None:
    """The heading of a resource's section is its name in the singular."""
    headings = [line for line in PAGE.splitlines() if line.startswith(f"### {SECTIONS[name][0]} ")]

    assert [f"### {SECTIONS[name][0]} {declaration(name).singular.capitalize()}"] == headings


def test_unknown_resource_is_refused_with_the_nearest_name() -> None:
    """Asking for a resource by a wrong name says which names there are, and the nearest."""
    with pytest.raises(UnknownName) as caught:
        declaration("candidate")

    assert "'candidate' is not a resource. Did you mean 'candidates'?" == str(caught.value)
    assert f"Use one of: {', '.join(CATALOG)}." == caught.value.action


# What follows proves that the comparison can fail: each cell and each fact is changed once.


def _changed_cell(column: str, cell: str) -> str | None:
    """Another cell than this one, of the same column; None for columns that state no fact."""
    match column:
        case "Field":
            return "`another_name`"
        case "Type":
            return "uuid" if cell != "uuid" else "string"
        case "Values":
            return f"{cell}, `another`" if cell else "`another`"
        case "Create" | "Update":
            return "optional" if cell.startswith("no") else "no"
        case "List item" | "Detail" | "Sort" | "Filter":
            return "yes" if cell.startswith("no") else "no"
        case _:
            return None


def _changed_tables(table: Table) -> Iterator[tuple[str, Table]]:
    for number, row in enumerate(table.rows):
        rest = (*table.rows[:number], *table.rows[number + 1 :])
        yield f"{row[0]} left out", replace(table, rows=rest)
        for place, column in enumerate(table.header):
            changed = _changed_cell(column, row[place])
            if changed is None:
                continue
            cells = (*row[:place], changed, *row[place + 1 :])
            rows = (*table.rows[:number], cells, *table.rows[number + 1 :])
            yield f"{row[0]}, {column}: {changed}", replace(table, rows=rows)


@pytest.mark.parametrize("name", CATALOG)
def test_every_changed_cell_is_noticed(name: str) -> None:
    """Changing any one cell of a field table, or leaving a row out, makes a difference."""
    table = table_of(TABLES, SECTIONS[name][0], *FIELD_HEADER)
    assert [] == field_differences(table, declaration(name))

    changes = list(_changed_tables(table))
    unnoticed = [what for what, each in changes if not field_differences(each, declaration(name))]

    assert [] == unnoticed
    assert len(table.rows) * len(table.header) == len(changes)


def _changed_inputs(terms: Input) -> Iterator[Input]:
    yield REFUSED if terms.accepted else REQUIRED
    yield Input(accepted=True, required=not terms.required, values=terms.values)
    yield Input(accepted=True, required=terms.required, values=("another",))


def _changed_fields(declared: Field) -> Iterator[Field]:
    yield replace(declared, kind=Kind.BOOL if declared.kind != Kind.BOOL else Kind.DATE)
    yield replace(declared, values=(*declared.values, "another"))
    yield replace(declared, listed=not declared.listed)
    yield replace(declared, write_only=not declared.write_only)
    if declared.listed:
        yield replace(declared, item_values=("another",))
    for terms in _changed_inputs(declared.create):
        yield replace(declared, create=terms)
    for terms in _changed_inputs(declared.update):
        yield replace(declared, update=terms)


@pytest.mark.parametrize("name", CATALOG)
def test_every_changed_declaration_is_noticed(name: str) -> None:
    """Changing any fact of any declared field makes a difference."""
    table = table_of(TABLES, SECTIONS[name][0], *FIELD_HEADER)
    intact = declaration(name)
    unnoticed = [
        broken
        for declared in intact.fields.values()
        for broken in _changed_fields(declared)
        if not field_differences(
            table, replace(intact, fields={**intact.fields, declared.name: broken})
        )
    ]

    assert [] == unnoticed


def _broken_declarations(intact: Declaration) -> Iterator[tuple[str, Declaration]]:
    yield "path", replace(intact, path=f"{intact.path}s")
    yield "scope", replace(intact, scope="another")
    yield "operations", replace(intact, operations=intact.operations - {"list"})
    yield "sortable", replace(intact, sortable=(*intact.sortable, "id"))
    yield "searchable", replace(intact, searchable=not intact.searchable)
    yield "echo_create", replace(intact, echo_create=("id",))
    if intact.filters:
        yield "filters", replace(intact, filters=intact.filters[1:])
    if intact.rules:
        yield "rules", replace(intact, rules=intact.rules[1:])


@pytest.mark.parametrize("name", CATALOG)
def test_every_broken_resource_is_noticed(name: str) -> None:
    """Changing a resource's path, scope, operations, sorts, search, filters, rules or echoes makes
    a difference.
    """
    before = set(differences(TABLES, CATALOG))
    unnoticed = [
        what
        for what, broken in _broken_declarations(declaration(name))
        if set(differences(TABLES, {**CATALOG, name: broken})) <= before
        and not (what == "echo_create" and "create" not in broken.operations)
    ]

    assert [] == unnoticed


def test_filter_with_other_values_is_noticed() -> None:
    """A filter that takes other values than its field has makes a difference."""
    intact = declaration("jobs")
    broken = replace(intact, filters=(replace(intact.filters[0], values=("another",)),))

    assert [] == filter_differences(intact)
    assert 1 == len(filter_differences(broken))


def test_terms_name_values_only_where_fewer() -> None:
    """A list of values in a cell that names them all means no narrowing."""
    assert read_terms("optional: `a`, `b`", ("a", "b")) == read_terms("optional", ("a", "b"))
    assert read_terms("optional: `a`", ("a", "b")) != read_terms("optional", ("a", "b"))


def test_row_of_another_width_is_refused() -> None:
    """A table whose rows do not fit its header is not read, so no cell is ever lost."""
    with pytest.raises(ValueError, match="API 2: a row has 1 cells"):
        read_tables("## 2. A\n\n| Field | Type |\n|---|---|\n| `id` |\n")

"""Which columns of a published file tell something of a person.

Landing and history have their fields' declarations (`personal=`). What models make of them is told
by lineage. Where it is not certain a column counts as personal: a column too few can be asked for,
and one too many cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from connector.catalog import CATALOG
from connector.catalog.field import Field
from connector.catalog.value import Kind
from connector.publishing.lineage import Lineage, Named, describe, lineage
from connector.publishing.project import Project

RECORD = "_record"

OWN: Mapping[str, frozenset[str]] = {
    "push.batches": frozenset(("file",)),
    "push.attempts": frozenset(("body", "reason")),
    "push.problems": frozenset(("message", "received", "found", "allowed", "fix")),
    "push.before_images": frozenset(("record",)),
}
"""Columns of the connector's own that hold what people wrote, or records as they came."""

FEES = frozenset(("fee_percentage", "fee_type", "placement_fee"))
"""Fields of the agency's own income. An amount that is made with them is its income as well, and
not what the person earns.
"""

PARTS = frozenset(("converted_at",))
"""Columns that models take out of a record as it came and that are known to be nobody's: when a
lead was converted (API 4.5), which no detail answer declares.
"""

_LANDED = ("landing", "history")
_GROUPED = "marts.sum_"
_CONTENT = "marts.content_"
_COUNTS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT")
_FIGURES = (*_COUNTS, "DECIMAL", "DOUBLE", "FLOAT", "DATE", "TIMESTAMP")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: its table as `schema.table`, its name and DuckDB's type."""

    table: str
    name: str
    type: str


Origins = Mapping[str, Mapping[str, Iterable[tuple[str, str]]]]
"""By table and column of a model, the source columns that it is made of, as table and column; a
column that is not in it has an unknown origin.
"""


def is_personal(column: Column, origins: Origins) -> bool:
    """Whether the column must go where personal fields do. `origins` are those of the models."""
    schema, _, table = column.table.partition(".")
    if schema in _LANDED:
        return column.name == RECORD or _is_declared(table, column.name)
    if column.table in OWN:
        return column.name in OWN[column.table]
    if schema in ("sync", "push", "seeds"):
        # Seeds are the user's own, and say of colleagues what colleagues should see.
        return False
    made_of = origins.get(column.table, {}).get(column.name)
    if made_of is None:
        return _may_be(column)
    return _is_made_personal(column, tuple(made_of))


def is_token(column: Column) -> bool:
    """Whether a hash can stand in the column's place: records as they came hold too much to be
    compared, and what people wrote about a row of a push joins with nothing.
    """
    return column.name != RECORD and column.table not in OWN


def _is_declared(table: str, name: str) -> bool:
    field = _field(table, name)
    return field is not None and field.personal is not None


def _field(table: str, name: str) -> Field | None:
    return CATALOG[table].fields.get(name) if table in CATALOG else None


def _may_be(column: Column) -> bool:
    """Of a column of unknown origin: whether it is named as a personal field, or may hold text
    that no field has by that name. A content type's own fields may hold anything.
    """
    if column.table.startswith(_CONTENT):
        field = _field("content_items", column.name)
        return field is None or field.personal is not None
    named = [r.fields[column.name] for r in CATALOG.values() if column.name in r.fields]
    if named:
        return any(each.personal is not None for each in named)
    return column.type not in ("BOOLEAN", *_COUNTS)


def _is_made_personal(column: Column, made_of: tuple[tuple[str, str], ...]) -> bool:
    if any(name == RECORD or name in OWN.get(table, ()) for table, name in made_of):
        return True
    found = (_field(table.partition(".")[2], name) for table, name in made_of)
    fields = [each for each in found if each is not None]
    personal = [each for each in fields if each.personal is not None]
    if any(each.name in FEES for each in fields):
        personal = [e for e in personal if e.personal != "pay" or e.name == column.name]
    if not personal:
        return False
    if any(each.name == column.name or each.kind is Kind.VALUES for each in personal):
        # The field itself, or something of an object whose parts nobody has declared.
        return True
    if column.type == "BOOLEAN":
        return False
    if not column.type.startswith(_FIGURES):
        return True
    # A figure of a group is nobody's, and one that is made of texts tells nothing of what stood in
    # them; one that is made of somebody's pay or birthday may be it.
    is_grouped = column.table.startswith(_GROUPED)
    has_figures = any(e.personal == "pay" or e.kind is Kind.DATE for e in personal)
    return has_figures and not is_grouped


# -- Origins ---------------------------------------------------------------------------------------
# From which source columns each column of a model is made, by the models' own lineage.


def origins_of(project: Project) -> Origins:
    """The source columns of each column of each model. Views that are made by what landed, one
    for each content type, are not in it.
    """
    shapes = describe(project)
    traced = lineage(project, shapes)
    return {
        model.table: {
            each.name: _origins(traced, (model.table, each.name))
            for each in shapes.get(model.table, ())
        }
        for model in project.models.values()
    }


def _origins(traced: Lineage, column: Named) -> tuple[Named, ...]:
    """What a column is made of in the end, or of which of the known parts of a record."""
    seen: set[Named] = set()
    ends: set[Named] = set()
    waiting = [column]
    while waiting:
        named = waiting.pop()
        if named in seen:
            continue
        seen.add(named)
        parents = () if named[1] in PARTS else traced.parents(*named)
        waiting += parents
        if not parents:
            ends.add(named)
    return tuple(sorted(ends))

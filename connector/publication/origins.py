"""From which source columns each column of a model is made, by the models' own lineage."""

from __future__ import annotations

from connector.models import Project
from connector.models.describe import describe
from connector.models.lineage import Lineage, Named, lineage
from connector.publication.personal import PARTS, Origins


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

"""A project as read: its models, seeds, sources, tests and audits, and how they hang together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.models import graph
from connector.models.declared import Audit, GenericTest, Model, Seed, Source
from connector.models.rendering import Call, Template


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that a project folder declares; all references in it are known to be good.

    `parents` has every seed and model in building order, with the seeds and models that each is
    made of. `makes_content_views` says whether each content type gets a typed view.
    """

    name: str
    folder: Path
    models: Mapping[str, Model]
    seeds: Mapping[str, Seed]
    sources: Mapping[str, Source]
    tests: tuple[GenericTest, ...]
    audits: tuple[Audit, ...]
    parents: Mapping[str, tuple[str, ...]]
    makes_content_views: bool

    @property
    def checks(self) -> tuple[GenericTest | Audit, ...]:
        """All tests and audits, in the order of their files."""
        return *self.tests, *self.audits

    @property
    def order(self) -> tuple[str, ...]:
        """Seeds and models, each after what it is made of."""
        return tuple(self.parents)

    def selected(self, select: Sequence[str] = ()) -> tuple[str, ...]:
        """The seeds and models that `select` means, in building order; all of them where it is
        empty. Raises `UnknownName` with the nearest name.

        A word is a name or a folder's: `marts`, `fct_jobs`, `+fct_jobs` with all that it is made
        of, `stg_jobs+` with all that is made of it.
        """
        chosen = graph.select(select, self.folders, self.parents)
        return tuple(name for name in self.parents if name in chosen)

    @property
    def folders(self) -> dict[str, str]:
        """The folder of each seed and model, by which a selection may name it."""
        return {
            name: self.seeds[name].schema if name in self.seeds else self.models[name].schema
            for name in self.parents
        }

    def node(self, name: str) -> Model | Seed:
        """The model or seed of that name, which must be one."""
        return self.seeds[name] if name in self.seeds else self.models[name]

    def sql(self, template: Template) -> str:
        """A model's or audit's text as DuckDB takes it, line for line that of the file."""
        return template.render(self._table)

    def _table(self, call: Call) -> str:
        if call.word == "ref":
            return self.node(call.arguments[0]).table
        return self.sources[".".join(call.arguments)].table

    def sources_of(self, model: Model) -> tuple[str, ...]:
        """The source tables that a model reads itself, as `schema.table`."""
        read = (self.sources[".".join(each.arguments)].table for each in model.template.sources)
        return tuple(dict.fromkeys(read))

    def reads(self, check: GenericTest | Audit) -> frozenset[str]:
        """The seeds and models that a check reads; none for one on source tables alone."""
        if isinstance(check, Audit):
            return frozenset(each.arguments[0] for each in check.template.refs)
        names = (each.rpartition(".")[2] for each in (check.table, check.to) if each is not None)
        tables = (check.table, check.to)
        return frozenset(n for n in names if n in self.parents and self.node(n).table in tables)

    def sources_read(self, check: GenericTest | Audit) -> frozenset[str]:
        """The source tables that a check reads, as `schema.table`."""
        if isinstance(check, Audit):
            read = (".".join(each.arguments) for each in check.template.sources)
            return frozenset(self.sources[each].table for each in read)
        tables = {each.table for each in self.sources.values()}
        return frozenset(each for each in (check.table, check.to) if each and each in tables)

    @property
    def digest(self) -> str:
        """Tells two projects of different content apart: what is derived from it may be kept."""
        parts = [f"{m.table} {m.materialized} {self.sql(m.template)}" for m in self.models.values()]
        parts += [f"{s.table} {s.columns}" for s in self.seeds.values()]
        parts += [f"{m.table} {m.columns}" for m in self.models.values()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

"""Reads a project folder: `dbt_project.yml`, the schema files, models, audits and seeds.

What dbt would do and this does not is refused where it stands, so that both make the same of the
same folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from connector.errors import ModelInvalid, ModelsCircular, ModelTwice, ReferenceUnknown
from connector.publishing import graph
from connector.publishing.project import (
    Audit,
    Call,
    GenericTest,
    Materialized,
    Model,
    Place,
    Project,
    Seed,
    Severity,
    Template,
    read_template,
)
from connector.publishing.properties import Asked, Lined, Properties, Said, read_header, read_yaml

# -- Project file ----------------------------------------------------------------------------------
# Reads `dbt_project.yml`: where things are, and what is configured for all of them.


_ON_RUN_END = "{{ make_content_views() }}"
_WITHOUT_EFFECT = ("name", "version", "config-version", "profile", "flags", "macro-paths")
_READ = ("model-paths", "seed-paths", "test-paths", "models", "seeds", "on-run-end")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What `dbt_project.yml` says that matters here."""

    name: str
    model_folders: tuple[str, ...]
    seed_folders: tuple[str, ...]
    audit_folders: tuple[str, ...]
    materialized: str
    model_schema: str | None
    seed_schema: str | None
    makes_content_views: bool


def read_settings(path: Path) -> ProjectSettings:
    """Read the file. Raises `ModelInvalid` for a key that is not understood: one that is passed
    over would make dbt build something else.
    """
    top = read_yaml(path)
    top.allow("the project file", *_WITHOUT_EFFECT, *_READ)
    name = top.text("name")
    models, seeds = _configured(top, "models", name), _configured(top, "seeds", name)
    at_end = top.get("on-run-end")
    if at_end not in (None, _ON_RUN_END):
        raise top.refuse("on-run-end is not understood", f"Write '{_ON_RUN_END}', or nothing.")
    return ProjectSettings(
        name=name,
        model_folders=top.texts("model-paths"),
        seed_folders=top.texts("seed-paths"),
        audit_folders=top.texts("test-paths"),
        materialized=models.text("+materialized", default="view"),
        model_schema=models.get("+schema"),
        seed_schema=seeds.get("+schema"),
        makes_content_views=at_end is not None,
    )


def _configured(top: Lined, key: str, name: str) -> Lined:
    """What the project file configures for all models or seeds of this project."""
    outer = top.mapping(key)
    outer.allow(key, name)
    inner = outer.mapping(name)
    inner.allow(f"{key} of {name}", "+schema", *(("+materialized",) if key == "models" else ()))
    return inner


# -- Folder ----------------------------------------------------------------------------------------
#


PROJECT_FILE = "dbt_project.yml"
FOLDER_NAME = "dbt_like_sql"
CONTENT_VIEWS = "content_views"
"""The model whose rows are the statements of the content types' views."""

CONTENT_VIEW = "marts.content_"
"""How the names of these views begin."""


def shipped_folder() -> Path:
    """The project folder that comes with the connector, beside its package."""
    return Path(str(files("connector"))).parent / FOLDER_NAME


def load_project(folder: Path | None = None, *, seeds: Path | None = None) -> Project:
    """Read the project folder (None: the shipped one). A csv file in `seeds`, the user's folder,
    wins over the project's own of the same name.

    Raises a `ModelError` that names the file, and the line where there is one.
    """
    return _Reader(folder or shipped_folder(), seeds).project()


class _Reader:
    """Reads one folder, once."""

    def __init__(self, folder: Path, users_seeds: Path | None) -> None:
        self.folder, self.users_seeds = folder, users_seeds
        self.settings = read_settings(folder / PROJECT_FILE)
        self.said = Said()
        read = (*self.settings.model_folders, *self.settings.seed_folders)
        for name in dict.fromkeys((*read, *self.settings.audit_folders)):
            for path in (*self._files(name, "yml"), *self._files(name, "yaml")):
                self.said.read(path)

    def project(self) -> Project:
        """The whole of it, with every reference looked up."""
        seeds = {each.name: each for each in self._seeds()}
        models: dict[str, Model] = {}
        for model in self._models():
            other = models.get(model.name) or seeds.get(model.name)
            if other is not None:
                raise ModelTwice(f"{model.name} is also {other.path}", path=model.path)
            models[model.name] = model
            self._keep_free(model)
        self._refuse_the_undeclared(models, seeds)
        sources = {key: source for key, (source, _) in self.said.sources.items()}
        project = Project(
            name=self.settings.name,
            folder=self.folder,
            models=models,
            seeds=seeds,
            sources=sources,
            tests=(),
            audits=tuple(self._audits()),
            parents={},
            makes_content_views=self.settings.makes_content_views,
        )
        for template in (
            *(each.template for each in models.values()),
            *(each.template for each in project.audits),
        ):
            _check_calls(project, template)
        project = replace(project, parents=_ordered(project))
        return replace(project, tests=tuple(self._tests(project)))

    def _keep_free(self, model: Model) -> None:
        """Refuse a name that a content type's view might need."""
        if self.settings.makes_content_views and model.table.startswith(CONTENT_VIEW):
            raise ModelInvalid(
                f"{model.table} begins as the views of content types do",
                path=model.path,
                line=1,
                action=f"Give it a name that does not begin with {CONTENT_VIEW}.",
            )

    def _files(self, folder: str, suffix: str) -> list[Path]:
        return sorted((self.folder / folder).glob(f"**/*.{suffix}"))

    def _models(self) -> Iterator[Model]:
        for folder in self.settings.model_folders:
            for path in self._files(folder, "sql"):
                template = _template(path)
                header = read_header(template.text, path, "model")
                said = self.said.models.get(header.name)
                yield Model(
                    name=header.name,
                    schema=self.settings.model_schema or folder,
                    materialized=_materialized(template, self.settings.materialized),
                    grain=header.grain,
                    sentence=header.sentence,
                    template=template,
                    path=path,
                    description=said.description if said else "",
                    columns=said.columns if said else {},
                    place=said.place if said else None,
                )

    def _seeds(self) -> Iterator[Seed]:
        own = {
            path.stem: path
            for folder in self.settings.seed_folders
            for path in self._files(folder, "csv")
        }
        for name, shipped in own.items():
            said = self.said.seeds.get(name)
            untyped = [c.name for c in said.columns.values() if c.type is None] if said else [name]
            if said is None or untyped:
                problem = f"no column_types for {', '.join(untyped)} of the seed {name}"
                raise ModelInvalid(
                    problem,
                    path=said.place.path if said else shipped,
                    line=said.place.line if said else None,
                    action="Declare the seed in seeds.yml: each column with its description, and "
                    "its type under config: column_types.",
                )
            users = self.users_seeds / shipped.name if self.users_seeds else None
            is_users = users is not None and users.exists()
            yield Seed(
                name=name,
                schema=self.settings.seed_schema or shipped.parent.name,
                sentence=said.description,
                columns=tuple(said.columns.values()),
                path=users if is_users and users is not None else shipped,
                is_users=is_users,
                place=said.place,
            )

    def _audits(self) -> Iterator[Audit]:
        seen: dict[str, Path] = {}
        for folder in self.settings.audit_folders:
            for path in self._files(folder, "sql"):
                template = _template(path)
                header = read_header(template.text, path, "audit")
                if header.name in seen:
                    raise ModelTwice(f"{header.name} is also {seen[header.name]}", path=path)
                seen[header.name] = path
                severity: Severity = (
                    "warn" if template.options.get("severity") == "warn" else "error"
                )
                first = (*template.refs, *template.sources)[:1]
                about = ".".join(first[0].arguments) if first else ""
                yield Audit(header.name, header.sentence, template, severity, path, about)

    def _refuse_the_undeclared(
        self, models: Mapping[str, Model], seeds: Mapping[str, Seed]
    ) -> None:
        kinds: tuple[tuple[str, Mapping[str, Properties], Mapping[str, object]], ...] = (
            ("model", self.said.models, models),
            ("seed", self.said.seeds, seeds),
        )
        for what, said, there in kinds:
            for name, each in said.items():
                if name not in there:
                    place = each.place
                    raise ReferenceUnknown(
                        what, name, tuple(there), path=place.path, line=place.line
                    )

    def _tests(self, project: Project) -> Iterator[GenericTest]:
        tested = [
            *((p, project.models[n].table, n) for n, p in self.said.models.items()),
            *((p, project.seeds[n].table, n) for n, p in self.said.seeds.items()),
            *((p, source.table, source.table) for source, p in self.said.sources.values()),
        ]
        names: dict[str, Place] = {audit.name: Place(audit.path, 1) for audit in project.audits}
        for said, table, about in tested:
            for asked in said.tests:
                made = _test(project, asked, table, about)
                if made.name in names:
                    first = names[made.name]
                    told = f"the test {made.name} is also in {first.path}:{first.line}"
                    raise ModelTwice(told, path=asked.place.path, line=asked.place.line)
                names[made.name] = asked.place
                yield made


def _template(path: Path) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelInvalid(f"cannot be read: {type(error).__name__}", path=path) from None
    template = read_template(text, path)
    if text.rstrip().endswith(";"):
        line = text.rstrip().count("\n") + 1
        action = "Take the semicolon out: a file is one query."
        raise ModelInvalid("the query ends with a semicolon", path=path, line=line, action=action)
    return template


def _materialized(template: Template, default: str) -> Materialized:
    return "view" if template.options.get("materialized", default) == "view" else "table"


def _check_calls(project: Project, template: Template) -> None:
    """Raise `ReferenceUnknown` for a ref or source that names nothing."""
    nodes = (*project.models, *project.seeds)
    for each in template.calls:
        name = ".".join(each.arguments)
        if each.word == "ref" and name not in nodes:
            raise _unknown(template, each, "model or seed", name, nodes)
        if each.word == "source" and name not in project.sources:
            raise _unknown(template, each, "source", name, tuple(project.sources))


def _unknown(
    template: Template, call: Call, what: str, name: str, allowed: tuple[str, ...]
) -> ReferenceUnknown:
    return ReferenceUnknown(
        what, name, allowed, path=template.path, line=call.line, column=call.column
    )


def _ordered(project: Project) -> dict[str, tuple[str, ...]]:
    """Every seed and model in building order, with what it is made of."""
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(project.seeds, ())
    for model in project.models.values():
        made_of = (each.arguments[0] for each in model.template.refs)
        parents[model.name] = tuple(dict.fromkeys(made_of))
    try:
        names = graph.order(parents)
    except ModelsCircular as error:
        raise ModelsCircular(error.ring, path=project.models[error.ring[0]].path) from None
    return {name: parents[name] for name in names}


def _test(project: Project, asked: Asked, table: str, about: str) -> GenericTest:
    """The test, with the other side of a relationship looked up."""
    given = asked.arguments
    to = field = None
    if asked.kind == "relationships":
        to, field = _other_side(project, given), given.text("field")
    values = given.texts("values") if asked.kind == "accepted_values" else ()
    return GenericTest(
        name=asked.name or f"{asked.kind}_{about.replace('.', '_')}_{asked.column}",
        kind=asked.kind,
        about=about,
        table=table,
        column=asked.column,
        severity=asked.severity,
        place=asked.place,
        values=values,
        quotes_values=bool(given.get("quote", True)),
        to=to,
        field=field,
    )


def _other_side(project: Project, given: Lined) -> str:
    """The table that a relationship leads to: `to: ref('x')` or `to: source('s', 't')`."""
    text = given.text("to")
    braced = read_template(f"{{{{ {text} }}}}", given.path)
    call = replace(braced.calls[0], line=given.line, column=1)
    if call.word == "config":
        raise given.refuse("'to' must be a ref or a source", "Write to: ref('model').")
    template = replace(braced, calls=(call,))
    _check_calls(project, template)
    return project.sql(template)

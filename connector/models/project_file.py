"""Reads `dbt_project.yml`: where things are, and what is configured for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connector.models.lined import Lined, read_yaml

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

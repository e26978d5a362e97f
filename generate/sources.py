"""All that is written from the catalog, in an order in which each finds what it needs."""

from __future__ import annotations

from collections.abc import Callable

from connector.publishing import dictionary
from generate import commands, documents, figures, models
from generate.files import Texts


def _dictionary() -> Texts:
    return {"docs/DATA.md": dictionary.build_page()}


SOURCES: tuple[Callable[[], Texts], ...] = (
    # First: it refuses a view's name that is taken, and then nothing is written at all.
    models.staging,
    models.descriptions,
    models.per_resource,
    documents.api,
    documents.personal_data,
    _dictionary,
    commands.commands,
    figures.benchmarks,
    figures.peers,
    figures.simulation,
)

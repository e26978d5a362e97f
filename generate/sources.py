"""All that is written from the catalog, in an order in which each finds what it needs."""

from __future__ import annotations

from collections.abc import Callable

from generate import commands, data_page, documents, models
from generate.files import Texts

SOURCES: tuple[Callable[[], Texts], ...] = (
    # First: it refuses a view's name that is taken, and then nothing is written at all.
    models.staging_views,
    models.yaml_descriptions,
    models.queries_per_resource,
    documents.api_page,
    documents.personal_data_page,
    data_page.data_page,
    commands.command_reference,
)

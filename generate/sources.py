"""All that is written from the catalog, and the pages that only the website has."""

from __future__ import annotations

from collections.abc import Callable

from generate import commands, data_page, models, personal_data
from generate.files import Texts

SOURCES: tuple[Callable[[], Texts], ...] = (
    # First: it refuses a view's name that is taken, and then nothing is written at all.
    models.staging_views,
    models.yaml_descriptions,
    models.queries_per_resource,
    personal_data.personal_data_page,
)

REFERENCE: tuple[Callable[[], Texts], ...] = (data_page.data_page, commands.command_reference)
"""Pages of the website that are not committed."""

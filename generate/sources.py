"""All that is written from the catalog, and the pages that only the website has."""

from __future__ import annotations

from collections.abc import Callable

from generate import behaviours, codes, commands, data_page, models, personal_data
from generate.files import Texts

SOURCES: tuple[Callable[[], Texts], ...] = (
    models.staging_views,
    models.yaml_descriptions,
    models.queries_per_resource,
)

REFERENCE: tuple[Callable[[], Texts], ...] = (
    behaviours.behaviours_page,
    codes.codes_page,
    commands.command_reference,
    data_page.data_page,
    personal_data.personal_data_page,
)
"""Pages of the website that are not committed."""

"""Made-up content types and items: every kind of field occurs, and every value fits its field.

The other resources are in `records.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from connector.catalog import ContentTypeField
from connector.sandbox import vocabulary as words
from connector.sandbox.draw import Agency, Draw
from connector.sandbox.records import Made, dates
from connector.sandbox.transitions import slug

FIELD_TYPES: tuple[str, ...] = ContentTypeField.fields_declared["field_type"].values
"""Every `field_type` that the API names (API 2.6)."""


def content_type(
    draw: Draw, agency: Agency, number: int, created: datetime, updated: datetime
) -> Made:
    """A content type, with one field of every `field_type`."""
    name, address, about, icon = words.CONTENT_TYPES[number % len(words.CONTENT_TYPES)]
    round = number // len(words.CONTENT_TYPES)
    suffix = f" {round + 1}" if round else ""
    fields = [_field(draw, field_type, n) for n, field_type in enumerate(FIELD_TYPES)]
    record = {
        **dates(draw, created, updated),
        "name": name + suffix,
        "slug": address + suffix.replace(" ", "-"),
        "description": about,
        "icon": draw.maybe(0.9, icon),
        "is_system": number == 0,
        "is_active": draw.yes(0.9),
        "fields": fields,
    }
    agency.types.append((record["id"], fields))
    return record, None


def _field(draw: Draw, field_type: str, number: int) -> dict[str, Any]:
    name = field_type.replace("_", " ").capitalize()
    config: dict[str, Any] = {}
    if field_type in ("select", "multi_select"):
        config = {"options": list(words.OPTIONS)}
    elif field_type in ("text", "textarea"):
        config = {"max_length": 500}
    return {
        "id": draw.id(),
        "name": f"{name} field",
        "field_key": f"{field_type}_value",
        "field_type": field_type,
        "is_required": field_type == "text",
        "is_title_field": field_type == "text",
        "placeholder": draw.maybe(0.5, f'e.g. "{name}"'),
        "help_text": draw.maybe(0.5, "Shown below the form's field; keep it short."),
        "config": json.dumps(config) if config else draw.one(("{}", None)),
        "display_order": number,
    }


def content_item(
    draw: Draw, agency: Agency, number: int, created: datetime, updated: datetime
) -> Made:
    """A content item of one of the types."""
    type_id, fields = agency.types[number % len(agency.types)]
    title = f"{draw.one(words.ITEM_TITLES)} #{number}"
    status = draw.one(words.CONTENT_STATES)
    values = {
        each["field_key"]: _VALUES[each["field_type"]](draw)
        for each in fields
        if each["is_required"] or draw.yes(0.7)
    }
    record = {
        **dates(draw, created, updated),
        "title": title,
        "slug": slug(title),
        "status": status,
        "published_at": created if status == "published" else None,
        "fields": values,
    }
    return record, type_id


def _choices(draw: Draw) -> list[str]:
    return [each for each in words.OPTIONS if draw.yes()]


_VALUES: Mapping[str, Callable[[Draw], Any]] = {
    "text": lambda draw: draw.one(words.ITEM_TITLES),
    "textarea": lambda draw: draw.text(),
    "rich_text": lambda draw: f"<p>{draw.one(words.SENTENCES)}</p>\n<ul><li>&amp;</li></ul>",
    "number": lambda draw: draw.one((0, 42, -7, 3.14, 1e6)),
    "select": lambda draw: draw.one(words.OPTIONS),
    "multi_select": _choices,
    "date": lambda draw: f"20{draw.whole(10, 29)}-02-{draw.whole(1, 28):02d}",
    "datetime": lambda draw: f"2024-06-{draw.whole(1, 30):02d}T09:30:00Z",
    "boolean": lambda draw: draw.one((True, False, None)),
    "image": lambda draw: f"https://cdn.example.com/img/{draw.whole(1, 999)}.png",
    "file": lambda draw: f"https://cdn.example.com/files/{draw.whole(1, 999)}%20final.pdf",
    "url": lambda draw: "https://example.com/a?b=c&d=é",
    "email": lambda draw: f"writer{draw.whole(1, 99)}@example.com",
    "phone": lambda draw: draw.phone(),
}

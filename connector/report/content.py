"""The agency's content: how many pieces there are of each type, and how many are published."""

from __future__ import annotations

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import Column, Figure, Section, Shown, Table, count, of
from connector.report.published import Published, total

_DRAWN_MAX = 12


def _types(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT content_type_name, is_active, items, items_published, items_draft, "
        "(last_published_at AT TIME ZONE 'UTC')::DATE AS last_published_at, "
        "(last_updated_at AT TIME ZONE 'UTC')::DATE AS last_updated_at "
        "FROM marts.sum_content_items "
        "ORDER BY items DESC, content_type_name, content_type_id"
    )
    if not rows:
        return None
    items, shown = int(total(rows, "items")), int(total(rows, "items_published"))
    table = Table(
        "Content items by their type",
        "sum_content_items",
        (
            Column("content_type_name", "Type", "text"),
            Column("is_active", "In use", "flag"),
            Column("items", "Items"),
            Column("items_published", "Published"),
            Column("items_draft", "Drafts"),
            Column("last_published_at", "Last published", "day"),
            Column("last_updated_at", "Last changed", "day"),
        ),
        rows,
    )
    drawn = [
        {**row, "text": f"{count(row['items_published'])} of {count(row['items'])}"}
        for row in rows[:_DRAWN_MAX]
    ]
    finding = f"{count_noun(len(rows), 'content type')} and no content item yet."
    if items:
        finding = f"{of(shown, items, 'content item')} are published."
    return Shown(
        finding,
        (charts.bars(drawn, "content_type_name", "items", "text", unit="content items"),)
        if items
        else (),
        (table,),
    )


SECTION = Section(
    "content",
    "Content",
    "Pieces of content as they stand, by the types that the platform keeps.",
    (
        Figure(
            "content_items",
            "Content items by type",
            {
                "sum_content_items": (
                    *("content_type_id", "content_type_name", "is_active", "items"),
                    *("items_published", "items_draft", "last_published_at", "last_updated_at"),
                )
            },
            _types,
            "No content types have landed yet.",
        ),
    ),
)

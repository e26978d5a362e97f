"""What Dagster shows of a resource: its columns, and the counts, cost and preview of a pull.

Nothing personal is shown: counts, moments and the values of `status` alone.
"""

from __future__ import annotations

import dagster as dg

from connector import (
    Column,
    ConnectorError,
    Declaration,
    PullReport,
    ResourceRun,
    Warehouse,
    columns,
)

STATUS = "status"


def of_table(resource: Declaration) -> dict[str, object]:
    """What is known of a resource's table before anything has landed."""
    return {
        "dagster/column_schema": dg.TableSchema([_column(each) for each in columns(resource)]),
        "dagster/table_name": f"landing.{resource.name}",
        "scope": resource.read_scope(),
    }


def of_pull(
    resource: Declaration, done: ResourceRun, report: PullReport, warehouse: Warehouse
) -> dict[str, dg.MetadataValue]:
    """What a pull did with the resource. `waited_seconds` is of the whole run."""
    counts = ("requests", "new", "changed", "unchanged", "deleted", "live", "total", "pending")
    told: dict[str, object] = {name: getattr(done, name) for name in counts}
    told |= {"outcome": done.outcome, "proven": done.proven, "message": done.message}
    told |= {"waited_seconds": report.waited_seconds, "run_id": report.run_id}
    shown = {name: _shown(value) for name, value in told.items() if value is not None}
    shown["dagster/row_count"] = dg.MetadataValue.int(done.live)
    if done.bookmark_after is not None:
        shown["bookmark"] = dg.MetadataValue.timestamp(done.bookmark_after)
    preview = _preview(resource, warehouse)
    if preview is not None:
        shown["preview"] = dg.MetadataValue.md(preview)
    return shown


def _shown(value: object) -> dg.MetadataValue:
    if isinstance(value, bool):
        return dg.MetadataValue.bool(value)
    if isinstance(value, int):
        return dg.MetadataValue.int(value)
    if isinstance(value, float):
        return dg.MetadataValue.float(value)
    return dg.MetadataValue.text(str(value))


def _column(column: Column) -> dg.TableColumn:
    is_id = column.name == "id"
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=column.comment,
        # Any other column is null where a row was only listed, or where the API left it out.
        constraints=dg.TableColumnConstraints(nullable=not is_id, unique=is_id),
    )


def _preview(resource: Declaration, warehouse: Warehouse) -> str | None:
    """Landed live rows by status, as Markdown; None where there is nothing to count."""
    if STATUS not in resource.fields:
        return None
    try:
        counts = warehouse.count_by(resource, STATUS)
    except ConnectorError:
        # A preview is a courtesy: what landed has landed without it.
        return None
    rows = "\n".join(f"| {_code(status)} | {count:,} |" for status, count in counts.items())
    return f"| {STATUS} | live rows |\n|---|---:|\n{rows}"


def _code(status: str | None) -> str:
    # A status is the API's word; one that it never documented may hold anything.
    if status is None:
        return "*none*"
    kept = "".join(c if c.isalnum() or c in "_- " else "?" for c in status)
    return f"`{kept}`"

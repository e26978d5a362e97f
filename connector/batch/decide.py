"""What follows from a person's decision on a row in doubt, as a transition."""

from __future__ import annotations

from dataclasses import replace

from connector.batch.report import Decision, Declared
from connector.catalog import declaration
from connector.client import Client
from connector.endpoint import Endpoint
from connector.engine.push_asks import Move
from connector.engine.push_states import FOR_A_PERSON
from connector.errors import Misused, NotFound
from connector.ledger.push_reads import Work
from connector.resource import Resource


async def decided(client: Client, row: Work, decision: Decision) -> Move:
    """The transition that the decision asks for. A record that is named is read first.

    Raises `Misused` for a row that is not in doubt, and for a record that does not exist or is not
    the one that the row is about.
    """
    if row.standing.state not in FOR_A_PERSON:
        raise Misused(
            f"row {row.key[1]} of the batch {row.key[0]} is not in doubt",
            action="Name a row whose outcome is 'held'.",
        )
    match decision:
        case "look":
            return Move("looked_again", "in_doubt")
        case "resend":
            return Move("resent", "in_doubt")
        case "drop":
            return Move("dropped", "dropped")
        case Declared(id):
            return await _declared(client, row, id)


async def _declared(client: Client, row: Work, id: str) -> Move:
    """A person's word that the record is the row's."""
    task = row.task
    if task.record_id is not None and task.record_id != id:
        raise Misused(
            f"row {row.key[1]} is about the record {task.record_id}, and another was named",
            action="Name that record, or decide otherwise.",
        )
    endpoint: Endpoint[Resource] = Endpoint(client, declaration(task.resource).record, task.parent)
    try:
        record = await endpoint.get(id)
    except NotFound as error:
        if task.operation == "convert" and error.is_api_error:
            # A converted lead may be gone (API 3.5).
            return Move("declared_applied", "declared", record_id=id)
        raise Misused(
            f"there is no record {id} in {task.resource}",
            action="Copy the id of the record from the application.",
        ) from None
    updated_at = record.raw.get("updated_at")
    move = Move(
        "declared_applied",
        "declared",
        record_id=id,
        updated_at=updated_at if isinstance(updated_at, str) else None,
        shown=record,
        is_detail=True,
    )
    if task.operation == "create" and task.afterwards and not row.standing.is_begun:
        return replace(move, event="begun", before=dict(record.raw))
    return move

"""What one spreadsheet row undertakes to do, once it has passed every check. Plain values.

The rows' checker makes tasks, the push engine carries them out, and the ledger keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["create", "update", "upsert", "convert"]
"""What a person asks of a whole file; an upsert becomes a create or an update, row by row."""

Operation = Literal["create", "update", "convert"]
"""What the API is asked to do for one row."""

RowOutcome = Literal[
    "created",
    "updated",
    "converted",
    "unchanged",
    "duplicate",
    "invalid",
    "rejected",
    "not_applied",
    "conflict",
    "held",
    "not_sent",
]
"""How a row ended. Every row has exactly one.

`unchanged`: the record has all of it already, or this row was applied by an earlier push.
`duplicate`: another row of the file, or a record, is the same. `invalid`: our own checks refuse
it. `rejected`: the API refused it. `not_applied`: accepted by the API, whose answer shows other
values than were sent. `conflict`: somebody else changed the record since. `held`: sent, its fate
unknown, for a person to settle. `not_sent`: the push ended before its turn.
"""

Foreseen = RowOutcome | Operation
"""What would become of a row: the operation that would be sent for it, or its outcome already."""


@dataclass(frozen=True, slots=True)
class Task:
    """One row's write.

    `number` is the row's number as a spreadsheet shows it (the headings are 1). `parent` is the
    content type's slug of a content item. `fields` are JSON values as a body takes them: the
    whole of a create, what is wanted of an update. `afterwards` is what create refuses and update
    accepts: it follows the create as an update. `record_id` names the record of an update or a
    conversion, and `base` holds what is landed of it under the names in `fields`. `identity` is
    what tells this record from others: the values of the natural key, by field.
    """

    number: int
    operation: Operation
    resource: str
    fields: Mapping[str, Any]
    parent: str | None = None
    afterwards: Mapping[str, Any] = field(default_factory=dict)
    record_id: str | None = None
    base: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)

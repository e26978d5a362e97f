"""The push of one row: what to write, what to make of the answer, and what to do after silence.

    create   intent, send; in doubt: look, wait until no late commit is to be expected, look again;
             then hold the row for a person, or send it once more where that was chosen.
    update   read the record first; send only what differs; refuse where somebody else changed it.
             In doubt: read it again, and send what is still missing.
    convert  read the lead first; send once. In doubt: read it; never sent again by itself.

What create refuses and update accepts follows a create as an update of its own. Every transition
is one of the table's (`push_states`) and is on the disk before anything follows from it; an attempt
is on the disk before a byte of it leaves. A row that cannot be brought to an end now is left in a
state from which a later push goes on.

Pure: moments, answers and the journal's memory come in as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connector.engine.push_asks import Steps
from connector.engine.push_convert import convert, look_at_lead
from connector.engine.push_create import create, look_for_it
from connector.engine.push_plan import Terms
from connector.engine.push_row import Row, Standing
from connector.engine.push_update import update
from connector.engine.task import Operation, Task
from connector.resource import Declaration

_Act = Callable[[Row], Steps[bool]]

_CARRIES_OUT: Mapping[Operation, _Act] = {"create": create, "update": update, "convert": convert}
_CLEARS_UP: Mapping[Operation, _Act] = {
    "create": look_for_it,
    "update": update,
    "convert": look_at_lead,
}


def push(
    resource: Declaration,
    task: Task,
    terms: Terms,
    marker: Mapping[str, str],
    standing: Standing,
) -> Steps[bool]:
    """Bring the row as near to its end as it can come now. `marker` is its mark, or empty.

    Ends with whether the row is open: its write may have happened, or has half happened.
    """
    row = Row(resource, task, terms, marker, standing)
    is_going = True
    while is_going:
        operation: Operation = "update" if row.is_begun else task.operation
        if row.state == "planned":
            is_going = yield from _CARRIES_OUT[operation](row)
        elif row.state in ("unknown", "settling"):
            is_going = yield from _CLEARS_UP[operation](row)
        else:
            break
    return row.is_open

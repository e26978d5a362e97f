"""Simulated worlds for a push: which faults happen how often, and what the file contains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

WriteFault = Literal[
    "limited",
    "unreachable",
    "dropped",
    "applied",
    "error",
    "truncated",
    "late",
    "late far",
    "crossed",
    "merged",
]
"""Fate of a write: rejected by the rate limit; never sent; lost before its effect, or after it;
answered 5xx after its effect; answered with half a body; committed after the client has gone,
within the waiting time of a row in doubt or long after it; answered with another record after its
effect; a create answered with an existing record, and without effect.
"""

LATE_SECONDS_MAX = 200.0
FAR_SECONDS_MAX = 20_000.0


@dataclass(frozen=True)
class PushScenario:
    """Behaviour of server, other users and process during a push, and the contents of the file.

    `faults`, `read_faults` and `crossed_reads` are probabilities per request, `crashes` per
    command. `lag_seconds_max` is how long a new record is missing from lists. Other users perform
    an action of `others` up to `others_per_minute` times a minute, and `others_max` times in all.
    `rows` limits the size of the file, `connections` the rows in progress. `identified` is the
    share of rows with an identity. `fewer_fields`: the rows of the other file lack a field.
    """

    about: str
    faults: Mapping[WriteFault, float] = field(default_factory=dict)
    read_faults: float = 0.0
    crossed_reads: float = 0.0
    crashes: float = 0.0
    lag_seconds_max: float = 0.0
    is_sorted: bool = True
    per_page: int = 100
    others: tuple[str, ...] = ()
    others_per_minute: float = 0.0
    others_max: int = 12
    rows: tuple[int, int] = (1, 4)
    connections: int = 3
    resource: Literal["candidates", "leads", "content_items"] = "candidates"
    operations: tuple[str, ...] = ("create", "create", "afterwards", "update")
    behaviours: Mapping[str, str] = field(default_factory=dict)
    own_clock_ahead: float = 0.0
    server_steps: float = 0.0
    has_date: bool = True
    edited: bool = False
    person: bool = False
    other_file: bool = False
    fewer_fields: bool = False
    again: bool = False
    repeats: float = 0.15
    identified: float = 0.95


_LOSSES: Mapping[WriteFault, float] = {
    "limited": 0.05,
    "unreachable": 0.05,
    "dropped": 0.1,
    "applied": 0.1,
    "error": 0.05,
    "truncated": 0.05,
    "late": 0.1,
    "late far": 0.05,
}
_CROSSED: Mapping[WriteFault, float] = {**_LOSSES, "crossed": 0.2, "merged": 0.15}
_BEHAVIOURS = {"whitespace": "trimmed", "empty_strings": "null", "timestamp_precision": "seconds"}

SCENARIOS: Mapping[str, PushScenario] = {
    "quiet": PushScenario("nothing goes wrong"),
    "losses": PushScenario("answers are lost, and commits late", _LOSSES),
    "crashes": PushScenario("the process dies, again and again", crashes=0.08),
    "worst": PushScenario(
        "all faults together", _CROSSED, read_faults=0.1, crossed_reads=0.1, crashes=0.06
    ),
    "crossed": PushScenario(
        "answers show other records", _CROSSED, crossed_reads=0.1, crashes=0.03
    ),
    "crossed-siblings": PushScenario(
        "answers show other records, of rows about the same people",
        _CROSSED,
        crashes=0.02,
        rows=(3, 5),
        connections=5,
        operations=("create",),
        repeats=0.8,
        identified=0.5,
    ),
    "crossed-alike": PushScenario(
        "answers show other records, and others create records alike",
        _CROSSED,
        crashes=0.03,
        others=("alike",),
        others_per_minute=4.0,
        others_max=2,
        behaviours=_BEHAVIOURS,
    ),
    "crossed-leads": PushScenario(
        "answers show other records, as leads are created, changed and converted",
        _CROSSED,
        crossed_reads=0.1,
        crashes=0.03,
        resource="leads",
        operations=("create", "update", "convert", "convert"),
    ),
    "crossed-content": PushScenario(
        "answers show other records, and few fields",
        _CROSSED,
        crossed_reads=0.1,
        crashes=0.03,
        resource="content_items",
        operations=("create", "create", "update"),
    ),
    "crossed-clock": PushScenario(
        "answers show other records, and no answer shows the time",
        _CROSSED,
        crashes=0.03,
        own_clock_ahead=600.0,
        has_date=False,
    ),
    "wide": PushScenario(
        "many parallel rows", _LOSSES, crashes=0.02, rows=(5, 9), connections=6
    ),
    "siblings": PushScenario(
        "rows about the same people",
        _LOSSES,
        crashes=0.02,
        rows=(3, 5),
        connections=5,
        operations=("create",),
        repeats=0.8,
    ),
    "nameless": PushScenario(
        "rows without identity, some of which have fewer fields",
        _LOSSES,
        crashes=0.02,
        rows=(3, 5),
        connections=5,
        operations=("create",),
        repeats=0.8,
        identified=0.2,
    ),
    "reads": PushScenario("reads fail", _LOSSES, read_faults=0.3),
    "lag": PushScenario("lists are late", _LOSSES, crashes=0.03, lag_seconds_max=240.0),
    "pages": PushScenario(
        "look-ups of several pages, which shift",
        _LOSSES,
        per_page=2,
        others=("create", "delete"),
        others_per_minute=4.0,
    ),
    "unsorted": PushScenario("lists are not sorted", _LOSSES, is_sorted=False, per_page=3),
    "alike": PushScenario(
        "others create records alike",
        _LOSSES,
        crashes=0.03,
        others=("alike",),
        others_per_minute=4.0,
        others_max=2,
    ),
    "edits": PushScenario(
        "others change what is being updated",
        _LOSSES,
        crashes=0.03,
        others=("edit",),
        others_per_minute=2.0,
        operations=("update", "update", "afterwards"),
    ),
    "edited": PushScenario(
        "others changed what is to be updated", operations=("update",), edited=True
    ),
    "leads": PushScenario(
        "leads are created, changed and converted",
        _LOSSES,
        crashes=0.05,
        resource="leads",
        operations=("create", "update", "convert", "convert"),
    ),
    "leads-active": PushScenario(
        "a converted lead becomes active",
        _LOSSES,
        crashes=0.05,
        resource="leads",
        operations=("convert", "convert", "create"),
        behaviours={"converted_lead": "active"},
    ),
    "leads-gone": PushScenario(
        "a converted lead is gone",
        _LOSSES,
        crashes=0.05,
        resource="leads",
        operations=("convert", "convert", "update"),
        behaviours={"converted_lead": "deleted"},
    ),
    "content": PushScenario(
        "answers echo few fields",
        _LOSSES,
        crashes=0.05,
        resource="content_items",
        operations=("create", "create", "update"),
    ),
    "unique": PushScenario(
        "the server refuses a second record of one email",
        _LOSSES,
        crashes=0.03,
        behaviours={"duplicate_emails": "refused"},
    ),
    "normal": PushScenario(
        "the server stores values in other forms", _LOSSES, crashes=0.03, behaviours=_BEHAVIOURS
    ),
    "absent": PushScenario(
        "empty fields are left out", _LOSSES, crashes=0.03, behaviours={"nulls": "absent"}
    ),
    "clock": PushScenario(
        "our clock is wrong, and the server's steps",
        _LOSSES,
        crashes=0.03,
        own_clock_ahead=-600.0,
        server_steps=0.02,
    ),
    "no-date": PushScenario(
        "the server does not tell its time", _LOSSES, crashes=0.03, own_clock_ahead=600.0,
        has_date=False,
    ),
    "person": PushScenario("a person settles what is held", _LOSSES, crashes=0.03, person=True),
    "person-leads": PushScenario(
        "a person settles conversions",
        _LOSSES,
        crashes=0.03,
        person=True,
        resource="leads",
        operations=("convert", "convert", "create"),
    ),
    "other-file": PushScenario(
        "the same rows come in another file", _LOSSES, crashes=0.06, other_file=True
    ),
    "nameless-files": PushScenario(
        "rows without identity come in another file, some of them with fewer fields",
        _LOSSES,
        crashes=0.06,
        rows=(3, 5),
        connections=5,
        operations=("create",),
        repeats=0.8,
        identified=0.0,
        other_file=True,
        fewer_fields=True,
    ),
    "again": PushScenario("what was applied is wanted again", _LOSSES, crashes=0.05, again=True),
}  # fmt: skip
"""Every scenario by its name."""

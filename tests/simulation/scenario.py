"""Scenarios of simulated pulls: every kind of fault is a field of `PullScenario`.

Scenarios A to F keep what the engine assumes (API 4.1, 4.8): late writes are bounded, and every
change moves `updated_at`. G and H break it. Each of the others adds one kind of fault to a scenario
like B or F.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Promise = Literal["exact", "honest"]
"""Result of the quiet pulls: `exact` means that every record is equal and proven, `honest` that a
proven copy is exact.
"""

ORDINARY: Mapping[str, float] = {"create": 3, "update": 10, "touch_top": 3}
WILD: Mapping[str, float] = {
    **ORDINARY,
    "batch": 0.4,
    "bulk": 0.3,
    "delete": 2,
    "swap": 1,
    "delete_run": 0.15,
}
SPARING: Mapping[str, float] = {**ORDINARY, "batch": 0.4, "bulk": 0.3, "delete": 0.5}


@dataclass(frozen=True)
class PullScenario:
    """Behaviour of users, server, network and process in a simulated pull.

    Shares are probabilities per request, except `kill_share` (per step) and `clock_step_share` (per
    list). Times are in seconds.
    """

    about: str
    churn: Mapping[str, float]

    # Size of the world and of the run.
    resource: str = "candidates"
    records: int = 120
    pulls: int = 7
    tied_share: float = 0.2
    verification_requests: int = 0
    quiet_seconds: float = 3600.0
    pause_seconds_max: float = 60.0
    mutations_per_second: float = 0.5

    # How the server responds to reads.
    per_page_max: int = 10
    precision: Literal["microseconds", "milliseconds", "seconds"] = "microseconds"
    ties: Literal["stable", "random"] = "stable"
    total: Literal["exact", "earlier"] = "exact"
    total_offset: int = 0
    sorting: Literal["honoured", "ignored", "updated_ignored"] = "honoured"
    lag_seconds_min: float = 0.0
    lag_seconds_max: float = 0.0
    lists_are_fresh: bool = False
    has_date: bool = True
    own_clock_ahead: float = 0.0
    clock_step_share: float = 0.0
    clock_step_seconds: float = 600.0

    content_type_items: Literal["declared", "without_updated_at"] = "declared"

    # Writes that become visible late.
    lateness_seconds: float = 10.0
    late_seconds_min: float = 0.0
    late_seconds_max: float = 0.0
    late_share: float = 0.0
    odd_dates: Literal["none", "null", "future"] = "none"

    # Faults of requests and of the process.
    error_share: float = 0.0
    crossed_share: float = 0.0
    false_gone_share: float = 0.0
    huge_share: float = 0.0
    drop_share: float = 0.0
    limited_share: float = 0.0
    kill_share: float = 0.0
    blind: Literal["none", "empty", "half", "details"] = "none"
    # Half of the records are deleted within minutes, too often for a confirmation each time.
    accepts_deletes: bool = True

    # Promises.
    promise: Promise = "exact"
    keeps_assumptions: bool = True

    @property
    def is_date_exact(self) -> bool:
        """Return True if every response shows the state of the second in its `Date` header."""
        is_true = not self.clock_step_share and not self.false_gone_share
        return self.has_date and is_true and not self.lag_seconds_max


_B = PullScenario("A, with deletions, batches and bulk edits with one timestamp", WILD)
_E = replace(
    _B, about="C, with a random order of equal timestamps in each response", precision="seconds",
    ties="random",
)  # fmt: skip
_F = replace(
    _E,
    about="E, with late commits, and totals counted before their rows",
    late_seconds_max=5.0,
    late_share=0.2,
    total="earlier",
)
_SPARED = PullScenario(
    "few deletions, each accepted without a confirmation", SPARING, accepts_deletes=False
)

SCENARIOS: Mapping[str, PullScenario] = {
    "A": PullScenario("creates and updates only, microseconds", ORDINARY),
    "B": _B,
    "C": replace(_B, about="B, with timestamps of whole seconds", precision="seconds"),
    "D": replace(
        _B, about="B, with a fifth of the commits up to 5 s late", late_seconds_max=5.0,
        late_share=0.2,
    ),
    "E": _E,
    "F": _F,
    "G": replace(
        _B, about="B, with commits up to 60 s late and a lateness of 10 s",
        late_seconds_max=60.0, late_share=0.2, verification_requests=42, keeps_assumptions=False,
    ),
    "H": replace(
        _B, about="B, with 10 % of the changes not updating updated_at",
        churn={**WILD, "silent": 2}, verification_requests=42, keeps_assumptions=False,
    ),
    "bulk": replace(
        _E, about="E, with a bulk edit of half of all records", records=300, pulls=4,
        churn={"update": 10, "create": 1, "delete": 1, "migration": 0.5},
    ),
    "killed": replace(_F, about="F, killed before or after any step", kill_share=0.004),
    "killed-late": replace(
        _B, about="B, with late commits, killed before or after any step", late_seconds_max=5.0,
        late_share=0.2, kill_share=0.01,
    ),
    "killed-load": replace(
        _F, about="F, killed so often that most pulls do not finish", kill_share=0.02, pulls=12,
    ),
    "flaky": replace(
        _F, about="F, with answers lost, 5xx and 429", error_share=0.02, drop_share=0.02,
        limited_share=0.02,
    ),
    "crossed": replace(
        _F, about="F, with details of other records", crossed_share=0.05, pulls=5,
    ),
    "lying": replace(
        _B, about="B, with a 404 for records that exist", false_gone_share=0.03,
        verification_requests=42, keeps_assumptions=False,
    ),
    "content-lying": replace(
        _B, about="B, with content items, and a 404 for some that exist",
        resource="content_items", false_gone_share=0.03, verification_requests=42,
        keeps_assumptions=False,
    ),
    "lying-killed": replace(
        _B, about="B, with late commits and a 404 for records that exist, killed before or after"
        " any step", late_seconds_max=5.0, late_share=0.2, false_gone_share=0.03,
        kill_share=0.01, verification_requests=42, keeps_assumptions=False,
    ),
    "lag": replace(
        _B, about="B, each response from another replica, up to 8 s old", lag_seconds_max=8.0,
        verification_requests=42,
        keeps_assumptions=False,
    ),
    "lag-ties": replace(
        _F, about="F, each response from another replica, up to 4 s old", lag_seconds_max=4.0,
        verification_requests=42,
        keeps_assumptions=False,
        late_seconds_max=4.0,
    ),
    "clock": replace(
        _B, about="B, with the server's clock moving 10 minutes back and forth during lists",
        clock_step_share=0.02, keeps_assumptions=False,
    ),
    "no-date": replace(
        _B, about="B, without Date, the local clock 10 minutes ahead", has_date=False,
        own_clock_ahead=600.0,
    ),
    "no-date-behind": replace(
        _B, about="B, without Date, the local clock 10 minutes behind", has_date=False,
        own_clock_ahead=-600.0,
    ),
    "unsorted": replace(_B, about="B, sort ignored", sorting="ignored", promise="honest"),
    "unsorted-updated": replace(
        _B, about="B, sort=updated_at ignored, created_at honoured", sorting="updated_ignored",
        promise="honest",
    ),
    "tied-updates": replace(
        _E, about="bulk edits with one timestamp, in random order; no two records created together",
        precision="microseconds", tied_share=0.0, records=60, mutations_per_second=0.2,
        churn={"create": 1, "update": 2, "bulk": 1, "delete": 0.5},
    ),
    "edge": replace(
        _B, about="creates, most of them visible as late as allowed",
        churn={"create": 10, "delete": 1}, late_seconds_min=9.9, late_seconds_max=10.0,
        late_share=0.8,
    ),
    "content-edge": replace(
        _B, about="content items, most of their changes visible as late as allowed",
        resource="content_items", churn={"create": 1, "update": 10}, late_seconds_min=9.9,
        late_seconds_max=10.0, late_share=0.8,
    ),
    "lag-details": replace(
        _B, about="slow changes of the newest records, details 7 to 8 s older than their lists",
        churn={"slow_batch": 3}, records=60, mutations_per_second=0.02, per_page_max=100,
        lag_seconds_min=7.0, lag_seconds_max=8.0, lists_are_fresh=True, promise="honest",
        keeps_assumptions=False,
    ),
    "capped": replace(_B, about="B, per_page capped at 50", per_page_max=50),
    "total-high": replace(
        _B, about="B, totals too high by one", total_offset=1, promise="honest"
    ),
    "total-low": replace(
        _B, about="B, totals too low by one", total_offset=-1, promise="honest"
    ),
    "total-huge": replace(
        _F, about="F, with huge totals now and then", huge_share=0.05, pulls=5,
    ),
    "total-huge-guarded": replace(
        _SPARED, about="huge totals now and then, and few deletions", huge_share=0.1,
    ),
    "total-huge-types": replace(
        _B, about="content types, with huge totals now and then", resource="content_types",
        records=25, huge_share=0.1,
    ),
    "total-always-huge": replace(
        _B, about="B, totals too high by a billion", total_offset=10**9, promise="honest",
    ),
    "blind-empty": replace(_SPARED, about="the list is empty for a while", blind="empty"),
    "blind-half": replace(_SPARED, about="half of the records are not shown", blind="half"),
    "blind-details": replace(_SPARED, about="details are 404 for a while", blind="details"),
    "null-dates": replace(_B, about="B, some records without updated_at", odd_dates="null"),
    "future-dates": replace(_B, about="B, some records dated 2099", odd_dates="future"),
    "content": replace(_F, about="F, with the items of a content type", resource="content_items"),
    "content-killed": replace(
        _F, about="F, with content items, killed before or after any step",
        resource="content_items", kill_share=0.004,
    ),
    "content-lag": replace(
        _B, about="B, with content items, replicas up to 8 s old", resource="content_items",
        lag_seconds_max=8.0, verification_requests=42, keeps_assumptions=False,
    ),
    "types": replace(
        _B, about="content types, in unsorted lists that are read completely",
        resource="content_types", records=25,
    ),
    "types-undated": replace(
        _B, about="content types, in lists without dates, so every record is read",
        resource="content_types", records=25, content_type_items="without_updated_at",
    ),
}  # fmt: skip
"""Every scenario by the name under which a run of it is replayed."""

SMALL = "-small"
"""Suffix of a scenario's name that reduces its records to a third."""


def get_scenario(name: str) -> PullScenario:
    """Return the scenario with that name; a name that ends with `-small` has fewer records.

    Raises:
        KeyError: No scenario has this name.
    """
    scenario = SCENARIOS[name.removesuffix(SMALL)]
    if not name.endswith(SMALL):
        return scenario
    # Half of the records of a small world may be deleted without a confirmation.
    records = scenario.records if scenario.blind == "half" else scenario.records // 3
    return replace(scenario, records=records, pulls=max(4, -(-scenario.pulls // 2)))

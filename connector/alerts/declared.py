"""Every alert that there is: its kind, what it is about, what it means, and what to do next.

`docs/ALERTS.md` shows this table, and a test holds the two equal. When an alert is due is decided
by the files beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from connector.alert_settings import Kind

About = Literal["account", "resource", "job"]

BY_CODE = "What the code of the error asks for (docs/ERRORS.md)."
"""The action of alerts that pass on the error's own."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One alert. `over` is the sentence that is told when it has ended."""

    code: str
    kind: Kind
    about: About
    meaning: str
    action: str
    over: str


_ALL = (
    Declared(
        "pull_failed",
        "failed",
        "account",
        "The last pull failed, or was cut off.",
        BY_CODE,
        "A pull has ended well since.",
    ),
    Declared(
        "publication_failed",
        "failed",
        "account",
        "What has landed could not be published, or checks that block have refused it.",
        BY_CODE,
        "The file for analysts was published since.",
    ),
    Declared(
        "push_failed",
        "failed",
        "account",
        "The last push failed, or was cut off.",
        BY_CODE,
        "A push has ended well since.",
    ),
    Declared(
        "files_unusable",
        "failed",
        "account",
        "The work file cannot be opened or read.",
        BY_CODE,
        "The work file can be read again.",
    ),
    Declared(
        "job_failed",
        "failed",
        "job",
        "A job of Dagster failed before the connector could write anything down.",
        "Look at the run in Dagster; 'connector doctor' checks what a pull needs.",
        "The job has ended well since, or the connector has written down what became of it.",
    ),
    Declared(
        "not_proven",
        "degraded",
        "resource",
        "The last pull of the resource failed, skipped it, or could not prove it.",
        BY_CODE,
        "The resource is proven again.",
    ),
    Declared(
        "deletions_refused",
        "degraded",
        "resource",
        "So many records were missing that the last pull kept their deletions back.",
        BY_CODE,
        "The last pull believed what the list shows.",
    ),
    Declared(
        "anomalies",
        "degraded",
        "resource",
        "The last pull of the resource met what the API's description does not have.",
        "Look at the latest rows of sync.events. Nothing is lost: what came is kept as it came.",
        "The last pull of the resource met nothing odd.",
    ),
    Declared(
        "rows_rejected",
        "degraded",
        "resource",
        "Rows of the resource's last push were refused, or not applied.",
        "Correct the rows in the push's report, and push the report.",
        "The last push of the resource left no row behind.",
    ),
    Declared(
        "rows_in_doubt",
        "degraded",
        "account",
        "Rows were sent whose fate is unknown.",
        "Run 'connector resolve', which lists them; for a push that was cut off, push its file"
        " again.",
        "No row is in doubt any more.",
    ),
    Declared(
        "checks_warn",
        "degraded",
        "account",
        "What was published last has findings of checks that warn.",
        "Run 'connector models test', and correct what it finds, or the seeds.",
        "What was published last has no findings.",
    ),
    Declared(
        "lakehouse_behind",
        "degraded",
        "account",
        "What was published last is not in the shared lakehouse.",
        BY_CODE,
        "The lakehouse has what was published last.",
    ),
    Declared(
        "cost_rising",
        "degraded",
        "account",
        "The last pull took far more requests than the pulls before it.",
        "Run 'connector status' for where they went; a bulk edit explains it, a change in how the"
        " API sorts or dates its records must be looked into.",
        "Pulls cost what they did before.",
    ),
    Declared(
        "quota_forecast",
        "degraded",
        "account",
        "At the usual pace the billing cycle will take more requests than the plan has.",
        "Pull less often ('connector plan --every' says what that costs), or enlarge the plan and"
        " set monthly_requests.",
        "The plan's requests will do until the billing cycle ends.",
    ),
    Declared(
        "quota_spent",
        "degraded",
        "account",
        "The billing cycle's requests are spent, so that no pull sends any.",
        "Wait, or enlarge the plan, set monthly_requests and run 'connector pull --ask-anyway'.",
        "Requests may be sent again.",
    ),
    Declared(
        "silent",
        "silent",
        "account",
        "A resource was not proven for longer than alert_max_age, or nothing ever was.",
        "Check that the schedule runs and look at 'connector status', then run 'connector pull'.",
        "Everything that is pulled is proven again.",
    ),
)

DECLARED: Mapping[str, Declared] = {each.code: each for each in _ALL}
"""Every alert by its code, the gravest first."""

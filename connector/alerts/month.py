"""What the billing cycle has come to: spent, or more than the plan by its end.

Pure: the standing of the ledger in, findings out.
"""

from __future__ import annotations

from connector.alerts.deciding import Finding, Seen, Subject
from connector.alerts.declared import DECLARED
from connector.engine.quota import midnight, shown
from connector.ledger import Standing

WELL_SHARE = 0.95
"""A forecast is well again at this part of the plan, so that one about it does not go to and fro.
"""


def of_month(standing: Standing) -> Seen:
    """Whether requests are left, and whether they will be."""
    spent = _spent(standing)
    yield Subject("quota_spent"), spent
    limit, expected = standing.month.limit, standing.forecast
    subject = Subject("quota_forecast")
    if limit is None:
        yield subject, None
    elif spent is None and expected is not None:
        if expected > limit:
            said = (
                f"The billing cycle that ends on {standing.month.period.ends} will take about"
                f" {expected:,} requests at {standing.usual_day:,} a day; the plan has {limit:,}."
            )
            yield subject, Finding(None, said, DECLARED["quota_forecast"].action)
        elif expected <= WELL_SHARE * limit:
            yield subject, None


def _spent(standing: Standing) -> Finding | None:
    month, word = standing.month, standing.exhaustion
    action = DECLARED["quota_spent"].action
    if word is not None:
        said = f"The API said that the month's requests are spent: until {shown(word.until)}"
        return Finding(word.noted_at, f"{said} nothing is asked of it.", action)
    if month.limit is None or month.room(keeps_reserve=True):
        return None
    said = f"{month.used:,} of the billing cycle's {month.limit:,} requests are spent"
    if month.reserve:
        said += f", and {month.reserve:,} are kept for people"
    ends = shown(midnight(month.period.ends))
    return Finding(None, f"{said}: until {ends} no pull sends any.", action)

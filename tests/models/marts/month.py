"""A simulated month of an agency with its true records, which `test_month` compares with the marts.

Records are created, changed, reopened and deleted in several time zones and currencies. Pulls
observe them at most once a day.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.models.marts.world import ModelWorld

ZONE = "Europe/Berlin"
"""Time zone of the account. Its clocks go forward on 29 March."""

BEGAN = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
NOW = datetime(2026, 4, 1, 0, 30, tzinfo=UTC)
"""Time of the last pull. The date is 1 April in Berlin, and 31 March in New York."""

HOLIDAYS = (date(2026, 1, 1), date(2026, 4, 3), date(2026, 4, 6))
RATES = {"GBP": 1.0, "EUR": 0.8}
STAGES = (
    *("new_lead", "screening", "submitted", "interviewing", "offer_made"),
    *("offer_accepted", "placed", "on_hold", "rejected", "withdrawn"),
)
PLACED = ("permanent", "contract")
GOALS = (
    "u1,,2026-03-01,placements,2",
    "u1,,2026-02-01,interviews_held,1000",
    "u2,,2026-03-15,reporting_fee,5000.50",
    ",North,2026-03-01,candidates_added,0",
    ",South,2026-01-01,interviews_booked,1",
    "nobody,,2026-03-01,placements,1",
    "u3,,2026-04-01,jobs_added,1",
    "u3,,,,",
)
"""Rows of the seed goals. The user has not filled in the last one."""

_ZONES = (None, "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Mars/Olympus")
_STATUSES = ("draft", "scheduled", "confirmed", "in_progress", "completed", "cancelled")
_KINDS = ("interview", "interview", "permanent", "contract", "consultation", "site_visit")


def format_timestamp(at: datetime) -> str:
    """Format a timestamp as `ModelWorld` reads it, for example "2026-01-12 09:00:00"."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def local_date(at: datetime, zone: str | None = None) -> date:
    """Return the date of a timestamp in the time zone, or in the account's if it is not valid."""
    return at.astimezone(ZoneInfo(zone if zone in _ZONES[1:4] else ZONE)).date()


@dataclass
class SimulatedRecord:
    """A record with its edits (time and changed fields) and the time of its deletion."""

    id: str
    edits: list[tuple[datetime, dict[str, Any]]] = field(default_factory=list)
    deleted: datetime | None = None

    def state_at(self, time: datetime) -> dict[str, Any] | None:
        """Return all fields at a time, and when the record was `created` and last `updated`.

        None before the creation and after the deletion.
        """
        done = [(at, fields) for at, fields in self.edits if at <= time]
        if not done or (self.deleted is not None and self.deleted <= time):
            return None
        shown: dict[str, Any] = {"created": done[0][0], "updated": done[-1][0]}
        for _, fields in done:
            shown |= fields
        return shown


Month = Mapping[str, list[SimulatedRecord]]
"""All simulated records by resource."""


def simulate_month(seed: int) -> Month:
    """Return random records of a month and of the two months before it, by resource."""
    draw = random.Random(seed)
    people = ("u1", "u2", "u3", None)
    companies = [draw_company(draw, n) for n in range(8)]
    jobs = [draw_job(draw, n, people) for n in range(30)]
    candidates = [draw_candidate(draw, n, people) for n in range(150)]
    return {
        "companies": companies,
        "jobs": jobs,
        "candidates": candidates,
        "bookings": [draw_booking(draw, n, people) for n in range(260)],
        "leads": [draw_lead(draw, n, people) for n in range(30)],
    }


def draw_pull_times(seed: int) -> list[datetime]:
    """Return the times of the pulls, which run in about four of five nights."""
    draw = random.Random(seed + 1)
    nights = [BEGAN + timedelta(days=n) for n in range(31)]
    return [at for at in nights if at == BEGAN or draw.random() < 0.8] + [NOW]


def load_month(world: ModelWorld, month: Month, pull_times: list[datetime]) -> None:
    """Load the seeds, and the changes and deletions that each pull observes."""
    world.set_time_zone(ZONE)
    world.write_seed("people", "id,name,team", "u1,Ada,North", "u2,Ben,South", "u3,,")
    world.write_seed("holidays", "day,name", *(f"{day},A day" for day in HOLIDAYS))
    rates = (f"{currency},{rate},GBP" for currency, rate in RATES.items())
    world.write_seed("exchange_rates", "currency,rate,reporting_currency", *rates)
    world.write_seed("goals", "consultant_id,team,month,measure,target", *GOALS)
    world.write_seed(
        "lead_statuses", "id,name,outcome", "s1,New,open", "s2,Won,won", "s3,Lost,lost"
    )
    before = datetime.min.replace(tzinfo=UTC)
    for pull_number, at in enumerate(pull_times):
        for name, truths in month.items():
            shown = {each.id: each.state_at(at) for each in truths}
            seen = {each.id for each in truths if each.state_at(before) is not None}
            known = {
                id: {
                    **now,
                    "created": format_timestamp(now["created"]),
                    "updated": format_timestamp(now["updated"]),
                }
                for id, now in shown.items()
                if now is not None
                and (id not in seen or now["updated"] > before or is_reread(id, pull_number))
            }
            gone = tuple(id for id in sorted(seen) if shown[id] is None)
            world.load_details(format_timestamp(at), **{name: known})
            if gone:
                world.load_deletions(format_timestamp(at), **{name: gone})
        before = at
    world.mark_verified(format_timestamp(NOW))


def is_reread(id: str, pull_number: int) -> bool:
    """Return True if this pull reads the unchanged record again, which happens to companies."""
    kind, _, number = id.partition("-")
    return kind == "company" and (pull_number + int(number)) % 3 == 0


# -- records ---------------------------------------------------------------------------------------


def draw_creation_time(draw: random.Random) -> datetime:
    """Return a random timestamp of the ninety days since 1 January."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(90 * 86_400))


def draw_later_times(draw: random.Random, at: datetime, days: float) -> Iterator[datetime]:
    """Yield random timestamps after `at` and before `NOW`, `days` apart on average."""
    while (at := at + timedelta(seconds=60 + int(draw.expovariate(1 / (days * 86_400))))) < NOW:
        yield at


def draw_deletion(
    draw: random.Random, record: SimulatedRecord, probability: float
) -> SimulatedRecord:
    """With this probability, delete the record after its last edit. Return the record."""
    if draw.random() < probability:
        record.deleted = next(draw_later_times(draw, record.edits[-1][0], 10), None)
    return record


def draw_company(draw: random.Random, number: int) -> SimulatedRecord:
    """Return a random company, which is deleted with a probability of 40%."""
    fields = {
        "name": f"Client {number}",
        "fee_type": draw.choice(("percentage", "retainer")),
        "fee_percentage": draw.choice((10, 20)),
        "jobs_count": draw.randrange(6),
        "active_jobs_count": draw.choice((None, 2)),
        "placements_count": draw.randrange(9),
    }
    truth = SimulatedRecord(f"company-{number}", [(datetime(2026, 1, 1, 9, tzinfo=UTC), fields)])
    if draw.random() < 0.4:
        truth.deleted = next(draw_later_times(draw, BEGAN, 10), None)
    return truth


def draw_job(draw: random.Random, number: int, people: tuple[str | None, ...]) -> SimulatedRecord:
    """Return a random job with changes of its status, assigned to one of `people`."""
    born = draw_creation_time(draw)
    published = born + timedelta(seconds=draw.randrange(3 * 86_400))
    fields = {
        "title": f"Job {number}",
        "status": draw.choice(("draft", "published", "published")),
        "published_at": published.isoformat() if published < NOW else None,
        "company_id": draw.choice((None, *(f"company-{n}" for n in range(9)))),
        "assigned_to": draw.choice(people),
        "employment_type": draw.choice(("permanent", "contractor")),
        "positions_available": draw.choice((None, 1, 2)),
        "salary_min": draw.choice((None, 40_000)),
        "salary_max": draw.choice((None, 60_000)),
        "salary_currency": draw.choice(("GBP", " eur", "USD", "", None)),
        "rate_currency": draw.choice(("GBP", "USD", None)),
        "placement_fee": draw.choice((None, None, 7_000)),
        "fee_percentage": draw.choice((None, 15)),
    }
    truth = SimulatedRecord(f"job-{number}", [(born, fields)])
    for at in draw_later_times(draw, born, 9):
        status = draw.choice(("published", "published", "filled", "closed", "on_hold", "cancelled"))
        truth.edits.append((at, {"status": status}))
    return draw_deletion(draw, truth, 0.1)


def draw_candidate(
    draw: random.Random, number: int, people: tuple[str | None, ...]
) -> SimulatedRecord:
    """Return a random candidate with changes of status and rating, assigned to one of `people`."""
    fields = {
        "status": "new_lead",
        "source": draw.choice(("LinkedIn ", "referral", "", None)),
        "assigned_to": draw.choice(people),
        "rating": 1,
    }
    truth = SimulatedRecord(f"candidate-{number}", [(draw_creation_time(draw), fields)])
    place, pace = 0, draw.choice((0.7, 6, 20))
    for at in draw_later_times(draw, truth.edits[0][0], pace):
        if draw.random() < 0.2:
            truth.edits.append((at, {"rating": draw.randrange(9)}))
        else:
            place = min(6, place + 1) if draw.random() < 0.6 else draw.randrange(len(STAGES))
            truth.edits.append((at, {"status": STAGES[place]}))
    return draw_deletion(draw, truth, 0.15)


def draw_booking(
    draw: random.Random, number: int, people: tuple[str | None, ...]
) -> SimulatedRecord:
    """Return a random booking with changes of its status or end, assigned to one of `people`."""
    born = draw_creation_time(draw)
    kind = draw.choice(_KINDS)
    start = born + timedelta(seconds=draw.randrange(50 * 86_400))
    is_whole_day = draw.random() < 0.3
    if is_whole_day:
        zone = draw.choice(("UTC", ZONE))
        start = datetime(start.year, start.month, start.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    end = start + timedelta(days=draw.randrange(90)) if draw.random() < 0.8 else None
    fields: dict[str, Any] = {
        "booking_type": kind,
        "status": draw.choice(_STATUSES),
        "candidate_id": f"candidate-{draw.randrange(150)}",
        "job_id": f"job-{draw.randrange(30)}",
        "lead_id": f"lead-{draw.randrange(30)}" if kind == "consultation" else None,
        "company_id": draw.choice((None, f"company-{draw.randrange(8)}")),
        "start_datetime": start.isoformat(),
        "end_datetime": end.isoformat() if end else None,
        "all_day": is_whole_day,
        "timezone": draw.choice(_ZONES),
        "assigned_to": draw.choice(people),
        "offer_accepted_date": draw.choice((None, None, local_date(born).isoformat())),
        "annual_salary": draw.choice((None, 52_000)),
        "placement_fee": draw.choice((None, None, 1_500.5)),
        "day_rate": draw.choice((None, 400, 512.5)) if kind == "contract" else None,
        "probation_period_months": (None, 1, 6)[number % 3] if kind in PLACED else None,
    }
    truth = SimulatedRecord(f"booking-{number}", [(born, fields)])
    for at in draw_later_times(draw, born, 25):
        change: dict[str, Any] = {"status": draw.choice((*_STATUSES, "rescheduled"))}
        if change["status"] == "cancelled":
            change["cancellation_reason"] = ("Client froze the role ", "", None)[number % 3]
        if end is not None and draw.random() < 0.5:
            end += timedelta(days=draw.randrange(-5, 20))
            change = {"end_datetime": max(end, start).isoformat()}
        truth.edits.append((at, change))
    return draw_deletion(draw, truth, 0.05)


def draw_lead(draw: random.Random, number: int, people: tuple[str | None, ...]) -> SimulatedRecord:
    """Return a random lead with changes of its status, assigned to one of `people`."""
    fields = {
        "status": draw.choice(("lead", "prospect")),
        "lead_status_id": draw.choice(("s1", "s1", "s2", "s3")),
        "source": draw.choice(("linkedin", "Fair", None)),
        "assigned_to": draw.choice(people),
    }
    truth = SimulatedRecord(f"lead-{number}", [(draw_creation_time(draw), fields)])
    for at in draw_later_times(draw, truth.edits[0][0], 30):
        truth.edits.append((at, {"lead_status_id": draw.choice(("s1", "s2", "s3"))}))
    return draw_deletion(draw, truth, 0.2)

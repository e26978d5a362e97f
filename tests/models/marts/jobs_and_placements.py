"""Records of jobs, interviews, placements and clients for `test_jobs_and_placements`.

The first pull is on 5 January 2026 at 09:00; now is 6 March 2026, a Friday. Holidays are
1 January and, made up, Monday 2 February.
"""

from __future__ import annotations

from typing import Any

from tests.models.marts.world import NOW, ModelWorld


def load_jobs_and_placements(world: ModelWorld) -> None:
    """Load clients, candidates, jobs and bookings, pull by pull."""
    world.write_seed("people", "id,name,team", "u1,Ada,North", "u2,Ben,South")
    world.write_seed("holidays", "day,name", "2026-01-01,New Year", "2026-02-02,Founders' Day")
    # Dollars have no rate.
    world.write_seed(
        "exchange_rates", "currency,rate,reporting_currency", "GBP,1,GBP", "EUR,0.8,GBP"
    )
    load_clients_and_candidates(world)
    load_jobs(world)
    load_job_changes(world)
    load_interviews(world)
    load_permanent_placements(world)
    load_contracts(world)
    world.mark_verified(NOW)


def load_clients_and_candidates(world: ModelWorld) -> None:
    def born(day: str) -> dict[str, Any]:
        return {"created": f"{day} 09:00"}

    world.load_details(
        "2026-01-05 09:00",
        companies={
            # The platform counts one job more than is landed.
            "acme": {
                **born("2025-01-01"),
                "name": "Acme",
                "fee_type": "percentage",
                "fee_percentage": 20,
                "jobs_count": 7,
                "account_manager_id": "u1",
            },
            # A retainer's percentage is no placement fee.
            "beta": {
                **born("2025-01-01"),
                "name": "Beta",
                "fee_type": "retainer",
                "fee_percentage": 50,
                "jobs_count": 2,
            },
        },
        candidates={"hal": born("2025-01-01"), "mia": born("2026-01-05")},
    )
    world.load_details(
        "2026-02-09 09:00",
        candidates={
            **{name: born("2026-01-05") for name in ("ivy", "rob", "quin")},
            "kit": born("2026-01-26"),
            "lee": born("2026-01-20"),
            "ned": born("2026-02-01"),
            "oli": born("2026-02-01"),
            "pat": born("2026-02-01"),
        },
    )
    world.load_deletions("2026-03-02 09:00", candidates=("quin",))


def make_job(
    company: str | None, published: str | None, status: str, **fields: Any
) -> dict[str, Any]:
    """Return the fields of a job. `company` is an id, `published` a date like "2026-01-12"."""
    stamp = f"{published}T09:00:00Z" if published else None
    return {
        "created": "2025-11-01 09:00",
        "company_id": company,
        "published_at": stamp,
        "status": status,
        "employment_type": "permanent",
        "title": "A job",
        **fields,
    }


def load_jobs(world: ModelWorld) -> None:
    """Load the jobs of the first pull on 5 January."""
    world.load_details(
        "2026-01-05 09:00",
        jobs={
            "multi": make_job(
                "acme",
                "2026-01-05",
                "published",
                positions_available=3,
                salary_min=40000,
                salary_max=60000,
                salary_currency="gbp ",
                salary_type="annual",
                fee_type="percentage",
                fee_percentage=10,
                assigned_to="u1",
            ),
            "reopened": make_job(
                "beta",
                "2025-11-03",
                "published",
                positions_available=1,
                salary_currency="EUR",
                placement_fee=7000,
                assigned_to="u2",
            ),
            # Filled before anybody looked, and no fee or salary anywhere.
            "filled": make_job("acme", "2025-12-01", "filled", salary_currency="USD"),
            "closed": make_job("beta", "2025-12-15", "published", salary_currency="USD"),
            "shut": make_job("acme", "2025-12-15", "published"),
            "draft": make_job("acme", None, "draft"),
            **{
                name: make_job(
                    "acme",
                    "2026-01-05",
                    "published",
                    employment_type="contractor",
                    rate_currency="GBP",
                )
                for name in ("contract", "contract-2")
            },
            "gone": make_job("beta", "2025-12-15", "published", salary_currency="EUR"),
        },
    )


def load_job_changes(world: ModelWorld) -> None:
    """Load all changes, additions and deletions of jobs after 5 January."""
    world.load_details(
        "2026-01-12 09:00", jobs={"reopened": {"updated": "2026-01-08 09:00", "status": "filled"}}
    )
    # published_at stays what it was when the job is opened again.
    world.load_details(
        "2026-01-26 09:00",
        jobs={"reopened": {"updated": "2026-01-20 09:00", "status": "published"}},
    )
    world.load_list_items("2026-02-09 09:00", jobs={"listed": make_job(None, None, "published")})
    world.load_details(
        "2026-02-09 09:00",
        jobs={
            "closed": {"updated": "2026-02-02 09:00", "status": "closed"},
            "shut": {"updated": "2026-02-02 09:00", "status": "cancelled"},
        },
    )
    world.load_details(
        "2026-03-02 09:00", jobs={"reopened": {"updated": "2026-02-11 09:00", "status": "filled"}}
    )
    world.load_deletions("2026-03-02 09:00", jobs=("gone",))


def make_booking(  # noqa: PLR0917 # a line of a table, read across
    kind: str,
    candidate: str,
    job: str,
    start: str,
    status: str,
    created: str,
    end: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the fields of a booking. `start`, `created` and `end` are dates like "2026-01-12"."""
    return {
        "created": f"{created} 09:00",
        "booking_type": kind,
        "candidate_id": candidate,
        "job_id": job,
        "start_datetime": f"{start}T09:00:00Z",
        "end_datetime": f"{end}T17:00:00Z" if end else None,
        "status": status,
        **fields,
    }


def load_interviews(world: ModelWorld) -> None:
    def make_interview(
        candidate: str, job: str, day: str, status: str, created: str
    ) -> dict[str, Any]:
        return make_booking("interview", candidate, job, day, status, created, day)

    world.load_details(
        "2026-03-02 09:00",
        bookings={
            "i1": make_interview("hal", "multi", "2026-01-12", "completed", "2026-01-06"),
            "i2": make_interview("hal", "multi", "2026-01-14", "completed", "2026-01-06"),
            "i3": make_interview("ivy", "multi", "2026-01-13", "cancelled", "2026-01-06"),
            "i4": make_interview("rob", "multi", "2026-01-15", "completed", "2026-01-06"),
            "i5": make_interview("rob", "multi", "2026-03-10", "scheduled", "2026-03-01"),
            "i6": make_interview("kit", "reopened", "2026-01-28", "completed", "2026-01-26"),
        },
    )


def load_permanent_placements(world: ModelWorld) -> None:
    world.load_details(
        "2026-03-02 09:00",
        bookings={
            "p-hal": make_booking(
                *("permanent", "hal", "multi", "2026-03-16", "confirmed", "2026-01-15"),
                placement_fee=5000,
                offer_accepted_date="2026-01-19",
                company_id="acme",
                assigned_to="u1",
            ),
            # 10 % of 50,000, since the job names no amount.
            "p-ivy": make_booking(
                *("permanent", "ivy", "multi", "2026-03-09", "scheduled", "2026-02-01"),
                annual_salary=50000,
                offer_accepted_date="2026-02-02",
                assigned_to="u1",
            ),
            "p-kit": make_booking(
                *("permanent", "kit", "reopened", "2026-04-01", "confirmed", "2026-02-09"),
                offer_accepted_date="2026-02-10",
            ),
            "p-lee": make_booking(
                *("permanent", "lee", "filled", "2026-01-19", "completed", "2026-01-10")
            ),
            # One that stands takes the place of this one, and nothing takes that of p-oli.
            "p-lee-before": make_booking(
                *("permanent", "lee", "filled", "2026-01-12", "rescheduled", "2026-01-09")
            ),
            "p-oli": make_booking(
                *("permanent", "oli", "closed", "2026-02-16", "rescheduled", "2026-02-08"),
                placement_fee=900,
            ),
            "p-cancelled": make_booking(
                *("permanent", "ivy", "filled", "2026-02-16", "cancelled", "2026-01-09"),
                placement_fee=1,
            ),
            "p-draft": make_booking(
                *("permanent", "rob", "multi", "2026-02-16", "draft", "2026-01-09"), placement_fee=1
            ),
            # Of a deleted candidate on a deleted job: a fee without a currency.
            "p-quin": make_booking(
                *("permanent", "quin", "gone", "2026-02-16", "completed", "2026-01-09"),
                placement_fee=1000,
                company_id="beta",
            ),
        },
    )


def load_contracts(world: ModelWorld) -> None:
    """Load contracts, and changes of their ends before and after they begin."""
    hal = make_booking(
        *("contract", "hal", "contract", "2026-02-02", "confirmed", "2026-01-12", "2026-03-02"),
        day_rate=500,
    )
    mia = make_booking(
        *("contract", "mia", "contract", "2026-01-12", "confirmed", "2026-01-05", "2026-04-10"),
        day_rate=400.5,
    )
    world.load_details("2026-01-05 09:30", bookings={"c-mia": mia})
    # The end is moved before the contract begins: a correction.
    world.load_details(
        "2026-01-12 09:00",
        bookings={
            "c-mia": {"updated": "2026-01-08 09:00", "end_datetime": "2026-04-05T17:00:00Z"},
            "c-hal": hal,
        },
    )
    # And after it has begun: an extension.
    world.load_details(
        "2026-03-02 09:00",
        bookings={
            "c-hal": {"updated": "2026-02-27 09:00", "end_datetime": "2026-03-16T17:00:00Z"},
            "c-mia-2": make_booking(
                *("contract", "mia", "contract-2", "2026-04-20", "confirmed", "2026-03-01"),
                "2026-12-31",
            ),
            "c-ned": make_booking(
                *("contract", "ned", "contract", "2026-04-07", "scheduled", "2026-03-01"),
                "2026-06-04",
            ),
            "c-over": make_booking(
                *("contract", "rob", "contract", "2025-12-01", "completed", "2025-11-20"),
                "2026-03-05",
            ),
        },
    )
    world.load_list_items(
        "2026-03-02 09:00",
        bookings={
            "c-pat": make_booking(
                *("contract", "pat", "listed", "2026-02-09", "confirmed", "2026-02-05"),
                "2026-03-20",
            )
        },
    )

"""A simulated month with its marts, and the same figures computed with pandas from true records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.models.marts import month as made
from tests.models.marts.month import NOW, RATES, SimulatedRecord, local_date
from tests.models.marts.world import BuiltWorld, ModelWorld
from tests.seeds import SEED

Frame = Any
"""A frame or a series of pandas, whose values may be anything."""

TODAY = local_date(NOW)
STANDING = ("scheduled", "confirmed", "in_progress", "completed")


class SimulatedMonth:
    """A simulated month: its marts, and its true values computed with pandas."""

    def __init__(self, folder: Path) -> None:
        self.month, self.pull_times = made.simulate_month(SEED), made.draw_pull_times(SEED)
        world = ModelWorld(folder)
        with world.warehouse.keep_open():
            made.load_month(world, self.month, self.pull_times)
        self.world: BuiltWorld = world.build()
        self.jobs, self.leads = self.existing_records("jobs"), self.existing_records("leads")
        self.candidates, self.bookings = (
            self.existing_records("candidates"),
            self._classified_bookings(),
        )
        self.companies = self._observed_companies()
        self.contracts = self._placements_with_fees()
        is_placement = self.bookings.counts_as[self.contracts.index] == "placement"
        self.placements = self.contracts[is_placement]
        self.contracts = self.contracts[self.contracts.booking_type == "contract"]

    def mart(self, name: str, where: str = "true") -> Frame:
        """Return the rows of a mart that meet an SQL condition."""
        found = self.world.connection.execute(f"FROM marts.{name} WHERE {where}")
        names = [each[0] for each in found.description or ()]
        return pd.DataFrame(found.fetchall(), columns=names, dtype=object)

    def existing_records(self, name: str) -> Frame:
        """Return the records of a resource that are not deleted at the end of the month, by id."""
        rows = {each.id: each.state_at(NOW) for each in self.month[name]}
        return _make_frame({id: row for id, row in rows.items() if row})

    def _observed_companies(self) -> Frame:
        """Return all companies that a pull observed, in their last observed state."""
        seen = {}
        for each in self.month["companies"]:
            shown = [now for at in self.pull_times if (now := each.state_at(at))]
            if shown:
                seen[each.id] = {**shown[-1], "is_deleted": each.state_at(NOW) is None}
        return _make_frame(seen)

    def _classified_bookings(self) -> Frame:
        """Return existing bookings with local dates, their consultant, and what each counts as."""
        frame = self.existing_records("bookings")
        for name in ("start", "end"):
            moments = [
                datetime.fromisoformat(v) if isinstance(v, str) else None
                for v in frame[f"{name}_datetime"]
            ]
            frame[f"{name}_at"] = pd.Series(moments, frame.index, dtype=object)
            frame[f"{name}_date"] = [
                None
                if at is None
                else at.date()
                if whole and at.hour == 0
                else local_date(at, zone)
                for at, whole, zone in zip(moments, frame.all_day, frame.timezone, strict=True)
            ]
        frame["created_date"] = [
            local_date(at, zone) for at, zone in zip(frame.created, frame.timezone, strict=True)
        ]
        frame["consultant"] = [
            a or self.jobs.assigned_to.get(job)
            for a, job in zip(frame.assigned_to, frame.job_id, strict=True)
        ]
        frame["counts_as"] = "not_counted"
        meetings = frame.booking_type == "interview"
        talks = frame.booking_type.isin(("consultation", "site_visit"))
        past = frame.start_at.map(lambda at: at <= NOW)
        held = (frame.status == "completed") | (frame.status.isin(STANDING) & past)
        coming = frame.status.isin((*STANDING, "rescheduled")) & ~past & ~held
        frame["is_held"] = held & (meetings | talks)
        frame.loc[meetings & held, "counts_as"] = "interview_held"
        frame.loc[meetings & coming, "counts_as"] = "interview_to_come"
        frame.loc[meetings & (frame.status == "cancelled"), "counts_as"] = "interview_cancelled"
        talks &= held | coming
        frame.loc[talks, "counts_as"] = frame.booking_type[talks]
        frame.loc[_is_placement(frame), "counts_as"] = "placement"
        return frame

    def _placements_with_fees(self) -> Frame:
        """Return the bookings that are placements, with day, client, currency and fee."""
        frame = self.bookings[self.bookings.counts_as == "placement"].copy()
        jobs = self.jobs.reindex(frame.job_id).set_index(frame.index)
        frame["client"] = frame.company_id.fillna(jobs.company_id)
        permanent = frame.booking_type == "permanent"
        codes = {
            name: jobs[name].map(lambda v: v.strip().upper() or None if isinstance(v, str) else v)
            for name in ("salary_currency", "rate_currency")
        }
        first = codes["salary_currency"].where(permanent, codes["rate_currency"])
        other = codes["rate_currency"].where(permanent, codes["salary_currency"])
        frame["currency"] = first.where(first.notna(), other)
        pay = (
            jobs.salary_min.fillna(jobs.salary_max) + jobs.salary_max.fillna(jobs.salary_min)
        ) / 2
        salary = frame.annual_salary.fillna(pay).where(permanent)
        client = self.companies.reindex(frame.client).set_index(frame.index)
        theirs = client.fee_percentage.where(client.fee_type == "percentage")
        frame["fee"] = (
            frame.placement_fee.fillna(jobs.placement_fee)
            .fillna(salary * jobs.fee_percentage / 100)
            .fillna(salary * theirs / 100)
            .astype(float)
        )
        frame["reporting_fee"] = (frame.fee * frame.currency.map(RATES)).round(2)
        agreed = frame.offer_accepted_date.map(
            lambda v: date.fromisoformat(v) if isinstance(v, str) else None
        )
        either = [min(pair) for pair in zip(frame.created_date, frame.start_date, strict=True)]
        frame["placed_on"] = agreed.where(agreed.notna(), pd.Series(either, frame.index))
        frame = self._with_contract_states(frame)
        frame["billed_from"] = frame.start_date
        extensions: list[Any] = []
        for _, group in frame.groupby(["booking_type", "candidate_id", "job_id"]):
            covered: date | None = None
            ordered = group.rename_axis("id").sort_values(["start_date", "id"])
            for place, (id, row) in enumerate(ordered.iterrows(), 1):
                if covered and (row.start_date - covered).days <= 30:
                    extensions.append(id)
                if covered:
                    frame.loc[id, "billed_from"] = max(row.start_date, covered + timedelta(1))
                later = ordered.start_date.iloc[place:]
                until = row.start_date if row.booking_type == "permanent" else row.last_day
                until = until or (later.iloc[0] - timedelta(1) if len(later) else date.max)
                frame.loc[id, "billed_until"] = min(row.last_day or TODAY, until)
                covered = max(covered or until, until)
        self.bookings.loc[extensions, "counts_as"] = "extension"
        return frame

    def _with_contract_states(self, frame: Frame) -> Frame:
        """Add the state of each contract, its last day, and the day a pull saw it completed."""
        visits = self.observed_visits("bookings")
        done = visits[visits.left_by.isna() & (visits.status == "completed")].set_index("id")
        frame["completed_on"] = [
            local_date(done.entered_at[id], zone) if status == "completed" else None
            for id, zone, status in zip(frame.index, frame.timezone, frame.status, strict=True)
        ]
        frame["last_day"] = [
            min((day for day in (end, over) if day), default=None) if kind == "contract" else end
            for kind, end, over in zip(
                frame.booking_type, frame.end_date, frame.completed_on, strict=True
            )
        ]
        frame["contract_state"] = [
            None
            if row.booking_type != "contract"
            else "ended"
            if row.status == "completed" or (row.end_date and row.end_date < TODAY)
            else "running"
            if row.start_date <= TODAY
            else "to_come"
            for row in frame.itertuples()
        ]
        return frame

    def last_read_at(self, company: str) -> datetime:
        """Return the time of the last pull that read this company."""
        (truth,) = (each for each in self.month["companies"] if each.id == company)
        times = []
        before = None
        for place, at in enumerate(self.pull_times):
            now = truth.state_at(at)
            if now and (
                before is None or now["updated"] > before or made.is_reread(company, place)
            ):
                times.append(at)
            before = at if now else before
        return times[-1]

    def last_changed_at(self, company: str) -> datetime | None:
        """Return when a job or booking of the company last changed or was found deleted, if any."""
        found = []
        for each in (*self.month["jobs"], *self.month["bookings"]):
            shown = [(at, each.state_at(at)) for at in self.pull_times]
            seen = [now for _, now in shown if now and now["company_id"] == company]
            if seen:
                found.append(seen[-1]["updated"])
                last = max(at for at, now in shown if now)
                found += [at for at, _ in shown if at > last][:1]
        return max(found, default=None)

    def observed_visits(self, resource: str) -> Frame:
        """Return the records' stays in statuses, as far as the pulls observed them."""
        rows = [
            row for each in self.month[resource] for row in _observe_visits(each, self.pull_times)
        ]
        return pd.DataFrame(rows, dtype=object)


def _make_frame(rows: dict[str, dict[str, Any]]) -> Frame:
    """Return a frame of the records, with their ids as index."""
    return pd.DataFrame([*rows.values()], index=[*rows], dtype=object)


def _is_placement(frame: Frame) -> Frame:
    """Return for each booking True if it counts as a placement.

    Cancelled bookings do not count. Of rescheduled ones for the same candidate and job, the latest
    counts if no other booking does.
    """
    kinds = frame.booking_type.isin(("permanent", "contract"))
    stands = kinds & frame.status.isin(STANDING)
    key = frame.booking_type + frame.candidate_id + frame.job_id
    moved = frame[kinds & (frame.status == "rescheduled") & ~key.isin(key[stands])]
    latest = moved.assign(key=key[moved.index]).sort_values("created").groupby("key").tail(1)
    return stands | frame.index.isin(latest.index)


def _observe_visits(
    record: SimulatedRecord, pull_times: list[datetime]
) -> Iterator[dict[str, Any]]:
    """Yield one record's stays in statuses, as far as the pulls observed them."""
    visit: dict[str, Any] | None = None
    number, seen, updated = 0, None, None
    for at in pull_times:
        now = record.state_at(at)
        if visit and (now is None or now["status"] != visit["status"]):
            left = at if now is None else max(now["updated"], seen or at)
            how = "deletion" if now is None else "change"
            yield {**visit, "left_after": seen, "left_at": left, "left_before": at, "left_by": how}
            visit = None
        if now is None:
            continue
        if visit is None:
            number += 1
            entered = now["updated"]
            after = now["created"] if seen is None else seen
            visit = {"id": record.id, "number": number, "status": now["status"], "hides": False}
            visit |= {"entered_at": entered, "entered_after": after, "entered_before": at}
            visit["is_new"] = number > 1 or now["created"] >= pull_times[0]
        elif now["updated"] != updated:
            visit["hides"] = True
        seen, updated = at, now["updated"]
    if visit:
        yield {**visit, "left_after": None, "left_at": None, "left_before": None, "left_by": None}


def normalize_value(value: Any) -> Any:
    """Convert missing values to None and numbers to floats of four decimals, for comparisons."""
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, pd.Timestamp | datetime):
        return value.date() if value.tzinfo is None else pd.Timestamp(value).tz_convert(UTC)
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, int | float | np.number) or type(value).__name__ == "Decimal":
        return round(float(value), 4)
    return value


def sorted_rows(frame: Frame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the normalized values of these columns, row by row and sorted."""
    found = [tuple(map(normalize_value, row)) for row in frame[[*columns]].itertuples(index=False)]
    return sorted(found, key=repr)


def assert_same_rows(mart: Frame, truth: Frame, *columns: str) -> None:
    """Assert that mart and truth have the same rows in these columns, and at least one."""
    assert len(truth)
    assert sorted_rows(truth, *columns) == sorted_rows(mart, *columns)


def first_of_month(day: Any) -> Any:
    """Return the first day of the month, or None for no day."""
    return None if day is None or day is pd.NaT else day.replace(day=1)


def days_between(begins: Any, ends: Any) -> float:
    """Return the number of days between two timestamps as a fraction, at least 0."""
    return float(max(0.0, (ends - begins).total_seconds() / 86_400))


def round_days(days: float) -> float:
    """Round the days to two decimals, halves up."""
    return math.floor(days * 100 + 0.5) / 100

"""A small agency on the sandbox, with ordinary texts, for simulated lives of an account.

Texts are such as people write: slashes in titles, employers, switchboards and names that several
people share, notes that name a colleague. Whoever shares something shares it with a *stayer*, who
is never erased and never deleted, so that a shared mark stays shared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.sandbox.random_values import LEAD_STATUSES
from connector.sandbox.server import Sandbox

RESOURCES = ("companies", "candidates", "bookings", "leads")
"""What is pulled, in this order."""

MARK = "[erased]"

TITLES = ("UX/UI Designer", "C/C++ Developer", "Recruiter", "Night/day shift lead")
EMPLOYERS = ("Ernst & Young / EY", "Baker Tilly", "Northwind", "A/B Logistics")
FLATS = ("Flat 2/1", "3/2 Kelvin Drive", "Main Street 4")
SWITCHBOARD = "+44 20 7946 0000"
SHARED_NAME = ("Jordan", "Baker")

PERSONAL = {
    "candidates": (
        "first_name",
        "last_name",
        "email",
        "phone",
        "address_line1",
        "current_job_title",
        "current_company",
        "network_url",
        "notes",
    ),
    "leads": ("first_name", "last_name", "email", "phone", "job_title", "notes"),
}
"""Fields of whole people that these worlds fill, of which nothing is left after an erasure."""


@dataclass(frozen=True)
class ErasablePerson:
    """A person who may be erased: a record's id and what only they have."""

    resource: str
    id: str
    email: str
    marks: tuple[str, ...]


@dataclass
class SimulatedAgency:
    """The platform's side. `people` are all who may be erased, by id, as they were made."""

    sandbox: Sandbox
    chance: random.Random
    people: dict[str, ErasablePerson] = field(default_factory=dict)
    stayers: set[str] = field(default_factory=set)
    number: int = 0

    def open(self) -> None:
        """Make the first records."""
        for _ in range(3):
            self.add("candidates", stays=True)
        self.add("leads", stays=True)
        for _ in range(3 + self.chance.randrange(4)):
            self.add("candidates")
        for _ in range(2):
            self.add("leads")
        for _ in range(3):
            self.company()
        for _ in range(4):
            self.booking()

    # -- making -----------------------------------------------------------------------------------

    def add(self, resource: str, *, stays: bool = False) -> str:
        """Create a person on the platform."""
        body = self.body(resource, stays=stays)
        id: str = self.sandbox.store.create(resource, body).record["id"]
        self.know(resource, id, body, stays=stays)
        return id

    def know(self, resource: str, id: str, body: Mapping[str, Any], *, stays: bool = False) -> None:
        """Remember somebody who was created, here or by a push."""
        if stays:
            self.stayers.add(id)
        name = f"{body.get('first_name', '')} {body.get('last_name', '')}".strip()
        own = [body["email"]]
        own += [name] if (body.get("first_name"), body.get("last_name")) != SHARED_NAME else []
        own += [each for each in (body.get("phone"),) if each and each != SWITCHBOARD]
        own += [each for each in (body.get("network_url"),) if each]
        self.people[id] = ErasablePerson(resource, id, body["email"], tuple(own))

    def body(self, resource: str, *, stays: bool = False) -> dict[str, Any]:
        """Draw the fields of a new person."""
        pick = self.chance.choice
        self.number += 1
        number = self.number
        is_shared = stays or self.chance.random() < 0.3
        first, last = SHARED_NAME if is_shared else (f"Ann{number}x", f"Lee{number}son")
        found: dict[str, Any] = {
            "first_name": first,
            "last_name": last,
            "email": f"p{number}.{pick(('lee', 'ann'))}@mail.example",
            "phone": SWITCHBOARD if is_shared else f"+44 20 7000 {number:04d}",
            "notes": self.note(),
        }
        if resource == "candidates":
            found |= {
                "employment_type": pick(("permanent", "contractor")),
                "current_job_title": TITLES[number % 4],
                "current_company": EMPLOYERS[number % 4],
                "address_line1": FLATS[number % 3],
                "network_url": f"https://people.example/in/p{number}-{last.lower()}",
                "source": pick(("fair", "walk-in")),
            }
        else:
            found |= {"lead_status_id": LEAD_STATUSES[0], "job_title": TITLES[number % 4]}
        return found

    def note(self) -> str:
        """A note as a colleague writes it, on somebody else or on nobody."""
        text = self.chance.choice(
            ("Keen on {title}.", "At {employer} before.", "Lives at {flat}.", "Knows {mark}.")
        )
        who = self.chance.choice([*self.people.values()]) if self.people else None
        return text.format(
            title=self.chance.choice(TITLES),
            employer=self.chance.choice(EMPLOYERS),
            flat=self.chance.choice(FLATS),
            mark=self.chance.choice(who.marks) if who else "nobody",
        )

    def company(self) -> None:
        """A client, whose name may be what others have as their employer."""
        self.number += 1
        self.sandbox.store.create(
            "companies",
            {
                "name": EMPLOYERS[self.number % 4],
                "email": f"agency{self.number}@firm.example",
                "phone": SWITCHBOARD,
                "description": self.note(),
            },
        )

    def booking(self) -> None:
        """A meeting about somebody who is there."""
        candidates = sorted(self.sandbox.store.records("candidates"))
        self.sandbox.store.create(
            "bookings",
            {
                "booking_type": "internal",
                "start_datetime": "2026-12-01T09:00:00Z",
                "title": self.chance.choice(TITLES),
                "location": self.chance.choice(FLATS),
                "candidate_id": self.chance.choice(candidates),
                "internal_notes": self.note(),
            },
        )

    # -- what people do ---------------------------------------------------------------------------

    def churn(self) -> None:
        """One thing that somebody does on the platform."""
        store, pick = self.sandbox.store, self.chance.choice
        match self.chance.randrange(6):
            case 0:
                self.add(pick(("candidates", "leads")))
            case 1:
                self.booking()
            case 2 if gone := self.leavers():
                store.delete(*gone)
            case _:
                resource = pick(("candidates", "leads", "candidates"))
                id = pick(sorted(store.records(resource)))
                store.update(resource, id, {"notes": self.note()})

    def leavers(self) -> tuple[str, str] | None:
        """Draw a person who may be deleted; None if few are left."""
        resource = self.chance.choice(("candidates", "leads"))
        there = sorted(self.sandbox.store.records(resource).keys() - self.stayers)
        return (resource, self.chance.choice(there)) if len(there) > 3 else None

    def texts(self) -> Iterator[tuple[str, str, str, str]]:
        """Every text on the platform: resource, id, field, text."""
        for resource in RESOURCES:
            for id, record in self.sandbox.store.records(resource).items():
                for name, value in record.items():
                    if isinstance(value, str):
                        yield resource, id, name, value

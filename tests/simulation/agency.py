"""A small agency in the sandbox, with ordinary texts, for simulated accounts.

The texts are realistic: slashes in titles; employers, phone numbers and names that several people
share; notes that name a colleague. Everything shared is also shared with a permanent person, who is
never erased or deleted, so that it remains shared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.sandbox.seed import LEAD_STATUSES
from connector.sandbox.server import Sandbox

RESOURCES = ("companies", "candidates", "bookings", "leads")
"""Resources that are pulled, in this order."""


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
"""Personal fields that `draw_person` fills, and that an erasure clears."""


@dataclass(frozen=True)
class ErasablePerson:
    """A person who may be erased. `marks` are the texts that occur only in this person's record."""

    resource: str
    id: str
    email: str
    marks: tuple[str, ...]


@dataclass
class SimulatedAgency:
    """Records on the platform, and random changes of them.

    `people` are all candidates and leads ever created, by id. Those in `permanent_ids` are never
    erased or deleted.
    """

    sandbox: Sandbox
    chance: random.Random
    people: dict[str, ErasablePerson] = field(default_factory=dict)
    permanent_ids: set[str] = field(default_factory=set)
    number: int = 0

    def create_first_records(self) -> None:
        """Create permanent and other people, three companies and four bookings."""
        for _ in range(3):
            self.create_person("candidates", is_permanent=True)
        self.create_person("leads", is_permanent=True)
        for _ in range(3 + self.chance.randrange(4)):
            self.create_person("candidates")
        for _ in range(2):
            self.create_person("leads")
        for _ in range(3):
            self.create_company()
        for _ in range(4):
            self.create_booking()

    # -- making -----------------------------------------------------------------------------------

    def create_person(self, resource: str, *, is_permanent: bool = False) -> str:
        """Create a random candidate or lead on the platform, and return the id."""
        body = self.draw_person(resource, is_permanent=is_permanent)
        id: str = self.sandbox.store.create(resource, body).record["id"]
        self.remember_person(resource, id, body, is_permanent=is_permanent)
        return id

    def remember_person(
        self, resource: str, id: str, body: Mapping[str, Any], *, is_permanent: bool = False
    ) -> None:
        """Add a created person to `people`, with the texts that identify only this person."""
        if is_permanent:
            self.permanent_ids.add(id)
        name = f"{body.get('first_name', '')} {body.get('last_name', '')}".strip()
        own = [body["email"]]
        own += [name] if (body.get("first_name"), body.get("last_name")) != SHARED_NAME else []
        own += [each for each in (body.get("phone"),) if each and each != SWITCHBOARD]
        own += [each for each in (body.get("network_url"),) if each]
        self.people[id] = ErasablePerson(resource, id, body["email"], tuple(own))

    def draw_person(self, resource: str, *, is_permanent: bool = False) -> dict[str, Any]:
        """Return random fields of a new candidate or lead. Permanent ones get the shared name."""
        pick = self.chance.choice
        self.number += 1
        number = self.number
        is_shared = is_permanent or self.chance.random() < 0.3
        first, last = SHARED_NAME if is_shared else (f"Ann{number}x", f"Lee{number}son")
        found: dict[str, Any] = {
            "first_name": first,
            "last_name": last,
            "email": f"p{number}.{pick(('lee', 'ann'))}@mail.example",
            "phone": SWITCHBOARD if is_shared else f"+44 20 7000 {number:04d}",
            "notes": self.draw_note(),
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

    def draw_note(self) -> str:
        """Return a random note with a job title, an employer, an address or another person."""
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

    def create_company(self) -> None:
        """Create a company whose name is also the employer of some candidates."""
        self.number += 1
        self.sandbox.store.create(
            "companies",
            {
                "name": EMPLOYERS[self.number % 4],
                "email": f"agency{self.number}@firm.example",
                "phone": SWITCHBOARD,
                "description": self.draw_note(),
            },
        )

    def create_booking(self) -> None:
        """Create a booking with a random candidate."""
        candidates = sorted(self.sandbox.store.records("candidates"))
        self.sandbox.store.create(
            "bookings",
            {
                "booking_type": "internal",
                "start_datetime": "2026-12-01T09:00:00Z",
                "title": self.chance.choice(TITLES),
                "location": self.chance.choice(FLATS),
                "candidate_id": self.chance.choice(candidates),
                "internal_notes": self.draw_note(),
            },
        )

    # -- what people do ---------------------------------------------------------------------------

    def change_something(self) -> None:
        """Create, update or delete one random record on the platform."""
        store, pick = self.sandbox.store, self.chance.choice
        match self.chance.randrange(6):
            case 0:
                self.create_person(pick(("candidates", "leads")))
            case 1:
                self.create_booking()
            case 2 if gone := self.draw_deletable_person():
                store.delete(*gone)
            case _:
                resource = pick(("candidates", "leads", "candidates"))
                id = pick(sorted(store.records(resource)))
                store.update(resource, id, {"notes": self.draw_note()})

    def draw_deletable_person(self) -> tuple[str, str] | None:
        """Return resource and id of a random person who may be deleted; None if few are left."""
        resource = self.chance.choice(("candidates", "leads"))
        there = sorted(self.sandbox.store.records(resource).keys() - self.permanent_ids)
        return (resource, self.chance.choice(there)) if len(there) > 3 else None

    def list_texts(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield resource, id, field name and value of every text on the platform."""
        for resource in RESOURCES:
            for id, record in self.sandbox.store.records(resource).items():
                for name, value in record.items():
                    if isinstance(value, str):
                        yield resource, id, name, value

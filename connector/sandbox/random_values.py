"""Random values for sample records, and the records of the agency created so far."""

from __future__ import annotations

import random as chance
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import NAMESPACE_DNS, UUID, uuid5

from connector.sandbox import vocabulary as words
from connector.sandbox.validation import make_slug

T = TypeVar("T")

USERS = tuple(str(uuid5(NAMESPACE_DNS, f"user-{n}.example.com")) for n in range(8))
"""The consultants to whom records are assigned; users have no endpoint."""

LEAD_STATUSES = tuple(str(uuid5(NAMESPACE_DNS, f"lead-status-{n}.example.com")) for n in range(5))
"""The agency's own list of lead statuses; it has no endpoint."""

HANDLES = {
    name: make_slug(name).replace("untitled", words.FOREIGN_NAME)
    for name in (*words.FIRST_NAMES, *words.LAST_NAMES)
}
"""Each name in the form that email addresses have."""


class RandomValues:
    """Source of random values, faster than the methods of `random.Random`."""

    def __init__(self, source: chance.Random) -> None:
        self.random = source.random
        self._bits = source.getrandbits

    def choice(self, options: Sequence[T]) -> T:
        """Return a random option."""
        return options[int(self.random() * len(options))]

    def maybe(self, share: float, value: T) -> T | None:
        """Return the value with this probability, else None."""
        return value if self.random() < share else None

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + int(self.random() * (high - low + 1))

    def yes(self, share: float = 0.5) -> bool:
        """Return True with this probability."""
        return self.random() < share

    def id(self) -> str:
        """Return a random UUID."""
        return str(UUID(int=self._bits(128), version=4))

    def day(self, near: datetime, low: int, high: int) -> str:
        """Return a date between `low` and `high` days after `near`, as YYYY-MM-DD."""
        return (near.date() + timedelta(days=self.integer(low, high))).isoformat()

    def text(self) -> str | None:
        """Return one to three sentences, sometimes None, an empty or a very long text."""
        share = self.random()
        if share < 0.35:
            return None
        if share < 0.42:
            return ""
        if share > 0.985:
            return "\n\n".join(self.choice(words.SENTENCES) for _ in range(120))
        return " ".join(self.choice(words.SENTENCES) for _ in range(self.integer(1, 3)))

    def phone(self) -> str | None:
        """Return a telephone number in a common notation, an empty text or None."""
        number = self.integer(0, 999)
        form = self.choice(
            ("+44 7700 900{:03d}", "07700 900{:03d}", "(020) 7946 0{:03d}", "", None)
        )
        return form.format(number) if form else form

    def skills(self) -> str:
        """Return a few skills, with a random separator."""
        separator = self.choice((", ", "; ", " / ", "\n"))
        return separator.join(self.choice(words.SKILLS) for _ in range(self.integer(1, 5)))


@dataclass(slots=True)
class AgencyContext:
    """Ids, jobs, content types and emails of the records made so far.

    Later records refer to them. `anchor` is the latest time of the data.
    """

    anchor: datetime
    ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    jobs: list[tuple[str, str | None]] = field(default_factory=list)
    types: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    def make_email(self, rng: RandomValues, first: str, last: str, number: int) -> str:
        """Return an email address. One in a hundred is that of an earlier record."""
        if self.emails and rng.yes(0.01):
            return rng.choice(self.emails)
        email = f"{HANDLES[first]}.{HANDLES[last]}{number}@{rng.choice(words.MAIL_DOMAINS)}"
        if rng.yes(0.03):
            email = email.upper()
        self.emails.append(email)
        return email

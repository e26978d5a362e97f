"""Retention: those whose time is over by the rules are erased through the same door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from connector.erasure.erase import Erased, erase_all
from connector.erasure.finding import seed_of
from connector.erasure.rules import Rule, read_rules
from connector.errors import Misused
from connector.settings import Settings
from connector.warehouse import Warehouse
from connector.warehouse.file import opened
from connector.warehouse.overdue import overdue


@dataclass(frozen=True, slots=True)
class Due:
    """What one rule comes to: how many records are due, how many would be but are excepted since
    their person is placed, and how many have no date to count from.
    """

    rule: Rule
    cutoff: datetime
    ids: tuple[str, ...]
    excepted: int
    undated: int


@dataclass(frozen=True, slots=True)
class Retained:
    """What the rules come to, and what was erased; `erased` is None for a preview."""

    dues: tuple[Due, ...]
    erased: Erased | None = None

    @property
    def exit_status(self) -> int:
        """0, or as the erasing ended."""
        return 0 if self.erased is None else self.erased.exit_status

    def as_json(self) -> dict[str, Any]:
        """The same as `--json` prints it: counts, and no ids."""
        return {
            "rules": [
                {
                    "resource": each.rule.resource,
                    "rule": str(each.rule),
                    "cutoff": each.cutoff.isoformat(),
                    "due": len(each.ids),
                    "placed": each.excepted,
                    "undated": each.undated,
                }
                for each in self.dues
            ],
            "erased": None if self.erased is None else self.erased.as_json(),
        }


def retain(
    settings: Settings,
    *,
    applies: bool = False,
    most: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Retained:
    """What the account's rules come to; with `applies`, those who are due are erased, at most
    `most` of them. Raises `SettingsError` and `UnknownName` for rules that cannot be meant,
    `Misused` where there are none, and what `erase` raises.
    """
    rules = read_rules(settings.retention.value, settings.retention.origin)
    if not rules:
        raise Misused(
            "there is no rule on retention",
            action="Write a table [retention] into connector.toml; docs/PERSONAL_DATA.md shows it.",
        )
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return Retained(tuple(Due(each, each.cutoff(now()), (), 0, 0) for each in rules))
    warehouse.prepare()
    dues = []
    with opened(warehouse.work) as connection:
        for rule in rules:
            cutoff = rule.cutoff(now())
            found = overdue(connection, rule.resource, rule.field, cutoff, rule.conditions)
            dues.append(Due(rule, cutoff, found.ids, found.excepted, found.undated))
    if not applies:
        return Retained(tuple(dues))
    ids = [id for due in dues for id in due.ids]
    erased = erase_all(settings, [seed_of(id) for id in ids[:most]], now=now)
    return Retained(tuple(dues), erased)

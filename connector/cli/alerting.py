"""How alerts stand, in words, for the commands that show it beside other things.

Words and exit statuses alone: nothing is decided and nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from connector.alerts import failure_of, standing_alerts, waiting_of
from connector.alerts.checking import Waiting
from connector.alerts.silence import Proof
from connector.cli.terminal import Terminal
from connector.engine.quota import shown
from connector.ledger.alerts import AlertRecord
from connector.outcome import plain
from connector.settings import Settings


@dataclass(frozen=True, slots=True)
class Watched:
    """The alerts that stand, and what waits for the sinks that are set."""

    standing: tuple[AlertRecord, ...]
    waiting: tuple[Waiting, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence on each sink that alerts do not arrive at."""
        return tuple(failure for each in self.waiting if (failure := failure_of(each)))


def watched(settings: Settings) -> Watched:
    """How alerts stand; no file is made. Raises a `WarehouseError`."""
    standing, undelivered = standing_alerts(settings)
    return Watched(standing, waiting_of(undelivered))


def lines(what: Watched) -> Iterator[str]:
    """A line for each alert that stands."""
    for each in what.standing:
        about = f" ({each.about})" if each.about else ""
        yield f"Alert since {shown(each.since)}: {each.code}{about}. {each.happened}"


def as_json(proof: Proof | None, what: Watched) -> dict[str, object]:
    """The same as an object."""
    told: dict[str, object] = {
        "alerts": [plain(asdict(each)) for each in what.standing],
        "alerts_waiting": [plain(asdict(each)) for each in what.waiting],
    }
    return told if proof is None else {**told, "silent": proof.sentence}


def judge(terminal: Terminal, proof: Proof | None, what: Watched) -> int:
    """Warn of alerts that do not arrive, and say whether what is pulled is too old; the exit
    status. Where a proof was asked for, alerts that cannot arrive make it 1 as well: their silence
    would mean nothing.
    """
    for failure in what.failures:
        terminal.warn(f"{failure}. 'connector alerts --test' says whether they would now.")
    if proof is None:
        return 0
    if proof.sentence is not None:
        terminal.warn(f"{proof.sentence} Check that the schedule runs; then run 'connector pull'.")
    return 1 if proof.sentence is not None or what.failures else 0

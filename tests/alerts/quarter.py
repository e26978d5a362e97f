"""A quarter of one account: ninety nights of the real commands, on a clock that is told the time.

Each night at a quarter past two the account is pulled as a timer would, and by the morning somebody
does what the messages of the night ask for. The server, the files, the commands and the webhook are
real; nothing waits, since the client's waits move the clock.
"""

from __future__ import annotations

import asyncio
import datetime as clocks
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.client.client import Client
from connector.operations.alert_check import check_alerts
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings.model import load_settings
from connector.warehouse.duckdb_file import open_file
from tests.alerts.receivers import Receiver
from tests.cli.calling import ROOT, Called, call

NIGHTS = 90
BEGAN_AT = datetime(2026, 1, 1, 2, 15, tzinfo=UTC)
MORNING = timedelta(hours=6)
"""So long after the pull a person reads what came; a second check by cron is just before."""

WEEK = 7
"""One quiet night in so many is the whole command; the others are what it calls, for half."""

KEY, OTHER_KEY = "key-of-the-quarter", "key-of-nobody"


class Hours:
    """The time of the quarter; it passes when it is told to, and when the client waits."""

    def __init__(self) -> None:
        self.now = BEGAN_AT
        self.ahead = timedelta()
        """How far this machine's clock is ahead of the server's."""

    def __call__(self) -> datetime:
        """The time; to look at it takes a moment, so that nothing happens twice at once."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def seconds(self) -> float:
        """The time as a clock that never goes back has it."""
        return self.now.timestamp()

    async def wait(self, seconds: float) -> None:
        """Let that much time pass, at once."""
        self.now += timedelta(seconds=seconds)


@contextmanager
def timed(hours: Hours) -> Iterator[None]:
    """The time of the commands is that of the quarter, and so is that of the client."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, clocks.datetime)

    class Timed(clocks.datetime, metaclass=Meta):
        @classmethod
        def now(cls, tz: clocks.tzinfo | None = None) -> clocks.datetime:  # type: ignore[override]
            """The time of the quarter."""
            return (hours() + hours.ahead).astimezone(tz)

    terms = Client.__init__.__kwdefaults__
    assert terms is not None
    with pytest.MonkeyPatch.context() as patch:
        for name, module in sorted(sys.modules.items()):
            is_ours = name.startswith("connector.") and not name.startswith("connector.sandbox")
            # Others read records by their annotations, which must stay as they are.
            if is_ours and "datetime.now(" in inspect.getsource(module):
                patch.setattr(module, "datetime", Timed)
        patch.setitem(terms, "clock", hours.seconds)
        patch.setitem(terms, "sleep", hours.wait)
        patch.setitem(terms, "chance", lambda: 0.5)
        yield


@dataclass(frozen=True)
class Incident:
    """Something that goes wrong in a night, what is told of it, and what mends it.

    `says` is in the action of the message, and `mends` is what a person does who reads it; where it
    is None the night after mends it. The end is told `over` nights later; None where the message is
    about a cause that came to an alert that stands, and ends with it. `lasts` nights it goes on.
    """

    night: int
    about: str
    what: str
    begins: Callable[[Quarter], object]
    code: str
    says: str
    mends: Callable[[Quarter], object] | None = None
    resource: str = ""
    change: str = "opened"
    over: int | None = 1
    dawn: Callable[[Quarter], object] | None = None
    """What happens between the pull and the check by cron."""


@dataclass(frozen=True)
class Calm:
    """Something that happens in a night and is no reason for a message."""

    night: int
    about: str
    begins: Callable[[Quarter], object]
    mends: Callable[[Quarter], object] | None = None
    dawn: Callable[[Quarter], object] | None = None


@dataclass
class Plan:
    """An account of the quarter: what it pulls, its server's records, its script."""

    name: str
    resources: tuple[str, ...]
    counts: Mapping[str, int]
    script: tuple[Incident | Calm, ...]
    settings: Mapping[str, object] = field(default_factory=dict)


class Quarter:
    """One account's ninety nights."""

    def __init__(
        self, plan: Plan, folder: Path, sandbox: Sandbox, receiver: Receiver, hours: Hours
    ) -> None:
        self.hours = hours
        self.plan, self.folder, self.sandbox, self.receiver = plan, folder, sandbox, receiver
        self.name = plan.name
        self.settings: dict[str, object] = {"base_url": sandbox.base_url, **plan.settings}
        self.environ = {"CONNECTOR_CONFIG": str(folder / "connector.toml")}
        self.night = 0
        self.instead: Callable[[], object] | None = None
        """What happens in place of the night's pull."""
        self.seen = 0
        self.kept: dict[str, Any] = {}
        """What an incident leaves for its end."""
        self._open = ExitStack()

    @property
    def home(self) -> Path:
        """The account's folder."""
        return self.folder / "data" / self.name

    @property
    def store(self) -> Any:
        """What the server holds."""
        return self.sandbox.store

    def configure(self) -> None:
        """Write the project file as the settings are now."""
        lines = ['data_dir = "data"', 'models = "off"', 'alert_webhook_file = "webhook"']
        lines += [f"[accounts.{self.name}]", 'api_key_file = "key"']
        lines += [f"{each} = {_toml(value)}" for each, value in self.settings.items()]
        (self.folder / "connector.toml").write_text("\n".join(lines) + "\n")

    def set_key(self, key: str = KEY) -> None:
        """Put the key into the account's file."""
        file = self.folder / "key"
        file.write_text(key)
        file.chmod(0o600)

    def set(self, **settings: object) -> None:
        """Change settings of the account."""
        self.settings.update(settings)
        self.configure()

    def call(self, *words: str, **environ: str) -> Called:
        """Call the command for the account, as its timer or a person does."""
        return call([*words, "--account", self.name], {**self.environ, **environ})

    def pull(self, *words: str, **environ: str) -> Called:
        """The night's command."""
        return self.call("pull", *self.plan.resources, *words, **environ)

    def quiet(self) -> None:
        """The same pull and check, without the command around them and without a publication."""
        settings = load_settings({"account": self.name}, self.environ)
        done = asyncio.run(pull(settings, self.plan.resources, publishes=False))
        assert "done" == done.outcome, done
        check_alerts(settings)

    def cron(self) -> Called:
        """The second clock, which only sends what is due."""
        return call(["alerts", "--send", "--all"], self.environ)

    def let_go(self) -> None:
        """Close the work file until the morning."""
        self._open.close()

    def hold(self) -> None:
        """Keep the work file open: to open it is most of what a quiet night costs."""
        self.let_go()
        if (work := self.home / "work.duckdb").exists():
            self._open.enter_context(open_file(work))

    def live(self, told: Callable[[Outcome], None]) -> None:
        """Live through every night. Raises `AssertionError` at the first that is wrong."""
        standing: list[Incident] = []
        try:
            for self.night in range(NIGHTS):
                self.hours.now = BEGAN_AT + timedelta(days=self.night)
                standing = self._night(standing, told)
        finally:
            self.let_go()

    def _night(self, before: list[Incident], told: Callable[[Outcome], None]) -> list[Incident]:
        """A night and the morning after it; gives the incidents that are still to be over."""
        script = [each for each in self.plan.script if each.night == self.night]
        for each in script:
            each.begins(self)
        is_quiet = not (script or before or self.night % WEEK == 0)
        ended = (self.instead or (self.quiet if is_quiet else self.pull))()
        self.instead = None
        self.hours.now = BEGAN_AT + timedelta(days=self.night) + MORNING
        for each in script:
            if each.dawn is not None:
                each.dawn(self)
        if not is_quiet:
            self.cron()
        got = self.receiver.received[self.seen :]
        self.seen += len(got)
        begun = [each for each in script if isinstance(each, Incident)]
        over = [each for each in before if each.over and each.night + each.over == self.night]
        expected = [("ended", each.code, each.resource) for each in over]
        expected += [(each.change, each.code, each.resource) for each in begun]
        found = [(each["change"], each["code"], each["about"] or "") for each in got]
        assert sorted(expected) == sorted(found), (self.name, self.night, got, ended)
        for incident in begun:
            (message,) = [
                e for e in got if (e["change"], e["code"]) == (incident.change, incident.code)
            ]
            assert incident.says in message["action"], (incident.what, message)
            told(Outcome(self.name, incident, message))
        for each in script:
            if each.mends is not None:
                each.mends(self)
        if script or not self.night:
            self.hold()
        return [*(each for each in before if each not in over), *(e for e in begun if e.over)]


@dataclass(frozen=True)
class Outcome:
    """What became of an incident: the message that told of it."""

    account: str
    incident: Incident
    message: Mapping[str, Any]


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def spend_quarter(plan: Plan, folder: Path) -> list[Outcome]:
    """Live through the account's quarter; gives what became of each incident."""
    hours, outcomes = Hours(), list[Outcome]()
    (folder / "connector.toml").touch()
    # What a command imports when it is called has the time as well.
    for words in (["pull"], ["push"], ["alerts"], ["account"], ["models"]):
        call([*words, "--help"], {})
    served = Sandbox(
        counts=plan.counts, keys={KEY: ("*",)}, clock=hours, data=folder / "server.sqlite"
    )
    with timed(hours), Receiver() as receiver, served as sandbox:
        (folder / "webhook").write_text(receiver.address)
        (folder / "webhook").chmod(0o600)
        quarter = Quarter(plan, folder, sandbox, receiver, hours)
        quarter.set_key()
        quarter.configure()
        quarter.live(outcomes.append)
    return outcomes


# -- The page --------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "ALERTS.md"
BEGINS, ENDS = "<!-- The quarter: made by python -m tests.alerts -->", "<!-- The quarter ends -->"
COLUMNS = ("Night", "Account", "Incident", "Told as", "Action", "Over")


def rows_of(plan: Plan, outcomes: list[Outcome]) -> list[str]:
    """The lines of the page's table that an account's quarter came to."""
    lines = []
    for each in outcomes:
        incident, told = each.incident, each.message
        about = f" ({told['about']})" if told["about"] else ""
        over = "with it" if incident.over is None else f"night {incident.night + incident.over}"
        action = told["action"][told["action"].index(incident.says) :][: len(incident.says)]
        cells = (
            *(incident.night, plan.name, f"{incident.about} {incident.what}"),
            *(f"`{told['code']}`, {told['change']}{about}", f"... {action} ...", over),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def section(rows: list[str]) -> str:
    """The page's section with these lines."""
    head = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    return "\n".join((BEGINS, "", head, *rows, "", ENDS))

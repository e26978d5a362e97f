"""Nights of one account: real commands, server, files and webhook, with a simulated clock."""

from __future__ import annotations

import datetime as clocks
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from connector.client.client import Client
from connector.pulls import run
from connector.sandbox.server import Sandbox
from tests.problems.receivers import Receiver
from tests.repository import ROOT
from tests.support.command import CommandResult, call

BEGAN_AT = datetime(2026, 12, 1, 2, 15, tzinfo=UTC)
MORNING = timedelta(hours=6)
QUIET = "A quiet night"
COUNTS = {"jobs": 120, "candidates": 60, "leads": 12}
KEY, OTHER_KEY = "key-of-the-account", "key-of-nobody"


class NightClock:
    """Clock that advances with each reading and each wait of the client, or when a test sets it."""

    def __init__(self) -> None:
        self.now = BEGAN_AT
        self.ahead = timedelta()
        """How far this machine's clock is ahead of the server's."""

    def __call__(self) -> datetime:
        """Return the time. Each call advances it, so no two events have the same time."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def monotonic(self) -> float:
        """Return the time in seconds for the client, without advancing it."""
        return self.now.timestamp()

    async def wait(self, seconds: float) -> None:
        """Advance the clock by the seconds and return immediately."""
        self.now += timedelta(seconds=seconds)


@contextmanager
def use_clock(clock: NightClock) -> Iterator[None]:
    """Replace the real time in the commands and the client by this clock."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, clocks.datetime)

    class Timed(clocks.datetime, metaclass=Meta):
        @classmethod
        def now(cls, tz: clocks.tzinfo | None = None) -> clocks.datetime:  # type: ignore[override]
            """The set time."""
            return (clock() + clock.ahead).astimezone(tz)

    options = Client.__init__.__kwdefaults__
    assert options is not None
    with pytest.MonkeyPatch.context() as patch:
        for path in sorted((ROOT / "connector").rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            is_patched = not name.startswith("connector.sandbox")
            # Other modules read records by their annotations, which must stay as they are.
            if is_patched and "datetime.now(" in path.read_text(encoding="utf-8"):
                patch.setattr(import_module(name), "datetime", Timed)
        patch.setitem(options, "clock", clock.monotonic)
        patch.setitem(options, "sleep", clock.wait)
        patch.setitem(options, "chance", lambda: 0.5)
        patch.setattr(run, "time", SimpleNamespace(monotonic=count(0.0, 0.9).__next__))
        yield


class NightlyAccount:
    """Account with its project folder, its server, and the webhook of its notifications."""

    def __init__(
        self, folder: Path, sandbox: Sandbox, receiver: Receiver, clock: NightClock
    ) -> None:
        self.folder, self.sandbox, self.receiver, self.clock = folder, sandbox, receiver, clock
        self.settings: dict[str, object] = {"base_url": sandbox.base_url}
        self.environ = {"CONNECTOR_CONFIG": str(folder / "connector.toml")}
        self.home = folder / "data" / "acme"
        self.resources = tuple(COUNTS)

    def change_settings(self, **settings: object) -> None:
        """Change settings of the account in the project file; None removes a setting."""
        self.settings = {k: v for k, v in {**self.settings, **settings}.items() if v is not None}
        lines = ['data_dir = "data"', 'models = "off"', 'notify_urls_file = "webhook"']
        lines += ["[accounts.acme]", 'api_key_file = "key"']
        lines += [f"{each} = {value!r}" for each, value in self.settings.items()]
        (self.folder / "connector.toml").write_text("\n".join(lines) + "\n")

    def write_private_file(self, name: str, content: str) -> None:
        """Write a file in the project folder that only its owner can read."""
        (self.folder / name).write_text(content)
        (self.folder / name).chmod(0o600)

    def call(self, *words: str, **environ: str) -> CommandResult:
        """Run a command for the account."""
        return call([*words, "--account", "acme"], {**self.environ, **environ})

    def pull(self, **environ: str) -> CommandResult:
        """Pull all resources of the account."""
        return self.call("pull", *self.resources, **environ)

    def pop_messages(self) -> Iterator[str]:
        """Remove the messages that the webhook received, and yield their texts with placeholders
        for values that differ between runs.
        """
        bodies, self.receiver.bodies[:] = self.receiver.received, []
        for each in bodies:
            text = f"{each['title']}\n{each['message']}".replace(str(self.folder), "DIR")
            text = re.sub(r"\n+Host: .*", "", text)
            assert KEY not in text
            text = text.replace(self.sandbox.base_url, "https://acme.example")
            text = re.sub(r"http://127\.0\.0\.1:\d+", "https://other.example", text)
            yield re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "BATCH", text)


Step = Callable[[NightlyAccount], object]


@dataclass(frozen=True)
class Night:
    """One night: the step `before` causes a fault, a pull or the step `instead` of it follows, and
    the step `after` corrects the fault on the next morning.
    """

    number: int
    about: str
    before: Step | None = None
    after: Step | None = None
    instead: Step | None = None


def run_nights(nights: tuple[Night, ...], folder: Path) -> Iterator[tuple[Night, list[str]]]:
    """Run all nights from the first to the last number; nights that are not given are quiet.
    Yields each night with the texts of its messages.
    """
    clock, steps = NightClock(), {each.number: each for each in nights}
    (folder / "connector.toml").touch()
    served = Sandbox(counts=COUNTS, keys={KEY: ("*",)}, clock=clock, data=folder / "server.sqlite")
    with use_clock(clock), Receiver() as receiver, served as sandbox:
        account = NightlyAccount(folder, sandbox, receiver, clock)
        account.write_private_file("webhook", receiver.apprise_url)
        account.write_private_file("key", KEY)
        account.change_settings()
        for number in range(1, max(steps) + 1):
            night = steps.get(number, Night(number, QUIET))
            clock.now = BEGAN_AT + timedelta(days=number - 1)
            if night.before is not None:
                night.before(account)
            (night.instead or NightlyAccount.pull)(account)
            clock.now = max(clock.now, BEGAN_AT + timedelta(days=number - 1) + MORNING)
            call(["status", "--notify", "--all", "--quiet"], account.environ)
            yield night, list(account.pop_messages())
            if night.after is not None:
                night.after(account)

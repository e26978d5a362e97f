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
from tests.alerts.receivers import Receiver
from tests.repository import ROOT
from tests.support.command import CommandResult, call

BEGAN_AT = datetime(2026, 12, 1, 2, 15, tzinfo=UTC)
MORNING = timedelta(hours=6)
QUIET = "A quiet night"
COUNTS = {"jobs": 120, "candidates": 60, "leads": 12}
KEY, OTHER_KEY = "key-of-the-account", "key-of-nobody"


class NightClock:
    """Clock that advances when a test sets it and when the client waits."""

    def __init__(self) -> None:
        self.now = BEGAN_AT
        self.ahead = timedelta()
        """How far this machine's clock is ahead of the server's."""

    def __call__(self) -> datetime:
        """Return the time. Each call advances it, so no two events have the same time."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def seconds(self) -> float:
        """Return the time of a monotonic clock."""
        return self.now.timestamp()

    async def wait(self, seconds: float) -> None:
        """Advance the time without waiting."""
        self.now += timedelta(seconds=seconds)


@contextmanager
def use_clock(hours: NightClock) -> Iterator[None]:
    """Make the commands and the client use this clock."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, clocks.datetime)

    class Timed(clocks.datetime, metaclass=Meta):
        @classmethod
        def now(cls, tz: clocks.tzinfo | None = None) -> clocks.datetime:  # type: ignore[override]
            """The set time."""
            return (hours() + hours.ahead).astimezone(tz)

    options = Client.__init__.__kwdefaults__
    assert options is not None
    with pytest.MonkeyPatch.context() as patch:
        for path in sorted((ROOT / "connector").rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            is_patched = not name.startswith("connector.sandbox")
            # Other modules read records by their annotations, which must stay as they are.
            if is_patched and "datetime.now(" in path.read_text(encoding="utf-8"):
                patch.setattr(import_module(name), "datetime", Timed)
        patch.setitem(options, "clock", hours.seconds)
        patch.setitem(options, "sleep", hours.wait)
        patch.setitem(options, "chance", lambda: 0.5)
        patch.setattr(run, "time", SimpleNamespace(monotonic=count(0.0, 0.9).__next__))
        yield


class NightlyAccount:
    """Account with its server and its webhook."""

    def __init__(
        self, folder: Path, sandbox: Sandbox, receiver: Receiver, hours: NightClock
    ) -> None:
        self.folder, self.sandbox, self.receiver, self.hours = folder, sandbox, receiver, hours
        self.settings: dict[str, object] = {"base_url": sandbox.base_url}
        self.environ = {"CONNECTOR_CONFIG": str(folder / "connector.toml")}
        self.home = folder / "data" / "acme"
        self.resources = tuple(COUNTS)

    def set(self, **settings: object) -> None:
        """Change settings of the account; None removes one."""
        self.settings = {k: v for k, v in {**self.settings, **settings}.items() if v is not None}
        lines = ['data_dir = "data"', 'models = "off"', 'alert_webhook_file = "webhook"']
        lines += ["[accounts.acme]", 'api_key_file = "key"']
        lines += [f"{each} = {value!r}" for each, value in self.settings.items()]
        (self.folder / "connector.toml").write_text("\n".join(lines) + "\n")

    def write(self, name: str, content: str) -> None:
        """Write a file that only its owner can read."""
        (self.folder / name).write_text(content)
        (self.folder / name).chmod(0o600)

    def call(self, *words: str, **environ: str) -> CommandResult:
        """Run a command for the account."""
        return call([*words, "--account", "acme"], {**self.environ, **environ})

    def pull(self, **environ: str) -> CommandResult:
        """Run the nightly pull."""
        return self.call("pull", *self.resources, **environ)

    def messages(self) -> Iterator[str]:
        """Return new messages, with placeholders for values that differ between runs."""
        bodies, self.receiver.bodies[:] = self.receiver.received, []
        for each in bodies:
            text = re.sub("\nHost: .*", "", each["text"]).replace(str(self.folder), "DIR")
            assert KEY not in text
            text = text.replace(self.sandbox.base_url, "https://acme.example")
            text = re.sub(r"http://127\.0\.0\.1:\d+", "https://other.example", text)
            yield re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "BATCH", text)


Step = Callable[[NightlyAccount], object]


@dataclass(frozen=True)
class Night:
    """A fault, the step that runs `instead` of the night pull, and the correction."""

    number: int
    about: str
    before: Step | None = None
    after: Step | None = None
    instead: Step | None = None


def run_nights(nights: tuple[Night, ...], folder: Path) -> Iterator[tuple[Night, list[str]]]:
    """Run the nights. Yields each with its messages."""
    hours, steps = NightClock(), {each.number: each for each in nights}
    (folder / "connector.toml").touch()
    served = Sandbox(counts=COUNTS, keys={KEY: ("*",)}, clock=hours, data=folder / "server.sqlite")
    with use_clock(hours), Receiver() as receiver, served as sandbox:
        account = NightlyAccount(folder, sandbox, receiver, hours)
        account.write("webhook", receiver.address)
        account.write("key", KEY)
        account.set()
        for number in range(1, max(steps) + 1):
            night = steps.get(number, Night(number, QUIET))
            hours.now = BEGAN_AT + timedelta(days=number - 1)
            if night.before is not None:
                night.before(account)
            (night.instead or NightlyAccount.pull)(account)
            hours.now = max(hours.now, BEGAN_AT + timedelta(days=number - 1) + MORNING)
            call(["alerts", "--send", "--all"], account.environ)
            yield night, list(account.messages())
            if night.after is not None:
                night.after(account)

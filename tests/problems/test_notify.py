"""Notifications: one message per change of the problems, over a real socket, and no secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from connector.errors import ConnectorError, SettingsError
from connector.operations.doctor import diagnose
from connector.operations.notify import NOTIFIED_FILE, notify
from connector.operations.problems import Problem
from connector.settings import Settings, load_settings
from tests.support.command import call
from tests.support.errors import has_code

SINCE = datetime(2026, 12, 1, 2, 15, tzinfo=UTC)
FAILED = Problem("pull_failed", "the last pull failed (503)", "It failed.", "Wait.", SINCE, "503")
OLD = Problem("data_old", "the published file is older than 26h", "It is old.", "Pull.", SINCE)


class Receiver(ThreadingHTTPServer):
    """Webhook that answers with `status` and keeps every posted JSON object."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.received = 204, list[dict[str, Any]]()
        self.apprise_url = f"json://127.0.0.1:{self.server_address[1]}/hooks/planted-token-c0ffee"


class Handler(BaseHTTPRequestHandler):
    """Handler of one request to a `Receiver`."""

    def do_POST(self) -> None:
        """Keep the body, and answer with the status."""
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(json.loads(body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Webhook that accepts every message."""
    with Receiver() as made:
        Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def load_account_settings(folder: Path, **environ: str) -> Settings:
    """Return the settings of an account; `environ` are settings in lower case."""
    given = {f"CONNECTOR_{name.upper()}": value for name, value in environ.items()}
    return load_settings({}, {"CONNECTOR_DATA_DIR": str(folder), **given}, folder)


@pytest.fixture
def settings(tmp_path: Path, receiver: Receiver) -> Settings:
    """Settings of an account whose notifications go to the receiver."""
    return load_account_settings(tmp_path / "data", notify_urls=receiver.apprise_url)


def test_one_message_is_sent_per_change_of_the_set_of_problems(
    settings: Settings, receiver: Receiver
) -> None:
    nights: list[tuple[list[Problem], bool]] = [
        ([], False),
        ([FAILED], True),
        ([replace(FAILED, happened="It failed again.")], False),
        ([FAILED, OLD], True),
        ([OLD, FAILED], False),
        ([replace(FAILED, cause="401"), OLD], True),
        ([], True),
        ([], False),
    ]

    assert [is_sent for _, is_sent in nights] == [notify(settings, each) for each, _ in nights]
    titles = [each["title"] for each in receiver.received]
    assert "connector: the last pull failed (503)" == titles[0]
    assert "connector: the last pull failed (503) and 1 other problem" == titles[1]
    assert "connector: OK" == titles[-1]
    text = receiver.received[0]["message"]
    assert "It failed. Since 2026-12-01T02:15:00Z.\nWhat to do: Wait." in text


def test_a_message_that_was_not_delivered_is_sent_by_the_next_call(
    settings: Settings, receiver: Receiver
) -> None:
    receiver.status = 500
    for _ in range(2):
        with pytest.raises(ConnectorError, match="500", check=has_code("not_delivered")) as caught:
            notify(settings, [FAILED])
        assert "planted-token" not in str(caught.value)
    receiver.status = 204

    assert notify(settings, [FAILED])
    assert not notify(settings, [FAILED])
    assert 3 == len(receiver.received)


def test_a_folder_that_cannot_be_written_to_repeats_no_message(
    settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    settings.folder.mkdir()
    (settings.folder / NOTIFIED_FILE).mkdir()

    assert notify(settings, [FAILED])
    assert not notify(settings, [FAILED])

    (settings.folder / NOTIFIED_FILE).rmdir()
    assert notify(settings, [])
    assert [] == json.loads((settings.folder / NOTIFIED_FILE).read_text())
    assert 2 == len(receiver.received)


def test_doctor_sends_a_test_message(settings: Settings, receiver: Receiver) -> None:
    checks = asyncio.run(diagnose(settings, sends_test=True)).checks
    (found,) = (each.found for each in checks if each.name == "notifications")

    assert ["connector: test"] == [each["title"] for each in receiver.received]
    assert "a test message was sent to every address" == found


def test_an_invalid_or_missing_address_is_reported_without_its_text(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no address"):
        notify(load_account_settings(tmp_path), [FAILED])
    unknown = load_account_settings(tmp_path, notify_urls="nonsense://planted-token")
    with pytest.raises(SettingsError, match="address 1 of notify_urls") as caught:
        notify(unknown, [FAILED])

    assert "planted-token" not in str(caught.value)


def test_invalid_settings_are_reported_to_the_address_in_them(
    tmp_path: Path, receiver: Receiver
) -> None:
    (tmp_path / "urls").write_text(f"{receiver.apprise_url}\n")
    (tmp_path / "urls").chmod(0o600)
    (tmp_path / "connector.toml").write_text(
        'data_dir = "data"\nnotify_urls_file = "urls"\n[accounts.acme]\nbilling_dai = 3\n'
    )
    environ = {"CONNECTOR_CONFIG": str(tmp_path / "connector.toml")}

    for _ in range(2):
        call(["status", "--all", "--notify", "--check"], environ)

    assert ["acme: settings are invalid"] == [each["title"] for each in receiver.received]

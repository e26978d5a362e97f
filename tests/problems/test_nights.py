"""Bad nights: `status` lists the problems that a person would list, with what to do."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.client.client import Client
from tests.client.peer import Peer, found
from tests.contract.kit import Account, Forward, run, status
from tests.support.killable_command import CommandForkServer
from tests.support.tls import PEM, make_server_context

EXPIRED = Path(__file__).parents[1] / "security" / "expired.pem"


def problems(environ: dict[str, str]) -> list[dict[str, Any]]:
    """Return the problems that `status` reports; `status --check` agrees with them."""
    listed: list[dict[str, Any]] = run(["status", "--json"], environ).json["problems"]
    assert (1 if listed else 0) == run(["status", "--check"], environ).status
    assert all(each["title"] and each["happened"] and each["action"] for each in listed)
    assert not any(".." in each["happened"] or ".)." in each["happened"] for each in listed)
    return listed


def test_publications_that_are_killed_in_three_nights(account: Account) -> None:
    with CommandForkServer() as server:
        _, steps = server.call(["publish"], account.environ)
        for _ in range(3):
            code, _ = server.call(["publish"], account.environ, steps // 2)
            assert -signal.SIGKILL == code

    (problem,) = problems(account.environ)
    assert ("publication_failed", "killed") == (problem["code"], problem["cause"])
    assert "the last 3 publications did not end" == problem["title"]
    assert "memory" in problem["action"]
    assert 0 == account.run("publish").status
    assert [] == problems(account.environ)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file become larger, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_backup_to_a_full_folder(account: Account) -> None:
    to, work = account.folder / "backups", account.data / "work.duckdb"
    assert 0 == account.run("backup", to).status
    with file_size_limit(work.stat().st_size):
        failed = account.run("backup", to)

    assert 1 == failed.status, failed.text
    assert ["backup"] == [each.suffix and "backup" for each in to.iterdir()]
    (problem,) = problems(account.environ)
    assert ("backup_failed", "failed") == (problem["code"], problem["cause"])
    assert "full" in problem["happened"]
    assert str(to) in problem["happened"]
    assert 0 == account.run("backup", to).status
    assert [] == problems(account.environ)


@pytest.mark.parametrize(
    ("certificate", "host", "cause", "text"),
    [
        (
            EXPIRED,
            "127.0.0.1",
            "certificate_expired",
            "certificate has expired; this machine's clock shows 20",
        ),
        (
            PEM,
            "localhost",
            "certificate_of_another_host",
            "is not valid for 'localhost'; this machine's clock",
        ),
    ],
)
def test_a_certificate_that_expired_or_is_of_another_host(
    tmp_path: Path, certificate: Path, host: str, cause: str, text: str
) -> None:
    async def act() -> list[dict[str, Any]]:
        context: ssl.SSLContext = make_server_context(certificate)
        async with Peer(found, tls=context) as peer:
            environ = {
                "CONNECTOR_BASE_URL": peer.base_url.replace("127.0.0.1", host),
                "CONNECTOR_API_KEY": "key",
                "CONNECTOR_CA_FILE": str(certificate),
                "CONNECTOR_DATA_DIR": str(tmp_path / "data"),
            }
            assert 1 == (await asyncio.to_thread(run, ["pull", "jobs"], environ)).status
            assert [] == peer.requests
            return problems(environ)

    (problem,) = asyncio.run(act())
    assert ("pull_failed", cause) == (problem["code"], problem["cause"])
    assert text in problem["happened"]


@pytest.fixture
def quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits for the rate limit pass at once, by the clock of the client."""
    waited = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        await asyncio.sleep(0)

    defaults: dict[str, Any] = Client.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "sleep", sleep)
    monkeypatch.setitem(defaults, "clock", lambda: time.monotonic() + waited)


@pytest.mark.usefixtures("quick_waits")
def test_six_answers_429_without_headers_block_no_later_pull(account: Account) -> None:
    account.server.rule("GET *", status(429), times=6)
    account.pull(status=3)

    (problem,) = problems(account.environ)
    assert ("pull_failed", "jobs-try_again") == (problem["code"], problem["cause"])
    assert "quota" not in str(problem)
    assert "Another program may use the same API key" in problem["action"]
    account.pull()
    assert [] == problems(account.environ)


@pytest.mark.usefixtures("quick_waits")
def test_429_all_night_is_not_called_the_monthly_quota(account: Account) -> None:
    account.server.rule("*", status(429))
    assert 0 != account.run("pull").status

    (problem,) = problems(account.environ)
    assert ("pull_failed", "rate_limited") == (problem["code"], problem["cause"])
    assert "was answered 429" in problem["happened"]
    assert "quota" not in str(problem)


def test_a_disk_that_became_read_only(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))

    (problem,) = problems(account.environ)
    assert "unusable" == problem["code"]
    assert "read-only" in problem["happened"]
    assert "make the file system writable again" in problem["action"]


def test_a_pull_that_is_stopped_by_sigterm_is_no_problem(account: Account) -> None:
    process = account.start("pull", "--full", "--quiet")

    def stop(forward: Forward) -> Any:
        process.send_signal(signal.SIGTERM)
        return forward()

    account.server.rule("GET /api/v1/candidates*", stop, times=1)
    process.communicate(timeout=60)

    assert process.returncode not in (0, -signal.SIGTERM, -signal.SIGKILL)
    assert [] == problems(account.environ)


def test_a_404_to_a_list_names_the_address_first(account: Account) -> None:
    account.server.rule("*", status(404))
    ended = account.run("pull", "jobs")

    assert 1 == ended.status
    (problem,) = problems(account.environ)
    assert problem["action"].startswith("Check CONNECTOR_BASE_URL")

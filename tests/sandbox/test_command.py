"""`connector sandbox` as a separate process, and its documentation."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from connector.cli.sandbox import sandbox as command
from connector.sandbox.seed import COUNTS_DEFAULT
from connector.sandbox.server import KEY_DEFAULT
from tests.repository import ROOT

RUN = "from connector.cli.sandbox import sandbox; sandbox()"
KEY = {"Authorization": f"Bearer {KEY_DEFAULT}"}
FEW = [
    argument
    for name in COUNTS_DEFAULT
    for argument in (f"--{name.replace('_', '-')}", "2" if name != "candidates" else "25")
]


@dataclass(frozen=True)
class RunningSandbox:
    """A sandbox in a process, ready to be called."""

    process: subprocess.Popen[str]
    url: str

    def total(self, path: str, key: str = KEY_DEFAULT) -> int | str:
        """Return the total of a list, or the `error` of the response."""
        headers = {"Authorization": f"Bearer {key}"}
        body = httpx.get(f"{self.url}/api/v1{path}", headers=headers).json()
        total: int | str = body["pagination"]["total"] if "pagination" in body else body["error"]
        return total

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send the signal, and return exit status and further output to stdout and stderr."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@contextmanager
def start_sandbox(*arguments: str) -> Iterator[RunningSandbox]:
    """Start the command on a free port, and yield when it reports that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"ready (http://127\.0\.0\.1:\d+)\n", line)
            assert found, (line, process.stderr and process.stderr.read())
            yield RunningSandbox(process, found[1])
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_reports_ready_serves_and_exits_on_a_signal(number: signal.Signals) -> None:
    with start_sandbox(*FEW) as one:
        assert 25 == one.total("/candidates")
        assert [2, 2, 2, 2, 2] == [
            one.total(f"/{n}") for n in ("jobs", "companies", "bookings", "leads", "content-types")
        ]
        assert 1 == one.total("/content/blog-posts")
        assert (
            0,
            "",
            f"The API key is {KEY_DEFAULT} (set another one with --api-key)\n",
        ) == one.end(number)


def test_command_options_configure_the_sandbox(tmp_path: Path) -> None:
    data = tmp_path / "agency.sqlite"
    options = (*FEW, "--data", str(data), "--behaviour", "delete=message")
    keys = ("--api-key", "all", "--api-key", "some=jobs.read,leads.read", "--api-key", "none=")
    with start_sandbox(*options, *keys, "--rate-limit", "60", "--monthly-limit", "6") as one:
        assert ["forbidden"] * 2 == [one.total("/candidates", key) for key in ("some", "none")]
        assert "unauthorized" == one.total("/candidates")
        jobs = httpx.get(f"{one.url}/api/v1/jobs", headers={"Authorization": "Bearer all"})
        assert "60" == jobs.headers["x-ratelimit-limit"]
        id = jobs.json()["data"][0]["id"]
        headers = {"Authorization": "Bearer all"}
        deleted = httpx.delete(f"{one.url}/api/v1/jobs/{id}", headers=headers)
        assert ["message"] == list(deleted.json())
        assert [1, 1, "rate_limit_exceeded"] == [one.total("/jobs", "some") for _ in range(3)]
        assert (0, "", "") == one.end()
    with start_sandbox(*options) as again:
        assert 1 == again.total("/jobs")
        status, out, err = again.end()
        assert (0, "") == (status, out)
        assert f"{data} already has records" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--behaviour", "delete=maybe"], "Use one of: 204, message."),
        (["--behaviour", "delet=204"], "Did you mean 'delete'?"),
        (["--api-key", "k=jobs.raed"], "Did you mean 'jobs.read'?"),
        (["--port", "70000"], "0<=x<=65535"),
        (["--content-types", "0", "--content-items", "5"], "at least one content type"),
    ],
)
def test_wrong_usage_exits_with_2_and_the_allowed_values(
    arguments: list[str], expected: str
) -> None:
    result = CliRunner().invoke(command, ["--port", "0", *FEW[:2], *arguments])

    assert (2, "") == (result.exit_code, result.stdout)
    assert expected in result.stderr

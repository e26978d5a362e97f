"""The install guide: its commands work, and its sizes are correct."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.repository import ROOT
from tests.service.guide_tools import write_fake_tools
from tests.support.processes import find_free_port

GUIDE = (ROOT / "docs" / "INSTALL.md").read_text(encoding="utf-8")
LOCKS = ROOT / "docs" / "service" / "requirements"
SOURCE = (
    *("connector", "pipelines", "dbt_like_sql", "docs/service"),
    *("pyproject.toml", "README.md", "LICENSE", "dagster.yaml", "workspace.yaml"),
)
SECONDS_MAX = 120
HEADINGS = (
    "Install the programs",
    "Connect the account",
    "Run every night with systemd",
    "Run every night with cron",
    "Run every night with Dagster",
    "Upgrade",
    "Roll back",
    "Uninstall",
)


class GuideServer:
    """Server simulated in a folder: the guide's paths are below `root`, its API is a sandbox."""

    def __init__(self, root: Path, address: str) -> None:
        self.root, self.address = root, address
        self.folder = root / "source"
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CONNECTOR_", "DAGSTER_", "PYTHON", "VIRTUAL_ENV"))
        } | {"HOME": str(root), "PATH": f"{root}/tools:/usr/sbin:/usr/bin:/sbin:/bin"}

    def resolve_path(self, name: str) -> Path:
        """Return the path below the root for an absolute path of the guide."""
        return self.root / name.lstrip("/")

    def redirect_paths(self, text: str) -> str:
        """Replace the guide's paths and address in a text by those of this server."""
        text = re.sub(r"(?<![\w.])/(opt|etc|var)/", rf"{self.root}/\1/", text)
        return text.replace("https://acme.example", self.address)

    def run_shell(self, block: str) -> str:
        """Run a block in the folder and with the variables that the earlier blocks left.

        Returns its output, and raises an AssertionError if it fails.
        """
        left = self.root / "left"
        script = f"set -e\n{self.redirect_paths(block)}\npwd > {left}.pwd; env -0 > {left}.env"
        printed = self._run_command(["bash", "-c", script], self.environ, self.folder)
        self.folder = Path(left.with_suffix(".pwd").read_text().strip())
        variables = left.with_suffix(".env").read_text().rstrip("\0").split("\0")
        self.environ = dict(each.split("=", 1) for each in variables)
        for path in self.resolve_path("/etc/connector").rglob("service/*"):
            path.write_text(self.redirect_paths(path.read_text()))
        return printed

    def read_unit(self, name: str) -> tuple[list[str], dict[str, str], Path]:
        """Return command, environment and working folder of an installed systemd service."""
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign] # systemd heeds case
        unit.read(self.resolve_path(f"/etc/systemd/system/{name}"))
        service = unit["Service"]
        variables = dict(each.split("=", 1) for each in service["Environment"].split())
        plain = {"PATH": "/usr/bin:/bin", "HOME": str(self.root)}
        folder = Path(service["WorkingDirectory"])
        return shlex.split(service["ExecStart"]), plain | variables, folder

    def run_service(self, name: str) -> str:
        """Run an installed service to its end, and return its output."""
        return self._run_command(*self.read_unit(name))

    def run_cron_line(self, line: str) -> str:
        """Run the line of the installed crontab that contains this text, and return its output."""
        text = self.resolve_path("/etc/cron.d/connector").read_text()
        variables = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
        (command,) = (each for each in text.splitlines() if line in each)
        *when, user, words = command.split(maxsplit=6)
        assert (5, "connector") == (len(when), user)
        return self._run_command(
            ["/bin/sh", "-c", words], variables | {"PATH": "/usr/bin:/bin"}, self.root
        )

    def _run_command(self, words: list[str], environ: dict[str, str], folder: Path) -> str:
        """Run a command, assert that it succeeds, and return its output."""
        done = subprocess.run(
            words,
            env=environ,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert 0 == done.returncode, f"{shlex.join(words)}\n{done.stdout}"
        return done.stdout


class RunningDagster:
    """Dagster's webserver and daemon as installed, running during the `with` block."""

    def __init__(self, server: GuideServer, port: int) -> None:
        self._server, self._port = server, port
        self._running = list[subprocess.Popen[bytes]]()

    def __enter__(self) -> RunningDagster:
        for name in ("dagster-webserver.service", "dagster-daemon.service"):
            words, environ, folder = self._server.read_unit(name)
            words = [str(self._port) if word == "3000" else word for word in words]
            with self._server.resolve_path(f"{name}.log").open("wb") as log:
                self._running.append(
                    subprocess.Popen(words, env=environ, cwd=folder, stdout=log, stderr=log)
                )
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._running:
            each.send_signal(signal.SIGTERM)

    def wait_until_stopped(self) -> None:
        """Wait until both services have ended, which they do after the `with` block."""
        for each in self._running:
            each.wait(SECONDS_MAX)

    def wait_for_response(self, query: str, expected: str) -> None:
        """Repeat a GraphQL query until the response contains a text.

        Raises an AssertionError if a service ends or the text does not appear in time.
        """
        address = f"http://127.0.0.1:{self._port}/graphql"
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        answer, until = "", time.monotonic() + SECONDS_MAX
        while expected not in answer:
            assert time.monotonic() < until, answer
            assert [None, None] == [each.poll() for each in self._running], self._read_logs()
            time.sleep(0.3)
            try:
                with urllib.request.urlopen(request) as response:  # noqa: S310 # this machine's own
                    answer = json.dumps(json.load(response))
            except OSError as error:
                answer = str(error)

    def _read_logs(self) -> list[str]:
        """Return the texts of both services' logs."""
        return [path.read_text() for path in self._server.root.glob("dagster-*.log")]


def find_shell_blocks(heading: str) -> list[str]:
    """Return the shell blocks below a heading of the guide."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name
    locationOrLoadError { __typename ... on RepositoryLocation { repositories { schedules {
    name scheduleState { status } } } } } } } } }"""
STARTED = '{"name": "nightly_pull_schedule", "scheduleState": {"status": "RUNNING"}}'
DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType healthy } } } }"


def copy_source(folder: Path) -> None:
    """Copy the files from which the wheel is built."""
    folder.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=left_out)
        else:
            shutil.copyfile(ROOT / name, folder / name)


def add_webhook(config: Path, address: str) -> None:
    """Configure the address for notifications; the models were built by the first pull."""
    webhook = config / "webhook"
    webhook.touch(0o600)
    webhook.write_text(f"{address}/notes\n".replace("http:", "json:"))
    with (config / "connector.toml").open("a") as settings:
        settings.write(f'notify_urls_file = "{webhook}"\nmodels = "off"\n')


def find_remaining_files(root: Path, *folders: str) -> list[Path]:
    """Return files in folders of the root, except those of systemd and cron."""
    return [path for name in folders for path in (root / name).rglob("*") if not path.is_dir()]


def test_each_block_of_the_guide_is_tested() -> None:
    run = [block for heading in HEADINGS for block in find_shell_blocks(heading)]

    assert len(run) == GUIDE.count("```sh\n")


@pytest.mark.slow(weight=10)
def test_every_command_of_the_install_guide_works(tmp_path: Path) -> None:
    with Sandbox(seed=9, counts={"jobs": 3, "candidates": 5}) as api:
        server = GuideServer(tmp_path, api.base_url)
        project = server.folder / "pyproject.toml"
        write_fake_tools(tmp_path)
        for name in (
            "etc/systemd/system",
            "etc/cron.d",
            "etc/connector",
            "opt",
            "var/lib",
            "var/backups",
        ):
            (tmp_path / name).mkdir(parents=True)
        copy_source(server.folder)
        (server.folder / "acme.key").write_text(f"{api.key}\n")
        seen = iter(HEADINGS)

        def run_next() -> str:
            return "".join(server.run_shell(block) for block in find_shell_blocks(next(seen)))

        assert "0.1.0" in run_next()
        # The connector comes from the wheel, not from the tests' own installation.
        (site,) = server.resolve_path("/opt/connector/lib").glob("python*/site-packages")
        assert not (site / "connector").is_symlink()
        assert not list(site.glob("*editable*"))

        (server.folder / "acme.key").chmod(0o600)
        run_next()
        assert server.resolve_path("/var/lib/connector/data/recruitment.duckdb").is_file()
        run_next()
        add_webhook(server.resolve_path("/etc/connector"), api.base_url)
        for name in ("connector", "connector-backup", "connector-verify", "connector-watch"):
            server.run_service(f"{name}.service")
        assert 1 == len(list(server.resolve_path("/var/backups/connector").glob("*.zip")))

        run_next()
        crontab = (
            server.resolve_path("/etc/cron.d/connector").read_text().replace(str(tmp_path), "")
        )
        assert GUIDE.partition("```crontab\n")[2].partition("\n")[0] in crontab
        server.run_cron_line("status --all")

        run_next()
        with RunningDagster(server, find_free_port()) as dagster:
            dagster.wait_for_response(LOCATIONS, STARTED)
            dagster.wait_for_response(DAEMONS, '"daemonType": "SCHEDULER", "healthy": true')

        project.write_text(project.read_text().replace('version = "0.1.0"', 'version = "0.2.0"'))
        server.folder = project.parent
        assert 1 == len(find_shell_blocks("Upgrade"))
        # The packages of both versions are the same, and pip does not install them again.
        former = server.resolve_path("/opt/connector-0.1.0/lib")
        shutil.copytree(former, server.resolve_path("/opt/connector-0.2.0/lib"), symlinks=True)
        run_next()
        assert "0.2.0" in server.run_shell("/opt/connector/bin/connector --version")
        run_next()
        assert "0.1.0" in server.run_shell("/opt/connector/bin/connector --version")

        dagster.wait_until_stopped()
        uninstalls, deletes = find_shell_blocks(next(seen))
        server.run_shell(uninstalls)
        assert [] == find_remaining_files(tmp_path, "opt", "etc/systemd/system", "etc/cron.d")
        server.run_shell(f"cd /\n{deletes}")
        assert [] == find_remaining_files(tmp_path, "opt", "etc", "var/lib", "var/backups")

"""Service files for systemd, cron and Dagster, filled in for one installation.

`docs/INSTALL.md` installs them, and a test runs every command in them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import Misused
from connector.settings.layers import CONFIG_NAME, CONFIG_VARIABLE

FILE_MODE = 0o644
"""Permissions: the files contain no secret; systemd, cron and the service user read them."""

_PLAIN = re.compile(r"[\w./+@-]+").fullmatch


@dataclass(frozen=True, slots=True)
class InstallPlaces:
    """Folders and user of an installation.

    Args:
        programs: Folder of the programs `connector`, `dagster-daemon` and `dagster-webserver`.
        user: User and group that run the services.
        state: Home of the user; contains the data folder and Dagster's state.
        config: Folder of `connector.toml` and `workspace.yaml`.
        backups: Folder of the backups.
    """

    programs: Path
    user: str
    state: Path
    config: Path
    backups: Path

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of every service."""
        return {
            CONFIG_VARIABLE: str(self.config / CONFIG_NAME),
            "DAGSTER_HOME": str(self.state / "dagster"),
        }


def service_files(places: InstallPlaces) -> dict[str, str]:
    """Return the text of each service file by its name.

    Raises:
        Misused: A path is relative, or a name has a character with a meaning to systemd or cron.
    """
    for each in (places.programs, places.state, places.config, places.backups):
        if not each.is_absolute() or not _PLAIN(str(each)):
            raise Misused(
                f"{str(each)!r} cannot be in a service file",
                action="Give an absolute path of letters, digits and the characters . _ + @ - /.",
            )
    if not _PLAIN(places.user):
        raise Misused(f"{places.user!r} is not the name of a user", action="Correct --user.")
    run = f"{places.programs}/connector"
    pull, backup = f"{run} pull --all", f"{run} backup {places.backups} --all --keep 14"
    watch, alert = f"{run} status --all --max-age 26h", f"{run} alerts --all --send"
    workspace = f"--workspace {places.config}/workspace.yaml"
    page = f"{places.programs}/dagster-webserver {workspace} --host 127.0.0.1 --port 3000"
    daemon = f"{places.programs}/dagster-daemon run {workspace}"
    return {
        "connector.service": _job_unit(
            places,
            "pull and publish every account",
            pull,
            # 3: done, but a review is needed. 4: stopped at a limit. Alerts report both.
            more="SuccessExitStatus=3 4\nTimeoutStartSec=6h\n",
        ),
        "connector.timer": _timer_unit("every night", "*-*-* 02:15:00"),
        "connector-backup.service": _job_unit(
            places, "back up every account", backup, more="TimeoutStartSec=1h\n"
        ),
        "connector-backup.timer": _timer_unit("backup every night", "*-*-* 04:30:00"),
        "connector-watch.service": _job_unit(
            places,
            "fail if an account was not verified for 26 hours",
            watch,
            unit="OnFailure=connector-alert.service\n",
            more="TimeoutStartSec=5min\n",
        ),
        "connector-watch.timer": _timer_unit("watch every hour", "hourly"),
        "connector-alert.service": _job_unit(
            places, "send the alerts that are due", alert, more="TimeoutStartSec=5min\n"
        ),
        "dagster-daemon.service": _server_unit(
            places, "Dagster's daemon, which starts the runs", daemon
        ),
        "dagster-webserver.service": _server_unit(places, "Dagster's page", page),
        "dagster.yaml": _DAGSTER,
        "workspace.yaml": _WORKSPACE,
        "crontab": _crontab(places, pull, backup, watch, alert),
    }


def _job_unit(
    places: InstallPlaces, about: str, command: str, *, unit: str = "", more: str = ""
) -> str:
    """Return a unit that runs one command and ends; `unit` and `more` are further lines."""
    return _service_unit(places, about, command, unit, f"Type=oneshot\n{more}")


def _server_unit(places: InstallPlaces, about: str, command: str) -> str:
    """Return a unit that starts with the machine and runs until it is stopped."""
    more = "Type=exec\nRestart=on-failure\nRestartSec=10s\nTimeoutStopSec=60s\n"
    unit = _service_unit(places, about, command, "", more)
    return f"{unit}\n[Install]\nWantedBy=multi-user.target\n"


def _service_unit(places: InstallPlaces, about: str, command: str, unit: str, more: str) -> str:
    """Return a systemd unit; `unit` and `more` are lines of its first two sections."""
    variables = " ".join(f"{name}={value}" for name, value in places.environment().items())
    return f"""\
[Unit]
Description=Recruitment Connector: {about}
Wants=network-online.target
After=network-online.target
{unit}
[Service]
User={places.user}
Group={places.user}
ExecStart={command}
{more}Environment={variables} CONNECTOR_LOG=json
WorkingDirectory={places.state}
ReadWritePaths={places.state} -{places.backups}
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
CapabilityBoundingSet=
"""


def _timer_unit(about: str, when: str) -> str:
    """Return a timer for this calendar expression; it catches up a missed start."""
    return f"""\
[Unit]
Description=Recruitment Connector: {about}

[Timer]
OnCalendar={when}
RandomizedDelaySec=5min
Persistent=yes

[Install]
WantedBy=timers.target
"""


def _crontab(places: InstallPlaces, pull: str, backup: str, watch: str, alert: str) -> str:
    """Return the crontab that runs these commands."""
    variables = "".join(f"{name}={value}\n" for name, value in places.environment().items())
    enter = f"{places.user} cd {places.state} &&"
    return f"""\
# For /etc/cron.d: minute, hour, day of the month, month, day of the week, user, command.
SHELL=/bin/sh
{variables}
15 2 * * * {enter} {pull} --quiet
30 4 * * * {enter} {backup} --quiet
45 * * * * {enter} {watch} --quiet || {alert} --quiet
"""


_DAGSTER = """\
# Runs, events and schedules are kept in this folder, DAGSTER_HOME.
telemetry:
  enabled: false
nux:
  enabled: false

# One run per account at a time.
concurrency:
  pools:
    default_limit: 1
    granularity: run
  runs:
    max_concurrent_runs: 4
    tag_concurrency_limits:
      - key: dagster/partition
        value:
          applyLimitPerUniqueValue: true
        limit: 1

freshness:
  enabled: true
"""

_WORKSPACE = """\
load_from:
  - python_module:
      module_name: pipelines.definitions
      location_name: recruitment_connector
"""

"""Gauges of an account for Prometheus, in its text format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.operations.problems import AccountState, Problem
from connector.version import program_version

GAUGES = {
    "info": "Version of the connector.",
    "up": "1 if the account's files and settings can be read.",
    "published_age_seconds": "Time since the oldest verification in the published file.",
    "verified_age_seconds": "Time since the last verification of a resource.",
    "backup_age_seconds": "Time since the last complete backup.",
    "problems": "Problems by code.",
    "requests_month": "Requests sent in the billing cycle.",
    "quota_requests": "Monthly quota of requests.",
    "last_run_ok": "1 if the last pull succeeded.",
    "last_run_seconds": "Duration of the last pull.",
    "disk_free_bytes": "Free space on the disk of the data folder.",
}
"""Every gauge with its help text; names begin with `connector_`."""

Sample = tuple[str, dict[str, str], float]
"""Gauge, labels and value."""


def read_samples(
    account: str, folder: Path, state: AccountState | None, problems: Iterable[Problem]
) -> Iterator[Sample]:
    """Yield the samples of an account; without a state, its settings are invalid."""
    label = {"account": account}
    yield "info", {**label, "version": program_version()}, 1
    found = list(problems)
    yield "up", label, 0 if any(each.code == "unusable" for each in found) else 1
    for each in found:
        yield "problems", {**label, "code": each.code}, 1
    if state is None:
        return
    known = [at for at in (state.verified or {}).values() if at is not None]
    if known:
        yield "published_age_seconds", label, (state.now - min(known)).total_seconds()
    for resource, at in state.health.proven_at.items():
        if at is not None:
            age = (state.now - at).total_seconds()
            yield "verified_age_seconds", {**label, "resource": resource}, age
    made = [each.began_at for each in state.backups if each.file is not None]
    if made:
        yield "backup_age_seconds", label, (state.now - max(made)).total_seconds()
    if state.quota is not None:
        yield "requests_month", label, state.quota.month.used
        if state.quota.month.limit is not None:
            yield "quota_requests", label, state.quota.month.limit
    if state.runs:
        yield "last_run_ok", label, 1 if state.runs[0].outcome == "done" else 0
        yield "last_run_seconds", label, state.runs[0].seconds or 0
    if folder.exists():
        yield "disk_free_bytes", label, shutil.disk_usage(folder).free


def write_gauges(path: Path, samples: Iterable[Sample]) -> None:
    """Replace the file by the samples in one step, readable by every user."""
    lines: dict[str, list[str]] = {name: [] for name in GAUGES}
    for name, labels, value in samples:
        # JSON has the same escapes as a label's value.
        inside = ",".join(
            f"{key}={json.dumps(text, ensure_ascii=False)}" for key, text in labels.items()
        )
        lines[name].append(f"connector_{name}{{{inside}}} {value}\n")
    with write_atomically(path, 0o644) as file:
        for name, found in lines.items():
            if found:
                head = f"# HELP connector_{name} {GAUGES[name]}\n# TYPE connector_{name} gauge\n"
                file.write("".join([head, *found]).encode())

"""Gauges of an account for Prometheus, in its text format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.operations.problems import AccountState, Problem
from connector.version import program_version

Sample = tuple[str, dict[str, str], float]
"""Gauge without the prefix `connector_`, labels and value."""


def read_samples(
    account: str, folder: Path, state: AccountState | None, problems: Iterable[Problem]
) -> Iterator[Sample]:
    """Yield the samples of an account; without a state, its settings are invalid."""
    label, codes = {"account": account}, [each.code for each in problems]
    yield "info", label | {"version": program_version()}, 1
    yield "up", label, "unusable" not in codes
    for code in codes:
        yield "problems", label | {"code": code}, 1
    if state is None:
        return
    ages = [state.now - at for at in (state.verified or {}).values() if at is not None]
    if ages:
        yield "published_age_seconds", label, max(ages).total_seconds()
    for resource, at in state.health.proven_at.items():
        if at is not None:
            age = (state.now - at).total_seconds()
            yield "verified_age_seconds", label | {"resource": resource}, age
    for made in [each for each in state.backups if each.file is not None][:1]:
        yield "backup_age_seconds", label, (state.now - made.began_at).total_seconds()
    if state.quota is not None:
        yield "requests_month", label, state.quota.month.used
        if state.quota.month.limit is not None:
            yield "quota_requests", label, state.quota.month.limit
    if state.runs:
        yield "last_run_ok", label, state.runs[0].outcome == "done"
        yield "last_run_seconds", label, state.runs[0].seconds or 0
    if folder.exists():
        yield "disk_free_bytes", label, shutil.disk_usage(folder).free


def write_gauges(path: Path, samples: Iterable[Sample]) -> None:
    """Replace the file by the samples in one step, readable by every user."""
    with write_atomically(path, 0o644) as file:
        for name, group in groupby(sorted(samples, key=lambda each: each[0]), lambda each: each[0]):
            file.write(f"# TYPE connector_{name} gauge\n".encode())
            for _, labels, value in group:
                # JSON has the same escapes as a label's value.
                pairs = (f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in labels.items())
                file.write(f"connector_{name}{{{','.join(pairs)}}} {float(value)}\n".encode())

"""Accounts with recorded runs, and a clock, for the tests of alerts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from connector.catalog import CATALOG
from connector.settings import Settings, load_settings
from connector.state.database import Database
from connector.state.quota import utc_day
from connector.state.runs import ResourceRun, Run, Runs
from connector.warehouse.stream import Bookmark, Commit, Stream
from connector.warehouse.warehouse import Warehouse
from tests.support.clock import Clock

START = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)


def load_account_settings(folder: Path, account: str | None = None, **environ: str) -> Settings:
    """Return the settings of an account; the `alert_*` settings have lower-case names."""
    given = {f"CONNECTOR_{name.upper()}": value for name, value in environ.items()}
    flags = {"account": account} if account is not None else {}
    return load_settings(flags, {"CONNECTOR_DATA_DIR": str(folder), **given}, folder)


DONE = ResourceRun(
    resource="jobs",
    outcome="done",
    proven=True,
    requests=2,
    lists=1,
    details=1,
    new=0,
    changed=0,
    unchanged=1,
    deleted=0,
    live=6,
    total=6,
    pending=0,
    bookmark_before=None,
    bookmark_after=None,
)


class RecordedAccount:
    """Account whose runs a test writes directly to its work file and state."""

    def __init__(
        self, settings: Settings, clock: Clock, resources: Sequence[str] = ("jobs",)
    ) -> None:
        self.settings, self.clock, self.resources = settings, clock, resources
        self.warehouse = Warehouse(settings.folder)
        self.warehouse.prepare()
        self._runs = 0

    def record_pull(
        self,
        outcome: str = "done",
        *,
        resources: Sequence[str] = (),
        overrides: Mapping[str, Mapping[str, object]] | None = None,
        requests: int = 4,
        error_code: str | None = None,
        message: str | None = None,
        command: str = "pull",
        seconds: float = 60.0,
    ) -> Run:
        """Record a run that starts now and ends after `seconds`. Only a run that is done or partial
        loads its `resources` (default: all of the account). `overrides` replaces fields of the
        results of single resources, by resource name.
        """
        self._runs += 1
        run = Run(f"{self.clock.now:%Y%m%dT%H%M%SZ}-{self._runs:06d}", command, self.clock.now)
        landed = outcome in ("done", "partial")
        ended = replace(
            run,
            ended_at=self.clock.now + timedelta(seconds=seconds),
            outcome=outcome,
            seconds=seconds,
            requests=requests,
            error_code=error_code,
            message=message,
        )
        with Database(self.settings.folder) as database:
            Runs(database).begin(ended)
            for name in resources or self.resources:
                stands = dict((overrides or {}).get(name, {}))
                done = replace(DONE, resource=name, **stands)  # type: ignore[arg-type] # of a test
                if landed and done.proven:
                    done = replace(done, bookmark_after=self.clock.now)
                    self.warehouse.commit(
                        Stream(CATALOG[name]),
                        Commit(bookmark=Bookmark(proven_at=self.clock.now)),
                        run.run_id,
                        self.clock.now,
                    )
                if landed or stands:
                    Runs(database).add_resource(run.run_id, done)
        shutil.copyfile(self.warehouse.work, self.warehouse.published)
        self.record_requests(requests)
        return ended

    def record_requests(self, requests: int) -> None:
        """Count the requests of a pull against the monthly quota."""
        if not requests:
            return
        with Database(self.settings.folder) as database:
            database.write(
                "INSERT INTO requests VALUES (?, 'pull', 'list', ?)"
                " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests",
                *(utc_day(self.clock.now), requests),
            )

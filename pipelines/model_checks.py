"""The checks of models: one for each audit, and one for all tests of a model of one severity.

Together, since what Dagster writes down of a check costs more than the check itself: 179 of them
took as long as all models together. Which test failed, and for which ids, is in the check's
metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import dagster as dg

from connector import Checked, Project

TESTS = {"error": "tests", "warn": "tests_that_warn"}
"""The name of the check that has a model's tests, by their severity."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of an asset: the tests that it has, or one audit."""

    key: dg.AssetCheckKey
    severity: str
    names: tuple[str, ...]
    about: str

    @property
    def spec(self) -> dg.AssetCheckSpec:
        """The check as Dagster knows it; one of severity error keeps `published` from running."""
        return dg.AssetCheckSpec(
            self.key.name,
            asset=self.key.asset_key,
            blocking=self.severity == "error",
            description=self.about,
        )


Keys = Mapping[str, dg.AssetKey]
"""The asset of each seed and model, by name."""


def checks_of(project: Project, keys: Keys) -> tuple[Check, ...]:
    """Every test and audit of the project, each in one check."""
    tests: dict[dg.AssetCheckKey, list[tuple[str, str, str]]] = {}
    for test in project.tests:
        key = dg.AssetCheckKey(_asset(project, keys, test.about), TESTS[test.severity])
        tests.setdefault(key, []).append((test.severity, test.name, test.sentence))
    joined = (
        Check(key, each[0][0], tuple(name for _, name, _ in each), " ".join(s for _, _, s in each))
        for key, each in tests.items()
    )
    audits = (
        Check(
            dg.AssetCheckKey(_asset(project, keys, audit.about), audit.name),
            audit.severity,
            (audit.name,),
            audit.sentence,
        )
        for audit in project.audits
    )
    return (*joined, *audits)


def _asset(project: Project, keys: Keys, about: str) -> dg.AssetKey:
    """The asset that a test or audit belongs to. One of a source table belongs to the first model
    that reads it: what landed is judged in the step that builds on it.
    """
    if about in project.parents:
        return keys[about]
    readers = (m for m in project.models.values() if about in project.sources_of(m))
    return keys[next((each.name for each in readers), project.order[0])]


def results_of(checks: Iterable[Check], done: Iterable[Checked]) -> Iterator[dg.AssetCheckResult]:
    """How the checks came out; one of which nothing was run has no result."""
    by_name = {each.name: each for each in done}
    for check in checks:
        run = [by_name[name] for name in check.names if name in by_name]
        if run:
            yield _result(check, run)


def _result(check: Check, run: list[Checked]) -> dg.AssetCheckResult:
    failed = [each for each in run if not each.passed]
    metadata: dict[str, dg.MetadataValue] = {
        "run": dg.MetadataValue.int(len(run)),
        "failing": dg.MetadataValue.int(sum(each.failing for each in failed)),
    }
    for each in failed:
        # Examples are ids alone.
        ids = f": {', '.join(each.examples)}" if each.examples else ""
        told = f"{each.failing} rows{ids}"
        metadata[f"failed/{each.name}"] = dg.MetadataValue.text(told)
    is_error = check.severity == "error"
    return dg.AssetCheckResult(
        passed=not failed,
        asset_key=check.key.asset_key,
        check_name=check.key.name,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description=" ".join(each.about for each in failed) or check.about,
        metadata=metadata,
    )

"""Comparison of previews of sample files with the expected records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from connector.errors import ConnectorError
from connector.pushes.dry_run import Preview, preview
from connector.pushes.options import PushOptions
from connector.settings import Settings
from tests.spreadsheet.corpus.files import SKIP, Record, SampleFile


def find_faults(file: SampleFile, folder: Path, settings: Settings) -> list[str]:
    """Preview a file without and with the user's answers, and return the faults of both.

    Faults are values that are sent wrong without a warning, and rows that are not sent as expected.
    """
    first = preview_file(file, folder, {}, settings)
    answered = preview_file(file, folder, file.answer, settings) if file.answer else first
    return [
        *_find_faults(file, first, is_answered=False),
        *_find_faults(file, answered, is_answered=True),
    ]


def preview_file(
    file: SampleFile, folder: Path, answer: Mapping[str, Any], settings: Settings
) -> Preview | ConnectorError:
    """Preview a file with the options of the user's answers. Errors are returned."""
    known = {each.name for each in fields(PushOptions)}
    options = {name: value for name, value in {**file.given, **answer}.items() if name in known}
    try:
        push_file = PushOptions("create", **options).push_file(file.resource, file.write(folder))
        return preview(settings, push_file, keeps_tasks=True)
    except ConnectorError as error:
        return error


def _find_faults(
    file: SampleFile, seen: Preview | ConnectorError, *, is_answered: bool
) -> Iterator[str]:
    if isinstance(seen, ConnectorError):
        if is_answered and file.sent:
            yield f"{seen.code}: {seen}"
        return
    tasks = {task.number: task for task in seen.rows.tasks}
    results = list(seen.results)
    if file.lost and not seen.blocking_questions:
        yield "columns are ignored without a question"
    questions = {each.code for each in seen.blocking_questions}
    is_stopped = bool(questions - {"warnings"})
    is_undecided = bool(questions - {"warnings", "columns_lost"})
    if len(results) != len(file.sent):
        yield f"{len(results)} rows instead of {len(file.sent)}"
    for result, wanted in zip(results, file.sent, strict=False):
        task = tasks.get(result.number)
        sent = None if task is None else {**task.fields, **task.afterwards}
        differing = list(describe_differences(wanted, sent))
        is_expected = sent is not None and not differing
        is_silent = not (result.warnings or is_stopped) or (is_answered and not is_undecided)
        is_rejected_with_warning = wanted is None and bool(result.warnings)
        if sent is not None and differing and is_silent and not is_rejected_with_warning:
            yield f"row {result.number}: {'; '.join(differing)}"
        if is_answered and wanted is not None and not is_expected:
            why = [f"{p.code} {p.column}" for p in result.problems]
            yield f"row {result.number}: {why or differing}"


def describe_differences(wanted: Record | None, sent: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield a text for each field whose sent value is not the wanted one. None means no record."""
    if sent is None:
        return
    if wanted is None:
        yield f"sent: {sent}"
        return
    for name in {*wanted, *sent}:
        value, expected = sent.get(name), wanted.get(name)
        if value != (None if expected is SKIP else expected):
            yield f"{name} is {value!r}, not {expected!r}"

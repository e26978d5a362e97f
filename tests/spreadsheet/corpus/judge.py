"""Compares the preview of each sample file with the expected records.

`python -m tests.spreadsheet.corpus.judge` prints the differences.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from connector.errors import ConnectorError
from connector.pushes.dry_run import Preview, preview
from connector.pushes.options import PushOptions
from tests.pushes.pushing import make_template_folder
from tests.spreadsheet.corpus.cases import list_sample_files
from tests.spreadsheet.corpus.files import SKIP, Record, SampleFile
from tests.support.agency import settings_at


@dataclass
class Judgement:
    """Values of a file that are sent wrong without a warning, and rows not sent as expected.

    `right` of the `readable` rows are sent as expected.
    """

    wrong: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    readable: int = 0
    right: int = 0


def judge_file(file: SampleFile, folder: Path) -> Judgement:
    """Compare two previews of a file: without and with the user's answers."""
    found = Judgement()
    first = preview_file(file, folder / "first", {})
    _judge_rows(file, first, found, is_answered=False)
    answered = preview_file(file, folder / "second", file.answer) if file.answer else first
    _judge_rows(file, answered, found, is_answered=True)
    return found


def preview_file(
    file: SampleFile, folder: Path, answer: Mapping[str, Any]
) -> Preview | ConnectorError:
    """Preview a file with the options of the user's answers. Errors are returned."""
    folder.mkdir(parents=True)
    known = {each.name for each in fields(PushOptions)}
    options = {name: value for name, value in {**file.given, **answer}.items() if name in known}
    try:
        push_file = PushOptions("create", **options).push_file(file.resource, file.write(folder))
        settings = settings_at("http://127.0.0.1:9", folder, "nobody")
        shutil.copytree(make_template_folder(), settings.folder)
        return preview(settings, push_file, keeps_tasks=True)
    except ConnectorError as error:
        return error


def _judge_rows(
    file: SampleFile, seen: Preview | ConnectorError, found: Judgement, *, is_answered: bool
) -> None:
    """Add to the judgement how the previewed rows differ from the expected records."""
    if isinstance(seen, ConnectorError):
        if is_answered and file.sent:
            found.readable += sum(each is not None for each in file.sent)
            found.unresolved.append(f"{seen.code}: {seen}")
        return
    tasks = {task.number: task for task in seen.rows.tasks}
    results = list(seen.results)
    warned = {each.number for each in results if each.warnings}
    if file.lost and not seen.blocking_questions:
        found.wrong.append("columns are lost in silence")
    questions = {each.code for each in seen.blocking_questions}
    is_stopped = bool(questions - {"warnings"})
    is_undecided = bool(questions - {"warnings", "columns_lost"})
    if len(results) != len(file.sent):
        found.wrong.append(f"{len(results)} rows for {len(file.sent)}")
    for result, wanted in zip(results, file.sent, strict=False):
        task = tasks.get(result.number)
        is_shown = result.number in warned or is_stopped
        is_settled = is_answered and not is_undecided
        sent = None if task is None else {**task.fields, **task.afterwards}
        differing = list(describe_differences(wanted, sent))
        is_silent = not is_shown or is_settled
        is_told = wanted is None and result.number in warned
        if sent is not None and differing and is_silent and not is_told:
            found.wrong.append(f"row {result.number}: {'; '.join(differing)}")
        if is_answered and wanted is not None:
            found.readable += 1
            if sent is not None and not differing:
                found.right += 1
            else:
                why = [f"{p.code} {p.column}" for p in result.problems]
                found.unresolved.append(f"row {result.number}: {why or differing}")


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


def main() -> None:
    """Print the differences of every sample file and their total numbers."""
    counts: Counter[str] = Counter()
    for file in list_sample_files():
        with tempfile.TemporaryDirectory() as folder:
            found = judge_file(file, Path(folder))
        counts["files"] += 1
        counts["refused"] += any(not each.startswith("row") for each in found.unresolved)
        counts["wrong in silence"] += len(set(found.wrong))
        counts["readable"] += found.readable
        counts["right"] += found.right
        for what, lines in (("WRONG", dict.fromkeys(found.wrong)), ("open", found.unresolved)):
            for line in lines:
                print(f"{what} {file.name}: {line[:200]}")  # noqa: T201
    print(dict(counts))  # noqa: T201


if __name__ == "__main__":
    main()

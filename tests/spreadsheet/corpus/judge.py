"""Judges a preview of each file of the corpus, cell by cell.

`python -m tests.spreadsheet.corpus.judge` prints what is wrong.
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
from tests.pushes.pushing import prepare_data_folder
from tests.spreadsheet.corpus.cases import corpus
from tests.spreadsheet.corpus.files import SKIP, File, Record
from tests.support.agency import settings_at


@dataclass
class Judgement:
    """Result for a file: `wrong` cells were sent without a warning, `open` rows need an answer."""

    wrong: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    readable: int = 0
    right: int = 0


def judge_file(file: File, folder: Path) -> Judgement:
    """Preview the file as it is, and again with its answer."""
    found = Judgement()
    first = preview_file(file, folder / "first", {})
    _judge_cells(file, first, found, is_answered=False)
    answered = preview_file(file, folder / "second", file.answer) if file.answer else first
    _judge_cells(file, answered, found, is_answered=True)
    return found


def preview_file(file: File, folder: Path, answer: Mapping[str, Any]) -> Preview | ConnectorError:
    """Preview a file with the user's answer."""
    folder.mkdir(parents=True)
    known = {each.name for each in fields(PushOptions)}
    options = {name: value for name, value in {**file.given, **answer}.items() if name in known}
    try:
        push_file = PushOptions("create", **options).push_file(file.resource, file.put(folder))
        settings = settings_at("http://127.0.0.1:9", folder, "nobody")
        shutil.copytree(prepare_data_folder(), settings.folder)
        return preview(settings, push_file, keeps_tasks=True)
    except ConnectorError as error:
        return error


def _judge_cells(
    file: File, seen: Preview | ConnectorError, found: Judgement, *, is_answered: bool
) -> None:
    if isinstance(seen, ConnectorError):
        if is_answered and file.sent:
            found.readable += sum(each is not None for each in file.sent)
            found.open.append(f"{seen.code}: {seen}")
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
        differing = list(find_differences(wanted, sent))
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
                found.open.append(f"row {result.number}: {why or differing}")


def find_differences(wanted: Record | None, sent: Mapping[str, Any] | None) -> Iterator[str]:
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
    """Judge every file and print the errors."""
    counts: Counter[str] = Counter()
    for file in corpus():
        with tempfile.TemporaryDirectory() as folder:
            found = judge_file(file, Path(folder))
        counts["files"] += 1
        counts["refused"] += any(not each.startswith("row") for each in found.open)
        counts["wrong in silence"] += len(set(found.wrong))
        counts["readable"] += found.readable
        counts["right"] += found.right
        for what, lines in (("WRONG", dict.fromkeys(found.wrong)), ("open", found.open)):
            for line in lines:
                print(f"{what} {file.name}: {line[:200]}")  # noqa: T201
    print(dict(counts))  # noqa: T201


if __name__ == "__main__":
    main()

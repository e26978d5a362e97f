"""What each screen shows of a draft: columns, questions on values, rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from connector.catalog.value import Kind as FieldKind
from connector.engine.push_plan import Problem
from connector.page.draft_reader import CheckedFile, OpenedFile
from connector.page.row_index import PAGE_ROWS, IndexedRow, Kind, RowIndex
from connector.spreadsheet.cells import CellOptions, reader
from connector.spreadsheet.mapping import WHOLE_NAME, ColumnMap, MappedColumn, saved_from
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import COLUMN_MISSING, Unreadable
from connector.spreadsheet.target_columns import PushTarget

LEFT_OUT = "-"
"""Stands for a column that fills nothing, by a person's word."""

CENTURIES = (1930, 1950, 2000)
ZONES = ("Europe/London", "Europe/Berlin", "Europe/Paris", "America/New_York", "UTC")

_NAMES = ("full_name", "first_name", "last_name")
_WHO = (*_NAMES, "name", "title", "email", "reference_code", "slug")
_WHO_CHARACTERS = 120

# -- Columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """One column of the file, and what it is taken for.

    `chosen` is a field's name, `LEFT_OUT`, or empty where nobody knows yet: then it is `perhaps`
    one of these, by the heading or by the cells.
    """

    index: int
    heading: str
    samples: tuple[str, ...]
    chosen: str
    policy: str
    perhaps: tuple[str, ...] = ()


def column_choices(opened: OpenedFile, columns: ColumnMap) -> list[ColumnChoice]:
    """Every column of the file, in order."""
    mapped = {each.index: each for each in columns.columns}
    unmapped = {each.heading: each for each in columns.unmapped}
    found = []
    for index, heading in enumerate(opened.table.headings):
        samples, place = opened.samples[index], mapped.get(index)
        if place is not None:
            chosen, policy = place.target.name, place.options.policy
            choice = ColumnChoice(index, heading, samples, chosen, policy)
        elif (left := unmapped.get(heading)) is not None:
            names = [name for name, _ in left.suggestions]
            perhaps = tuple(dict.fromkeys([*names, *_fitting(samples, opened.target)]))
            choice = ColumnChoice(index, heading, samples, "", "overwrite", perhaps)
        else:
            choice = ColumnChoice(index, heading, samples, LEFT_OUT, "overwrite")
        found.append(choice)
    return found


def _fitting(samples: Sequence[str], target: PushTarget) -> Iterator[str]:
    """Dates and choices of which most of the samples can be values."""
    for column in target.columns:
        is_day = column.field.kind is FieldKind.DATE
        if samples and (is_day or column.accepts(target.mode)):
            read, fitting = reader(column, target.mode).read, 0
            for text in samples:
                with suppress(Unreadable):
                    fitting += read(text) is not None
            if fitting * 2 > len(samples):
                yield column.name


def field_names(target: PushTarget, columns: ColumnMap) -> list[str]:
    """The fields that a column can be taken for."""
    names = [each.name for each in target.columns]
    return [WHOLE_NAME, *names] if columns.name_parts else names


def missing_fields(target: PushTarget, columns: ColumnMap) -> list[tuple[str, tuple[str, ...]]]:
    """What adding needs and no column gives, each with the values that it may have."""
    known = {each.name: each for each in target.columns}
    told = []
    for words in columns.missing:
        for name in words.removeprefix("one of ").split(" or "):
            if name in known:
                told.append((name, known[name].accepts(target.mode)))
    told += [(c.name, c.accepts(target.mode)) for c, _, _ in columns.constants]
    return list(dict.fromkeys(told))


def chosen_map(
    form: Mapping[str, str], opened: OpenedFile, columns: ColumnMap
) -> tuple[SavedMap, list[str], list[tuple[str, str]]]:
    """The map that a form says, and what is wrong with it.

    That are the headings about which it says nothing, and pairs of headings for one field.
    """
    before = saved_from(columns)
    options = {each.heading: each.options for each in columns.columns}
    chosen: dict[str, tuple[str, CellOptions]] = {}
    ignored, undecided, twins = [], [], []
    first: dict[str, str] = {}
    for index, heading in enumerate(opened.table.headings):
        name = form.get(f"c:{index}") or form.get("rest", "")
        if name == LEFT_OUT:
            ignored.append(heading)
        elif name:
            if name in first:
                twins.append((first[name], heading))
            first.setdefault(name, heading)
            kept = options.get(heading, before.options)
            policy: Any = form.get(f"p:{index}", kept.policy)
            chosen[heading] = name, replace(kept, policy=policy)
        elif opened.samples[index]:
            undecided.append(heading)
    constants = {
        name: form[f"k:{name}"].strip()
        for name, _ in missing_fields(opened.target, columns)
        if form.get(f"k:{name}", "").strip() and name not in first
    }
    saved = replace(
        before, columns=chosen, ignored=tuple(ignored), constants=constants, remarks={}, missing=()
    )
    return saved, undecided, twins


# -- Values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """One question about a column's cells, and its answers.

    `sort` is "date", "decimal", "century", "zone" or "words". `example` is a cell. `choices` are
    pairs of an answer and what it would mean; `words` are cells with how often each comes and what
    was chosen. `answer` is what was chosen before.
    """

    sort: str
    index: int
    heading: str
    example: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    words: tuple[tuple[str, int, str | None], ...] = ()
    answer: str = ""

    @property
    def key(self) -> str:
        """The question among those of its file."""
        return f"{self.sort}:{self.index}"

    @property
    def is_open(self) -> bool:
        """Whether nobody has answered it yet."""
        return not self.answer and (self.sort != "words" or any(w[2] is None for w in self.words))


_UNKNOWN = ("unknown_value", "value_not_accepted", "not_true_or_false")


def value_questions(checked: CheckedFile, passed: Collection[str] = ()) -> list[ValueQuestion]:
    """The questions about a file's values, but for those that a person has `passed`.

    Those that were answered are among them.
    """
    return [each for each in _value_questions(checked) if each.key not in passed]


def _value_questions(checked: CheckedFile) -> list[ValueQuestion]:
    preview, words = checked.preview, checked.rows.words
    readings = {each.column: each for each in preview.questions if each.choices}
    found: list[ValueQuestion] = []
    for column in preview.columns.columns:
        heading, options, where = column.heading, column.options, (column.index, column.heading)

        def examples(*codes: str, heading: str = heading) -> list[str]:
            return [word for code in codes for word in words.get((code, heading), ())]

        if (reading := readings.get(heading)) is not None:
            sort = "date" if reading.choices[0][0] in ("dmy", "mdy") else "decimal"
            found.append(ValueQuestion(sort, *where, reading.received or "", reading.choices))
        elif options.date_format in ("dmy", "mdy"):
            known = (("dmy", ""), ("mdy", ""))
            found.append(ValueQuestion("date", *where, "", known, answer=options.date_format))
        elif options.decimal is not None and not options.is_settled:
            signs = ((".", ""), (",", ""))
            found.append(ValueQuestion("decimal", *where, "", signs, answer=options.decimal))
        if options.century is not None or (example := examples("two_digit_year")):
            answer = str(options.century or "")
            years = tuple((str(year), f"{year} … {year + 99}") for year in CENTURIES)
            told = "" if options.century else example[0]
            found.append(ValueQuestion("century", *where, told, years, answer=answer))
        if options.timezone is not None or (example := examples("no_time_zone")):
            zones = tuple((zone, zone) for zone in ZONES)
            told = "" if options.timezone else example[0]
            answer = options.timezone or ""
            found.append(ValueQuestion("zone", *where, told, zones, answer=answer))
        found += _words_question(column, preview.asked.mode, words)
    return found


def _words_question(
    column: MappedColumn, mode: Any, words: Mapping[tuple[str, str], Mapping[str, int]]
) -> Iterator[ValueQuestion]:
    """Cells that are no values of the field, and words for nothing."""
    found: dict[str, tuple[int, str | None]] = {}
    for code in (*_UNKNOWN, "says_nothing", "word_for_nothing"):
        for word, count in words.get((code, column.heading), {}).items():
            found[word] = count, None
    for word, value in column.options.values.items():
        found[word] = found.get(word, (0, None))[0], value
    if found:
        is_bool = column.target.field.kind is FieldKind.BOOL
        allowed = ("yes", "no") if is_bool else column.target.accepts(mode)
        yield ValueQuestion(
            "words",
            column.index,
            column.heading,
            choices=tuple((each, each) for each in allowed),
            words=tuple((word, *told) for word, told in found.items()),
        )


def answered_map(
    form: Mapping[str, str], questions: Sequence[ValueQuestion], columns: ColumnMap
) -> SavedMap:
    """The map with the answers of a form. A word that is left open stays so."""
    saved = saved_from(columns)
    decided = dict(saved.columns)
    names = {"date": "date_format", "decimal": "decimal", "century": "century", "zone": "timezone"}
    for each in questions:
        name, options = decided[each.heading]
        said = form.get(f"{each.sort}:{each.index}", "")
        if each.sort == "words":
            values = dict(options.values)
            for place, (word, _, _) in enumerate(each.words):
                answer = form.get(f"words:{each.index}:{place}", "?")
                if answer == "?":
                    values.pop(word, None)
                else:
                    values[word] = answer
            options = replace(options, values=values)
        elif said in {value for value, _ in each.choices}:
            value: Any = int(said) if each.sort == "century" else said
            options = replace(options, **{names[each.sort]: value})
        decided[each.heading] = name, options
    region = form.get("region") or None
    if "region" in form:
        decided = {
            heading: (name, replace(options, region=region))
            for heading, (name, options) in decided.items()
        }
    return replace(
        saved, columns=decided, options=replace(saved.options, region=region), remarks={}
    )


def phone_region(columns: ColumnMap) -> tuple[bool, str]:
    """Whether a column holds telephone numbers, and the country that was said."""
    phones = [each for each in columns.columns if each.target.is_phone]
    return bool(phones), next((each.options.region or "" for each in phones), "")


# -- Rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """Rows with one kind of problem: how many, and how many are left."""

    kind: Kind
    problem: Problem
    count: int
    left: int

    @property
    def key(self) -> str:
        """The kind in an address."""
        return "~".join(each or "" for each in self.kind)


_QUIET = frozenset((COLUMN_MISSING, "duplicate_in_warehouse", "duplicate_in_file"))


def problem_kinds(
    rows: RowIndex, edits: Mapping[str, Any] | None = None, sort: str = "problem"
) -> list[ProblemKind]:
    """The kinds of problems or warnings that rows have, the most frequent first.

    A row is not left in a kind if its latest check found no such problem, or if it is skipped.
    """
    skipped = {int(number) for number, edit in (edits or {}).items() if edit is None}
    fixed = rows.fixed(skipped)
    found = [
        ProblemKind(kind, problem, rows.count(kind), rows.count(kind) - fixed[kind])
        for kind, problem in rows.problems.items()
        if kind[0] == sort and kind[1] not in _QUIET
    ]
    return sorted(found, key=lambda each: -each.count)


def all_kinds(rows: RowIndex, edits: Mapping[str, Any]) -> list[ProblemKind]:
    """The kinds of problems, and behind them those of warnings."""
    return [*problem_kinds(rows, edits), *problem_kinds(rows, edits, "warning")]


def kind_of(key: str) -> Kind | None:
    """The kind that an address asks for."""
    parts = key.split("~", 2)
    return (parts[0], parts[1], parts[2] or None) if len(parts) == 3 else None


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell of a row: its column, its text, and what is wrong with it."""

    index: int
    heading: str
    text: str
    problems: tuple[Problem, ...] = ()
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row as it is mended: who it is about, and the cells that are wrong.

    `is_mended` says that nothing is wrong with it any more, `is_out` that a person took it out.
    """

    number: int
    who: tuple[str, str]
    cells: tuple[ShownCell, ...]
    problems: tuple[Problem, ...]
    is_mended: bool
    is_out: bool
    is_changed: bool


def who(row: IndexedRow, columns: ColumnMap) -> tuple[str, str]:
    """Name of whom or what a row is about, and what else says so."""
    places = {each.target.key: each.index for each in columns.columns}
    wanted = [(key, places[key]) for key in _WHO if key in places] or [("", 0), ("", 1)]
    cells = row.cells
    texts = [(key in _NAMES, cells[at].strip()) for key, at in wanted if at < len(cells)]
    texts = [(is_name, text) for is_name, text in texts if text] or [(False, "")]
    named = [text for is_name, text in texts if is_name] or [texts.pop(0)[1]]
    others = [text for is_name, text in texts if not is_name]
    return " ".join(named)[:_WHO_CHARACTERS], " · ".join(others)[:_WHO_CHARACTERS]


def shown_row(
    row: IndexedRow,
    checked: CheckedFile,
    edits: Mapping[str, Any],
    kind: Kind | None = None,
    *,
    is_whole: bool = False,
) -> ShownRow:
    """Row to be mended, as it is with its edits.

    It has the cell that the list of a kind is about, all that are wrong where it is about none, or
    all of them.
    """
    columns, headings = checked.preview.columns, checked.preview.table.headings
    now = checked.rows.patched.get(row.number, row)
    by_column: dict[str | None, list[Problem]] = {}
    for each in (*now.result.problems, *now.result.warnings):
        if each.code in _QUIET and not is_whole:
            continue
        by_column.setdefault(each.column, []).append(each)
    mapped = {each.heading: each for each in columns.columns}
    was_wrong = {each.column for each in (*row.result.problems, *row.result.warnings)}
    listed = {kind[2]} if kind is not None and kind[2] else was_wrong
    cells = []
    for index, text in enumerate(now.cells):
        heading = headings[index] if index < len(headings) else ""
        if is_whole or (heading and heading in listed):
            found = tuple(by_column.pop(heading, ())) if heading else ()
            place = mapped.get(heading)
            allowed = place.target.accepts(checked.preview.asked.mode) if place else ()
            cells.append(ShownCell(index, heading, text, found, allowed))
    rest = tuple(problem for some in by_column.values() for problem in some)
    edit = edits.get(str(row.number), {})
    is_well, name = now.result.outcome != "invalid", who(now, columns)
    return ShownRow(row.number, name, tuple(cells), rest, is_well, edit is None, bool(edit))


def pages(count: int) -> int:
    """How many pages so many rows take."""
    return max(1, -(-count // PAGE_ROWS))

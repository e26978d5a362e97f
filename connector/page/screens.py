"""Contents of the screens of a draft: columns, questions about values, rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import Kind as FieldKind
from connector.ledger.push_plan import Problem
from connector.page.draft_reader import CheckedFile, OpenedFile
from connector.page.row_index import PAGE_ROWS, IndexedRow, Kind, RowIndex
from connector.spreadsheet.cells import CellOptions, ColumnPolicy, cell_reader, default_policy
from connector.spreadsheet.headings import heading_words as words_in
from connector.spreadsheet.mapping import WHOLE_NAME, ColumnMap, MappedColumn, to_saved_map
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import COLUMN_MISSING, CellError, ValueWithNotes
from connector.spreadsheet.targets import PushTarget
from connector.spreadsheet.texts import phone_reader

TABLE_ERRORS = frozenset(
    ("sheet_unknown", "encoding_unknown", "delimiter_unknown", "headings_refused", "no_rows")
)
"""Codes of errors that the screen "Table" can solve. Other errors require another file."""

LEFT_OUT = "-"
"""Choice for a column that the user wants to ignore."""

CENTURIES = (1930, 1950, 2000)
ZONES = ("Europe/London", "Europe/Berlin", "Europe/Paris", "America/New_York", "UTC")

_NAMES = ("full_name", "first_name", "last_name")
_WHO = (*_NAMES, "name", "title", "email", "reference_code", "slug")
_WHO_CHARACTERS = 120

# -- Columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Column of the file, and the field that it is mapped to.

    Attributes:
        chosen: Name of the field, `LEFT_OUT`, or empty if nothing is chosen yet.
        policy: How the column changes existing values, or empty.
        perhaps: Fields that fit the heading or the cells.
        suggested: Field that is preselected.
    """

    index: int
    heading: str
    samples: tuple[str, ...]
    chosen: str
    policy: str
    perhaps: tuple[str, ...] = ()
    suggested: str = ""


def column_choices(
    opened: OpenedFile, columns: ColumnMap, labels: Mapping[str, str]
) -> list[ColumnChoice]:
    """Return every column of the file with its field or its suggestions.

    `labels` are the names of the fields on the page.
    """
    mapped = {each.index: each for each in columns.columns}
    unmapped = {each.heading: each for each in columns.unmapped}
    found = []
    for index, heading in enumerate(opened.table.headings):
        samples, place = opened.samples[index], mapped.get(index)
        if place is not None:
            chosen, policy = place.target.name, _chosen_policy(place)
            choice = ColumnChoice(index, heading, samples, chosen, policy)
        elif (unmapped_column := unmapped.get(heading)) is not None:
            names = [name for name, _ in unmapped_column.suggestions] or _fields_with_similar_label(
                heading, labels
            )
            suggested = names[0] if len(names) == 1 and samples else ""
            perhaps = tuple(dict.fromkeys([*names, *_matching_fields(samples, opened.target)]))
            choice = ColumnChoice(index, heading, samples, "", "", perhaps, suggested)
        else:
            choice = ColumnChoice(index, heading, samples, LEFT_OUT, "")
        found.append(choice)
    choice_counts = Counter(each.chosen or each.suggested for each in found)
    return [
        replace(each, suggested="") if choice_counts[each.suggested] > 1 else each for each in found
    ]


def _fields_with_similar_label(heading: str, labels: Mapping[str, str]) -> list[str]:
    """Return fields whose label contains every word of the heading, at most three.

    For example, the label "Notice period days" contains "Period".
    """
    heading_words = set(words_in(heading))
    found = [
        name
        for name, label in labels.items()
        if heading_words and heading_words <= set(words_in(label))
    ]
    return found[:_NAMED_LIKE_MAX]


_NAMED_LIKE_MAX = 3


def _chosen_policy(place: MappedColumn) -> ColumnPolicy:
    """Return the policy of a column if the user chose it, or the default of its field."""
    return place.options.policy if place.match_kind == "given" else default_policy(place.target)


def _matching_fields(samples: Sequence[str], target: PushTarget) -> Iterator[str]:
    """Yield date and choice fields for which most of the samples are valid."""
    for column in target.columns:
        is_day = column.field.kind is FieldKind.DATE
        if samples and (is_day or column.accepted_values(target.mode)):
            read, matches = cell_reader(column, target.mode).read, 0
            for text in samples:
                with suppress(CellError):
                    matches += read(text) is not None
            if matches * 2 > len(samples):
                yield column.name


def mappable_fields(target: PushTarget, columns: ColumnMap) -> list[str]:
    """Return the names of all fields for a column, including fields that are mapped already."""
    names = [each.name for each in target.columns]
    return [WHOLE_NAME, *names] if columns.name_parts else names


def missing_fields(target: PushTarget, columns: ColumnMap) -> list[tuple[str, tuple[str, ...]]]:
    """Return required fields that no column fills, each with its allowed values."""
    known = {each.name: each for each in target.columns}
    missing = []
    for words in columns.missing:
        for name in words.removeprefix("one of ").split(" or "):
            if name in known:
                missing.append((name, known[name].accepted_values(target.mode)))
    missing += [(c.name, c.accepted_values(target.mode)) for c, _, _ in columns.constants]
    return list(dict.fromkeys(missing))


def parse_mapping_form(
    form: Mapping[str, str], opened: OpenedFile, columns: ColumnMap
) -> tuple[SavedMap, list[str], list[tuple[str, str]]]:
    """Return the column mapping in a form, and its errors.

    The errors are headings without a choice, and pairs of headings with the same field.
    """
    before = to_saved_map(columns)
    options = {each.heading: each.options for each in columns.columns}
    shown = {(each.heading, each.target.name): _chosen_policy(each) for each in columns.columns}
    usual = {each.name: default_policy(each) for each in opened.target.columns}
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
            column_options = options.get(heading, before.options)
            policy: Any = form.get(f"p:{index}") or shown.get((heading, name)) or usual.get(name)
            chosen[heading] = name, replace(column_options, policy=policy or "overwrite")
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
class QuestionValue:
    """Text in a column that needs an answer, the number of its cells, and the answer so far.

    `error` is set if a typed answer is invalid. `records` are the ids of records with this name,
    from which the user chooses.
    """

    text: str
    count: int
    answer: str | None = None
    error: Problem | None = None
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """Question about a column's cells, and its answers.

    Attributes:
        sort: "date", "decimal", "century", "zone", "month", "now" or "values".
        choices: Pairs of an answer and its meaning.
        values: For the sort "values", the texts that need an answer: one of the choices or, if
            `is_typed`, a text or a record of the `resource`.
        is_certain: True if all choices are equal for these cells, so that only one is offered.
    """

    sort: str
    index: int
    heading: str
    example: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    values: tuple[QuestionValue, ...] = ()
    answer: str = ""
    is_typed: bool = False
    resource: str = ""
    is_certain: bool = False

    @property
    def key(self) -> str:
        """Identifier of the question in forms."""
        return f"{self.sort}:{self.index}"

    @property
    def places(self) -> range:
        """Indexes of its values in forms."""
        return range(len(self.values))

    @property
    def is_open(self) -> bool:
        """Return True if the question has no answer yet."""
        if self.sort == "values":
            return any(each.answer is None for each in self.values)
        return not self.answer


VALUES_MAX = 50
"""Maximum number of different values in a question about a column."""

_EMPTY_WORDS = ("says_nothing", "word_for_nothing")
_NOT_BY_VALUE = frozenset(
    (
        *("required", "match_missing", "ambiguous_date", "ambiguous_number", "two_digit_year"),
        *("no_time_zone", "month_length", "immediately", "record_unknown", "record_ambiguous"),
        *("record_deleted", "record_not_read", "converted_already", "person_erased"),
        *("duplicate_in_file", "duplicate_in_warehouse", "only_with", "currency_differs"),
        *("required_when", "one_of_required", COLUMN_MISSING),
    )
)
"""Codes of problems that another answer for the same value would not solve."""

_TWINS_MAX, _DIFFERENCES_MAX = 20, 8
"""Maximum number of rows of one group of duplicates, and of columns in which they differ."""

_FILE_WIDE = {
    "month": ("month_length", "month_days", ("30", "31", "28")),
    "now": ("immediately", "immediately", ("today", "empty")),
}
"""Questions about a whole file: the problem's code, the option, and the answers."""


def value_questions(checked: CheckedFile) -> list[ValueQuestion]:
    """Return all questions about a file's values, answered or not."""
    preview, words, mode = checked.preview, checked.rows.cell_counts, checked.preview.push_file.mode
    readings = {each.column: each for each in preview.questions if each.choices}
    found = [*_file_questions(checked)]
    for column in preview.columns.columns:
        heading, options, where = column.heading, column.options, (column.index, column.heading)

        def examples(code: str, heading: str = heading) -> list[str]:
            return [*words.get((code, heading), ())]

        if (number_reading := readings.get(heading)) is not None:
            sort = "date" if number_reading.choices[0][0] in ("dmy", "mdy") else "decimal"
            found.append(
                ValueQuestion(sort, *where, number_reading.received or "", number_reading.choices)
            )
        elif options.date_format in ("dmy", "mdy"):
            known = (("dmy", ""), ("mdy", ""))
            found.append(ValueQuestion("date", *where, "", known, answer=options.date_format))
        elif options.decimal is not None and not options.is_decimal_inferred:
            signs = ((".", ""), (",", ""))
            found.append(ValueQuestion("decimal", *where, "", signs, answer=options.decimal))
        if options.century is not None or (example := examples("two_digit_year")):
            answer = str(options.century or "")
            example_cell = "" if options.century else example[0]
            years = _century_choices(column, mode, example if example_cell else [])
            # One reading is shown, so that it can be corrected in the file, and needs no click.
            found.append(
                ValueQuestion(
                    "century",
                    *where,
                    example_cell,
                    years,
                    answer=answer,
                    is_certain=len(years) == 1,
                )
            )
        if options.timezone is not None or (example := examples("no_time_zone")):
            zones = tuple((zone, zone) for zone in ZONES)
            example_cell = "" if options.timezone else example[0]
            answer = options.timezone or ""
            found.append(ValueQuestion("zone", *where, example_cell, zones, answer=answer))
        if (value_question := values_question(checked, column)) is not None:
            found.append(value_question)
    return found


def _century_choices(
    column: MappedColumn, mode: Any, examples: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return centuries that result in different dates, each with the date of the first cell."""
    years = (*CENTURIES, *((1900,) if column.target.key == "date_of_birth" else ()))
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    for year in years:
        read = cell_reader(
            column.target, mode, replace(column.options, century=year, values={})
        ).read
        days = []
        for text in examples:
            with suppress(CellError):
                value = read(text)
                days.append(str(value.value if isinstance(value, ValueWithNotes) else value))
        # Without cells, an earlier answer is shown among all choices.
        found.setdefault(tuple(days) or (str(year),), (str(year), days[0] if days else ""))
    return tuple(found.values())


def _file_questions(checked: CheckedFile) -> Iterator[ValueQuestion]:
    """Yield questions about all columns: the days of a month, and the date for "immediately"."""
    columns, words = checked.preview.columns.columns, checked.rows.cell_counts
    for sort, (code, option, answers) in _FILE_WIDE.items():
        answer = next((str(v) for e in columns if (v := getattr(e.options, option))), "")
        found = [w for each in columns for w in words.get((code, each.heading), ())]
        if answer or found:
            choices = tuple((each, "") for each in answers)
            yield ValueQuestion(sort, 0, "", found[0] if found else "", choices, answer=answer)


def values_question(
    checked: CheckedFile, column: MappedColumn, code: str | None = None
) -> ValueQuestion | None:
    """Return the question about the invalid texts of a column; None if nothing is to be asked.

    Without a `code`, texts with any problem are included if there are choices or a text occurs more
    than once. Other cells are corrected in their rows.
    """
    mode, field = checked.preview.push_file.mode, column.target.field
    answers, is_bool = column.options.values, field.kind is FieldKind.BOOL
    allowed = ("yes", "no") if is_bool else column.target.accepted_values(mode)
    takes_any = field.kind is FieldKind.STRING and field.format is None
    is_text = takes_any and not allowed and not column.target.is_phone
    is_typed, reference = not allowed and not is_text, column.target.reference
    found: dict[str, QuestionValue] = {}
    is_repeated = False
    for (each, heading), counts in checked.rows.cell_counts.items():
        is_problem = ("problem", each, heading) in checked.rows.problems or each in _EMPTY_WORDS
        if heading != column.heading or each in _NOT_BY_VALUE or not is_problem:
            continue
        if code not in (None, each) or (is_text and each not in _EMPTY_WORDS):
            continue
        if each == "reference_ambiguous" and not (reference and reference.by != "email"):
            continue
        is_repeated |= each == "reference_ambiguous"
        is_repeated |= each in _EMPTY_WORDS or max(counts.values()) > 1
        usual = "" if each == "says_nothing" and not is_text else None
        found |= {
            text: QuestionValue(
                *(text, n, answers.get(text, usual)),
                records=checked.rows.record_choices.get((heading, text), ()),
            )
            for text, n in counts.items()
        }
    if code is None:
        found |= {
            text: QuestionValue(text, 0, answer, records=(answer,) if reference and answer else ())
            for text, answer in answers.items()
            if text not in found
        }
    if not found or len(found) > VALUES_MAX or not (is_repeated or allowed or answers):
        return None
    return ValueQuestion(
        "values",
        column.index,
        column.heading,
        choices=tuple((each, each) for each in allowed),
        values=tuple(found.values()),
        is_typed=is_typed,
        resource=column.target.referred_resource or "",
    )


def parse_answers_form(
    form: Mapping[str, str], questions: Sequence[ValueQuestion], columns: ColumnMap, mode: Any
) -> tuple[SavedMap, list[ValueQuestion]]:
    """Return the mapping with the answers of a form, and the questions with invalid answers.

    Values without an answer stay open.
    """
    saved = to_saved_map(columns)
    decided, targets = dict(saved.columns), {each.heading: each for each in columns.columns}
    names = {"date": "date_format", "decimal": "decimal", "century": "century", "zone": "timezone"}
    wide: dict[str, Any] = {"region": form["region"] or None} if "region" in form else {}
    wrong = []
    for each in questions:
        answer = form.get(each.key, "")
        if each.sort == "values":
            name, options = decided[each.heading]
            answered = [
                _parse_value_answer(form, each, at, targets[each.heading], mode)
                for at in each.places
            ]
            wrong += (
                [replace(each, values=tuple(answered))] if any(a.error for a in answered) else []
            )
            values = {
                a.text: a.answer for a in answered if a.answer is not None and a.error is None
            }
            kept_values = {
                t: v for t, v in options.values.items() if t not in {a.text for a in answered}
            }
            decided[each.heading] = name, replace(options, values={**kept_values, **values})
        elif answer in {value for value, _ in each.choices}:
            value: Any = int(answer) if each.sort in ("century", "month") else answer
            if each.sort in _FILE_WIDE:
                wide[_FILE_WIDE[each.sort][1]] = value
            else:
                name, options = decided[each.heading]
                decided[each.heading] = name, replace(options, **{names[each.sort]: value})
    decided = {
        heading: (name, replace(options, **wide)) for heading, (name, options) in decided.items()
    }
    return replace(
        saved, columns=decided, options=replace(saved.options, **wide), remarks={}
    ), wrong


def _parse_value_answer(
    form: Mapping[str, str], question: ValueQuestion, place: int, column: MappedColumn, mode: Any
) -> QuestionValue:
    """Return a value with its answer in the form, and its error if it is invalid.

    `place` is the index of the value in the question.
    """
    value, key = question.values[place], f"{question.index}:{place}"
    answer = form.get(f"value:{key}", "?")
    is_chosen = f"empty:{key}" not in form and answer in ("?", "", *value.records)
    if not question.is_typed or (value.records and is_chosen):
        return replace(value, answer=None if answer == "?" else answer)
    typed = form.get(f"value:{key}", "").strip()
    if f"empty:{key}" in form or not typed:
        return replace(value, answer="" if f"empty:{key}" in form else None)
    try:
        cell_reader(column.target, mode, replace(column.options, values={})).read(typed)
    except CellError as error:
        return replace(value, answer=typed, error=error.problem(column.heading, typed))
    return replace(value, answer=typed)


def phone_examples(opened: OpenedFile, columns: ColumnMap, region: str) -> list[tuple[str, str]]:
    """Return telephone numbers of the file that the region changes, before and after."""
    read, found = phone_reader(region or None), {}
    for text in _phone_samples(opened, columns):
        with suppress(CellError):
            number = read(text)
            found[text] = number.value if isinstance(number, ValueWithNotes) else number
    return [(text, number) for text, number in found.items() if text != number]


def is_region_plausible(opened: OpenedFile, columns: ColumnMap, region: str) -> bool:
    """Return True if all sampled telephone numbers have a form that is used in the region."""
    return not any(
        _is_foreign(text, region) for text in _phone_samples(opened, columns) if _has_digits(text)
    )


def _phone_samples(opened: OpenedFile, columns: ColumnMap) -> Iterator[str]:
    """Yield sampled texts of the columns with telephone numbers."""
    for column in columns.columns:
        if column.target.is_phone:
            yield from opened.samples[column.index]


def _has_digits(text: str) -> bool:
    """Return True if the text can be a telephone number, unlike "none" or "see below"."""
    return any(each.isdecimal() for each in text)


def _is_foreign(text: str, region: str) -> bool:
    """Return True if the text is no telephone number in the region."""
    try:
        phone_reader(region)(text)
    except CellError as error:
        return error.code == "phone_format"
    return False


def find_phone_region(columns: ColumnMap) -> tuple[bool, str]:
    """Return True if a column contains telephone numbers, and the country code chosen for them."""
    phones = [each for each in columns.columns if each.target.is_phone]
    return bool(phones), next((each.options.region or "" for each in phones), "")


# -- Rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """Kind of problem, its first problem, the number of its rows, and of rows left to correct."""

    kind: Kind
    problem: Problem
    count: int
    left: int

    @property
    def key(self) -> str:
        """Kind as text for addresses and forms."""
        return "~".join(each or "" for each in self.kind)


_QUIET = frozenset((COLUMN_MISSING, "duplicate_in_warehouse"))


def problem_kinds(
    rows: RowIndex, edits: Mapping[str, Any] | None = None, sort: str = "problem"
) -> list[ProblemKind]:
    """Return the kinds of problems, or with `sort` "warning" of warnings, the most frequent first.

    A row is not left to correct if its latest check found no such problem, or if it is skipped.
    """
    skipped = {int(number) for number, edit in (edits or {}).items() if edit is None}
    fixed = rows.count_fixed(skipped)
    found = [
        ProblemKind(kind, problem, rows.count_rows(kind), rows.count_rows(kind) - fixed[kind])
        for kind, problem in rows.problems.items()
        if kind[0] == sort and kind[1] not in _QUIET
    ]
    # A duplicate of a corrected row may be unique now.
    return sorted(found, key=lambda each: (each.kind[1] == "duplicate_in_file", -each.count))


def all_kinds(rows: RowIndex, edits: Mapping[str, Any]) -> list[ProblemKind]:
    """Return the kinds of problems, followed by those of warnings."""
    return [*problem_kinds(rows, edits), *problem_kinds(rows, edits, "warning")]


@dataclass(frozen=True, slots=True)
class GroupQuestion:
    """Question about all rows with the same kind of problem, and its possible answers.

    Attributes:
        allowed: Values of a choice.
        may_be_filled: True if one value can be correct for all rows.
        may_be_empty: True if rows can be imported without the cell.
        values: Different cells, one answer each.
    """

    heading: str
    index: int
    allowed: tuple[str, ...]
    may_be_filled: bool
    may_be_empty: bool
    values: ValueQuestion | None


def group_question(checked: CheckedFile, kind: Kind) -> GroupQuestion | None:
    """Return the question about a kind; None for a kind without a column."""
    preview = checked.preview
    column = next((each for each in preview.columns.columns if each.heading == kind[2]), None)
    if column is None:
        return None
    mode, target = preview.push_file.mode, column.target
    keys = {name for some in CATALOG[preview.push_file.resource].natural_keys for name in some}
    keys |= {*preview.push_file.match, "id", WHOLE_NAME}
    is_needed = target.create.required and mode in ("create", "upsert")
    may_be_empty = kind[1] not in ("required", "match_missing") and not is_needed
    return GroupQuestion(
        column.heading,
        column.index,
        ("yes", "no") if target.field.kind is FieldKind.BOOL else target.accepted_values(mode),
        kind[0] == "problem" and target.key not in keys,
        kind[0] == "problem" and may_be_empty and target.key not in keys,
        values_question(checked, column, kind[1]) if kind[0] == "problem" else None,
    )


@dataclass(frozen=True, slots=True)
class DuplicateRow:
    """One of several duplicate rows of a file, with its cells that differ."""

    number: int
    who: tuple[str, str]
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Duplicate rows of a file. Only one of them is imported.

    `value` is the cell that they share. `headings` are the columns in which they differ.
    """

    value: str
    headings: tuple[str, ...]
    rows: tuple[DuplicateRow, ...]


def duplicate_groups(checked: CheckedFile, kind: Kind, page: int) -> list[DuplicateGroup]:
    """Return one page of the groups of duplicates of a kind."""
    start = (page - 1) * PAGE_ROWS
    groups = islice(checked.rows.duplicates.get(kind, {}).items(), start, start + PAGE_ROWS)
    return [_duplicate_group(checked, kind, (first, *others)) for first, others in groups]


def _duplicate_group(checked: CheckedFile, kind: Kind, numbers: Sequence[int]) -> DuplicateGroup:
    """Return the rows with these numbers as a group; of a large group, only some rows."""
    columns, headings = checked.preview.columns, checked.preview.table.headings
    if len(numbers) > _TWINS_MAX:
        numbers = (*numbers[: _TWINS_MAX - 1], numbers[-1])
    rows = [row for number in numbers if (row := checked.rows.row(number)) is not None]
    width = min(len(row.cells) for row in rows)
    found = [
        (heading, [row.cells[at].strip() for row in rows])
        for at, heading in enumerate(headings[:width])
    ]
    other = [(heading, cells) for heading, cells in found if len({*cells}) > 1][:_DIFFERENCES_MAX]
    return DuplicateGroup(
        next((cells[0] for heading, cells in found if heading == kind[2]), ""),
        tuple(heading for heading, _ in other),
        tuple(
            DuplicateRow(
                row.number, row_title(row, columns), tuple(cells[at] for _, cells in other)
            )
            for at, row in enumerate(rows)
        ),
    )


def parse_kind(key: str) -> Kind | None:
    """Parse a kind from an address or a form; None if the text is not valid."""
    parts = key.split("~", 2)
    return (parts[0], parts[1], parts[2] or None) if len(parts) == 3 else None


@dataclass(frozen=True, slots=True)
class ShownCell:
    """Cell on a screen: its column, text, problems, and allowed values."""

    index: int
    heading: str
    text: str
    problems: tuple[Problem, ...] = ()
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownRow:
    """Row on the screen of corrections: its title, and the cells to correct.

    Attributes:
        who: Name of the row's subject, and further identification.
        problems: Problems without a cell.
        is_fixed: True if it has no problems any more.
        is_skipped: True if the user has skipped it.
        records: Ids of several records that match it.
        record: Id of the chosen record.
    """

    number: int
    who: tuple[str, str]
    cells: tuple[ShownCell, ...]
    problems: tuple[Problem, ...]
    is_fixed: bool
    is_skipped: bool
    is_changed: bool
    records: tuple[str, ...] = ()
    record: str = ""


def row_title(row: IndexedRow, columns: ColumnMap) -> tuple[str, str]:
    """Return the name of the row's subject, and further cells that identify it."""
    places = {each.target.key: each.index for each in columns.columns}
    candidates = [(key, places[key]) for key in _WHO if key in places] or [("", 0), ("", 1)]
    cells = row.cells
    texts = [(key in _NAMES, cells[at].strip()) for key, at in candidates if at < len(cells)]
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
    """Return the row with its edits, as the screen shows it.

    Its cells are those with problems and the one of the listed kind, or all cells if `is_whole`.
    """
    columns, headings = checked.preview.columns, checked.preview.table.headings
    now = checked.rows.rechecked.get(row.number, row)
    by_column: dict[str | None, list[Problem]] = {}
    with_warnings = is_whole or kind is None or kind[0] == "warning"
    for each in (*now.result.problems, *(now.result.warnings if with_warnings else ())):
        if each.code in _QUIET and not is_whole:
            continue
        by_column.setdefault(each.column, []).append(each)
    mapped = {each.heading: each for each in columns.columns}
    was_wrong = {each.column for each in (*row.result.problems, *row.result.warnings)}
    listed = {kind[2]} if kind is not None and kind[2] else was_wrong
    listed |= {each.column for each in now.result.problems}
    cells = []
    for index, text in enumerate(now.cells):
        heading = headings[index] if index < len(headings) else ""
        if is_whole or (heading and heading in listed):
            found = tuple(by_column.pop(heading, ())) if heading else ()
            place = mapped.get(heading)
            allowed = place.target.accepted_values(checked.preview.push_file.mode) if place else ()
            cells.append(ShownCell(index, heading, text, found, allowed))
    rest = tuple(problem for some in by_column.values() for problem in some)
    edit = edits.get(str(row.number), {})
    is_well, name = now.result.outcome != "invalid", row_title(now, columns)
    matches = (p.found or "" for p in row.result.problems if p.code == "record_ambiguous")
    return ShownRow(
        *(row.number, name, tuple(cells), rest, is_well, edit is None, bool(edit)),
        records=tuple(next(matches, "").split()) if not is_whole else (),
        record=now.row.record_id,
    )


def count_pages(count: int) -> int:
    """Return the number of pages for a number of rows."""
    return max(1, -(-count // PAGE_ROWS))

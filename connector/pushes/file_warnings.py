"""Questions about a whole file, and the column mappings of earlier files.

Values of a column without a field would be lost, and a row with a warning would be sent. Both need
the user's consent first. The mapping is saved in the data folder and used for the next file with
the same headings.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from connector.atomic_files import write_atomically
from connector.errors import count_noun
from connector.settings.folders import MAPS_FOLDER
from connector.spreadsheet.headings import column_letter, normalized_heading
from connector.spreadsheet.mapping import EVERY_COLUMN, ColumnMap, to_saved_map
from connector.spreadsheet.mapping_file import SavedMap, load_map, save_map, with_options
from connector.spreadsheet.problems import FileQuestion, SheetRow
from connector.spreadsheet.report import Summary
from connector.spreadsheet.table import Spreadsheet
from connector.warehouse.duckdb_file import make_folder


def ask_about_warnings(
    warned_rows: int, table: Spreadsheet, columns: ColumnMap
) -> Iterator[FileQuestion]:
    """Yield a question for each kind of warning in a file.

    The kinds are hidden columns, unlikely headings, merged cells, a second table, and rows with
    warnings.
    """
    filling = {each.heading for each in columns.columns}
    if hidden := [each for each in table.hidden_headings if each in filling]:
        yield FileQuestion(
            "hidden_columns",
            f"{count_noun(len(hidden), 'column')} hidden in the file would be sent: "
            f"{', '.join(map(repr, hidden))}",
            "Show the columns and check them. Then run again with --accept-warnings, or with"
            f" --ignore '{hidden[0]}'.",
        )
    if any("@" in each or _IS_DATE(each) for each in table.headings):
        yield FileQuestion(
            "headings",
            f"row {table.heading_rows.index + 1} is used as the headings, but looks like data",
            "Add a row of headings, or give the number of their row with --header-row. To use the "
            "row as headings, add --accept-warnings.",
        )
    if covered := [each for each in table.merged_ranges if _covers_rows(each, table, filling)]:
        yield FileQuestion(
            "merged_cells",
            f"merged cells cover several rows, which all get the value: {', '.join(covered)}",
            "Unmerge the cells if only the first row has the value. Otherwise add "
            "--accept-warnings.",
        )
    if (second := table.left_out.second_table_row) is not None:
        yield FileQuestion(
            "second_table",
            f"row {second} seems to be the first row of another table, which is not imported",
            "Move the second table to its own file. To import only the first table, add "
            "--accept-warnings.",
        )
    if warned_rows:
        yield FileQuestion(
            "warnings",
            f"{count_noun(warned_rows, 'row')} would be sent with warnings",
            "Check the rows, then run again with --accept-warnings, or map the values.",
        )


def ask_for_values(summary: Summary) -> Iterator[FileQuestion]:
    """Yield the question which values the cells mean that no field accepts.

    It has one answer for all equal cells of a column.
    """
    columns: dict[str, list[str]] = {}
    for (_, column), group in summary.problems.items():
        if group.is_answered_by_value:
            cells = (f'"{text}" ({count:,})' for text, count in group.values.most_common())
            columns.setdefault(column or "", []).extend(cells)
    if columns:
        names = ", ".join(map(repr, columns))
        yield FileQuestion(
            "values",
            f"cells that repeat in {count_noun(len(columns), 'column')} need a value: {names}",
            "Choose a value for each in the column mapping, and run again with --mapping FILE.",
            stops=False,
            choices=tuple((each, ", ".join(cells)) for each, cells in columns.items()),
        )


def unanswered_values(summary: Summary) -> dict[str, tuple[list[str], str]]:
    """Return the cells that need a value, and what is allowed, by column for a mapping file."""
    found: dict[str, tuple[list[str], str]] = {}
    for (_, column), group in summary.problems.items():
        if group.is_answered_by_value:
            allowed = group.problem.allowed
            text = f"Allowed: {allowed}" if allowed else group.problem.fix or ""
            found.setdefault(column or "", ([], text))[0].extend(group.values)
    return found


_IS_DATE = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}").fullmatch
_RANGE = re.compile(r"([A-Z]+)([0-9]+):([A-Z]+)([0-9]+)").fullmatch


def _covers_rows(merged: str, table: Spreadsheet, filling: Set[str]) -> bool:
    """Return True if a merged range covers several rows of a column that fills a field."""
    found = _RANGE(merged)
    first, last = (int(found[2]), int(found[4])) if found else (0, 0)
    named = {column_letter(n): each for n, each in enumerate(table.headings)}
    return (
        table.heading_rows.first_row < first < last
        and named.get(found[1] if found else "") in filling
    )


class LostColumns:
    """Finds columns that have values and fill no field, while the rows of a file are read."""

    def __init__(self, table: Spreadsheet, columns: ColumnMap) -> None:
        self._table, self._columns = table, columns
        headings = table.headings
        self._empty = {headings.index(each.heading) for each in columns.unmapped}
        self._filled: set[int] = set()

    def yield_rows(self) -> Iterator[SheetRow]:
        """Yield the table's rows, and note which unmapped columns have values."""
        rows = self._table.rows()
        for row in rows:
            if not row.is_outside:
                cells = row.cells
                found = [i for i in self._empty if i < len(cells) and str(cells[i]).strip()]
                self._empty.difference_update(found)
                self._filled.update(found)
            yield row
            if not self._empty:
                break
        yield from rows

    def read_until_known(self) -> None:
        """Read rows until every unmapped column has a value, or to the end of the file."""
        for _ in self.yield_rows():
            if not self._empty:
                return

    def questions(self) -> Iterator[FileQuestion]:
        """Yield a question if columns with values would be lost. The rows must have been read."""
        lost = [
            each
            for each in self._columns.unmapped
            if self._table.headings.index(each.heading) in self._filled
        ]
        if lost:
            names = ", ".join(repr(each.heading) for each in lost)
            yield FileQuestion(
                "columns_lost",
                f"{count_noun(len(lost), 'column')} with values would not be imported: {names}",
                "Map the columns with --mapping FILE, or ignore them with --ignore"
                f" '{lost[0].heading}'"
                f" (--ignore '{EVERY_COLUMN}' for all).",
            )


# -- Remembered mappings ---------------------------------------------------------------------------


def _remembered_mapping_path(folder: Path, resource: str, headings: Sequence[str]) -> Path:
    """Return the file that remembers the mapping for a resource and these headings."""
    layout = "\n".join(map(normalized_heading, headings)).encode()
    return folder / MAPS_FOLDER / f"{resource}-{hashlib.sha256(layout).hexdigest()[:16]}.toml"


def load_remembered_mapping(
    folder: Path, resource: str, headings: Sequence[str], given: SavedMap | None
) -> tuple[SavedMap | None, str | None]:
    """Return the mapping for a file's columns: the given one, or that of the last file.

    The last file with the same headings counts if the given mapping maps no columns. Then the
    second value is a notice for users; otherwise it is None.
    """
    has_said = given is not None and (given.columns or given.ignored)
    path = _remembered_mapping_path(folder, resource, headings)
    if has_said or not path.exists():
        return given, None
    remembered = load_map(path)
    if given is not None:
        constants = {**remembered.constants, **given.constants}
        remembered = with_options(replace(remembered, constants=constants), given.options)
    notice = (
        f"The columns are matched as in the last file with the same headings (column mapping: "
        f"{path})."
    )
    notice += " Use --mapping none to ignore this mapping."
    return remembered, notice


def remember_mapping(
    folder: Path, headings: Sequence[str], columns: ColumnMap, given: SavedMap | None
) -> None:
    """Save the column mapping for the next file with these headings, if the user chose any of it.

    Raises a `WarehouseError`.
    """
    is_decided = any(each.match_kind == "given" for each in columns.columns)
    if is_decided or columns.ignored or columns.constants:
        path = _remembered_mapping_path(folder, columns.resource, headings)
        make_folder(path.parent)
        kept = replace(to_saved_map(columns), remarks={}, missing=())
        save_map(path, kept if given is None else replace(kept, options=given.options))
    for seed, fields in _SEEDS.items():
        names = {
            id: text
            for each in columns.columns
            if each.target.key in fields
            for text, id in each.options.values.items()
            if id
        }
        if names:
            _add_to_seed(folder / "seeds" / f"{seed}.csv", names)


_SEEDS = {"people": ("assigned_to", "account_manager_id"), "lead_statuses": ("lead_status_id",)}


def _add_to_seed(path: Path, names: Mapping[str, str]) -> None:
    """Add names of users or lead statuses by id to the user's seed; known names are kept."""
    rows: list[dict[str, str]] = []
    if path.exists():
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    headings = list(rows[0]) if rows else ["id", "name", _THIRD_COLUMN[path.stem]]
    for id, name in names.items():
        row = next((each for each in rows if each["id"] == id), None)
        if row is None:
            outcome = {"outcome": "open"} if "outcome" in headings else {}
            rows.append({**dict.fromkeys(headings, ""), **outcome, "id": id, "name": name})
        elif not row.get("name"):
            row["name"] = name
    make_folder(path.parent)
    with write_atomically(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.DictWriter(text, headings)
        writer.writeheader()
        writer.writerows(rows)
        text.flush()
        text.detach()


_THIRD_COLUMN = {"people": "team", "lead_statuses": "outcome"}

"""Texts of the page, and values in the form in which the page shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import takewhile
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from phonenumbers.geodata.locale import LOCALE_DATA

from connector.catalog import CATALOG
from connector.errors import ConnectorError, SpreadsheetError, end_sentence
from connector.ledger.push_plan import Problem
from connector.page.problem_words import choose_wording, find_problem_words
from connector.settings.layers import IMPORTS_FOLDER
from connector.spreadsheet.problems import fix_of, message_of
from connector.spreadsheet.texts import REGIONS
from connector.spreadsheet.words import DEFAULT_REGION

MODES: Mapping[str, tuple[str, str]] = {
    "create": ("Create new records", "Existing records are not changed."),
    "update": ("Update existing records", "No new records are created."),
    "upsert": ("Create and update", "Existing records are updated. All others are created."),
    "convert": ("Convert leads", "A conversion cannot be undone."),
}
"""Words for the mode of an import."""

OUTCOMES: Mapping[str, str] = {
    "create": "New",
    "update": "Updated",
    "convert": "To convert",
    "created": "Created",
    "updated": "Updated",
    "converted": "Converted",
    "undone": "Undone",
    "unchanged": "No changes",
    "duplicate": "Duplicates",
    "invalid": "Not imported",
    "rejected": "Rejected",
    "not_applied": "Saved with a different value",
    "conflict": "Changed by someone else",
    "held": "Unconfirmed",
    "not_sent": "Not sent",
}
"""Words for the result of a row, by outcome."""

ABOUT: Mapping[str, str] = {
    "create": "These records will be created.",
    "update": "Existing records; these fields will change.",
    "unchanged": "Already up to date.",
    "duplicate": (
        "These records already exist, or the rows are duplicates in this file. They are not"
        " imported."
    ),
    "invalid": "These rows have errors and will not be imported.",
    "rejected": "The platform rejected these rows. Choose “Fix rows that were not imported”.",
    "conflict": "Someone else changed these records after your review, so they were not updated.",
    "held": "No response was received. Check whether these records exist.",
    "not_sent": "The import ended before these rows. Choose “Resume” to continue.",
    "not_applied": "Saved, but with different values.",
}
"""Sentences that explain an outcome."""

UNDONE: Mapping[str, str] = {
    "delete": "Will be deleted",
    "restore": "Will be restored",
    "deleted": "Deleted",
    "restored": "Restored",
    "undone": "Already undone",
    "nothing": "Nothing to undo",
    "partly": "Partly restored: someone else changed some fields",
    "conflict": "Kept: changed by someone else",
    "irreversible": "Kept: a conversion cannot be undone",
    "refused": "Rejected by the platform",
    "held": "Not confirmed",
    "unread": "The record could not be checked",
    "not_reached": "Not processed yet",
}
"""Words for the outcomes of an undo."""

COUNTED: Mapping[str, tuple[str, str]] = {
    "jobs": ("%(num)s job", "%(num)s jobs"),
    "candidates": ("%(num)s candidate", "%(num)s candidates"),
    "companies": ("%(num)s company", "%(num)s companies"),
    "bookings": ("%(num)s booking", "%(num)s bookings"),
    "leads": ("%(num)s lead", "%(num)s leads"),
    "content_items": ("%(num)s content item", "%(num)s content items"),
}
"""Numbers of records in a button, as in "Create 60 candidates"."""

ERRORS: Mapping[str, str] = {
    "failed": "an unexpected error occurred",
    "spreadsheet": "the file cannot be read as a table",
    "not_a_spreadsheet": "the file is not a spreadsheet",
    "damaged_spreadsheet": "the file is damaged",
    "report_refused": "the report cannot be written",
    "password_protected": "the workbook is protected with a password",
    "unsafe_workbook": "the workbook is too large or links to other files",
    "encoding_unknown": "the text encoding of the file is not clear",
    "delimiter_unknown": "the column separator was not found",
    "headings_refused": "the header row was not found",
    "no_rows": "the file has no rows below the header",
    "sheet_unknown": "the workbook has several sheets",
    "spreadsheet_changed": "the file changed while it was being read",
    "misused": "these settings cannot be combined",
    "unknown_name": "a field, column or file name is unknown",
    "warehouse": "the folder with the connector's data cannot be used",
    "warehouse_busy": "the connector's data is in use by another program",
    "disk_full": "the disk is full",
    "unauthorized": "the API key was rejected",
    "quota_spent": "the monthly quota of requests is used up",
    "rate_limited": "too many requests were sent",
    "restored_unpulled": "the connector's data must be updated first",
    "denied": "the platform does not allow the connector to do this",
    "refused": "the platform rejected the request",
    "try_again": "the platform cannot be reached or is busy",
    "not_the_api": "the platform sent an unexpected response",
    "stopped": "the limit of requests is reached",
    "lease_held": "another import is running",
}
"""Texts of errors, by the code of the error or of its base class. A file that cannot be read
has the error's own sentence, which is more specific.
"""

ACTIONS: Mapping[str, str] = {
    "failed": "Try again. If the error remains, ask your administrator.",
    "spreadsheet": "Save the file again as XLSX or as CSV in UTF-8, then upload that file.",
    "password_protected": "Save the workbook without a password, then upload it.",
    "sheet_unknown": "Choose a sheet below.",
    "encoding_unknown": "Choose the text encoding below.",
    "delimiter_unknown": "Choose the column separator below.",
    "headings_refused": "Choose the header row below.",
    "no_rows": "Choose the header row below.",
    "unsafe_workbook": "Save the sheet as a CSV file, then upload it.",
    "warehouse": "Ask your administrator.",
    "denied": "Ask your administrator.",
    "try_again": "Wait a minute, then try again.",
    "warehouse_busy": "Wait a minute, then try again.",
    "quota_spent": "Continue next month, or ask your administrator.",
    "restored_unpulled": "Ask your administrator.",
    "stopped": "Continue later. Rows that were sent are not sent again.",
    "ambiguous_date": "Answer the question about this column, or enter a date like 2026-05-01.",
    "two_digit_year": "Answer the question about this column, or enter four digits.",
    "ambiguous_number": "Answer the question about this column, or enter digits alone.",
    "record_ambiguous": "Choose the record.",
    "reference_ambiguous": "Choose the record.",
    "duplicate_in_file": "Choose the row to import.",
    "word_for_nothing": "Enter a value, or choose “Keep this text” under “Values”.",
    "duplicate_in_warehouse": (
        "Not imported. To update the record, start an import with “Create and update”."
    ),
}
"""Actions of errors and problems for which the command's texts name options."""


QUESTIONS: Mapping[str, tuple[str, str]] = {
    "columns_lost": ("Some columns without a field contain values in later rows.", "columns"),
    "encoding": ("Some letters are unclear.", "table"),
    "second_table": ("A second table below the first one is not imported.", "table"),
    "mixed_dates": (
        "A spreadsheet program may have swapped day and month of the dates in this column:",
        "rows",
    ),
    "hidden_columns": ("Hidden columns will be imported:", "columns"),
    "merged_cells": (
        "Merged cells: only the first row of each merged range gets the value.",
        "table",
    ),
    "headings": ("The header row looks like data. It will not be imported.", "table"),
    "warnings": ("Some rows have warnings.", "rows"),
}
"""Questions to be answered before sending, by code, with the screen that answers them."""


class PageError(ConnectorError):
    """The page cannot fulfil a request.

    The message has placeholders for `values`. `link` is the address of the screen on which the user
    can continue.
    """

    action = "Go back."
    status: ClassVar[int] = 400

    def __init__(
        self, message: str, *, action: str | None = None, link: str | None = None, **values: str
    ) -> None:
        super().__init__(message % values, action=action)
        self.link = link


def error_note(error: ConnectorError) -> list[str]:
    """Return an error as stored in a draft: message, action, and codes of its classes."""
    kinds = [each for each in type(error).__mro__ if issubclass(each, ConnectorError)]
    codes = [] if isinstance(error, PageError) else [error.code, *(each.code for each in kinds)]
    return [_DRAFT_PATH.sub("", str(error)), error.action, *codes]


_DRAFT_PATH = re.compile(rf"\S*/{IMPORTS_FOLDER}/[0-9a-f]{{16}}/")


class PageTexts:
    """Formats of values, and texts of problems and errors."""

    def format_number(self, value: float) -> str:
        """Format a number."""
        return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")

    def format_record_count(self, count: int, resource: str) -> str:
        """Format a number of records, for example "60 candidates"."""
        return COUNTED[resource][count != 1] % {"num": self.format_number(count)}

    def format_timestamp(self, text: str | datetime | None, zone: str = "UTC") -> str:
        """Format a timestamp in the account's time zone."""
        if not text:
            return ""
        at = datetime.fromisoformat(text) if isinstance(text, str) else text
        zoned = at.astimezone(ZoneInfo(zone))
        return f"{zoned.day} {zoned:%b %Y, %H:%M}"

    def format_value(self, value: Any, resource: str = "", name: str = "") -> str:
        """Format a value of a field for display, with labels for choices."""
        field = CATALOG[resource].fields.get(name) if resource else None
        read = field.parse(value)[0] if field is not None else None
        value = value if read is None else read
        shown = value if isinstance(value, str) else str(value)
        if value in (None, "", []):
            shown = "empty"
        elif isinstance(value, datetime):
            shown = self.format_timestamp(value)
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, int | float):
            shown = self.format_number(value)
        elif isinstance(value, list | tuple):
            shown = ", ".join(map(self.format_value, value))
        elif _DAY.match(shown):
            day = date.fromisoformat(shown)
            shown = f"{day.day} {day:%B %Y}"
        elif field is not None and shown in field.values:
            shown = self.choice_label(shown)
        return shown

    def record_name(self, record: Mapping[str, Any]) -> str:
        """Return the name of a record, or its title or id if it has no name."""
        names = [record.get(name) for name in ("first_name", "last_name")]
        whole = " ".join(str(each) for each in names if each)
        others = (
            record.get(name) for name in ("name", "title", "company_name", "reference_code", "id")
        )
        return whole or next((str(each) for each in others if each), "")

    def record_details(self, record: Mapping[str, Any], resource: str) -> str:
        """Return details that distinguish a record from others with the same name."""
        known = self.record_name(record)
        found = ((name, value) for name in _DETAILS if (value := record.get(name)) != known)
        return " · ".join(
            self.format_value(value, resource, name) for name, value in found if value
        )

    def format_changes(self, changes: Any, resource: str) -> list[list[str]]:
        """Return field name, old and new text for each change of a preview or an undo.

        The name is not a label; long texts are shortened.
        """
        found = changes.items() if isinstance(changes, Mapping) else ((n, p) for n, *p in changes)
        return [
            [name, *_shorten_values(*(self.format_value(each, resource, name) for each in pair))]
            for name, pair in found
        ]

    def field_label(self, name: str) -> str:
        """Return the label of a field or a resource."""
        words = _SHORT.sub(lambda m: m[0].upper(), name.removeprefix("fields.").replace("_", " "))
        return f"{words[:1].upper()}{words[1:]}"

    def choice_label(self, value: str) -> str:
        """Return the label of a choice."""
        return value.replace("_", " ")

    def problem_column(self, problem: Problem) -> str:
        """Return the heading of the problem's column, or the label of its field."""
        if problem.field is not None and problem.column in (None, problem.field):
            return self.field_label(problem.field)
        return problem.column or ""

    def describe_problem(self, problem: Problem) -> str:
        """Return the text of a problem, after its column."""
        place = self.problem_column(problem)
        return f"{place}: {self.problem_text(problem)}" if place else self.problem_text(problem)

    def problem_text(self, problem: Problem) -> str:
        """Return the text of a problem, by its code."""
        if (words := find_problem_words(problem)) is not None:
            values = {"found": problem.found or "", "said": problem.message}
            return choose_wording(words, values) % values
        return problem.message

    def problem_title(self, problem: Problem) -> str:
        """Return the title for all problems with the same code."""
        known = message_of(problem.code)
        return problem.message if known is None else known

    def fix_text(self, problem: Problem) -> str:
        """Return the action for a problem, or an empty text."""
        if (words := find_problem_words(problem)) is not None:
            return words.action
        return ACTIONS.get(problem.code) or fix_of(problem.code) or problem.fix or ""

    def describe_error(self, error: ConnectorError) -> tuple[str, str]:
        """Return the text and the action of an error.

        A `PageError` has its own text; other errors have the sentences of their code.
        """
        if not isinstance(error, PageError):
            return self.describe_note(error_note(error))
        return str(error), error.action

    def describe_note(self, note: Sequence[str]) -> tuple[str, str]:
        """Return the text and the action of an error that was stored by `error_note`."""
        message, action, *codes = note
        if not codes:
            return end_sentence(message), action
        action = next(ACTIONS[code] for code in codes if code in ACTIONS)
        if SpreadsheetError.code in codes:
            return end_sentence(message), action
        said = next(ERRORS[code] for code in codes if code in ERRORS)
        return end_sentence(f"{said[:1].upper()}{said[1:]}"), action

    def phone_countries(self) -> list[tuple[str, str]]:
        """Return code and name of each country of telephone numbers, sorted by name."""
        return sorted(
            ((code, _country_name(code)) for code in REGIONS), key=lambda country: country[1]
        )

    def default_country(self) -> str:
        """Return the name of the country of telephone numbers if the user chooses none."""
        return _country_name(DEFAULT_REGION)


def _country_name(code: str) -> str:
    """Return the English name of a country."""
    names = LOCALE_DATA.get(code) or _OTHER_COUNTRIES[code]
    # A name like "*aa" stands for the name in that language of the table.
    return names[names["en"].removeprefix("*")] if names["en"].startswith("*") else names["en"]


def _shorten_values(old: str, new: str) -> tuple[str, str]:
    """Shorten two texts for display, and omit a long beginning that they share."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    alike = sum(1 for _ in same) - _KEPT_CHARACTERS
    if max(len(old), len(new)) > _SHOWN_CHARACTERS and alike > 0:
        old, new = f"…{old[alike:]}", f"…{new[alike:]}"
    return old[:_SHOWN_CHARACTERS], new[:_SHOWN_CHARACTERS]


_OTHER_COUNTRIES = {
    "AC": {"en": "Ascension Island"},
    "TA": {"en": "Tristan da Cunha"},
    "XK": {"en": "Kosovo"},
}
"""Countries of telephone numbers that the table of names does not have."""
_DETAILS = ("company_name", "city", "current_job_title", "location", "industry", "status")
_SHOWN_CHARACTERS, _KEPT_CHARACTERS = 80, 20
_SHORT = re.compile(r"\b(?:ai|cv|id|ir35|url)\b")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")


def find_country(accepted: str) -> str:
    """Return the first country in the header `Accept-Language`, or an empty text."""
    found = re.search(r"-([A-Za-z]{2})\b", accepted[:200])
    return found[1].upper() if found and found[1].upper() in REGIONS else ""


TEXTS = PageTexts()
"""The page's formats and texts, which templates have as `texts`."""


def importable_resources() -> list[str]:
    """Return the resources that a file can be imported into."""
    writes = {"create", "update", "convert"}
    return [name for name, each in CATALOG.items() if writes & set(each.operations)]

"""Texts of the page in the user's language.

English texts are in the code and in the templates; a catalogue contains the texts of each other
language. A text without a translation is shown in English.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from babel.dates import format_date, format_time
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from connector.catalog import CATALOG
from connector.errors import ConnectorError, SpreadsheetError, end_sentence
from connector.ledger.push_plan import Problem
from connector.page.marks import N_, N_PLURAL
from connector.page.problem_words import choose_wording, find_problem_words
from connector.settings.layers import IMPORTS_FOLDER
from connector.spreadsheet.problems import fix_of, message_of
from connector.spreadsheet.texts import REGIONS

LANGUAGES = ("en", "de", "fr")
"""Languages of the page; the first is the default."""

_LOCALE_FOLDER = Path(__file__).parent / "locale"


MODES: Mapping[str, tuple[str, str]] = {
    "create": (N_("Create new records"), N_("Existing records are not changed.")),
    "update": (N_("Update existing records"), N_("No new records are created.")),
    "upsert": (
        N_("Create and update"),
        N_("Existing records are updated. All others are created."),
    ),
    "convert": (N_("Convert leads"), N_("A conversion cannot be undone.")),
}
"""Words for the mode of an import."""

OUTCOMES: Mapping[str, str] = {
    "create": N_("New"),
    "update": N_("Updated"),
    "convert": N_("To convert"),
    "created": N_("Created"),
    "updated": N_("Updated"),
    "converted": N_("Converted"),
    "undone": N_("Undone"),
    "unchanged": N_("No changes"),
    "duplicate": N_("Duplicates"),
    "invalid": N_("Not imported"),
    "rejected": N_("Rejected"),
    "not_applied": N_("Saved with a different value"),
    "conflict": N_("Changed by someone else"),
    "held": N_("Unconfirmed"),
    "not_sent": N_("Not sent"),
}
"""Words for the result of a row, by outcome."""

ABOUT: Mapping[str, str] = {
    "create": N_("These records will be created."),
    "update": N_("Existing records; these fields will change."),
    "unchanged": N_("Already up to date."),
    "duplicate": N_(
        "These records already exist, or the rows are duplicates in this file. They are not"
        " imported."
    ),
    "invalid": N_("These rows have errors and will not be imported."),
    "rejected": N_("The platform rejected these rows. Choose “Fix rows that were not imported”."),
    "conflict": N_(
        "Someone else changed these records after your review, so they were not updated."
    ),
    "held": N_("No response was received. Check whether these records exist."),
    "not_sent": N_("The import ended before these rows. Choose “Resume” to continue."),
    "not_applied": N_("Saved, but with different values."),
}
"""Sentences that explain an outcome."""

UNDONE: Mapping[str, str] = {
    "delete": N_("Will be deleted"),
    "restore": N_("Will be restored"),
    "deleted": N_("Deleted"),
    "restored": N_("Restored"),
    "undone": N_("Already undone"),
    "nothing": N_("Nothing to undo"),
    "partly": N_("Partly restored: someone else changed some fields"),
    "conflict": N_("Kept: changed by someone else"),
    "redacted": N_("Kept: erased for privacy"),
    "irreversible": N_("Kept: a conversion cannot be undone"),
    "refused": N_("Rejected by the platform"),
    "held": N_("Not confirmed"),
    "unread": N_("The record could not be checked"),
    "not_reached": N_("Not processed yet"),
}
"""Words for the outcomes of an undo."""

COUNTED: Mapping[str, tuple[str, str]] = {
    "jobs": N_PLURAL("%(num)s job", "%(num)s jobs"),
    "candidates": N_PLURAL("%(num)s candidate", "%(num)s candidates"),
    "companies": N_PLURAL("%(num)s company", "%(num)s companies"),
    "bookings": N_PLURAL("%(num)s booking", "%(num)s bookings"),
    "leads": N_PLURAL("%(num)s lead", "%(num)s leads"),
    "content_items": N_PLURAL("%(num)s content item", "%(num)s content items"),
}
"""Numbers of records in a button, as in "Create 60 candidates"."""

ERRORS: Mapping[str, str] = {
    "failed": N_("an unexpected error occurred"),
    "spreadsheet": N_("the file cannot be read as a table"),
    "not_a_spreadsheet": N_("the file is not a spreadsheet"),
    "damaged_spreadsheet": N_("the file is damaged"),
    "report_refused": N_("the report cannot be written"),
    "password_protected": N_("the workbook is protected with a password"),
    "unsafe_workbook": N_("the workbook is too large or links to other files"),
    "encoding_unknown": N_("the text encoding of the file is not clear"),
    "delimiter_unknown": N_("the column separator was not found"),
    "headings_refused": N_("the header row was not found"),
    "no_rows": N_("the file has no rows below the header"),
    "sheet_unknown": N_("the workbook has several sheets"),
    "spreadsheet_changed": N_("the file changed while it was being read"),
    "misused": N_("these settings cannot be combined"),
    "unknown_name": N_("a field, column or file name is unknown"),
    "warehouse": N_("the folder with the connector's data cannot be used"),
    "warehouse_busy": N_("the connector's data is in use by another program"),
    "disk_full": N_("the disk is full"),
    "unauthorized": N_("the API key was rejected"),
    "quota_spent": N_("the monthly quota of requests is used up"),
    "rate_limited": N_("too many requests were sent"),
    "restored_unpulled": N_("the connector's data must be updated first"),
    "denied": N_("the platform does not allow the connector to do this"),
    "refused": N_("the platform rejected the request"),
    "try_again": N_("the platform cannot be reached or is busy"),
    "not_the_api": N_("the platform sent an unexpected response"),
    "stopped": N_("the limit of requests is reached"),
    "lease_held": N_("another import is running"),
}
"""Texts of errors, by the code of the error or of its base class. For a file that cannot be read,
English uses the error's own sentence, which is more specific.
"""

ACTIONS: Mapping[str, str] = {
    "failed": N_("Try again. If the error remains, ask your administrator."),
    "spreadsheet": N_("Save the file again as XLSX or as CSV in UTF-8, then upload that file."),
    "password_protected": N_("Save the workbook without a password, then upload it."),
    "sheet_unknown": N_("Choose a sheet below."),
    "encoding_unknown": N_("Choose the text encoding below."),
    "delimiter_unknown": N_("Choose the column separator below."),
    "headings_refused": N_("Choose the header row below."),
    "no_rows": N_("Choose the header row below."),
    "unsafe_workbook": N_("Save the sheet as a CSV file, then upload it."),
    "warehouse": N_("Ask your administrator."),
    "denied": N_("Ask your administrator."),
    "try_again": N_("Wait a minute, then try again."),
    "warehouse_busy": N_("Wait a minute, then try again."),
    "quota_spent": N_("Continue next month, or ask your administrator."),
    "restored_unpulled": N_("Ask your administrator."),
    "stopped": N_("Continue later. Rows that were sent are not sent again."),
    "ambiguous_date": N_("Answer the question about this column, or enter a date like 2026-05-01."),
    "two_digit_year": N_("Answer the question about this column, or enter four digits."),
    "ambiguous_number": N_("Answer the question about this column, or enter digits alone."),
    "record_ambiguous": N_("Choose the record."),
    "reference_ambiguous": N_("Choose the record."),
    "duplicate_in_file": N_("Choose the row to import."),
    "word_for_nothing": N_("Enter a value, or choose “Keep this text” under “Values”."),
    "duplicate_in_warehouse": N_(
        "Not imported. To update the record, start an import with “Create and update”."
    ),
}
"""Actions of errors and problems for which the command's texts name options."""


QUESTIONS: Mapping[str, tuple[str, str]] = {
    "columns_lost": (N_("Some columns without a field contain values in later rows."), "columns"),
    "encoding": (N_("Some letters are unclear."), "table"),
    "second_table": (N_("A second table below the first one is not imported."), "table"),
    "mixed_dates": (
        N_("A spreadsheet program may have swapped day and month of the dates in this column:"),
        "rows",
    ),
    "hidden_columns": (N_("Hidden columns will be imported:"), "columns"),
    "merged_cells": (
        N_("Merged cells: only the first row of each merged range gets the value."),
        "table",
    ),
    "headings": (N_("The header row looks like data. It will not be imported."), "table"),
    "warnings": (N_("Some rows have warnings."), "rows"),
}
"""Questions to be answered before sending, by code, with the screen that answers them."""


class PageError(ConnectorError):
    """The page cannot fulfil a request. The text is translated to the user's language.

    The message is a text of the catalogues with placeholders for `values`. `link` is the address of
    the screen on which the user can continue.
    """

    action = N_("Go back.")
    status: ClassVar[int] = 400

    def __init__(
        self, message: str, *, action: str | None = None, link: str | None = None, **values: str
    ) -> None:
        super().__init__(message % values, action=action)
        self.text, self.values, self.link = message, values, link


def error_note(error: ConnectorError) -> list[str]:
    """Return an error as stored in a draft: message, action, and codes of its classes."""
    kinds = [each for each in type(error).__mro__ if issubclass(each, ConnectorError)]
    codes = [] if isinstance(error, PageError) else [error.code, *(each.code for each in kinds)]
    return [_DRAFT_PATH.sub("", str(error)), error.action, *codes]


_DRAFT_PATH = re.compile(rf"\S*/{IMPORTS_FOLDER}/[0-9a-f]{{16}}/")


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """Texts, numbers and times in one language."""

    code: str
    gettext: Callable[[str], str]
    ngettext: Callable[[str, str, int], str]

    @property
    def _locale(self) -> str:
        """Locale for dates and times; English uses the British order of day and month."""
        return "en_GB" if self.code == "en" else self.code

    def format_number(self, value: float) -> str:
        """Format a number."""
        return format_decimal(value, locale=self.code)

    def format_record_count(self, count: int, resource: str) -> str:
        """Format a number of records, for example "60 candidates"."""
        return self.ngettext(*COUNTED[resource], count) % {"num": self.format_number(count)}

    def format_timestamp(self, text: str | datetime | None, zone: str = "UTC") -> str:
        """Format a timestamp in the account's time zone."""
        if not text:
            return ""
        at = datetime.fromisoformat(text) if isinstance(text, str) else text
        zoned = at.astimezone(ZoneInfo(zone))
        day = format_date(zoned, "medium", locale=self._locale)
        return f"{day}, {format_time(zoned, 'short', locale=self._locale)}"

    def format_value(self, value: Any, resource: str = "", name: str = "") -> str:
        """Format a value of a field for display, with labels for choices."""
        field = CATALOG[resource].fields.get(name) if resource else None
        read = field.parse(value)[0] if field is not None else None
        value = value if read is None else read
        shown = value if isinstance(value, str) else str(value)
        if value in (None, "", []):
            shown = self.gettext("empty")
        elif isinstance(value, datetime):
            shown = self.format_timestamp(value)
        elif isinstance(value, bool):
            shown = self.gettext(_YES if value else _NO)
        elif isinstance(value, int | float):
            shown = self.format_number(value)
        elif isinstance(value, list | tuple):
            shown = ", ".join(map(self.format_value, value))
        elif _DAY.match(shown):
            shown = format_date(date.fromisoformat(shown), "long", locale=self._locale)
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
        """Return the label of a field in the user's language."""
        return self.gettext(field_name_in_english(name))

    def choice_label(self, value: str) -> str:
        """Return the label of a choice."""
        return self.gettext(value.replace("_", " "))

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
            return self.gettext(choose_wording(words, values)) % values
        known = message_of(problem.code)
        return (
            problem.message if known is None or self.code == LANGUAGES[0] else self.gettext(known)
        )

    def problem_title(self, problem: Problem) -> str:
        """Return the title for all problems with the same code."""
        known = message_of(problem.code)
        return problem.message if known is None else self.gettext(known)

    def fix_text(self, problem: Problem) -> str:
        """Return the action for a problem, or an empty text."""
        if (words := find_problem_words(problem)) is not None:
            return self.gettext(words.action) if words.action else ""
        if problem.code in ACTIONS:
            return self.gettext(ACTIONS[problem.code])
        fix = fix_of(problem.code) or problem.fix
        return self.gettext(fix) if fix else ""

    def describe_error(self, error: ConnectorError) -> tuple[str, str]:
        """Return the text and the action of an error.

        A `PageError` has its own text; other errors have the sentences of their code.
        """
        if not isinstance(error, PageError):
            return self.describe_note(error_note(error))
        return self.gettext(error.text) % error.values, self.gettext(error.action)

    def describe_note(self, note: Sequence[str]) -> tuple[str, str]:
        """Return the text and the action of an error that was stored by `error_note`."""
        message, action, *codes = note
        if not codes:
            return end_sentence(self.gettext(message)), self.gettext(action)
        action = self.gettext(next(ACTIONS[code] for code in codes if code in ACTIONS))
        if self.code == LANGUAGES[0] and SpreadsheetError.code in codes:
            return end_sentence(message), action
        said = self.gettext(next(ERRORS[code] for code in codes if code in ERRORS))
        return end_sentence(f"{said[:1].upper()}{said[1:]}"), action

    def phone_countries(self) -> list[tuple[str, str]]:
        """Return code and name of each country of telephone numbers, sorted by name."""
        names = Locale(self.code).territories
        found = ((code, names.get(code, code)) for code in REGIONS if code in names)
        return sorted(found, key=lambda each: each[1])


def _shorten_values(old: str, new: str) -> tuple[str, str]:
    """Shorten two texts for display, and omit a long beginning that they share."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    alike = sum(1 for _ in same) - _KEPT_CHARACTERS
    if max(len(old), len(new)) > _SHOWN_CHARACTERS and alike > 0:
        old, new = f"…{old[alike:]}", f"…{new[alike:]}"
    return old[:_SHOWN_CHARACTERS], new[:_SHOWN_CHARACTERS]


def field_name_in_english(name: str) -> str:
    """Return the name of a field or a resource as English words, which are then translated."""
    words = _SHORT.sub(lambda m: m[0].upper(), name.removeprefix("fields.").replace("_", " "))
    return f"{words[:1].upper()}{words[1:]}"


_DETAILS = ("company_name", "city", "current_job_title", "location", "industry", "status")
_SHOWN_CHARACTERS, _KEPT_CHARACTERS = 80, 20
_YES, _NO = N_("yes"), N_("no")
_SHORT = re.compile(r"\b(?:ai|cv|id|ir35|url)\b")
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")


def choose_language(accepted: str) -> PageLanguage:
    """Return the supported language that a browser prefers, by its header `Accept-Language`."""
    preferences = []
    for part in accepted.split(",")[:20]:
        tag, _, quality = part.partition(";q=")
        try:
            preferences.append((-float(quality or 1), tag.strip().partition("-")[0]))
        except ValueError:
            continue
    tags = [tag for _, tag in sorted(preferences, key=lambda each: each[0])]
    return load_language(negotiate_locale(tags, list(LANGUAGES)) or LANGUAGES[0])


def find_country(accepted: str) -> str:
    """Return the first country in the header `Accept-Language`, or an empty text."""
    found = re.search(r"-([A-Za-z]{2})\b", accepted[:200])
    return found[1].upper() if found and found[1].upper() in REGIONS else ""


@cache
def load_language(code: str) -> PageLanguage:
    """Return the language with this code and its translations."""
    path = _LOCALE_FOLDER / f"{code}.po"
    if not path.exists():
        translations = gettext.NullTranslations()
        return PageLanguage(code, translations.gettext, translations.ngettext)
    with path.open("rb") as file:
        catalogue = read_po(file, locale=code)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    known = gettext.GNUTranslations(compiled)
    return PageLanguage(code, known.gettext, known.ngettext)


def importable_resources() -> list[str]:
    """Return the resources that a file can be imported into."""
    writes = {"create", "update", "convert"}
    return [name for name, each in CATALOG.items() if writes & set(each.operations)]

"""Every code that a check gives a row, of its form or its meaning, with what to do about it.

A code is stable: people filter reports by it, and the documents list it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from connector.catalog.value import MARK, VALUE_ERASED
from connector.spreadsheet.table import FORM_PROBLEMS

COLUMN_MISSING = "column_missing"
"""The code of a row that cannot make a record since the file lacks a column: told once of it all.
"""

PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        **FORM_PROBLEMS,
        "example_row": "It is the example row of a template, left in: take it out or fill it in.",
        # What a row must have.
        "required": "A field that creating needs is blank: fill it in.",
        COLUMN_MISSING: "The row would make a record, and the file has no column for a field that"
        " creating needs: add the column.",
        "required_when": "Another field's value makes this one needed, and it is blank: fill it"
        " in.",
        "one_of_required": "At least one of several fields is needed: fill one of them in.",
        "only_with": "The field is taken only together with a certain value of another: set that,"
        " or clear the cell.",
        "cannot_clear": "A field that must have a value cannot be emptied: leave the cell blank.",
        # Texts.
        "scientific": "A spreadsheet program shortened a number to scientific notation and its"
        " digits are lost: take it from its source again.",
        "hidden_character": "Characters that cannot be seen are in an address, number or code:"
        " type it again.",
        "control_character": "The cell holds a character that no text has: type it again.",
        "number_in_text": "A telephone number or code was typed as a number, which loses leading"
        " zeros and a plus: format the column as text and type it again.",
        "not_text": "A spreadsheet program made a date, a time, a truth value or a broken number"
        " of a text: format the column as text and type it again.",
        "email_format": "It is not an email address: correct it.",
        "several_emails": "The cell holds more than one email address: keep one.",
        "url_format": "It is not a web address: begin it with https:// or http://.",
        "currency_format": "It is not a currency code of three letters: write one, as GBP.",
        "timezone_format": "It is not the name of a time zone: write one, as Europe/London.",
        "json_format": "It is not JSON: correct it.",
        "id_format": "It is not an id: write the id, or map names to ids.",
        # Choices.
        "unknown_value": "It is none of the field's values: write one that is allowed, or map it.",
        "value_not_accepted": "The API shows this value and does not take it in this operation:"
        " write one that is allowed.",
        # Numbers and truth values.
        "not_a_number": "It is not a number: write digits.",
        "not_whole": "It has a fraction where a whole number belongs: write a whole number.",
        "too_large": "It has too many digits: correct it.",
        "ambiguous_number": "A dot or comma before three digits can be the decimal sign or part"
        " thousands off: write it without, or declare the decimal sign.",
        "thousands": "The number parts thousands off: write the digits alone.",
        "decimal_sign": "The number has another decimal sign than the column: rewrite it, or"
        " declare the sign.",
        "currency_sign": "The number holds a currency: write the digits alone.",
        "percent_sign": "The number holds a percent sign: write the digits alone.",
        "not_true_or_false": "It is neither true nor false: write yes or no.",
        # Dates and moments.
        "date_format": "It is not a date as it must be written: write it as 2025-04-03, or declare"
        " the column's date format.",
        "ambiguous_date": "It can be two dates: write it as 2025-04-03, or declare the column's"
        " date format.",
        "no_such_date": "The calendar has no such date: correct it.",
        "time_in_date": "A time stands where a date belongs: write the date alone.",
        "time_missing": "A date stands where a date and time belong: add the time.",
        "no_time_zone": "The time does not say its time zone: write it in UTC with a Z, or declare"
        " the column's time zone.",
        "clock_change": "The clocks change at that time, so it comes twice or not at all: write it"
        " in UTC with a Z.",
        # References to other records.
        "reference_unknown": "No record is landed that the cell could mean: correct it, or push or"
        " pull that record first.",
        "reference_ambiguous": "Several records are what the cell says: give the id of one.",
        # The row's own record.
        "match_missing": "The cell by which the row finds its record is blank: fill it in.",
        "record_unknown": "No record is landed that the row could mean: correct the cell, or pull"
        " first.",
        "record_ambiguous": "Several records are what the row says: use the id of one.",
        "record_deleted": "The record is known to be deleted: take the row out.",
        "record_not_read": "Only a list has shown the record so far, so what would change is not"
        " known: pull first.",
        "converted_already": "The lead is converted already: nothing is to be done.",
        "person_erased": "The row is about a person who was erased: take it out, or let the person"
        " in again with 'connector erase --release'.",
        VALUE_ERASED: f"The cell holds {MARK}, which stands for what an erasure removed: write the"
        " whole value, or clear the cell.",
        # Duplicates.
        "duplicate_in_file": "An earlier row of the file is the same record: take one of them out.",
        "duplicate_in_warehouse": "A record like this exists already: update it, or take the row"
        " out.",
    }
)
"""By code, one sentence on what it means and what to do."""

DUPLICATES = frozenset(("duplicate_in_file", "duplicate_in_warehouse"))
"""The codes of rows that are no mistake in themselves."""

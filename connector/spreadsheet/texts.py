"""Texts in cells: contacts, codes, free text, and text that no program may run.

`00123`, `+44...`, `NA` and `TRUE` are not changed. A text that looks damaged is refused, with a
fix. Invisible damage is removed, and the user is informed.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import phonenumbers

from connector.catalog.field import Format
from connector.spreadsheet.numbers import unit_of
from connector.spreadsheet.problems import (
    Amount,
    CellError,
    ReadText,
    ReadTyped,
    ValueWithNotes,
    character_name,
    text_of,
    with_note,
    with_notes,
)
from connector.spreadsheet.words import CURRENCY_CODES, DEFAULT_REGION, EXAMPLE_NUMBERS

# -- Email addresses -------------------------------------------------------------------------------

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~À-ɏ-]+"
_LABEL = r"[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ-]*[A-Za-z0-9À-ɏ])?"
_EMAIL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]")
_EMAIL_CHARACTERS_MAX = 1_000
_WITHIN = rf"(?!['/|])({_EMAIL.pattern})"
_NAMED_EMAIL = re.compile(
    rf"(?:[^\d@<>]*<\s*(?:mailto:)?{_WITHIN}\s*>|(?:mailto:\s*)?{_WITHIN})", re.IGNORECASE
).fullmatch


def _read_email(text: str) -> str:
    """Return one email address, without `mailto:` and without a name before `<ann@b.example>`."""
    if _EMAIL.fullmatch(text) and text[0] not in "'/|":
        return text
    _refuse_invisible_characters(text)
    # A long text is no address, and searching it would take long.
    if len(text) > _EMAIL_CHARACTERS_MAX:
        raise CellError("email_format")
    if named := _NAMED_EMAIL(text.strip(" ,;")):
        return str(named[1] or named[2])
    if len({each.lower() for each in _EMAIL.findall(text)}) > 1:
        raise CellError("several_emails")
    raise CellError("email_format")


# -- Telephone numbers -----------------------------------------------------------------------------

_PHONE = re.compile(
    r"(?:\(\+[0-9]{1,3}\)|\+?[0-9(])[0-9\s().\-/\u2013]*[0-9)]"
    r"(?:\s*(?:,|;)?\s*(?:ext\.?|extn\.?|extension|x|durchwahl|poste|#)\s*[0-9]{1,6})?",
    re.IGNORECASE,
).fullmatch
_SCHEME = re.compile(r"(?:tel|callto)\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r'="([^"]*)"').fullmatch
_NUMBER_OF_A_PROGRAM = re.compile(r"[0-9]+\.0|[0-9]{1,3}(?:,[0-9]{3})+").fullmatch
_DIGIT = re.compile("[0-9]")

REGIONS: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)
"""Regions whose numbers are known, by country code (two letters)."""


def phone_reader(region: str | None) -> ReadText:
    """Return the reader of telephone numbers; numbers without country code belong to the region.

    They get the country code: 0161 555 0123 is +441615550123. With a region that the user named,
    all numbers are read in this form (E.164).
    """

    def read(text: str) -> str | ValueWithNotes:
        _refuse_damaged_code(text)
        tidy = " ".join(_SCHEME.sub("", _TEXT_MARK.sub("", text), count=1).split())
        if _NUMBER_OF_A_PROGRAM(tidy) is not None:
            message = (
                "The value was written as a number by a program, so leading zeros may be lost."
            )
            raise CellError("number_in_text", message)
        if _PHONE(tidy) is None or len({*_DIGIT.findall(tidy)}) == 1:
            raise CellError("phone_format")
        try:
            number = phonenumbers.parse(tidy, region or DEFAULT_REGION)
        except phonenumbers.NumberParseException:
            raise CellError("phone_format") from None
        reason = phonenumbers.is_possible_number_with_reason(number)
        if reason != phonenumbers.ValidationResult.IS_POSSIBLE:
            raise CellError("phone_format")
        found: str | ValueWithNotes = tidy
        if region is not None or not tidy.startswith(("+", "(+")):
            whole = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
            whole += f" ext. {number.extension}" if number.extension else ""
            found = with_note(whole, "country_code_added", f"The value is imported as {whole}.")
        digits = f"{number.country_code}{number.national_number}"
        is_example = len(digits) == 12 and digits.startswith(EXAMPLE_NUMBERS)
        is_in_use = phonenumbers.is_valid_number(number) or is_example
        return found if is_in_use else with_note(found, "odd_phone")

    return read


# -- Plain texts -----------------------------------------------------------------------------------

_SCIENTIFIC = re.compile(r"[+-]?[0-9]([.,][0-9]+)?[eE][+-][0-9]{1,3}").fullmatch
_TOO_NARROW = re.compile("#{3,}").fullmatch
_URL = re.compile(r"https?://[^\s/\\]+(?:/\S*)?", re.IGNORECASE).fullmatch
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+(?:/\S*)?").fullmatch
_CURRENCY = re.compile(r"[A-Za-z]{3}").fullmatch
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}").fullmatch
_NUMBER_SAFE = 10**15
"""Spreadsheet programs keep the digits of smaller whole numbers."""


def read_text(text: str) -> str:
    """Return the text. Raises `CellError` for shortened numbers, and characters that deceive."""
    if not text.isprintable() or text[0] == "#" or _SCIENTIFIC(text) is not None:
        _refuse_shortened_number(text)
        if "\u202d" in text or "\u202e" in text:
            # Text after such a mark is displayed in another order than it is sent.
            _refuse_invisible_characters(text)
        for character in text:
            if unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n\r":
                name = character_name(character)
                message = f"The cell contains an invalid character: {name}."
                raise CellError("control_character", message)
    return text


_TEXT_MARK = re.compile(r"^'(?=[+0-9(])")
"""Apostrophe before a number, which makes it text in a spreadsheet program."""


def read_code(text: str) -> str | ValueWithNotes:
    """Return a code without the mark of a text. Raises `CellError` for invisible characters."""
    _refuse_damaged_code(text)
    plain = _TEXT_MARK.sub("", text)
    message = "The value is imported without its apostrophe."
    return plain if plain == text else with_note(plain, "invisible", message)


def _refuse_damaged_code(text: str) -> None:
    _refuse_shortened_number(text)
    _refuse_invisible_characters(text)


def _refuse_shortened_number(text: str) -> None:
    """Raise `CellError` for 4.5E+11 and ####, which programs show instead of a long number."""
    if _SCIENTIFIC(text) or _TOO_NARROW(text):
        raise CellError("scientific")


def _refuse_invisible_characters(text: str) -> None:
    if text.isprintable():
        return
    hidden = ", ".join(map(character_name, dict.fromkeys(c for c in text if not c.isprintable())))
    clean = "".join(c for c in text if c.isprintable())
    message = f"The cell contains an invisible character: {hidden}."
    fix = f"Delete the cell and type the text again: {clean}"
    raise CellError("hidden_character", message, fix=fix)


def _read_url(text: str) -> str | ValueWithNotes:
    _refuse_invisible_characters(text)
    if _URL(text) is not None:
        return text
    if _HOST(text) is None:
        raise CellError("url_format", fix="Enter an address, or clear the cell.")
    if text.lower().startswith("www."):
        return with_note(f"https://{text}", "scheme_added", f"Imported as https://{text}.")
    raise CellError("url_format", fix=f"Enter https://{text}")


def _read_currency(text: str) -> str:
    code = text.upper() if _CURRENCY(text) else unit_of(text)
    if code not in CURRENCY_CODES:
        raise CellError("currency_format")
    return code


@lru_cache(maxsize=1024)
def is_timezone(name: str) -> bool:
    """Return True if this is the name of a time zone."""
    # The library raises various errors for names of folders and odd characters.
    with suppress(KeyError, ValueError, OSError):
        return bool(ZoneInfo(name))
    return False


def _read_timezone(text: str) -> str:
    if is_timezone(text):
        return text
    raise CellError("timezone_format")


def _read_json(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise CellError("json_format") from None
    return text


def read_id(text: str) -> str:
    """Return a text that can be an id: one word of letters, digits, _ and -."""
    if _ID(text) is not None:
        return text
    _refuse_invisible_characters(text)
    raise CellError("id_format")


FORMATS: Mapping[Format, ReadText] = {
    "email": _read_email,
    "url": _read_url,
    "currency": _read_currency,
    "timezone": _read_timezone,
    "json": _read_json,
}
"""Readers of texts that have a format. They raise `CellError`."""


def typed_text(keeps_digits: bool, whole_numbers: bool) -> ReadTyped:
    """Return the reader of cells with numbers, dates or booleans in a text column.

    A whole number of at most 15 digits becomes its digits. If `keeps_digits`, this requires
    `whole_numbers`, because typing removes leading zeros and a plus. Other cells raise `CellError`.
    """

    def read(cell: Any) -> str:
        if isinstance(cell, Amount):
            return text_of(cell)
        is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
        if not is_number or cell != cell // 1 or abs(cell) >= _NUMBER_SAFE:
            raise CellError("not_text")
        if keeps_digits and not whole_numbers:
            raise CellError("number_in_text")
        return str(int(cell))

    return read


# -- Damaged texts ---------------------------------------------------------------------------------
# Invisible signs, special blanks, and letters broken by a wrong encoding. Directional marks are
# kept, and refused if they could deceive.

_ODD_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNSEEN_SIGNS = re.compile(
    "[\u00ad\u034f\u115f\u1160\u180b-\u180e\u200b\u2060-\u2065\u2800\u3164\ufeff\uffa0\U000e0000-\U000e007f]"
)
_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
_JOINED = re.compile("[^\u0000-\u024f\u2000-\u206f\ufe00-\ufe0f]")
# First of two bytes of UTF-8, as an old encoding shows it, before another such letter.
_BROKEN = re.compile("[ÂÃÄÅÐÑâĂĹĐŃ¬√ƒ≈┬├─┼╨╤ðВГДЕРС][^\x00-\x7f]")
_SHOWN_IN = ("latin-1", "cp1252", "cp1250", "cp437", "cp850", "cp1251", "mac-roman")
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_ENTITY = re.compile(r"&(?:#[0-9]{2,5}|#x[0-9a-f]{2,5}|[a-z]{2,8});", re.IGNORECASE)
_ODD = re.compile(
    r"\ufffd|[^\W\d_]\?[^\W\d_]|[£¢¤¦¬][^\W\d_]|[^\W\d_][£¢¤¦¬¥©®°§€™†‡•][^\W\d_]"
    r"|[a-zß-ÿ][À-ÞŸŠŽŒ]|[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z]"
)
_ODD_EDGE = re.compile(r"(?<![^\s(-])\?[^\W\d_]|[^\W\d_]\?(?![^\s),.-])")
_BREAKS = re.compile(r"\s*[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]\s*")
_CONTROL = re.compile("_x00(0[9ABCDabcd])_")
_ESCAPED = re.compile(r"\\([,;:'\"&/])")
_MAY_BE_ODD = re.compile('[&?"]').search
_INCHES = re.compile(r'(?<=[0-9])"')
_QUOTE_IN_WORD = re.compile(r'[^\W\d_]"[^\W\d_]|""').search
_QUOTED_CHARACTERS_MAX = 200

CODED = "_x00"
"""Beginning of an escaped control character in a workbook: _x000D_ is a carriage return."""


def clean_text(text: str, *, is_plain: bool = False, is_one_line: bool = False) -> Any:
    """Return the text without invisible damage, with notes on visible changes.

    Escaped signs are restored if it `is_plain`, and line breaks become blanks if it `is_one_line`.
    """
    notes: list[tuple[str, str | None]] = []
    if quoted := _QUOTED(text):
        text, notes = quoted[1], [("invisible", f'The value is imported as "{quoted[1][:60]}".')]
    if CODED in text and _CONTROL.search(text):
        text = _CONTROL.sub(lambda found: chr(int(found[1], 16)), text).strip()
        notes.append(("invisible", None))
    if is_one_line and _BREAKS.search(text):
        text = _BREAKS.sub(" ", text).strip()
        notes = [("line_break", None)]
    if is_plain and "\\" in text and _ESCAPED.search(text):
        text = _ESCAPED.sub(r"\1", text)
        notes.append(("escaped_signs", None))
    if text.isascii() and not _MAY_BE_ODD(text):
        return with_notes(text, notes)
    if _ENTITY.search(text) and (plain := html.unescape(text)) != text:
        message = f'The value has codes of a web page. It is imported as "{plain[:60]}".'
        text, notes = plain, [*notes, ("escaped_signs", message)]
    if _BROKEN.search(text) and any(map(_is_broken, _NOT_ASCII.findall(text))):
        raise CellError("mojibake")
    is_odd = _ODD.search(text) or (is_one_line and _ODD_EDGE.search(text))
    if is_odd and "://" not in text:
        notes.append(("odd_letters", None))
    elif _has_stray_quote(text):
        notes.append(("odd_letters", 'The value has a quote (") that may not belong there.'))
    # Zero-width characters join letters in some scripts, and emojis.
    visible = _UNSEEN_SIGNS.sub("", text)
    visible = visible if _JOINED.search(visible) else _JOINERS.sub("", visible)
    if visible != text:
        notes.append(("invisible", None))
    # A special blank is read as a blank; removed characters are reported.
    tidy = _ODD_BLANKS.sub(" ", visible).strip()
    return with_notes(tidy, notes)


def _has_stray_quote(text: str) -> bool:
    if '"' not in text or len(text) > _QUOTED_CHARACTERS_MAX:
        return False
    bare = _INCHES.sub("", text)
    return bare.count('"') % 2 == 1 or _QUOTE_IN_WORD(bare) is not None


def _is_broken(letters: str) -> bool:
    """Return True if the letters are bytes of UTF-8, as an old encoding shows them."""
    if "\ufffd" in letters:
        return True
    for codec in _SHOWN_IN:
        with suppress(UnicodeError):
            letters.encode(codec).decode()
            return True
    return False


# -- Inert text ------------------------------------------------------------------------------------
# Text that a spreadsheet program would run as a formula, and how a report makes it inert and
# restores it.
#
# A cell that begins with `=`, `+`, `-` or `@` is a formula to spreadsheet programs, even if it is
# quoted in the csv. Some drop blanks before the sign. An apostrophe makes such a *hazard* a text.
# Marking and unmarking are inverse: a cell is marked if it is a hazard after any number of
# apostrophes, including zero, and unmarked if it is a hazard after at least one.


NOT_CALCULATED = "(not calculated) "
"""Precedes a formula whose value the workbook does not contain."""

# Some programs drop blanks and invisible marks before the sign, or its full-width form.
_HAZARD = (
    r"(?:[\t\r\n\0]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]"
    r"|\(not calculated\) )"
)
_PERHAPS_MARKED = re.compile(rf"'*{_HAZARD}").match
_MARKED = re.compile(rf"'+{_HAZARD}").match
_HAZARDOUS = re.compile(_HAZARD).match


def escape_cell(text: str) -> str:
    """Return the cell for a csv report, with an apostrophe before a text that `is_hazard`."""
    return f"'{text}" if _PERHAPS_MARKED(text) else text


def escape_workbook_cell(text: str) -> str:
    """Return the text for a text cell in a report; `unescape_cell` restores the original."""
    if _MARKED(text) or text.startswith(NOT_CALCULATED):
        return f"'{text}"
    return text


def unescape_cell(text: str) -> str:
    """Return the original cell from a report of either format."""
    return text[1:] if _MARKED(text) else text


def is_hazard(text: str) -> bool:
    """Return True if a spreadsheet program might run the text, or if it is a report's mark."""
    return _HAZARDOUS(text) is not None

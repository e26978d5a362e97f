"""Reading of email addresses and telephone numbers in cells.

Only invisible or redundant parts are removed: `mailto:`, a name around an address, an apostrophe
that marks a number as text. The phonenumbers library decides whether a number is possible. A number
without a country code is checked for the region that the user declared, or else by its number of
digits.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial

import phonenumbers

from connector.spreadsheet.problems import CellError, ReadText

# Most addresses consist of these characters; others are checked in detail.
_PLAIN_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&*+/=?^_`{|}~-][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]*@(?:[A-Za-z0-9-]+\.)+"
    r"[A-Za-z][A-Za-z0-9-]+"
).fullmatch
_LOCAL = r"[^@\s,;<>/|\"'():\[\]](?:[^@\s,;<>/|\"():\[\]]*[^@\s,;<>/|\"'():\[\]])?"
_EMAIL = re.compile(rf"{_LOCAL}@(?:[\w-]+\.)+[^\W\d_][\w-]+")
_EMAIL_CHARACTERS_MAX = 1_000
_HAS_MAIL_WORD = re.compile(r"\b(?:mailto:)", re.IGNORECASE)
# A name is separated from its address: `ann lee@b.example` may be an address with a blank.
_BEFORE = re.compile(
    r"[\s\"']*|[^\d@]*(?:[<(\[\"]\s*'?|[:\u2013-]\s+)|(?:e-?)?mail\s*:", re.IGNORECASE
).fullmatch
_BEHIND = re.compile(r"(?:[^\W\d]|[\s.,;'\"()<>\[\]\u2013-])*").fullmatch


def read_email(text: str) -> str:
    """Return one email address, without `mailto:` and without a name around it."""
    if _PLAIN_EMAIL(text) is not None:
        return text
    bare = _HAS_MAIL_WORD.sub(" ", without_text_marks(text))
    # A long text is no address, and searching it would take long.
    near: list[str] = _EMAIL.findall(bare) if len(bare) <= _EMAIL_CHARACTERS_MAX else []
    found = list({each.lower(): each for each in near}.values())
    if len(found) > 1:
        raise CellError(
            "several_emails",
            f"The cell contains {len(found)} email addresses, but only one is allowed.",
            fix=f"Keep one address, for example {found[0]}",
        )
    if found:
        before, _, behind = bare.partition(found[0])
        if _BEFORE(before) and _BEHIND(
            re.sub(re.escape(found[0]), "", behind, flags=re.IGNORECASE)
        ):
            return found[0]
    raise CellError("email_format", fix=f"Enter {found[0]}, if that is right." if found else None)


# -- Telephone numbers -----------------------------------------------------------------------------


_PHONE = re.compile(
    r"(?:\(\+[0-9]{1,3}\)|\+?[0-9(])[0-9\s().\-/\u2013]*[0-9)]"
    r"(?:\s*(?:,|;)?\s*(?:ext\.?|extension|x|durchwahl|poste|#)\s*[0-9]{1,6})?",
    re.IGNORECASE,
).fullmatch
_SEVERAL = re.compile(r"\s+(?:or|oder|ou|and|und|et)\s+|[;\n|,]|\s/\s|/(?=\s*\+)", re.IGNORECASE)
_LEAD = re.compile(r"(?:tel|callto)\s*:\s*|^'(?=[+0-9(])", re.IGNORECASE)
_WORD = (
    r"(?:mob(?:ile|il|iel|ilnummer)?|cell(?:ulare)?|handy|portable|móvil|m|tel(?:efon|efono|éfono"
    r"|ephone|efoon)?|t|phone|ph|p|home|h|privat|private|privé|work|w|office|büro|direct|landline)"
)
_LABELS = re.compile(rf"^{_WORD}\s*[.:]\s*(?=[+0-9(])|\s*\({_WORD}\.?\)$", re.IGNORECASE)
_QUOTED = re.compile(r'="([^"]*)"').fullmatch
_NUMBER_OF_A_PROGRAM = re.compile(r"[0-9]+\.0|[0-9]{1,3}(?:,[0-9]{3})+").fullmatch
_DIGIT = re.compile("[0-9]")
_DIGITS_MIN, _DIGITS_MAX = 6, 15

REGIONS: frozenset[str] = frozenset(phonenumbers.SUPPORTED_REGIONS)
"""Regions whose numbers are known, by country code (two letters)."""


def without_formula_quotes(text: str) -> str:
    """Return the text of a cell that a program wrote as `="text"` to keep it text."""
    quoted = _QUOTED(text) if text.startswith('="') else None
    return quoted[1] if quoted else text


def without_text_marks(text: str) -> str:
    """Return the text of a cell without a leading apostrophe or word that marks it as text."""
    return _LEAD.sub("", text, count=1)


def phone_reader(region: str | None) -> ReadText:
    """Return the reader of telephone numbers; `region` applies to numbers without country code.

    With a region, numbers are read in E.164: 0161 555 0123 is +441615550123.
    """
    return partial(_read_phone, region)


def _read_phone(region: str | None, text: str) -> str:
    tidy = _LABELS.sub("", " ".join(without_text_marks(text).split(" "))).strip()
    if _NUMBER_OF_A_PROGRAM(tidy) is not None:
        raise CellError(
            "number_in_text",
            "The value was written as a number by a program, so leading zeros and a plus sign may"
            " be lost.",
        )
    parts = [part for part in _SEVERAL.split(tidy) if len(_DIGIT.findall(part)) >= _DIGITS_MIN]
    if len(parts) > 1:
        raise CellError(
            "several_phones",
            f"The cell contains {len(parts)} phone numbers, but only one is allowed.",
            fix=f"Keep one number, for example {parts[0].strip()}",
        )
    if _PHONE(tidy) is None or not _is_possible(tidy, region):
        raise CellError("phone_format")
    return tidy if region is None else _to_e164(tidy, region)


def _to_e164(text: str, region: str) -> str:
    """Return the number in E.164, or unchanged if the conversion would lose a part of it."""
    number = phonenumbers.parse(text, region)
    reason = phonenumbers.is_possible_number_with_reason(number)
    if number.extension or reason != phonenumbers.ValidationResult.IS_POSSIBLE:
        return text
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


_PLAIN_PHONE = re.compile(r"\+[0-9 ]+").fullmatch
_COUNTRY_DIGITS_MAX = 3


@lru_cache
def _possible_lengths(country: str) -> frozenset[int]:
    """Return the possible numbers of digits after a country code; empty for an unknown code."""
    region = phonenumbers.region_code_for_country_code(int(country))
    known = phonenumbers.PhoneMetadata.metadata_for_region(region, None)
    described = known.general_desc if known is not None else None
    return frozenset(described.possible_length if described is not None else ())


def is_plain_phone(text: str) -> bool:
    """Return True if it is a plain number with country code and a possible length.

    The library takes forty times as long and is only called if this returns False.
    """
    if _PLAIN_PHONE(text) is None:
        return False
    digits = text[1:].replace(" ", "")
    for size in range(1, _COUNTRY_DIGITS_MAX + 1):
        lengths = _possible_lengths(digits[:size])
        if lengths:
            # A zero after the country code may not belong to the number.
            return len(digits) - size in lengths and digits[size] != "0"
    return False


def _is_possible(text: str, region: str | None) -> bool:
    """Return True if a number of this length is possible."""
    digits = _DIGIT.findall(text)
    # A repeated single digit is not a number but a filler of a required field.
    if len(digits) < _DIGITS_MIN or len(set(digits)) == 1:
        return False
    if region is None and not text.startswith(("+", "(+")):
        return len(digits) <= _DIGITS_MAX
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return False
    reason = phonenumbers.is_possible_number_with_reason(number)
    return reason in (
        phonenumbers.ValidationResult.IS_POSSIBLE,
        phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY,
    )

"""Identifiers of people: ids, email addresses and telephone numbers, in texts too.

Each is compared in one form, so that letter case, blanks and the ways of writing a number make no
difference.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from connector.errors import naming_file_errors
from connector.system.atomic_files import replacing

Kind = Literal["id", "email", "phone"]

PHONE_DIGITS = 9
"""As many digits count, the last ones: with or without a country's code it is the same number."""

PHONE_DIGITS_MIN = 7
"""Fewer digits than these are no number by which anybody is known."""

EMAIL = re.compile(r"[^\s<>,;:\"'()\[\]|\\]+@[^\s<>,;:\"'()\[\]|\\@]+[^\s<>,;:\"'()\[\]|\\@.!?]")
PHONE = re.compile(r"(?<!\w)(?<!\w[-/_#])\+?\(?\d[\d ().\-/\u00a0]{5,}\d(?!\w)(?![-/_]\w)")

_DIGITS_MAX = 15
"""No telephone number has more: what is longer is a code or an account."""

_BEFORE = re.compile(r"0?\d{0,3}|(?:\+|00)\d{0,5}")
"""What stands before the digits that count: a country, an area. Anything longer is a code that
ends as the number does.
"""

_WRITTEN_APART = re.compile(r"[^\s\u00a0]+")
_PARTS_MAX = 8


def normal(kind: Kind, value: str) -> str:
    """The value in the form in which it is compared; empty where it identifies nobody."""
    if kind == "phone":
        digits = re.sub(r"\D", "", value)
        return digits[-PHONE_DIGITS:] if len(digits) >= PHONE_DIGITS_MIN else ""
    return value.strip().casefold()


def is_same_number(one: str, other: str) -> bool:
    """Whether two writings are of one number, digit by digit.

    The country may stand in one of them alone.
    """
    (short, _), (long, has_country) = sorted(
        map(_digits, (one, other)), key=lambda each: len(each[0])
    )
    before = len(long) - len(short)
    return long.endswith(short) and (not before or (has_country and before <= len("0000")))


def _digits(written: str) -> tuple[str, bool]:
    """The digits that tell the number, and whether a country is among them."""
    digits = re.sub(r"\D", "", written.replace("(0)", ""))
    return digits.lstrip("0"), written.lstrip(" (").startswith("+") or digits.startswith("00")


def replaced(text: str, knows: Callable[[Kind, str], bool], mark: str) -> str:
    """The text with `mark` in place of each address and number that is known.

    An address or a number that is part of a longer one, or of a code, stays.
    """
    if "@" in text:
        text = EMAIL.sub(lambda found: mark if knows("email", found[0]) else found[0], text)
    return PHONE.sub(lambda found: _without_numbers(found[0], knows, mark), text)


def _without_numbers(run: str, knows: Callable[[Kind, str], bool], mark: str) -> str:
    """A run of digits and signs without the known numbers in it."""
    parts = [(each.start(), each.end()) for each in _WRITTEN_APART.finditer(run)]
    for first, (start, _) in enumerate(parts):
        for _, end in reversed(parts[first : first + _PARTS_MAX]):
            if _may_be_number(run[start:end]) and knows("phone", run[start:end]):
                return f"{run[:start]}{mark}{_without_numbers(run[end:], knows, mark)}"
    return run


def _may_be_number(written: str) -> bool:
    digits = re.sub(r"\D", "", written)
    sign = "+" if "+" in written else ""
    return PHONE_DIGITS_MIN <= len(digits) <= _DIGITS_MAX and bool(
        _BEFORE.fullmatch(sign + digits[:-PHONE_DIGITS])
    )


# -- Key -------------------------------------------------------------------------------------------
# The key by which erased persons are hashed: random, in the account's folder, its owner's alone.
#
# Without it a hash tells nothing: addresses could be guessed from a plain one. Whoever loses it
# loses the list, since no hash can be made again.


KEY_FILE = "suppression.key"
"""The key's file in an account's folder."""

_KEY_BYTES = 32


def read_key(folder: Path) -> bytes | None:
    """The key; None where nobody was ever erased here. Raises a `WarehouseError`."""
    path = folder / KEY_FILE
    with naming_file_errors(path):
        try:
            return bytes.fromhex(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise OSError(f"it holds no key: {type(error).__name__}") from None


def make_key(folder: Path) -> bytes:
    """The key, made durably if there is none. Raises a `WarehouseError`."""
    key = read_key(folder)
    if key is not None:
        return key
    path = folder / KEY_FILE
    with naming_file_errors(path), replacing(path) as file:
        file.write(secrets.token_hex(_KEY_BYTES).encode("ascii"))
    made = read_key(folder)
    assert made is not None, path
    return made


def token(key: bytes, kind: Kind, value: str) -> str:
    """HMAC with SHA-256 of a kind and an identifier; empty if it identifies nobody."""
    text = normal(kind, value)
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest() if text else ""

"""Identifiers of people: ids, email addresses, telephone numbers and profile addresses.

They are compared in one form, without differences of letter case, blanks and ways to write a
number.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from connector.atomic_files import replacing
from connector.errors import WarehouseError, naming_file_errors
from connector.settings.layers import RECEIPTS_FOLDER

Kind = Literal["id", "email", "phone", "profile"]

PHONE_DIGITS = 9
"""Number of digits that are compared, from the end: with or without the country code."""

PHONE_DIGITS_MIN = 7
"""A number with fewer digits identifies no one."""

# Each run of characters is tried once, from its start: files may have runs of millions.
EMAIL = re.compile(
    r"(?<![^\s<>,;:\"'()\[\]|\\])[^\s<>,;:\"'()\[\]|\\]+"
    r"@[^\s<>,;:\"'()\[\]|\\@]+[^\s<>,;:\"'()\[\]|\\@.!?]"
)
PHONE = re.compile(r"(?<!\w)(?<!\w[-/_#])\+?\(?\d[\d ().\-/\u00a0]{5,}\d(?!\w)(?![-/_]\w)")

_DIGITS_MAX = 15
"""Maximum number of digits of a telephone number. A longer one is a code or an account."""

_BEFORE = re.compile(r"0?\d{0,3}|(?:\+|00)\d{0,5}")
"""Maximum number of digits before the compared ones: country and area."""

_WORDS_MAX = 8
"""Maximum number of groups of digits in a written number."""

_SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?")


def normalize(kind: Kind, value: str) -> str:
    """Return the value in the form in which it is compared; empty if it identifies no one."""
    if kind == "phone":
        digits = re.sub(r"\D", "", value)
        return digits[-PHONE_DIGITS:] if len(digits) >= PHONE_DIGITS_MIN else ""
    text = value.strip().casefold()
    if kind == "profile":
        is_address = "." in text and "@" not in text and not any(map(str.isspace, text))
        return _SCHEME.sub("", text).rstrip("/") if is_address else ""
    return text


def is_in_text(text: str, knows: Callable[[Kind, str], bool]) -> bool:
    """Return True if the text contains a known email address or telephone number.

    An address or a number that is part of a longer one, or of a code, does not count.
    """
    if "@" in text and any(knows("email", each) for each in EMAIL.findall(text)):
        return True
    return any(knows("phone", each) for run in PHONE.findall(text) for each in _numbers(run))


def _numbers(run: str) -> Iterator[str]:
    """Yield the parts of a run of digits and signs that may be a telephone number."""
    words = run.split()
    for first in range(len(words)):
        for end in range(first + 1, min(first + _WORDS_MAX, len(words)) + 1):
            written = " ".join(words[first:end])
            digits = re.sub(r"\D", "", written)
            before = ("+" if "+" in written else "") + digits[:-PHONE_DIGITS]
            if PHONE_DIGITS_MIN <= len(digits) <= _DIGITS_MAX and _BEFORE.fullmatch(before):
                yield written


# -- Key -------------------------------------------------------------------------------------------
# The key by which erased persons are hashed: random, in the account's folder, its owner's alone.
#
# Without it a hash tells nothing: addresses could be guessed from a plain one. Whoever loses it
# loses the list, since no hash can be made again.


KEY_FILE = "suppression.key"
"""The key's file in an account's folder."""

_KEY_BYTES = 32
_KEY = re.compile(rb"[0-9a-f]{64}\s*")

KEY_LOST = (
    f"Restore {KEY_FILE} from a backup. Without a backup, move the ledger and the folder "
    f"{RECEIPTS_FOLDER}/ away, and run 'connector doctor --new-ledger'. Then run "
    "'connector pull', and erase the same people again."
)
"""What to do if the key is lost."""


def read_key(folder: Path) -> bytes | None:
    """Return the key; None if no one was ever erased here.

    Raises a `WarehouseError`, also for a file without a complete key.
    """
    path = folder / KEY_FILE
    with naming_file_errors(path):
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
    if not _KEY.fullmatch(text):
        raise WarehouseError(
            f"{path} is not a key of {2 * _KEY_BYTES} hexadecimal digits, so erased "
            "people would not be recognized",
            action=KEY_LOST,
            code="erasures_unknown",
        )
    return bytes.fromhex(text.decode("ascii"))


def fingerprint_of(key: bytes) -> str:
    """Return a text that shows which key made a receipt, and from which no key can be found."""
    return hmac.new(key, b"fingerprint", hashlib.sha256).hexdigest()


def make_key(folder: Path) -> bytes:
    """Return the key, and create it if there is none. Raises a `WarehouseError`."""
    key = read_key(folder)
    if key is not None:
        return key
    path = folder / KEY_FILE
    with naming_file_errors(path), replacing(path) as file:
        file.write(secrets.token_hex(_KEY_BYTES).encode("ascii"))
    made = read_key(folder)
    assert made is not None, path
    return made


def identifier_hash(key: bytes, kind: Kind, value: str) -> str:
    """Return the HMAC with SHA-256 of an identifier and its kind; empty if it identifies no one."""
    text = normalize(kind, value)
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest() if text else ""

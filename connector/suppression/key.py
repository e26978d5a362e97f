"""The key by which erased persons are hashed: random, in the account's folder, its owner's alone.

Without it a hash tells nothing: addresses could be guessed from a plain one. Whoever loses it
loses the list, since no hash can be made again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from connector.disk import replacing
from connector.errors.files import naming
from connector.suppression.identifiers import Kind, normal

KEY_FILE = "suppression.key"
"""The key's file in an account's folder."""

_KEY_BYTES = 32


def read_key(folder: Path) -> bytes | None:
    """The key; None where nobody was ever erased here. Raises a `WarehouseError`."""
    path = folder / KEY_FILE
    try:
        return bytes.fromhex(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise naming(path, OSError(f"it holds no key: {type(error).__name__}")) from None
    except OSError as error:
        raise naming(path, error) from error


def make_key(folder: Path) -> bytes:
    """The key, made if there is none yet, and lasting through a power cut. Raises a
    `WarehouseError`.
    """
    key = read_key(folder)
    if key is not None:
        return key
    path = folder / KEY_FILE
    try:
        with replacing(path) as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode("ascii"))
    except OSError as error:
        raise naming(path, error) from error
    made = read_key(folder)
    assert made is not None, path
    return made


def token(key: bytes, kind: Kind, value: str) -> str:
    """HMAC with SHA-256 of an identifier in its normal form, in hexadecimal digits; empty where it
    identifies nobody. The same text of another kind has another token.
    """
    text = normal(kind, value)
    return hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest() if text else ""

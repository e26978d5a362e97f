"""A self-signed certificate for 127.0.0.1."""

from __future__ import annotations

import ssl
from pathlib import Path

PEM = Path(__file__).with_name("loopback.pem")


def make_server_context(pem: Path = PEM) -> ssl.SSLContext:
    """Return a TLS context with the certificate of a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context

"""A certificate for 127.0.0.1 that no authority signed."""

from __future__ import annotations

import ssl
from pathlib import Path

PEM = Path(__file__).with_name("loopback.pem")


def server_context() -> ssl.SSLContext:
    """Return the context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context

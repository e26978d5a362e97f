"""The accounts of the contract tests."""

from __future__ import annotations

from tests.contract.conftest import account, server, world

__all__ = ["account", "server", "world"]

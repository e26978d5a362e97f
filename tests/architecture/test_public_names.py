"""The public names of `connector` include all errors."""

from __future__ import annotations

import connector
from connector import errors, errors_api
from connector.errors import ConnectorError


def test_every_error_is_a_public_name() -> None:
    raised = [
        each
        for module in (errors, errors_api)
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, ConnectorError) and not name.startswith("_")
    ]

    assert len(raised) > 10
    assert [] == [each for each in raised if getattr(connector, each.__name__, None) is not each]

"""Names that a terminal would obey are harmless in the log and on the console; and the log
as JSON is one object a line, without a secret.
"""

from __future__ import annotations

import base64
import json
import logging
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pytest

from connector.cli.session import show_log
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError
from connector.log import MASK, mask_secrets
from connector.sandbox.server import Sandbox
from tests.support.command import COUNTS, KEY, call, variables

HOSTILE = "Ann\x1b[2J\x1b]0;owned\x07\r\nError: forged\u202e\u2028line\x00"
SECRET = "planted/key+of=the~tests"


@pytest.fixture
def restored_logger() -> object:
    """Restore the handlers and level of the connector's logger after the test."""
    logger = logging.getLogger("connector")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, level, logger.propagate = before
    logger.setLevel(level)


def make_terminal(log_format: str) -> tuple[Terminal, StringIO]:
    """Return a terminal with this setting of CONNECTOR_LOG, and its error stream."""
    err = StringIO()
    return Terminal(StringIO(), err, {"CONNECTOR_LOG": log_format}), err


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_hostile_name_is_escaped_in_messages_errors_and_logs(
    form: str, restored_logger: object
) -> None:
    terminal, err = make_terminal(form)
    show_log(terminal)
    terminal.say(HOSTILE)
    terminal.warn(HOSTILE)
    terminal.print_failure(ConnectorError(HOSTILE, action=f"Look at {HOSTILE}."))
    logging.getLogger("connector.test").warning("read %r and then", HOSTILE)

    lines = err.getvalue().split("\n")
    assert "" == lines.pop()
    assert (5 if form == "text" else 4) == len(lines)
    assert [] == [line for line in lines if not all(c.isprintable() for c in line)]
    if form == "json":
        entries = [json.loads(line) for line in lines]
        assert ["info", "warning", "error", "warning"] == [each["level"] for each in entries]
        assert [HOSTILE, f"{HOSTILE}.", HOSTILE] == [each["message"] for each in entries[:3]]
        assert ("failed", 1) == (entries[2]["code"], entries[2]["exit_status"])


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_form_of_a_secret_is_logged(form: str, restored_logger: object) -> None:
    terminal, err = make_terminal(form)
    show_log(terminal, SECRET)
    logger = logging.getLogger("connector.test")
    kinds = (SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode())
    try:
        raise ValueError(f"refused: {' '.join(kinds)}")
    except ValueError:
        logger.exception("sent %s", " ".join(kinds))

    output = err.getvalue()
    assert MASK in output
    assert "Traceback" in output
    assert [] == [each for each in kinds if each in output]


def test_short_secrets_do_not_mask_other_text() -> None:
    assert "a cat" == mask_secrets("a cat", ["a"])


def test_commands_log_json_lines_if_configured(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = {**variables(sandbox.base_url, tmp_path), "CONNECTOR_LOG": "json"}
        pulled = call(["pull", "jobs", "--debug"], environ)
        plain = call(["status"], environ)
        published = call(["publish"], environ)
        failed = call(["doctor", "--nonsense"], environ)
        refused = call(["pull"], {**environ, "CONNECTOR_API_KEY": "wrong-key"})

    assert (0, 0, 2, 1) == (pulled.status, plain.status, failed.status, refused.status)
    for each, command in ((pulled, "pull"), (plain, "status"), (published, "publish"),
                          (refused, "pull")):  # fmt: skip
        entries = [json.loads(line) for line in each.err.splitlines()]
        assert {"at", "level", "logger", "message", "account"} <= set.intersection(
            *map(set, entries)
        )
        ended = entries[-1]
        assert ("command_ended", command) == (ended["event"], ended["command"])
        assert each.status == ended["exit_status"]
        assert ended["seconds"] > 0
        assert KEY not in each.err
    begun, ended = [
        each
        for each in map(json.loads, published.err.splitlines())
        if each.get("event", "").startswith("publication_")
    ]
    assert ("publication_begun", "publication_ended") == (begun["event"], ended["event"])
    assert begun["publication"] == ended["publication"]
    assert "published" == ended["outcome"]
    assert 0 < ended["seconds"]
    assert "unauthorized" in {json.loads(line).get("code") for line in refused.err.splitlines()}
    assert pulled.out.startswith("resource")
    other = call(["pull"], {**environ, "CONNECTOR_LOG": "xml"})
    assert 2 == other.status
    assert "'text' or 'json'" in other.err

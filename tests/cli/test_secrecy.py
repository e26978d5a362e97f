"""The key appears in no output, log, file or process list of any command."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.support.command import COUNTS, KEY, call, start, variables


def read_command_lines() -> str:
    """Return the command lines of all processes, as any user of this machine can read them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "refused"])
def test_the_key_is_in_no_output_log_file_or_process_list(
    tmp_path: Path, *, is_accepted: bool
) -> None:
    seen = []

    def between(store: Store) -> None:
        seen.append(read_command_lines())

    keys = {KEY if is_accepted else "another": ("*",)}
    texts: list[str] = []
    with Sandbox(counts=COUNTS, keys=keys, between=between) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        for command in ("pull", "doctor", "status"):
            before = len(seen)
            with start([command, "--debug"], environ) as process:
                shown = process.communicate(timeout=60)
            assert "api_key is 'set', from CONNECTOR_API_KEY" in shown[1]
            assert (is_accepted and command != "status") == (len(seen) > before)
            with_json = call([command, "--debug", "--json"], environ)
            texts += [*shown, with_json.out, with_json.err]

    texts += seen
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [] == [text for text in texts if KEY in text]
    assert [] == [path for path in files if KEY.encode() in path.read_bytes()]

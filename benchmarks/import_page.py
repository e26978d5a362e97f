"""The import page with a long file: seconds of each answer, memory of the server.

`python -m benchmarks import_page`; `python -m benchmarks.import_page 200000` takes so many rows.

A csv of candidates, of which one in a hundred is wrong, is brought to `connector page` in a process
of its own, over 20,000 landed candidates, and passed through every screen up to the last look.
While the file is read the page shows how far that is, which must come within the second as well.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.spreadsheet_checking import land, write
from connector.sandbox.server import Sandbox
from tests.page.serving import PageProcess, Person, environ_of

ROWS = 50_000
SECONDS_MAX = 1.0
MEGABYTES_MAX = 400


class TimedPerson(Person):
    """A person who notes how long each answer took, by screen."""

    slowest: dict[str, float]

    def timed(self, name: str, path: str, fields: dict[str, str] | None = None) -> None:
        """Ask for a screen, or send a form, until what it needs is read."""
        began, answer = time.monotonic(), None
        while answer is None or "refresh" in answer.headers:
            asked = time.monotonic()
            if fields is not None and answer is None:
                data, headers = {**self.keys(), **fields}, {"Origin": self.address}
                answer = self.client.post(path, data=data, headers=headers)
            else:
                answer = self.client.get(path if answer is None else answer.url.raw_path.decode())
            took = time.monotonic() - asked
            self.slowest[name] = max(self.slowest.get(name, 0.0), took)
        assert answer.status_code == 200, answer.text[-2_000:]
        self.shown = answer
        whole = time.monotonic() - began
        print(f"  {name}: {self.slowest[name]:.2f} s each, {whole:.1f} s in all")


def measure(count: int) -> tuple[dict[str, float], float]:
    """The slowest answer of each screen, and the peak of the server's memory in megabytes."""
    with tempfile.TemporaryDirectory() as name, Sandbox() as sandbox:
        folder = Path(name)
        environ = environ_of(sandbox, folder)
        Path(environ["CONNECTOR_DATA_DIR"]).mkdir(mode=0o700)
        land(Path(environ["CONNECTOR_DATA_DIR"]))
        write(folder / "people.csv", count, 1_000_000)
        with (
            PageProcess(environ, folder) as server,
            TimedPerson(server.address, server.link) as ann,
        ):
            ann.slowest = {}
            content = (folder / "people.csv").read_bytes()
            fields = {**ann.keys(), "resource": "candidates", "mode": "create"}
            began = time.monotonic()
            answer = ann.client.post(
                "/imports",
                data=fields,
                files={"file": ("people.csv", content)},
                headers={"Origin": ann.address},
                follow_redirects=False,
            )
            ann.slowest["file"] = time.monotonic() - began
            here = answer.headers["location"]
            ann.timed("columns", here)
            columns = dict(_chosen(ann.shown.text))
            ann.timed("columns taken", f"{here}/columns", columns)
            ann.timed("rows", f"{here}/rows")
            ann.timed("another kind", f"{here}/rows?page=3")
            ann.timed("a row", f"{here}/rows", {"e:102:2": "mended@example.com", "seen:102": "on"})
            ann.timed("look", f"{here}/look")
            ann.timed("left out", f"{here}/look?show=invalid&page=2")
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
            peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
            return ann.slowest, int(peak.split()[1]) / 1_000


def _chosen(text: str) -> list[tuple[str, str]]:
    """What every column is taken for on the screen."""
    found = []
    for part in text.split('<select name="c:')[1:]:
        index, options = part.split('"', 1)
        chosen = [
            each for each in options.split("</select>")[0].split("<option ") if " selected" in each
        ]
        value = chosen[0].split('value="')[1].split('"')[0] if chosen else "-"
        found.append((f"c:{index}", value))
    return found


def main(count: int = ROWS) -> int:
    """Print the figures; 0 if every target is met."""
    slowest, megabytes = measure(count)
    name, seconds = max(slowest.items(), key=lambda each: each[1])
    is_met = seconds <= SECONDS_MAX and megabytes <= MEGABYTES_MAX
    print(
        f"{count:,} rows: the slowest answer {seconds:.2f} s ({name}; at most {SECONDS_MAX} s),"
        f" {megabytes:.0f} MB (at most {MEGABYTES_MAX} MB) {'ok' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

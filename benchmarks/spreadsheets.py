"""Previews and the import page next to pandas, at three sizes.

The files have 12 columns, and an invalid email address in every hundredth row. pandas reads the
file and makes the same checks by column. On the page, a step lasts until the next screen is
complete. Its time is the processor time of the server and of the client together.
"""

from __future__ import annotations

import csv
import json
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from time import process_time
from typing import Any

from benchmarks.measure import (
    Bound,
    Line,
    account_environ,
    connector_command,
    measured_line,
    measured_rounds,
    module_command,
    run,
)

SIZES = (600, 6_000, 60_000)
HEADINGS = (
    *("First name", "Last name", "Email", "Employment type", "Phone", "City", "Current company"),
    *("Current job title", "Date of birth", "Expected salary", "Salary currency", "Available from"),
)
STEPS = {
    "upload": Bound(3),
    "match the columns and check all rows": Bound(3),
    "correct a cell": Bound(0.3),
    "save the corrections and check all rows again": Bound(
        3,
        reason="The step reads the file, writes the corrected copy, and checks that copy, so that "
        "exactly the checked rows are sent.",
    ),
    "show another page of rows": Bound(0.3),
}
PREVIEW_MAX = {".csv": 3.0, ".xlsx": 2.5}
_BY_ROW = "The preview checks row by row, and pandas checks whole columns."


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for previews and the import page at each size, or only at the smallest."""
    sizes = SIZES[:1] if is_quick else SIZES
    for size in sizes:
        is_largest, shown = size == max(SIZES), f"{size:,} rows"
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "people.csv"
            run(module_command("spreadsheets", "--write", file, size))
            steps: list[dict[str, float]] = []
            seconds: dict[str, list[float]] = {".csv": [], ".xlsx": []}
            pandas: dict[str, list[float]] = {".csv": [], ".xlsx": []}
            for number in measured_rounds(size, sizes):
                page = run(
                    module_command("spreadsheets", "--page", file, Path(name) / f"page{number}")
                )
                steps.append(json.loads(page.output))
                for suffix in PREVIEW_MAX:
                    table = file.with_suffix(suffix)
                    pandas[suffix].append(
                        run(module_command("spreadsheets", "--pandas", table)).processor
                    )
                    preview = connector_command("push", "candidates", table, "--mode", "create")
                    cost = run(
                        ["sh", "-c", '"$@"; [ $? -eq 3 ]', "sh", *preview, "--no-pull"],
                        account_environ(Path(name) / f"data{number}"),
                    )
                    seconds[suffix].append(cost.processor)
        for suffix, most in PREVIEW_MAX.items():
            yield measured_line(
                f"preview of {suffix[1:]}",
                shown,
                seconds[suffix],
                pandas[suffix],
                "pandas",
                bound=Bound(most, "ratio", _BY_ROW) if is_largest else None,
            )
        for step, bound in STEPS.items() if is_largest else ():
            figures = [each[step] for each in steps]
            yield measured_line(
                f"page: {step}", shown, figures, pandas[".csv"], "pandas", bound=bound
            )
        yield measured_line(
            "page: all steps",
            shown,
            [sum(each.values()) for each in steps],
            pandas[".csv"],
            "pandas",
        )


def write_files(file: Path, size: int) -> None:
    """Write `size` candidates to a CSV file, and to a workbook with the same name."""
    from openpyxl import Workbook  # noqa: PLC0415

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Rows")
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        for row in [HEADINGS, *(_candidate_row(n) for n in range(size))]:
            writer.writerow(row)
            sheet.append(row)
    book.save(file.with_suffix(".xlsx"))


def _candidate_row(n: int) -> tuple[str | int, ...]:
    """Return the cells of the nth candidate; every hundredth has an invalid email address."""
    at = "@" if n % 100 else " at "
    name = (f"Name{n}", f"Surname{n % 977}", f"p{n}{at}example.com")
    work = (f"City {n % 50}", f"Company {n % 300}", f"Job {n % 80}")
    born, available = f"{1960 + n % 40}-0{1 + n % 9}-1{n % 9}", f"2027-0{1 + n % 9}-15"
    kind, phone = ("permanent", "contractor")[n % 2], f"+44 20 7946 {n % 10_000:04d}"
    return (*name, kind, phone, *work, born, 30_000 + n % 500, "GBP", available)


def check_with_pandas(file: Path) -> None:
    """Make the checks of the preview for whole columns, and write the invalid rows to a file."""
    import pandas as pd  # noqa: PLC0415

    if file.suffix == ".csv":
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    else:
        rows = pd.read_excel(file, dtype=str, keep_default_na=False, engine="openpyxl")
    invalid = (rows["First name"].str.strip() == "") | (rows["Last name"].str.strip() == "")
    invalid |= ~rows["Email"].str.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+")
    invalid |= ~rows["Employment type"].str.lower().isin(["permanent", "contractor", "interim"])
    invalid |= pd.to_datetime(rows["Date of birth"], format="%Y-%m-%d", errors="coerce").isna()
    invalid |= rows["Email"].str.lower().duplicated()
    assert invalid.sum() == -(-len(rows) // 100)
    rows[invalid].to_csv(f"{file}.invalid", index=False)


class Visitor:
    """Client that fills in the forms of one import, like a user."""

    def __init__(self, address: str, link: str) -> None:
        from httpx import Client  # noqa: PLC0415

        self._address = address
        self._client = Client(base_url=address, follow_redirects=True, timeout=600)
        self.screen = self._client.get(link)

    def open(self, path: str) -> None:
        """Open a screen, and wait until it is complete."""
        self.screen = self._client.get(path)
        while 'http-equiv="refresh"' in self.screen.text:
            self.screen = self._client.get(path)

    def submit(self, path: str, fields: dict[str, str], files: Any = None) -> None:
        """Submit a form, and wait for the next screen."""
        keys = re.findall(
            r'type="hidden" name="(form_key|version)" value="([^"]+)"', self.screen.text
        )
        headers = {"Origin": self._address}
        self.screen = self._client.post(
            path, data={**dict(keys), **fields}, headers=headers, files=files
        )
        if 'http-equiv="refresh"' in self.screen.text:
            self.open(self.screen.url.path)
        assert self.screen.status_code == 200, self.screen.url


def measure_page(file: Path, data: Path) -> dict[str, float]:
    """Return the processor time of each step of an import of the file, in seconds."""
    import uvicorn  # noqa: PLC0415

    from connector.page.access import AccessRules  # noqa: PLC0415
    from connector.page.import_page import ImportPage, PageOptions  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415

    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = load_settings(environ=account_environ(data), cwd=data.parent)
    page = ImportPage(settings, PageOptions(AccessRules(address), "session", "Ann"))
    server = uvicorn.Server(uvicorn.Config(page.app, log_config=None, lifespan="off"))
    Thread(target=server.run, args=([listener],), daemon=True).start()
    visitor = Visitor(address, page.access.create_link())
    seconds: list[float] = []

    def time(step: Callable[..., None], *arguments: object) -> None:
        began = process_time()
        step(*arguments)
        seconds.append(process_time() - began)

    form = {"resource": "candidates", "mode": "create"}
    time(visitor.submit, "/imports", form, {"file": (file.name, file.read_bytes())})
    path = visitor.screen.url.path.rpartition("/")[0]
    columns = {f"c:{n}": each.lower().replace(" ", "_") for n, each in enumerate(HEADINGS)}
    time(visitor.submit, f"{path}/columns", columns)
    visitor.open(f"{path}/rows")
    time(visitor.submit, f"{path}/rows", {"e:2:2": "right@example.com", "seen:2": "on"})
    time(visitor.submit, f"{path}/rows", {"go": "on"})
    time(visitor.open, f"{path}/look?show=create&page=9")
    server.should_exit = True
    return dict(zip(STEPS, seconds, strict=True))


if __name__ == "__main__":
    action, path = sys.argv[1], Path(sys.argv[2])
    if action == "--write":
        write_files(path, int(sys.argv[3]))
    elif action == "--pandas":
        check_with_pandas(path)
    else:
        print(json.dumps(measure_page(path, Path(sys.argv[3]))))

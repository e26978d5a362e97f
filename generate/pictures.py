"""The pictures of the documents, taken from the running program: `make pictures`.

The sandbox serves a made-up agency; commands run as a person types them, and what they print is
drawn as a terminal; the report and the import page are photographed in Chromium, once in each
theme. What happens in a pull is drawn by hand. Nothing in a picture is loaded from elsewhere.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from rich.console import Console
from rich.text import Text

from connector.report.charts import PALETTE, Theme
from generate.files import ROOT

PICTURES = ROOT / "docs" / "pictures"
THEMES: tuple[Theme, ...] = ("light", "dark")
CHROMIUM = shutil.which("chromium") or "chromium"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
_COUNTS = ("--jobs", "40", "--candidates", "200", "--companies", "20", "--bookings", "60")
_COLUMNS = 116
_SIZE: ViewportSize = {"width": 1000, "height": 620}
_COLOURS_MAX = 96
"""Colours of a photograph: few enough that it is small, and more than the page has."""

_PULL = "connector pull jobs candidates companies bookings leads"
_SESSION = (_PULL, "connector pull candidates")


def main() -> int:
    """Create all pictures of the documents again."""
    PICTURES.mkdir(exist_ok=True)
    for theme in THEMES:
        (PICTURES / f"how-{theme}.svg").write_text(_overview_svg(theme), encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, sandbox_environment(Path(name)) as environ:
        folder = Path(name)
        _draw_terminal("session", "a terminal", _SESSION, folder, environ)
        _draw_terminal("status", "a terminal", ("connector status",), folder, environ)
        run_in_terminal("connector report --period this-year --out report.html", folder, environ)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
            _photograph_report(browser, folder / "report.html")
            _photograph_import_page(browser, folder, environ)
            browser.close()
    return 0


@contextmanager
def sandbox_environment(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a sandbox in a separate process, and yield the environment for commands that use it."""
    command = ["connector", "sandbox", "--port", "0", *_COUNTS, "--leads", "40"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ours = {k: v for k, v in os.environ.items() if not k.startswith("CONNECTOR_")} | {"PATH": path}
    with subprocess.Popen(  # noqa: S603  # our own
        command, stdout=subprocess.PIPE, text=True, env=ours, cwd=folder
    ) as sandbox:
        try:
            assert sandbox.stdout is not None
            address = sandbox.stdout.readline().split()[-1]
            yield {
                **ours,
                "CONNECTOR_BASE_URL": address,
                "CONNECTOR_API_KEY": "sandbox-key",
                "CONNECTOR_DATA_DIR": "data",
                "FORCE_COLOR": "1",
                "COLUMNS": str(_COLUMNS),
            }
        finally:
            sandbox.terminate()


# -- Terminals -------------------------------------------------------------------------------------


def run_in_terminal(command: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command in a pseudoterminal; return its output, followed by its standard error.

    Raises `AssertionError` if the exit status is neither 0 nor 3.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(  # noqa: S603  # our own
        command.split(), cwd=folder, env=dict(environ), stdout=theirs, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        shown = b"".join(_read_terminal(ours))
        assert process.stderr is not None
        shown += process.stderr.read()
    os.close(ours)
    assert process.returncode in (0, 3), shown
    return shown.decode().replace("\r", "").replace(f"{folder}/", "").rstrip()


def _read_terminal(terminal: int) -> Iterator[bytes]:
    """Yield the output of a pseudoterminal until its process has closed it."""
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            yield piece


def _draw_terminal(
    name: str, title: str, commands: tuple[str, ...], folder: Path, environ: Mapping[str, str]
) -> None:
    """Run commands, and save a drawing of the terminal with their output as `NAME.svg`."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    for command in commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(run_in_terminal(command, folder, environ)))
    drawn = console.export_svg(title=title, unique_id=name)
    # The font of the reader's terminal is as good as one that is loaded from elsewhere.
    drawn = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, monospace")
    (PICTURES / f"{name}.svg").write_text(drawn, encoding="utf-8")


# -- Photographs -----------------------------------------------------------------------------------


def _photograph_report(browser: Browser, file: Path) -> None:
    """Save a picture of the report in each theme."""
    for theme in THEMES:
        page = browser.new_page(viewport=_SIZE, color_scheme=theme)
        page.goto(file.as_uri())
        _photograph(page, f"report-{theme}")
        page.close()


def _photograph_import_page(browser: Browser, folder: Path, environ: Mapping[str, str]) -> None:
    """Import the sample file, and save pictures of the main screens."""
    with subprocess.Popen(  # our own
        ["connector", "page", "--port", "0"],  # noqa: S607  # this environment's
        stderr=subprocess.PIPE,
        text=True,
        env=dict(environ),
        cwd=folder,
    ) as server:
        try:
            assert server.stderr is not None
            said = ""
            while (found := re.search(r"http://\S+/enter/[\w-]+", said)) is None:
                said += server.stderr.readline()
            page = browser.new_page(viewport=_SIZE, locale="en-GB")
            page.goto(found[0])
            page.set_input_files("#file", ROOT / "docs" / "samples" / "people.csv")
            page.get_by_role("button", name="Upload file").click()
            page.wait_for_url("**/columns")
            _photograph_in_each_theme(page, "import-columns")
            page.get_by_role("button", name="Continue").click()
            page.wait_for_url("**/values")
            page.get_by_label("Freelance").select_option("contractor")
            page.get_by_role("radio", name="Day first").first.check()
            page.get_by_role("button", name="Continue").click()
            page.wait_for_url("**/rows")
            _photograph_in_each_theme(page, "import")
            page.locator(".cell.wrong input").first.fill("priya@people.example")
            page.get_by_role("link", name="Check").click()
            page.wait_for_url("**/look")
            _photograph_in_each_theme(page, "import-check")
            for box in page.get_by_role("checkbox").all():
                box.check()
            page.locator("form.send button.go").click()
            page.wait_for_url("**/result")
            _photograph_in_each_theme(page, "import-result")
        finally:
            server.terminate()


def _photograph_in_each_theme(page: Page, name: str) -> None:
    """Save a picture of the page in each theme."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        _photograph(page, f"{name}-{theme}")


def _photograph(page: Page, name: str) -> None:
    """Save a picture of the page as `NAME.png`."""
    taken = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    small = taken.convert("RGB").quantize(_COLOURS_MAX)
    small.save(PICTURES / f"{name}.png", optimize=True)


# -- What happens ----------------------------------------------------------------------------------

_BOXES = (
    (
        16,
        "The platform's API",
        ("lists without updated_at", "pages that shift", "silent deletions"),
    ),
    (
        300,
        "The connector",
        ("reads the newest first", "counts, and finds the rest", "one outcome for each row"),
    ),
    (
        584,
        "recruitment.duckdb",
        ("records, history, marts", "never seen half written", "open it at any time"),
    ),
)
_ARROWS = ((236, 300, 78, "pull"), (520, 584, 78, "publish"), (300, 236, 128, "push"))


def _overview_svg(theme: Theme) -> str:
    """Return a diagram of a pull and a push as SVG."""
    colour = {name: getattr(shade, theme) for name, shade in PALETTE.items()}
    parts = [f'<rect width="820" height="232" rx="8" fill="{colour["card"]}"/>']
    for left, title, lines in _BOXES:
        stroke = colour["first" if left == 300 else "third"]
        parts.append(
            f'<rect x="{left}" y="40" width="220" height="116" rx="8" fill="none" '
            f'stroke="{stroke}" stroke-width="2"/>'
        )
        parts.append(_svg_text(left + 110, 66, title, colour["ink"], 'font-weight="700"'))
        parts += [
            _svg_text(left + 110, 92 + 20 * at, line, colour["muted"])
            for at, line in enumerate(lines)
        ]
    for start, end, height, name in _ARROWS:
        tip = 8 if start < end else -8
        parts.append(
            f'<path d="M{start} {height}H{end - tip}m{-tip / 2} -5l{tip * 1.2} 5l{-tip * 1.2} 5" '
            f'fill="none" stroke="{colour["first"]}" stroke-width="2"/>'
        )
        parts.append(_svg_text((start + end) / 2, height - 9, name, colour["ink"]))
    under = (
        (126, "each row sent at most once"),
        (410, "a log of every request and write"),
        (694, "SQL, pandas, plots, a report"),
    )
    parts += [_svg_text(x, 188, words, colour["muted"]) for x, words in under]
    parts.append(
        _svg_text(
            410,
            216,
            "2 requests prove that nothing changed; each change costs about one more",
            colour["ink"],
        )
    )
    head = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 232" width="820" height="232"'
    font = 'font-family="system-ui, sans-serif" font-size="13" text-anchor="middle" role="img"'
    return "\n".join((f"<svg {head} {font}>", "<title>What happens</title>", *parts, "</svg>\n"))


def _svg_text(x: float, y: float, words: str, colour: str, more: str = "") -> str:
    """Return an SVG text element; `more` are additional attributes."""
    return f'<text x="{x}" y="{y}" fill="{colour}" {more}>{escape(words)}</text>'


if __name__ == "__main__":
    sys.exit(main())

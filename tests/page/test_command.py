"""`connector page`: unsafe access settings are refused before the page is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from connector.cli import main
from connector.page.access import read_passwords, set_password
from connector.sandbox.server import Sandbox
from tests.page.serving import make_environ


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "other machines can reach --host"),  # noqa: S104 # it is refused
        (
            ["--host", "::", "--passwords", "people.txt"],
            "and the public address of the page is not configured",
        ),
        (["--proxy", "10.0.0.2"], "must be given together"),
        (["--passwords", "wide.txt"], "other users can open"),
        (["--passwords", "none.txt"], "cannot be read"),
        (["--add-person", "Ann"], "no password file is given"),
        (["--add-person", "A:B", "--passwords", "new.txt"], "is not a valid name"),
    ],
)
def test_unsafe_or_incomplete_options_of_the_page_are_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    set_password(Path("people.txt"), "Ann", "a long enough word")
    set_password(Path("wide.txt"), "Ann", "a long enough word")
    Path("wide.txt").chmod(0o644)
    with Sandbox() as sandbox:
        typed = "a long enough word\n" * 2
        done = CliRunner().invoke(
            main, ["page", *words], env=make_environ(sandbox, tmp_path), input=typed
        )
    assert 2 == done.exit_code, done.output
    assert message in done.output


def test_a_password_is_stored_as_a_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["page", "--passwords", "people.txt", "--add-person", "Ann Lee"]
    short = CliRunner().invoke(main, words, input="short\n" * 2)
    assert (2, False) == (short.exit_code, Path("people.txt").exists())
    hashes = []
    for password in ("a long enough word", "another long word"):
        done = CliRunner().invoke(main, words, input=f"{password}\n" * 2)
        assert 0 == done.exit_code, done.output
        assert password not in done.output + Path("people.txt").read_text(encoding="utf-8")
        hashes.append(read_passwords(Path("people.txt"))["Ann Lee"])
    assert 2 == len({*hashes})

"""Requests that no browser sends: huge numbers, HEAD, and uploads without a session."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, PageUser, make_csv, serve_and_sign_in, serve_page

DIGITS = "9" * 5_000
SCREENS = ("table", "columns", "values", "rows", "rows/2", "look")
ANSWER_SECONDS = 10.0


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Sandbox without candidates."""
    with Sandbox() as opened:
        yield opened


def read_response_to_head(address: str, *header_lines: str) -> str:
    """Return the response to the headers of a request whose body is never sent."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), ANSWER_SECONDS) as opened:
        head = (*header_lines, f"Host: {place.netloc}", f"Origin: {address}", "", "")
        opened.sendall("\r\n".join(head).encode())
        return opened.recv(4_096).decode()


def find_form_fields(html: str) -> list[tuple[str, str]]:
    """Return the action and the name of each field in the forms of a screen."""
    found = []
    for form in re.findall(r"<form .*?</form>", html, re.DOTALL):
        action = re.search(r'<form [^>]*action="([^"]+)"', form)
        names = dict.fromkeys(re.findall(r'\bname="([^"]+)"', form))
        found += [(action[1] if action else "", name) for name in names if name != "form_key"]
    return found


def test_numbers_of_5000_digits_are_rejected_with_a_message(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("people.csv", make_csv("Bo,Li,bo,permanent"))
        ann.post(f"{path}/columns", COLUMNS)
        for place, fields in (
            ("table", {"header_row": DIGITS}),
            ("columns", {"version": DIGITS}),
            ("rows", {f"e:{DIGITS}:2": "x"}),
            ("rows", {f"e:2:{DIGITS}": "x"}),
            ("rows", {f"seen:{DIGITS}": "on"}),
            ("resolve", {"row": DIGITS, "decision": "look"}),
        ):
            ann.open(f"{path}/rows")
            assert 400 == ann.post(f"{path}/{place}", fields).status_code, fields
            assert "“999999999” is not a valid number." in ann.shown.text
        for place in (f"rows/{DIGITS}", f"rows?page={DIGITS}", f"look?page={DIGITS}"):
            assert 400 == ann.open(f"{path}/{place}").status_code, place
            assert "“999999999” is not a valid number." in ann.shown.text


@pytest.mark.slow
def test_5000_digits_in_any_form_field_cause_no_server_error(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    content = b"First name,Last name,Email,Employment type,Notice,Born\n"
    content += b"Bo,Li,bo,frei,soon,01/02/50\nCy,Lo,cy@e.com,permanent,1,02/03/50\n"
    columns = {**COLUMNS, "c:4": "notice_period_days", "c:5": "date_of_birth"}
    tried = set()
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        for screen in ("", *SCREENS):
            path = ann.upload("people.csv", content)
            ann.post(f"{path}/columns", columns)
            here = f"{path}/{screen}" if screen else "/"
            for action, name in find_form_fields(ann.open(here).text):
                if action.endswith(("/remove", "/logout")):
                    continue
                ann.open(here)
                ann.post(action or here, {name: DIGITS})
                tried.add(name)
                assert ann.shown.status_code < 500, (action or here, name)
    assert {"header_row", "c:0", "find", "version", "value:3:0"} <= tried


def test_a_head_request_does_not_use_up_a_sign_in_link(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_page(sandbox, tmp_path) as (page, address), httpx.Client(base_url=address) as mail:
        link = page.access.create_link()
        looked = mail.head(link)
        assert 200 == looked.status_code
        assert "set-cookie" not in looked.headers
        with PageUser(address, link) as ann:
            assert 200 == ann.shown.status_code
            assert "Ann" in ann.shown.text


@pytest.mark.parametrize("length", ["Content-Length: 40000000", "Transfer-Encoding: chunked"])
def test_an_upload_without_a_session_is_rejected_before_its_body(
    sandbox: Sandbox, tmp_path: Path, length: str
) -> None:
    kind = "Content-Type: multipart/form-data; boundary=x"
    with serve_page(sandbox, tmp_path) as (page, address):
        answer = read_response_to_head(address, "POST /imports HTTP/1.1", kind, length)
        assert answer.startswith("HTTP/1.1 403 "), answer
        assert [] == page.drafts.load_all()


def test_a_login_with_a_large_body_is_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_page(sandbox, tmp_path, {"passwords": tmp_path / "none"}) as (_, address):
        body = b"name=" + b"x" * 100_000
        headers = {"Origin": address, "Content-Type": "application/x-www-form-urlencoded"}
        assert 413 == httpx.post(f"{address}/login", content=body, headers=headers).status_code


def test_pasted_cells_can_be_as_large_as_a_file(sandbox: Sandbox, tmp_path: Path) -> None:
    lines = "".join(f"Bo,Li,bo{n}@example.com,permanent\n" for n in range(40_000))
    pasted = "First name,Last name,Email,Employment type\n" + lines
    with serve_and_sign_in(sandbox, tmp_path, import_file_mb=3) as (page, ann):
        form = {"resource": "candidates", "mode": "create", "pasted": pasted}
        ann.open("/")
        ann.post("/imports", form, files={"file": ("", b"")})
        assert 200 == ann.shown.status_code
        (draft,) = page.drafts.load_all()
        assert len(pasted) == page.drafts.file_path(draft).stat().st_size

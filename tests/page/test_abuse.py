"""Rejected by the page: forms of other sites, guessed links, stolen cookies, malicious files."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from connector.page.access import TRIES_MAX, set_password
from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, make_csv, serve_and_sign_in, serve_page

ANN = {"X-Person": "Ann"}
MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Sandbox without candidates."""
    with Sandbox() as opened:
        yield opened


def test_forms_sent_from_another_site_are_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        serve_page(sandbox, tmp_path) as (page, address),
        PageUser(address, page.access.create_link()) as ann,
    ):
        fields = {"resource": "candidates", "mode": "create", "pasted": "a,b\n1,2"}
        for origin in ("https://evil.example", "null", ""):
            refused = ann.post("/imports", fields, headers={"Origin": origin})
            assert 403 == refused.status_code, origin
            ann.open("/")
        refused = ann.post("/imports", {**fields, "form_key": "guessed"})
        assert 403 == refused.status_code
        ann.open("/")
        assert (
            403
            == ann.post("/imports", fields, headers={"Sec-Fetch-Site": "cross-site"}).status_code
        )
        rebound = ann.client.get("/", headers={"Host": "evil.example"})
        assert 403 == rebound.status_code
        assert [] == page.drafts.load_all()


def test_used_links_and_signed_out_cookies_are_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_page(sandbox, tmp_path) as (page, address):
        link = page.access.create_link()
        with PageUser(address, "/enter/guessed") as stranger:
            assert 403 == stranger.shown.status_code
            assert 403 == stranger.open("/").status_code
        with PageUser(address, link) as ann:
            set_cookie = ann.shown.history[0].headers["set-cookie"].lower()
            assert "httponly" in set_cookie
            assert "samesite=strict" in set_cookie
            cookie = ann.client.cookies["session"]
            with PageUser(address, link) as late:
                assert 403 == late.shown.status_code
            kept = (page.drafts.folder / "sessions.json").read_text()
            assert cookie not in kept
            ann.post("/logout")
        with PageUser(address, "/", Cookie=f"session={cookie}") as thief:
            assert 403 == thief.shown.status_code


@pytest.mark.slow
def test_a_thousand_wrong_passwords_are_rate_limited(sandbox: Sandbox, tmp_path: Path) -> None:
    passwords = tmp_path / "people.txt"
    set_password(passwords, "Ann", "a long enough word")
    assert 0o600 == stat.S_IMODE(passwords.stat().st_mode)
    assert "long enough" not in passwords.read_text()
    with serve_page(sandbox, tmp_path, {"passwords": passwords}) as (_, address):
        with PageUser(address) as ann:
            assert "/login" == ann.shown.url.path
            ann.post("/login", {"name": "Ann", "password": "a long enough word"})
            assert 200 == ann.open("/").status_code
        with PageUser(address) as thief:
            answers = [
                thief.post("/login", {"name": "Ann", "password": f"guess {n}"}).status_code
                for n in range(1_000)
            ]
            assert TRIES_MAX == answers.count(403)
            assert 1_000 - TRIES_MAX == answers.count(429)
            held = thief.post("/login", {"name": "Ann", "password": "a long enough word"})
            assert 429 == held.status_code


def test_user_headers_are_accepted_from_the_proxys_address_only(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    named = {"header": "X-Person"}
    with (
        serve_page(sandbox, tmp_path, {"proxy": "127.0.0.1", **named}) as (_, address),
        PageUser(address, "/", **{"X-Person": "Ann"}) as ann,
    ):
        assert "Ann" in ann.shown.text
        ann.client.headers["X-Person"] = "Bo"
        assert "Bo" in ann.open("/").text
        del ann.client.headers["X-Person"]
        assert 403 == ann.open("/").status_code
    with (
        serve_page(sandbox, tmp_path, {"proxy": "10.1.1.1", **named}) as (_, address),
        PageUser(address, "/", **{"X-Person": "Ann"}) as liar,
    ):
        assert 403 == liar.shown.status_code


def make_zip_bomb() -> bytes:
    """Return a small workbook that decompresses to 300 MB."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 300_000_000)
    return made.getvalue()


def make_workbook_with(part: str) -> bytes:
    """Return a workbook whose first part is this XML, with an entity of a file on the server."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", part)
        archive.writestr("xl/worksheets/sheet1.xml", "<worksheet/>")
    return made.getvalue()


ENTITY = '<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/passwd">]><w>&e;</w>'


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("bomb.xlsx", make_zip_bomb(), "unpacked, it has more than 268 MB"),
        ("entity.xlsx", make_workbook_with(ENTITY), "declares a document type"),
        ("late.xlsx", make_workbook_with(f"<!--{5_000 * '-x'}-->{ENTITY}"), "cannot be read"),
        ("wide.xlsx", make_workbook_with("<w>" * 9), "cannot be read"),
        ("plain.xlsx", b"PK\x03\x04 only the beginning", "is a zip file, not a workbook"),
        ("paper.xlsx", b"%PDF-1.7", "is a PDF"),
        ("photo.csv", b"\x89PNG\r\n\x1a\n", "is a picture"),
        ("empty.csv", b"", "is empty"),
        ("rows.csv", b"First name,Last name\n" + b"a,b\n" * 50_001, "more than 50,000 rows"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_files_that_are_unsafe_or_no_spreadsheet_are_refused_with_a_sentence(
    sandbox: Sandbox, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.upload(name, content)
        assert 400 <= ann.shown.status_code < 500
        assert sentence in ann.shown.text
        assert str(tmp_path) not in ann.shown.text
        assert "root:" not in ann.shown.text


def test_malicious_and_oversized_uploads_are_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        serve_page(sandbox, tmp_path, import_file_mb=1) as (page, address),
        PageUser(address, page.access.create_link()) as ann,
    ):
        path = ann.upload("../../../etc/passwd.csv", make_csv("Ann,Lee,ann@example.com,permanent"))
        folder = page.drafts.folder_of(path.rpartition("/")[2])
        assert {"passwd.csv", "draft.json"} == {each.name for each in folder.iterdir()}
        assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
        assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
        count = len(page.drafts.load_all())
        assert "" == ann.upload("large.csv", b"x" * 4_000_000)
        assert 413 == ann.shown.status_code
        assert count == len(page.drafts.load_all())
        for path in ("/imports/..%2f..", "/imports/0000000000000000/get/file"):
            assert 404 == ann.open(path).status_code


def test_markup_in_cells_is_escaped(sandbox: Sandbox, tmp_path: Path) -> None:
    lines = (
        f"First name,Last name,Email,Employment type,{MARKUP}\n{MARKUP},Lee,{MARKUP},permanent,x\n"
    )
    with (
        serve_page(sandbox, tmp_path) as (page, address),
        PageUser(address, page.access.create_link()) as ann,
    ):
        path = ann.upload("<script>alert(1).csv", lines.encode())
        columns = {f"c:{n}": name for n, name in enumerate(("first_name", "last_name", "email"))}
        screens = [ann.shown]
        screens.append(
            ann.post(f"{path}/columns", {**columns, "c:3": "employment_type", "c:4": "notes"})
        )
        for name in ("table", "columns", "values", "rows", "rows/2", "look?show=invalid"):
            screens.append(ann.open(f"{path}/{name}"))
        screens.append(ann.open("/"))
        assert any("&lt;script&gt;" in each.text for each in screens)
        for each in screens:
            assert 200 == each.status_code, each.url
            assert "<script>alert" not in each.text
            assert "<img src=x" not in each.text
            assert "script-src 'self'" in each.headers["content-security-policy"]
            plain = re.sub(r'"[^"]*"', "", each.text)
            assert [] == re.findall(r"<[^>]+\s(?:on\w+|style)=", plain)


def test_markup_in_an_error_is_escaped(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        for name in ("a<img src=x onerror=alert(1)>", "100 % (sure) %(x)s"):
            assert "" == ann.upload(name, make_csv())
            assert 400 == ann.shown.status_code
            assert "has no known file extension" in ann.shown.text
            assert "<img" not in ann.shown.text


@pytest.mark.slow
def test_a_stale_form_of_a_changed_import_is_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        serve_page(sandbox, tmp_path) as (page, address),
        PageUser(address, page.access.create_link()) as ann,
    ):
        path = ann.upload("two.csv", make_csv("Ann,Lee,two.tabs@example.com,permanent"))
        with PageUser(ann.address) as bo:
            bo.client.cookies.set("session", page.access.start_session("Bo"))
            columns = dict(
                zip(
                    map("c:{}".format, range(4)),
                    ("first_name", "last_name", "email", "employment_type"),
                    strict=True,
                )
            )
            ann.open(f"{path}/columns")
            bo.open(f"{path}/columns")
            assert 200 == bo.post(f"{path}/columns", columns).status_code
            late = ann.post(f"{path}/columns", {**columns, "c:2": "-"})
            assert 409 == late.status_code
            assert "Bo changed this import" in late.text
            ann.open(f"{path}/look")
            bo.open(f"{path}/look")
            ann.post(f"{path}/send")
            assert 409 == bo.post(f"{path}/send").status_code
            done = ann.open(f"{path}/progress")
            assert "Import completed" in done.text
            emails = [e["email"] for e in sandbox.store.records("candidates").values()]
            assert 1 == emails.count("two.tabs@example.com")


def test_every_screen_is_forbidden_without_a_session(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_page(sandbox, tmp_path) as (page, address), httpx.Client(base_url=address) as nobody:
        page.drafts.create("a.csv", io.BytesIO(b"a"), resource="jobs", mode="create", made_by="Ann")
        (draft,) = page.drafts.load_all()
        for path in ("/", "/history", f"/imports/{draft.id}", f"/imports/{draft.id}/get/file"):
            answer = nobody.get(path)
            assert 403 == answer.status_code
            assert "a.csv" not in answer.text

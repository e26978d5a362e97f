"""Refused by the page: other sites, other users, and unsafe files."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import zipfile
from pathlib import Path

import httpx
import pytest

from connector.page import grid
from connector.page.access import Proxy
from connector.page.app import HEADERS
from connector.sandbox.server import Sandbox
from tests.page.serving import Server, User, make_csv, serve
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "IMPORT.md").read_text(encoding="utf-8")
CADDY = shutil.which("caddy")
BO = "Bo,Li,bo@example.com,permanent"
MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script>"
GETS = ("", "/check", "/progress", "/results", "/report")
POSTS = ("", "/send", "/undo", "/delete")


# -- who may open the page -------------------------------------------------------------------------


def test_a_link_signs_one_browser_in(server: Server) -> None:
    link = server.access.create_link()
    with httpx.Client(follow_redirects=True) as first, httpx.Client() as second:
        assert 200 == first.head(link).status_code, "a preview does not use the link"
        assert 403 == second.get(f"{server.address}/enter/guessed").status_code
        found = first.get(link)
        cookie = found.history[0].headers["set-cookie"].lower()
        assert ("httponly" in cookie, "samesite=strict" in cookie) == (True, True)
        assert 403 == second.get(link).status_code
    (cookie,) = first.cookies.values()
    for forged in ("", "x", "9" * 5_000, cookie[:-1], f"{cookie}x", "é.é"):
        headers = {b"Cookie": f"{server.access.cookie}={forged}".encode()}
        assert 403 == httpx.get(f"{server.address}/api/start", headers=headers).status_code


def test_a_restart_of_the_server_signs_nobody_out(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve(sandbox, tmp_path) as server, User(server) as user:
        cookies = dict(user.client.cookies)
    with serve(sandbox, tmp_path) as server, httpx.Client(base_url=server.address) as client:
        (value,) = cookies.values()
        client.cookies.set(server.access.cookie, value)
        assert 200 == client.get("/api/start").status_code


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
    ],
    ids=lambda headers: " ".join(*headers.items()),
)
def test_requests_of_other_websites_are_refused(ann: User, headers: dict[str, str]) -> None:
    opened = ann.upload(make_csv(BO))

    for path in ("/api/imports", *(opened.path + each for each in POSTS)):
        assert 403 == ann.send_request(path, headers=headers).status_code, path
    without_mark = {"Origin": ann.address}
    assert 403 == ann.client.post(opened.path, content=b"{}", headers=without_mark).status_code

    assert 1 == opened.show()["version"]


def test_only_the_proxys_address_names_the_user(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        serve(sandbox, tmp_path, Proxy("X-User", "10.1.1.1")) as server,
        User(server, **{"X-User": "Ann"}) as liar,
    ):
        liar.get("/api/start", 403)


@pytest.mark.slow
@pytest.mark.skipif(CADDY is None, reason="Caddy, the reverse proxy, is not here")
def test_the_caddyfile_of_the_guide_signs_users_in(sandbox: Sandbox, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"https://localhost:{port}"
    signer = Proxy("X-Remote-User", "127.0.0.1")
    with serve(sandbox, tmp_path, signer, address) as server:
        (site,) = re.findall(r"```caddyfile\n(imports\.example .*?)```", PAGE, re.DOTALL)
        hashed = subprocess.check_output([str(CADDY), "hash-password", "--plaintext", "secret"])
        for part, real in (
            ("imports.example", address),
            ("$2a$14$...", hashed.decode().strip()),
            ("127.0.0.1:8080", server.address.removeprefix("http://")),
        ):
            assert part in site
            site = site.replace(part, real)
        options = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n"
        config = tmp_path / "Caddyfile"
        config.write_text(options + site)
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        command = [str(CADDY), "run", "--adapter", "caddyfile", "--config", str(config)]
        proxy = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
        try:
            assert proxy.stderr is not None
            said: list[str] = []
            while "certificate obtained successfully" not in "".join(said[-1:]):
                said.append(proxy.stderr.readline())
                assert said[-1], "".join(said)
            root = next(tmp_path.rglob("pki/authorities/local/root.crt"))
            trust = ssl.create_default_context(cafile=str(root))
            # Caddy says that it has a certificate shortly before it answers with it.
            transport = httpx.HTTPTransport(verify=trust, retries=5)
            with httpx.Client(base_url=address, transport=transport, timeout=60) as visitor:
                assert 401 == visitor.get("/api/start").status_code
                assert 401 == visitor.get("/", headers={"X-Remote-User": "ann"}).status_code
                as_ann = visitor.get(
                    "/api/start", auth=("ann", "secret"), headers={"X-Remote-User": "bo"}
                )
                assert "ann" == as_ann.json()["user"]
        finally:
            proxy.kill()
            proxy.communicate()


def test_another_users_import_does_not_exist(sandbox: Sandbox, tmp_path: Path) -> None:
    with (
        serve(sandbox, tmp_path, Proxy("X-User", "127.0.0.1")) as server,
        User(server, **{"X-User": "Ann"}) as ann,
        User(server, **{"X-User": "Bo"}) as bo,
    ):
        opened = ann.upload(make_csv(BO))
        for each in GETS:
            bo.get(opened.path + each, 404)
        change = {"version": 1, "cells": [[2, 0, "Eve"]]}
        bo.post(opened.path, change, 404)
        bo.post(f"{opened.path}/send", {}, 404)
        for each in ("/undo", "/delete"):
            bo.post(opened.path + each, {}, 404)
        assert [] == bo.get("/api/start")["open"]
        opened.send()
        (past,) = bo.get("/api/start")["history"]
        assert ("Ann", None) == (past["sent_by"], past["id"])


# -- content ---------------------------------------------------------------------------------------


def test_texts_of_a_file_are_data_and_never_html(ann: User) -> None:
    content = f"First name,{MARKUP}\n{MARKUP},x\n".encode()
    opened = ann.upload(content, "<script>alert(1).csv")

    for path in (opened.path, f"{opened.path}/check"):
        answer = ann.client.get(path)
        assert "application/json" == answer.headers["content-type"]
    page = ann.client.get("/")
    assert MARKUP not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path in ("/", "/vendor/tabulator.min.js", "/nothing", "/enter/no"):
        found = ann.client.get(path).headers
        assert {name: found[name] for name in HEADERS} == dict(HEADERS), path


def make_zip_bomb() -> bytes:
    """Return a small workbook that decompresses to 300 MB."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 300_000_000)
    return made.getvalue()


def make_workbook_with(part: str) -> bytes:
    """Return a workbook whose first part is this XML."""
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
        ("plain.xlsx", b"PK\x03\x04 only the beginning", "no xlsx or ods workbook"),
        ("paper.xlsx", b"%PDF-1.7", "a PDF or another document"),
        ("photo.csv", b"\x89PNG\r\n\x1a\n", "or another document"),
        ("empty.csv", b"", "is empty"),
        ("Letter.pdf", b"%PDF-1.7", "is a csv, tsv, txt, xlsx"),
        ("no ending", b"a,b", "no known ending"),
        (f"a{MARKUP}", b"a,b", "no known ending"),
        ("rows.csv", b"First name,Last name\n" + b"a,b\n" * 50_001, "more than 50,000 rows"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_file_that_is_unsafe_or_no_table_is_refused_with_a_sentence(
    server: Server, ann: User, name: str, content: bytes, sentence: str
) -> None:
    answer = ann.start(name, content, status=422)

    assert sentence in answer.json()["error"]
    assert "root:" not in answer.text
    assert str(server.imports.folder) not in answer.text
    assert [] == server.imports.load_all()


def test_an_upload_is_private_and_stays_in_its_folder(server: Server, ann: User) -> None:
    opened = ann.upload(make_csv(BO), "../../../etc/passwd.csv")

    folder = server.imports.folder / opened.id
    assert {"passwd.csv", "import.json"} == {each.name for each in folder.iterdir()}
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    for id in ("..%2f..", "0" * 16, "0" * 15 + "%0a"):
        assert 404 == ann.client.get(f"/api/imports/{id}").status_code


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "FILE_MEGABYTES_MAX", 1)
    with serve(sandbox, tmp_path) as server, User(server) as user:
        assert 1 == user.get("/api/start")["megabytes"]
        answer = user.start("large.csv", b"x" * 4_000_000, status=413)
        assert "larger than 1 MB" in answer.json()["error"]
        parts = (b"x" * 100_000 for _ in range(30))
        chunked = user.client.post(
            "/api/imports", content=parts, headers={"Origin": user.address, "X-Import-Page": "1"}
        )
        assert 413 == chunked.status_code
        assert [] == server.imports.load_all()


# -- log -------------------------------------------------------------------------------------------


def test_every_unexpected_error_is_logged_without_personal_data(
    ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = ann.upload(make_csv(BO))

    def fail(*_: object) -> None:
        raise KeyError("bo@example.com")

    monkeypatch.setattr(grid, "shown", fail)
    with caplog.at_level(logging.DEBUG):
        answer = ann.client.get(opened.path)

    assert (500, False) == (answer.status_code, "bo@" in answer.text)
    (record,) = (each for each in caplog.records if each.name.startswith("connector.page"))
    assert ("page_request_failed", logging.ERROR) == (vars(record)["event"], record.levelno)
    assert "KeyError" in record.getMessage()
    assert "test_access.py" in record.getMessage()
    assert "bo@" not in caplog.text


def test_addresses_and_logs_have_no_personal_data(
    ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        opened = ann.upload(make_csv("Zebedee,Li,zebedee@example.com,permanent"), "Zebedee Li.csv")
        opened.change(cells=[[2, 1, "Quibble"]])
        opened.send()
        opened.change(409, cells=[[2, 1, "Quibble"]])

    # The client logs the addresses of its requests.
    assert opened.id in caplog.text
    assert not {"Zebedee", "zebedee", "Quibble"} & {*caplog.text.replace("@", " ").split()}
    assert "ebedee" not in caplog.text

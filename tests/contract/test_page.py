"""The import page over HTTP: who may open it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.contract.kit import KEY, Account

REFUSED = (400, 401, 403, 404, 421)


@contextmanager
def serve(account: Account, *options: str) -> Iterator[dict[str, Any]]:
    """Serve the page, and yield the JSON object that the command prints."""
    process = account.start("page", "--port", "0", "--json", *options)
    try:
        yield _read_object(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _read_object(process: subprocess.Popen[str]) -> dict[str, Any]:
    text = ""
    assert process.stdout is not None
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            found = json.loads(text)
            assert isinstance(found, dict)
            return found
    raise AssertionError(process.communicate()[1])


@pytest.fixture
def page(account: Account) -> Iterator[dict[str, Any]]:
    """The page of an account, with its address and its link."""
    with serve(account) as served:
        yield served


def test_the_link_signs_in_one_browser_once(page: dict[str, Any]) -> None:
    with httpx.Client(follow_redirects=True) as first, httpx.Client() as second:
        assert 200 == first.get(page["link"]).status_code
        found = first.get(page["address"])
        assert 200 == found.status_code
        assert "text/html" in found.headers["Content-Type"]
        assert KEY not in found.text
        second.get(page["link"])
        assert second.get(page["address"]).status_code in REFUSED
        assert 200 == first.get(page["address"]).status_code


def test_nobody_without_the_link_sees_or_changes_anything(
    account: Account, page: dict[str, Any]
) -> None:
    emails = account.server.emails()
    for method in ("GET", "POST", "PUT", "DELETE"):
        found = httpx.request(method, page["address"])
        assert found.status_code in (*REFUSED, 405), method
        assert not any(each in found.text for each in emails)
    wrong = httpx.get(page["link"][:-4] + "0000")
    assert wrong.status_code in REFUSED or "location" in wrong.headers
    assert [] == account.server.sent()


def test_another_host_name_is_refused(page: dict[str, Any]) -> None:
    """A name of a foreign site that points to this machine opens nothing."""
    with httpx.Client(follow_redirects=True) as client:
        client.get(page["link"])
        found = client.get(page["address"], headers={"Host": "evil.example"})
        assert found.status_code in REFUSED


def test_the_proxys_user_is_signed_in(account: Account) -> None:
    options = ("--proxy-user", "X-Remote-User", "--proxy-from", "127.0.0.1")
    with serve(account, *options) as served:
        user = {"X-Remote-User": "Ann Lee"}
        with httpx.Client(headers=user, follow_redirects=True) as client:
            assert 200 == client.get(served["address"]).status_code
        assert httpx.get(served["address"]).status_code in REFUSED


def test_the_page_listens_elsewhere_only_with_a_proxy(account: Account) -> None:
    result = account.run("page", "--host", "0.0.0.0", "--port", "0")  # noqa: S104
    assert 2 == result.status, result.text

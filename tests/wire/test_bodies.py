"""Response bodies: parsed strictly and within limits."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.client.messages import DEPTH_MAX, encode_body, parse_json
from connector.client.session import read_body

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_every_encoded_body_can_be_parsed(fields: dict[str, Any]) -> None:
    assert fields == parse_json(encode_body(fields))


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "an empty body"),
        (b" <!doctype html><h1>Hello</h1>", "a page of HTML"),
        (b'\n<?xml version="1.0"?>', "HTML or XML"),
        (b'{"data": ', "not JSON"),
        (b'{"data": NaN}', "the number NaN in 'data', which no column can hold"),
        (b'{"data": -Infinity}', "the number -Infinity in 'data'"),
        (b'{"data": 1e999}', "the number 1e999 in 'data'"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), "nested deeper"),
        (b'"' + b'\\"' * 100_000, "not JSON"),
    ],
    ids=lambda each: each[:16] if isinstance(each, str) else f"{each[:8]!r} of {len(each)}",
)
def test_a_body_that_is_not_json_is_rejected_with_its_kind(body: bytes, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_json(body)


def test_a_byte_order_mark_is_ignored() -> None:
    assert {"a": 1} == parse_json(b'\xef\xbb\xbf{"a": 1}')


def unpack(encoding: str, bytes_max: int, *parts: bytes) -> bytes:
    """Read a body that arrives in these parts."""

    async def arrive() -> AsyncIterator[bytes]:
        for each in parts:
            yield each

    return asyncio.run(read_body(arrive(), encoding, bytes_max))


@given(st.binary(max_size=2000), st.integers(1, 100))
def test_gzip_bodies_in_any_parts_are_unpacked_completely(body: bytes, size: int) -> None:
    packed = gzip.compress(body)
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]

    assert body == unpack("gzip", len(body), *parts)


PACKED = gzip.compress(b"x" * 1000)


@pytest.mark.parametrize(
    ("encoding", "parts", "expected"),
    [
        ("", [b"ab", b"cd"], b"abcd"),
        ("identity", [b"ab", b"cd"], b"abcd"),
        ("gzip", [], b""),
        ("", [b"x" * 1001], OverflowError),
        ("gzip", [gzip.compress(b"x" * 1001)], OverflowError),
        ("gzip", [PACKED], b"x" * 1000),
        ("gzip", [PACKED[:-9]], ValueError),
        ("gzip", [b"no gzip"], ValueError),
        ("br", [b"{}"], ValueError),
        ("gzip, gzip", [gzip.compress(PACKED)], ValueError),
    ],
)
def test_bodies_are_unpacked_within_limits(
    encoding: str, parts: list[bytes], expected: bytes | type[Exception]
) -> None:
    if isinstance(expected, bytes):
        assert expected == unpack(encoding, 1000, *parts)
    else:
        with pytest.raises(expected):
            unpack(encoding, 1000, *parts)


def test_json_up_to_the_maximum_depth_is_parsed() -> None:
    deepest = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX

    assert json.loads(deepest) == parse_json(deepest)
    assert {"a": "[" * 1000} == parse_json(json.dumps({"a": "[" * 1000}).encode())

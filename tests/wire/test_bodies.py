"""Response bodies: parsed strictly and within limits."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.catalog.field import is_redacted
from connector.client.messages import DEPTH_MAX, BodyDecoder, encode_body, parse_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


# A body with the mark of an erasure is refused.
@given(st.dictionaries(st.text(), JSON).filter(lambda fields: not is_redacted(fields)))
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


def test_json_up_to_the_maximum_depth_is_parsed() -> None:
    deepest = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX

    assert json.loads(deepest) == parse_json(deepest)
    assert {"a": "[" * 1000} == parse_json(json.dumps({"a": "[" * 1000}).encode())


def test_the_last_of_duplicate_json_keys_is_used() -> None:
    assert {"id": "b"} == parse_json(b'{"id": "a", "id": "b"}')


def test_a_byte_order_mark_is_ignored() -> None:
    assert {"a": 1} == parse_json(b'\xef\xbb\xbf{"a": 1}')


@given(st.binary(max_size=2000), st.integers(1, 100))
def test_gzip_bodies_in_any_parts_are_decompressed_completely(body: bytes, size: int) -> None:
    packed = gzip.compress(body)
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]
    unpacked = BodyDecoder("gzip", len(body))
    for each in parts:
        unpacked.add(each)

    assert body == unpacked.finish()


@pytest.mark.parametrize("encoding", ["", "identity"])
def test_plain_bodies_are_joined_up_to_the_size_limit(encoding: str) -> None:
    unpacked = BodyDecoder(encoding, 4)
    unpacked.add(b"ab")
    unpacked.add(b"cd")

    assert b"abcd" == unpacked.finish()
    with pytest.raises(OverflowError):
        unpacked.add(b"e")


def test_a_gzip_bomb_is_rejected_within_a_memory_limit() -> None:
    bomb = gzip.compress(bytes(200_000_000), 9)
    cap = 1_000_000
    unpacked = BodyDecoder("gzip", cap)
    tracemalloc.start()
    try:
        with pytest.raises(OverflowError):
            unpacked.add(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * cap


def decompress_gzip(body: bytes) -> bytes:
    """Decompress a gzip body that arrives in one part."""
    unpacked = BodyDecoder("gzip", 10_000)
    unpacked.add(body)
    return unpacked.finish()


@pytest.mark.parametrize(
    "body", [gzip.compress(b"x" * 1000)[:-9], b"no gzip"], ids=["half", "none"]
)
def test_a_broken_gzip_body_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError, match="gzip"):
        decompress_gzip(body)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "anything"])
def test_compressions_other_than_gzip_are_rejected(encoding: str) -> None:
    with pytest.raises(ValueError, match="unknown compression"):
        BodyDecoder(encoding, 1)

"""The Hello as bytes, and the version that two sides agree on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError
from kainite.peers.connection.frames import HEADER_SIZE, WALTZ_HELLO
from kainite.peers.connection.hello import Hello, common_version, decode_hello, encode_hello

# Of the original's encoder.
GOLDEN = bytes.fromhex("4800000000001e00000005000000010002000300040000000c57616c747a20436c69656e74")


def test_the_hello_of_a_waltz_client() -> None:
    assert encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), "Waltz Client")) == GOLDEN
    assert decode_hello(GOLDEN[HEADER_SIZE:]) == Hello((0, 1, 2, 3, 4), "Waltz Client")


@given(st.lists(st.integers(-(2**15), 2**15 - 1)), st.text() | st.none())
def test_a_hello_reads_back(versions: list[int], message: str | None) -> None:
    hello = Hello(tuple(versions), message)
    assert decode_hello(encode_hello(WALTZ_HELLO, hello)[HEADER_SIZE:]) == hello


@pytest.mark.parametrize("body", [b"", bytes(4), b"\x7f\xff\xff\xff", b"\0\0\0\0\xff\xff\xff\xff!"])
def test_another_body_is_refused(body: bytes) -> None:
    with pytest.raises(LogProtocolError):
        decode_hello(body)


@pytest.mark.parametrize(
    ("ours", "theirs", "agreed"),
    [
        ((0, 1, 2, 3, 4), (0, 1, 2), 2),
        ((0, 1, 2), (0, 1, 2, 3, 4), 2),
        ((0, 1, 2, 3, 4, 5), (4, 5, 6), 5),
        ((0,), (1,), None),
        ((0,), (), None),
        ((4,), (-1, 4, 9), 4),
    ],
)
def test_the_highest_common_version_is_spoken(
    ours: tuple[int, ...], theirs: tuple[int, ...], agreed: int | None
) -> None:
    assert common_version(ours, theirs) == agreed

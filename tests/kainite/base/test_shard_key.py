"""A shard's key, taken apart and put together, and a stream's identifier as KCL serializes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.shard_key import ShardKey, StreamId

NAMES = st.text("abcABC019_.-", min_size=1, max_size=20)
STREAMS = st.builds(StreamId, st.from_regex(r"[0-9]{12}", fullmatch=True), NAMES, st.integers(1, 10**13))
SHARD = "shardId-000000000007"


@given(STREAMS, NAMES)
def test_a_key_of_several_streams_is_kcls_and_comes_apart_again(stream: StreamId, shard_id: str) -> None:
    key = str(ShardKey(str(stream), shard_id))
    assert key == f"{stream.account}:{stream.name}:{stream.created}:{shard_id}"
    assert ShardKey.of(key) == ShardKey(str(stream), shard_id)
    assert StreamId.parsed(ShardKey.of(key).stream) == stream


def test_a_key_of_one_stream_is_the_shards_id() -> None:
    assert ShardKey.of(SHARD) == ShardKey("", SHARD)
    assert str(ShardKey("", SHARD)) == SHARD


def test_an_arn_tells_account_and_name() -> None:
    arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/pay.ments"
    assert str(StreamId.of(arn, 1_700_000_000)) == "123456789012:pay.ments:1700000000"


@pytest.mark.parametrize("text", ["", "orders", "1:orders", "1:orders:0", "x:orders:1", "1:or ders:1", "1:orders:1:s"])
def test_what_is_no_identifier_is_not_read(text: str) -> None:
    assert StreamId.parsed(text) is None

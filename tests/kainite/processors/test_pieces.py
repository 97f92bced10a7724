"""The search for the pieces of a row, on a stream of lists and on moto's."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.record import RawRecord
from kainite.kinesis.client import GetRecordsReply, StreamClient
from kainite.kinesis.shards import Shard
from kainite.processors.crc32c import crc32c
from kainite.processors.pieces import (
    AT_ONCE,
    CLOCKS_DIFFER_S,
    Ahead,
    KinesisStream,
    PieceSearch,
    PiecesMissingError,
    SplitImage,
)
from support.names import unique

COMMITTED = 1_000.0


def fragment(chunk_id: str, index: int, data: str) -> bytes:
    return json.dumps({"type": "fragment", "chunk_id": chunk_id, "index": index, "data": data}).encode()


def image_of(text: str, total: int, chunk_id: str = "c1") -> SplitImage:
    return SplitImage(chunk_id, total, crc32c(text.encode()), COMMITTED, COMMITTED)


@dataclass
class Lists:
    """A stream in memory: each shard is a list of replies, the last one of which is repeated.

    ``later`` are shards that appear when all replies of the others were read once.
    """

    replies: dict[str, list[GetRecordsReply]]
    later: dict[str, list[GetRecordsReply]] = field(default_factory=dict)
    since: list[float] = field(default_factory=list)
    now: float = COMMITTED

    def shards(self) -> tuple[Shard, ...]:
        return tuple(map(Shard, self.replies))

    def iterator(self, shard_id: str, since: float) -> str:
        self.since.append(since)
        return f"{shard_id}/0"

    def read(self, iterator: str) -> GetRecordsReply:
        shard, place = iterator.rsplit("/", 1)
        replies = self.replies[shard]
        if replies[int(place)].next_iterator is None:
            self.replies.update(self.later)
        return replies[int(place)]

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def shard(name: str, *batches: Sequence[bytes], ends: bool = False) -> dict[str, list[GetRecordsReply]]:
    """Returns a shard with these batches; afterwards it is at its tip, or ends."""

    def reply(place: int, batch: Sequence[bytes], last: bool) -> GetRecordsReply:
        records = [RawRecord("1", "k", base64.b64encode(data).decode()) for data in batch]
        follows = None if last and ends else f"{name}/{place if last else place + 1}"
        return GetRecordsReply(records, 0 if last else 1000, follows, ())

    whole: list[Sequence[bytes]] = [*batches, []]
    return {name: [reply(place, batch, place == len(whole) - 1) for place, batch in enumerate(whole)]}


class Search(PieceSearch):
    def find_one(self, image: SplitImage) -> str:
        return Ahead(lambda: self).find(image)


def search(stream: Lists, wait: float = 5.0) -> Search:
    return Search(stream, wait, clock=lambda: stream.now, sleep=stream.sleep)


TEXT = st.text(max_size=60)


@given(
    parts=st.lists(TEXT, min_size=1, max_size=6),
    shards=st.integers(1, 4),
    data=st.data(),
)
def test_pieces_are_joined_from_whatever_shards_in_whatever_order(parts: list[str], shards: int, data: Any) -> None:
    """Fragments may come twice, among other images' fragments, and among records that only look like them."""
    whole = [fragment("c1", index, part) for index, part in enumerate(parts)]
    others = [fragment("c2", 0, "x"), b'{"type":"full","txId":"c1"}', b"no json c1", b'["c1"]', b"\xffc1"]
    came = data.draw(st.permutations(whole + data.draw(st.lists(st.sampled_from([*whole, *others]), max_size=8))))
    spread: list[list[bytes]] = [[] for _ in range(shards)]
    for record in came:
        spread[data.draw(st.integers(0, shards - 1))].append(record)
    stream = Lists({})
    for number, records in enumerate(spread):
        cut = data.draw(st.integers(0, len(records)))
        stream.replies |= shard(f"s{number}", records[:cut], records[cut:])
    text = "".join(parts)
    assert search(stream).find_one(image_of(text, len(parts))) == text
    assert stream.since == [COMMITTED - CLOCKS_DIFFER_S] * shards


def test_a_shard_that_comes_by_resharding_is_searched_too() -> None:
    stream = Lists(shard("parent", [fragment("c1", 0, "a")], ends=True), later=shard("child", [fragment("c1", 1, "b")]))
    assert search(stream).find_one(image_of("ab", 2)) == "ab"


def test_a_piece_that_is_not_there_yet_is_waited_for() -> None:
    stream = Lists(shard("s", [fragment("c1", 0, "a")]))

    def sleep(seconds: float) -> None:
        stream.now += seconds
        stream.replies["s"][-1].records[:] = [RawRecord("1", "k", base64.b64encode(fragment("c1", 1, "b")).decode())]

    assert Search(stream, 5.0, clock=lambda: stream.now, sleep=sleep).find_one(image_of("ab", 2)) == "ab"


def test_the_wait_for_a_piece_that_is_lost_ends() -> None:
    stream = Lists(shard("s", [fragment("c1", 1, "b")]) | shard("t", ends=True))
    with pytest.raises(PiecesMissingError, match="1 of 2 pieces of c1 came within 5 s after its main record"):
        search(stream).find_one(image_of("ab", 2))
    assert stream.now == COMMITTED + 5


def test_a_backlog_is_searched_without_waiting() -> None:
    stream = Lists(shard("s", *([b"x"] for _ in range(20))), now=COMMITTED + 86_400)
    with pytest.raises(PiecesMissingError, match="0 of 1 pieces"):
        search(stream).find_one(image_of("a", 1))
    assert stream.now == COMMITTED + 86_400


def test_pieces_with_another_checksum_are_not_a_row() -> None:
    stream = Lists(shard("s", [fragment("c1", 0, "a")]))
    with pytest.raises(PiecesMissingError, match="another checksum"):
        search(stream).find_one(image_of("b", 1))


def test_one_reading_finds_the_pieces_of_some_rows_of_a_batch() -> None:
    names = [f"c{number}" for number in range(AT_ONCE + 2)]
    lost, broken = names[2], names[3]
    pieces = [fragment(name, 0, "b" if name == broken else "a") for name in names if name != lost]
    stream = Lists(shard("s", pieces))
    ahead = Ahead(lambda: search(stream))
    images = [image_of("a", 1, name) for name in names]
    ahead.expect([*images, images[0]])
    found: dict[str, str] = {}
    for image in images:
        with suppress(PiecesMissingError):
            found[image.chunk_id] = ahead.find(image)
    assert found == {name: "a" for name in names if name not in (lost, broken)}
    assert len(stream.since) == 2, "so often the shard was read from the beginning"
    ahead.expect([])
    assert ahead.find(images[0]) == "a", "and what was not announced is found, too"
    assert len(stream.since) == 3


@pytest.mark.parametrize("broken", [{"index": "x", "data": "b"}, {"data": "b"}, {"index": [0], "data": "b"}])
def test_a_piece_that_cannot_be_read_costs_its_own_row_alone(broken: dict[str, Any]) -> None:
    piece = json.dumps({"type": "fragment", "chunk_id": "c2", **broken}).encode()
    ahead = Ahead(lambda: search(Lists(shard("s", [piece, fragment("c1", 0, "a")]))))
    images = [image_of("a", 1), image_of("b", 1, "c2")]
    ahead.expect(images)
    assert ahead.find(images[0]) == "a"
    with pytest.raises(PiecesMissingError, match="a piece of c2 cannot be read"):
        ahead.find(images[1])


def test_on_a_stream_of_kinesis(kinesis: Any) -> None:
    name, text = unique("pieces"), '{"id":1,"note":"' + "ä" * 1000 + '"}'
    kinesis.create_stream(StreamName=name, ShardCount=3)
    parts = [text[:400], text[400:500], text[500:]]
    for index, part in enumerate(parts):
        hashed = str(2**128 // 3 * index)
        data = fragment("c1", index, part)
        kinesis.put_record(StreamName=name, Data=data, PartitionKey="k", ExplicitHashKey=hashed)
    stream = KinesisStream(StreamClient(kinesis, name))
    image = SplitImage("c1", 3, crc32c(text.encode()), 0.0 + CLOCKS_DIFFER_S, 0.0)
    assert PieceSearch(stream, 1e12).find(image) == {"c1": text}

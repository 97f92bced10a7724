"""The follower's side of a connection: what an owner may say to it."""

from __future__ import annotations

import pytest
from kainite.peers.connection.feed_messages import FeedBatch, FeedTaken, FeedUpTo, Follow, OutcomesAt
from kainite.peers.connection.shard_messages import VERSION, Elsewhere, ShardAppended, ShardRefused

from kainite.base.errors import KainiteError, LogCorruptError, LogProtocolError, LogUnavailableError
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import Batch, Entry, EntryKind, ReqId, StatusMeta
from kainite.peers.connection.frames import HEADER_SIZE
from kainite.peers.connection.hello import Hello, encode_hello
from kainite.peers.feed.buffer import Fed
from kainite.peers.feed.conversation import FeedConversation, Phase, UpTo, Wishes
from kainite.waltz.wire.layouts import Message
from kainite.waltz.wire.versions import decode_message, encode_message

WISHES = Wishes("t/0", "f", 100, 10, outcomes=True)
BATCH = Batch(5, 3, 0, (Entry(EntryKind.STATUS, StatusMeta(), data=b"x"),))


def opened() -> FeedConversation:
    conversation = FeedConversation(WISHES, 5, generation=3)
    conversation.to_send()
    assert conversation.receive(encode_hello(Hello((VERSION,), "owner"))) == []
    return conversation


def frame(message: Message) -> bytes:
    return encode_message(VERSION, message)


def said(conversation: FeedConversation) -> Message:
    return decode_message(VERSION, conversation.to_send()[HEADER_SIZE:])


def test_it_says_what_it_wants_and_hears_batches_and_up_to_where_they_were_sent() -> None:
    conversation = opened()
    assert said(conversation) == Follow(ReqId(0, 3), "t/0", "f", 5, 100, 10, True)
    index, payload = encode(BATCH)
    message = FeedBatch(ReqId(0, 3), index, payload)
    heard = conversation.receive(frame(FeedUpTo(ReqId(0, 3), 5)) + frame(message))
    assert heard == [UpTo(5), Fed(BATCH, True, message.size)]
    (bare,) = conversation.receive(frame(FeedBatch(ReqId(0, 3), index, None)))
    assert isinstance(bare, Fed)
    assert not bare.has_data
    conversation.taken(6, 7)
    assert said(conversation) == FeedTaken(ReqId(0, 3), 6, 7)
    conversation.outcomes_at(9)
    assert said(conversation) == OutcomesAt(ReqId(0, 3), 9)


def test_a_younger_owner_than_head_named_is_heard_and_an_older_one_is_not() -> None:
    conversation = opened()
    assert conversation.receive(frame(FeedUpTo(ReqId(0, 4), 5))) == [UpTo(5)]
    with pytest.raises(LogUnavailableError, match="generation 3; it was replaced"):
        conversation.receive(frame(FeedUpTo(ReqId(0, 3), 5)))
    with pytest.raises(LogUnavailableError, match="generation 2; it was replaced"):
        opened().receive(frame(FeedUpTo(ReqId(0, 2), 5)))


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Elsewhere(ReqId(0, 3), "there:1"), LogUnavailableError),
        (ShardRefused(ReqId(0, 3), "another log"), LogProtocolError),
        (ShardAppended(ReqId(0, 3)), LogProtocolError),
        (FeedBatch(ReqId(0, 3), b"garbage", None), LogCorruptError),
        (FeedBatch(ReqId(0, 3), encode(Batch(5, 2, 0, BATCH.entries))[0], None), LogProtocolError),
        (FeedBatch(ReqId(0, 3), encode(Batch(5, 3, 0, ()))[0], None), LogProtocolError),
    ],
)
def test_what_no_owner_of_this_log_says_ends_it(message: Message, error: type[KainiteError]) -> None:
    conversation = opened()
    with pytest.raises(error):
        conversation.receive(frame(message))
    assert conversation.phase is Phase.ENDED


def test_a_peer_of_another_version_is_refused() -> None:
    with pytest.raises(LogProtocolError, match="does not speak version 6"):
        FeedConversation(WISHES, 0, 1).receive(encode_hello(Hello((4,), "old")))

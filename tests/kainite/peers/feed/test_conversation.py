"""The follower's side of a conversation: what an owner may say to it."""

from __future__ import annotations

import pytest

from kainite.base.errors import KainiteError, LogCorruptError, LogProtocolError, LogUnavailableError
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import Batch, Entry, EntryKind, StatusMeta
from kainite.peers.feed.buffer import FedBatch
from kainite.peers.feed.conversation import FeedConversation, UpTo, Wishes
from kainite.peers.messages import (
    Appended,
    Elsewhere,
    FeedBatch,
    FeedTaken,
    FeedUpTo,
    Follow,
    Message,
    OutcomesAt,
    RequestRefused,
)

WISHES = Wishes("t/0", "f", 100, 10, outcomes=True)
BATCH = Batch(5, 3, 0, (Entry(EntryKind.STATUS, StatusMeta(), data=b"x"),))


def opened() -> FeedConversation:
    return FeedConversation(generation=3)


def test_it_says_what_it_wants_and_hears_batches_and_up_to_where_they_were_sent() -> None:
    conversation = opened()
    assert conversation.follow(WISHES, 5) == Follow(3, 0, "t/0", "f", 5, 100, 10, True)
    index, payload = encode(BATCH)
    message = FeedBatch(3, 0, index, payload)
    assert conversation.take(FeedUpTo(3, 0, 5)) == UpTo(5)
    assert conversation.take(message) == FedBatch(BATCH, True, message.size)
    bare = conversation.take(FeedBatch(3, 0, index, None))
    assert isinstance(bare, FedBatch)
    assert not bare.has_data
    assert conversation.taken(6, 7) == FeedTaken(3, 0, 6, 7)
    assert conversation.outcomes_at(9) == OutcomesAt(3, 0, 9)


def test_a_younger_owner_than_head_named_is_heard_and_an_older_one_is_not() -> None:
    conversation = opened()
    assert conversation.take(FeedUpTo(4, 0, 5)) == UpTo(5)
    assert conversation.taken(6, 7) == FeedTaken(4, 0, 6, 7)
    with pytest.raises(LogUnavailableError, match="generation 3; it was replaced"):
        conversation.take(FeedUpTo(3, 0, 5))
    with pytest.raises(LogUnavailableError, match="generation 2; it was replaced"):
        opened().take(FeedUpTo(2, 0, 5))


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Elsewhere(0, 0, "there:1"), LogUnavailableError),
        (RequestRefused(3, 0, "another log"), LogProtocolError),
        (Appended(3, 0), LogProtocolError),
        (FeedBatch(3, 0, b"garbage", None), LogCorruptError),
        (FeedBatch(3, 0, encode(Batch(5, 2, 0, BATCH.entries))[0], None), LogProtocolError),
        (FeedBatch(3, 0, encode(Batch(5, 3, 0, ()))[0], None), LogProtocolError),
    ],
)
def test_what_no_owner_of_this_log_says_ends_it(message: Message, error: type[KainiteError]) -> None:
    with pytest.raises(error):
        opened().take(message)

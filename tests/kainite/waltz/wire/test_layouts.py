"""Layouts: what a version's fields cannot say is refused on the side that would say it."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.fields import FieldReader, FieldWriter
from kainite.waltz.wire import messages as m
from kainite.waltz.wire.layouts import MOUNT_STATE, append_request, numbered, plain

REQ = ReqId(1, 2, 3, 4)


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_an_append_names_so_many_kinds_of_locks(kinds: int) -> None:
    locks = [(1,), (2,), (3,)][:kinds] + [()] * (3 - kinds)
    message = m.AppendRequest(REQ, 5, locks[0], locks[1], locks[2], 9, b"data")
    writer = FieldWriter()
    append_request(kinds).write(writer, message)
    assert append_request(kinds).read(FieldReader(writer.body()), REQ) == message


def test_locks_that_a_version_does_not_have_are_not_dropped_in_silence() -> None:
    with pytest.raises(LogRequestError, match="without read locks"):
        append_request(1).write(FieldWriter(), m.AppendRequest(REQ, 0, (), (1,), (), 0, b""))


def test_a_state_that_there_is_not_is_refused() -> None:
    with pytest.raises(LogProtocolError, match="a state that there is not"):
        MOUNT_STATE.read(FieldReader(b"\0\0\0\7"), REQ)


def test_messages_with_one_number_or_none_need_no_functions_of_their_own() -> None:
    writer = FieldWriter()
    numbered(3, m.FeedRequest, "mark").write(writer, m.FeedRequest(REQ, 7))
    assert numbered(3, m.FeedRequest, "mark").read(FieldReader(writer.body()), REQ) == m.FeedRequest(REQ, 7)
    assert plain(8, m.FlushRequest).read(FieldReader(b""), REQ) == m.FlushRequest(REQ)

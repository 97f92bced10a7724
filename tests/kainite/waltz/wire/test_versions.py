"""Versions 0 to 4 byte for byte: golden frames, every message in every version that has it, broken ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.frames import HEADER_SIZE, MESSAGE, encode_frame
from kainite.waltz.wire import messages as m
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.versions import VERSIONS, WALTZ

REQ = ReqId(7, 3, 2, 41)
HEX_REQ = "00000007000000030000000200000029"
LOCK = -786681337  # the hash of ("payment", 1)
APPEND = m.AppendRequest(REQ, 12, (LOCK,), (), (122,), 0x0A0B0C0D, b"hello")
WRITE_ONLY = m.AppendRequest(REQ, 12, (LOCK,), (), (), 0x0A0B0C0D, b"hello")
MARK_12, WRITE_LOCK, REST = "000000000000000c", "00000001d11c3207", "0a0b0c0d0000000568656c6c6f3610a686"

# Frames of version 4 come from the original's encoders; the others were written by hand after its codecs.
GOLDEN: list[tuple[int, WaltzMessage, str]] = [
    (4, m.MountRequest(REQ, -1, 0), f"4c00040000002100{HEX_REQ}ffffffffffffffff0000000000000000"),
    (4, APPEND, f"4c00040000003e02{HEX_REQ}000000000000000c00000001d11c320700000000000000010000007a{REST}"),
    (4, m.FeedData(REQ, 13, -1), f"4c00040000001d04{HEX_REQ}000000000000000dffffffff"),
    (
        4,
        m.TransactionDataResponse(REQ, 13, b"hello"),
        f"4c00040000002707{HEX_REQ}000000000000000d010000000568656c6c6f3610a686",
    ),
    (4, m.FlushRequest(REQ), f"4c00040000001108{HEX_REQ}"),
    (0, WRITE_ONLY, f"4c00000000003202{HEX_REQ}{MARK_12}{WRITE_LOCK}{REST}"),
    (1, WRITE_ONLY, f"4c00010000003602{HEX_REQ}{MARK_12}{WRITE_LOCK}00000000{REST}"),
    (2, WRITE_ONLY, f"4c00020000003a02{HEX_REQ}{MARK_12}{WRITE_LOCK}0000000000000000{REST}"),
    (0, m.MountResponse(REQ, m.MountState.READY), f"4c00000000001201{HEX_REQ}01"),
    (2, m.MountResponse(REQ, m.MountState.NOT_READY), f"4c00020000001201{HEX_REQ}00"),
    (3, m.MountResponse(REQ, m.MountState.CLIENT_AHEAD), f"4c00030000001501{HEX_REQ}00000002"),
    (0, m.FeedRequest(REQ, 13), f"4c00000000001903{HEX_REQ}000000000000000d"),
    (0, m.FeedSuspended(REQ), f"4c00000000001105{HEX_REQ}"),
    (0, m.TransactionDataRequest(REQ, 13), f"4c00000000001906{HEX_REQ}000000000000000d"),
    (0, m.TransactionDataResponse(REQ, 13, None, "no"), f"4c00000000002007{HEX_REQ}000000000000000d00000000026e6f"),
    (0, m.TransactionDataResponse(REQ, 13, None, None), f"4c00000000001e07{HEX_REQ}000000000000000d00ffffffff"),
    (0, m.FlushResponse(REQ, 13), f"4c00000000001909{HEX_REQ}000000000000000d"),
    (0, m.LockFailure(REQ, 13), f"4c0000000000190a{HEX_REQ}000000000000000d"),
    (0, m.HighWaterMarkRequest(REQ), f"4c0000000000110b{HEX_REQ}"),
    (0, m.HighWaterMarkResponse(REQ, -1), f"4c0000000000190c{HEX_REQ}ffffffffffffffff"),
    (1, m.CheckStorageConnectivityRequest(REQ), f"4c0001000000110d{HEX_REQ}"),
    (
        1,
        m.CheckStorageConnectivityResponse(REQ, (("a:1", True),)),
        f"4c00010000001d0e{HEX_REQ}0000000100000003613a3101",
    ),
    (2, m.ServerPartitionsAssignmentRequest(REQ), f"4c0002000000110f{HEX_REQ}"),
    (2, m.ServerPartitionsAssignmentResponse(REQ, (2,)), f"4c00020000001910{HEX_REQ}0000000100000002"),
    (2, m.AddPreferredPartitionRequest(REQ, (1, 2)), f"4c00020000001d11{HEX_REQ}000000020000000100000002"),
    (2, m.AddPreferredPartitionResponse(REQ, True), f"4c00020000001212{HEX_REQ}01"),
    (2, m.RemovePreferredPartitionRequest(REQ, ()), f"4c00020000001513{HEX_REQ}00000000"),
    (2, m.RemovePreferredPartitionResponse(REQ, False), f"4c00020000001214{HEX_REQ}00"),
    (4, m.ServerPartitionsHealthStatRequest(REQ), f"4c00040000001115{HEX_REQ}"),
    (4, m.ServerPartitionsHealthStatResponse(REQ, ((2, True),)), f"4c00040000001a16{HEX_REQ}000000010000000201"),
]


@pytest.mark.parametrize(("version", "message", "frame"), GOLDEN)
def test_golden_frames(version: int, message: WaltzMessage, frame: str) -> None:
    assert frame_of(version, message).hex() == frame
    assert WALTZ.decode(version, bytes.fromhex(frame)[HEADER_SIZE:]) == message


def frame_of(version: int, message: WaltzMessage) -> bytes:
    return encode_frame(MESSAGE, version, WALTZ.encode(version, message))


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
REQS = st.builds(ReqId, INT32, INT32, INT32, INT32)
LOCKS = st.lists(INT32, max_size=5).map(tuple)
NO_LOCKS: st.SearchStrategy[tuple[int, ...]] = st.just(())
STATES = st.sampled_from(m.MountState)

MESSAGES: dict[type[object], Callable[[int], st.SearchStrategy[WaltzMessage]]] = {
    m.MountRequest: lambda v: st.builds(m.MountRequest, REQS, INT64, INT64),
    m.MountResponse: lambda v: st.builds(
        m.MountResponse, REQS, STATES if v >= 3 else st.sampled_from([m.MountState.READY, m.MountState.NOT_READY])
    ),
    m.AppendRequest: lambda v: st.builds(
        m.AppendRequest, REQS, INT64, LOCKS, LOCKS if v else NO_LOCKS, LOCKS if v > 1 else NO_LOCKS, INT32, st.binary()
    ),
    m.FeedRequest: lambda v: st.builds(m.FeedRequest, REQS, INT64),
    m.FeedData: lambda v: st.builds(m.FeedData, REQS, INT64, INT32),
    m.FeedSuspended: lambda v: st.builds(m.FeedSuspended, REQS),
    m.TransactionDataRequest: lambda v: st.builds(m.TransactionDataRequest, REQS, INT64),
    m.TransactionDataResponse: lambda v: (
        st.builds(m.TransactionDataResponse, REQS, INT64, st.binary())
        | st.builds(m.TransactionDataResponse, REQS, INT64, st.none(), st.text() | st.none())
    ),
    m.FlushRequest: lambda v: st.builds(m.FlushRequest, REQS),
    m.FlushResponse: lambda v: st.builds(m.FlushResponse, REQS, INT64),
    m.LockFailure: lambda v: st.builds(m.LockFailure, REQS, INT64),
    m.HighWaterMarkRequest: lambda v: st.builds(m.HighWaterMarkRequest, REQS),
    m.HighWaterMarkResponse: lambda v: st.builds(m.HighWaterMarkResponse, REQS, INT64),
    m.CheckStorageConnectivityRequest: lambda v: st.builds(m.CheckStorageConnectivityRequest, REQS),
    m.CheckStorageConnectivityResponse: lambda v: st.builds(
        m.CheckStorageConnectivityResponse,
        REQS,
        st.lists(st.tuples(st.text() | st.none(), st.booleans()), max_size=4).map(tuple),
    ),
    m.ServerPartitionsAssignmentRequest: lambda v: st.builds(m.ServerPartitionsAssignmentRequest, REQS),
    m.ServerPartitionsAssignmentResponse: lambda v: st.builds(m.ServerPartitionsAssignmentResponse, REQS, LOCKS),
    m.AddPreferredPartitionRequest: lambda v: st.builds(m.AddPreferredPartitionRequest, REQS, LOCKS),
    m.AddPreferredPartitionResponse: lambda v: st.builds(m.AddPreferredPartitionResponse, REQS, st.booleans()),
    m.RemovePreferredPartitionRequest: lambda v: st.builds(m.RemovePreferredPartitionRequest, REQS, LOCKS),
    m.RemovePreferredPartitionResponse: lambda v: st.builds(m.RemovePreferredPartitionResponse, REQS, st.booleans()),
    m.ServerPartitionsHealthStatRequest: lambda v: st.builds(m.ServerPartitionsHealthStatRequest, REQS),
    m.ServerPartitionsHealthStatResponse: lambda v: st.builds(
        m.ServerPartitionsHealthStatResponse, REQS, st.lists(st.tuples(INT32, st.booleans()), max_size=4).map(tuple)
    ),
}
PAIRS = [(version, kind) for version in VERSIONS for kind in VERSIONS[version].by_kind]


@pytest.mark.parametrize(("version", "kind"), PAIRS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_message_reads_back(version: int, kind: type[object], data: st.DataObject) -> None:
    message = data.draw(MESSAGES[kind](version))
    frame = frame_of(version, message)
    assert WALTZ.decode(version, frame[HEADER_SIZE:]) == message
    assert int.from_bytes(frame[3:HEADER_SIZE]) == len(frame) - HEADER_SIZE


def test_the_message_types_are_those_of_the_original() -> None:
    assert [sorted(VERSIONS[version].by_code) for version in VERSIONS] == [
        list(range(13)),
        list(range(15)),
        list(range(21)),
        list(range(21)),
        list(range(23)),
    ]


@pytest.mark.parametrize(("version", "kind"), PAIRS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_message_that_is_cut_or_too_long_is_refused(version: int, kind: type[object], data: st.DataObject) -> None:
    body = frame_of(version, data.draw(MESSAGES[kind](version)))[HEADER_SIZE:]
    for broken in (body[: data.draw(st.integers(0, len(body) - 1))], body + b"\0"):
        with pytest.raises(LogProtocolError):
            WALTZ.decode(version, broken)


@pytest.mark.parametrize(
    ("version", "message", "said"),
    [
        (0, m.AppendRequest(REQ, 0, (), (1,), (), 0, b""), "without read locks"),
        (0, m.AppendRequest(REQ, 0, (), (), (1,), 0, b""), "without append locks"),
        (1, APPEND, "without append locks"),
        (
            0,
            m.CheckStorageConnectivityRequest(REQ),
            "version 0 of the .* has no CheckStorage",
        ),
        (3, m.ServerPartitionsHealthStatRequest(REQ), "upgrade the peer"),
    ],
)
def test_what_a_version_cannot_say_is_not_sent(version: int, message: WaltzMessage, said: str) -> None:
    with pytest.raises(LogRequestError, match=said):
        frame_of(version, message)


@pytest.mark.parametrize(
    ("version", "body", "said"),
    [
        (4, b"\x17" + bytes(16), "no message of type 23"),
        (4, b"\xff" + bytes(16), "no message of type 255"),
        (4, b"", "ends where"),
        (4, b"\x01" + bytes(16) + b"\0\0\0\3", "3 is not a valid MountState"),
        (4, bytes.fromhex(GOLDEN[1][2])[HEADER_SIZE:-1] + b"\0", "does not match its CRC-32"),
    ],
)
def test_another_body_is_refused(version: int, body: bytes, said: str) -> None:
    with pytest.raises(LogProtocolError, match=said):
        WALTZ.decode(version, body)


def test_a_client_that_is_ahead_is_not_ready_in_versions_without_states() -> None:
    frame = frame_of(2, m.MountResponse(REQ, m.MountState.CLIENT_AHEAD))
    assert WALTZ.decode(2, frame[HEADER_SIZE:]) == m.MountResponse(REQ, m.MountState.NOT_READY)

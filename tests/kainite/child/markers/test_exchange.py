"""The daemon's side of T and L: against a model worker, and against workers that break the protocol."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import MessageRefusedError
from kainite.base.markers import Batching, Mark, Markers
from kainite.child.events import Send
from kainite.child.markers.exchange import Answer, Exchange, Violation, bad_message
from support.marker_strategies import chunked, cuts, marker_sets, slowly_scanned, texts
from support.model_worker import ModelWorker, converse

MARKERS = Markers()
A, B, C = b"a\n", b"b\n", b"c\n"


def sendable(markers: Markers, payload: bytes) -> bool:
    try:
        markers.message(payload)
    except MessageRefusedError:
        return False
    return True


@given(
    marker_sets(), st.sampled_from(Batching), st.lists(texts(), max_size=9), st.integers(1, 4),
    st.integers(0, 3), cuts(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_whatever_is_sent_is_answered_once_and_in_order(
    markers: Markers, batching: Batching, payloads: list[bytes], size: int, results: int, places: list[int],
    residue: bool, newline: bool,
) -> None:  # fmt: skip
    payloads = [payload for payload in payloads if payload and sendable(markers, payload)]
    if residue and not all(sendable(Markers(markers.eop, markers.eom, markers.eob, markers.bnc), p) for p in payloads):
        residue = False  # its end and EOP would read as another marker
    worker = ModelWorker(markers, batching, size, lambda message: [message] * results, residue, newline)
    exchange = Exchange(markers, batching, batch_size=size)
    exchange.send([markers.message(payload) for payload in payloads])
    happened, sent = converse(exchange, worker, lambda data: chunked(data, places))

    answers = [answer for answer in happened if isinstance(answer, Answer)]
    assert answers == happened
    assert [message for answer in answers for message in answer.messages] == [
        p for p in payloads for _ in range(results)
    ]
    assert [index for a in answers for index in range(a.first, a.first + a.count)] == list(range(len(payloads)))
    assert [message for request in worker.requests for message in request] == payloads
    one = 1 if batching is Batching.SINGLE else size
    least = 0 if batching is Batching.SINGLE else 1
    assert len(answers) == max(least, math.ceil(len(payloads) / one))
    marks = [piece.mark for piece in slowly_scanned(markers, b"".join(sent))[0]]
    assert not any(pair == (Mark.EOB, Mark.EOB) for pair in pairwise(marks))
    assert marks.count(Mark.EOM) == len(payloads)


@given(st.sampled_from(Batching), st.binary(max_size=60), cuts(), st.integers(0, 3))
def test_whatever_a_worker_writes_every_message_is_answered_once_or_the_conversation_breaks(
    batching: Batching, data: bytes, places: list[int], count: int
) -> None:
    exchange = Exchange(MARKERS, batching, batch_size=2, max_message=8, max_answer=16)
    exchange.send([MARKERS.message(b"m")] * count)
    answered, broken = 0, False
    for chunk in [b"", *chunked(data, places)]:
        exchange.receive(chunk)
        while (event := exchange.next_event()) is not None:
            assert not broken
            if isinstance(event, Answer):
                assert event.first == answered
                answered += event.count
                assert answered <= count
            broken = isinstance(event, Violation)
    assert broken or answered + len(exchange.under_way) <= count


def talk(batching: Batching, messages: list[bytes], *said: bytes, size: int = 2) -> list[object]:
    """Returns the events when the worker says ``said``, one piece each time that the daemon waits for it."""
    exchange = Exchange(MARKERS, batching, batch_size=size)
    exchange.send(messages)
    happened: list[object] = []
    for data in [b"", *said]:
        exchange.receive(data)
        while (event := exchange.next_event()) is not None:
            happened.append(event)
    return happened


GOLDEN = [
    # 15: one message, one answer
    (Batching.SINGLE, [A, B], [b"x\n\0", b"y\n\0"],
     [Send(A), Answer(0, 1, (b"x",)), Send(B), Answer(1, 1, (b"y",))]),
    # 17, 18: what a worker could not read is answered by EOP alone
    (Batching.SINGLE, [A], [b"\0"], [Send(A), Answer(0, 1, ())]),
    # residue before EOP is a message
    (Batching.SINGLE, [A], [b"x\ny\0"], [Send(A), Answer(0, 1, (b"x", b"y"))]),
    # a line's end after EOP is no message, also when it comes with the next answer
    (Batching.SINGLE, [A, B], [b"x\n\0\n", b"y\n\0", b"\n"],
     [Send(A), Answer(0, 1, (b"x",)), Send(B), Answer(1, 1, (b"y",))]),
    (Batching.SINGLE, [A, B], [b"x\n\0", b"\ny\n\0"],
     [Send(A), Answer(0, 1, (b"x",)), Send(B), Answer(1, 1, (b"y",))]),
    # an empty message elsewhere is one
    (Batching.SINGLE, [A], [b"x\n\n\0"], [Send(A), Answer(0, 1, (b"x", b""))]),
    # nothing to send
    (Batching.SINGLE, [], [], []),
    # b1: a batch that the worker ends, and one that EOB ends
    (Batching.WORKER, [A, B, C], [b"\x06", b"x\ny\n\0", b"\x06", b"z\n\0"],
     [Send(A), Send(B), Answer(0, 2, (b"x", b"y")), Send(C), Send(b"\x17"), Answer(2, 1, (b"z",))]),
    # b4: EOB on an empty batch
    (Batching.WORKER, [], [b"\0"], [Send(b"\x17"), Answer(0, 0, ())]),
    (Batching.SUPERVISOR, [], [b"\0"], [Send(b"\x17"), Answer(0, 0, ())]),
    # b5: junk is not counted by the worker, which asks for one more
    (Batching.WORKER, [A, B, C], [b"\x06", b"\x06", b"x\n\0", b"\x06", b"\0"],
     [Send(A), Send(B), Send(b"\x17"), Answer(0, 2, (b"x",)), Send(C), Send(b"\x17"), Answer(2, 1, ())]),
    # BNC after the message that completes a batch: the EOP too many is not taken for the next answer
    (Batching.WORKER, [A, B, C], [b"\x06", b"\x06", b"x\n\0", b"\0"],
     [Send(A), Send(B), Send(b"\x17"), Answer(0, 2, (b"x",)), Send(C),
      Violation("wrote EOP twice: no BNC follows the message that completes a batch of 2")]),
    (Batching.WORKER, [A, B], [b"\x06", b"\x06", b"x\n\0", b"\0"],
     [Send(A), Send(B), Send(b"\x17"), Answer(0, 2, (b"x",)), Violation("wrote EOP while nothing was asked of it")]),
    # no EOB for a batch that the worker has ended itself
    (Batching.WORKER, [A, B], [b"\x06", b"\0"], [Send(A), Send(B), Answer(0, 2, ())]),
    (Batching.WORKER, [A], [b"\x06\n", b"x\n\0\n"], [Send(A), Send(b"\x17"), Answer(0, 1, (b"x",))]),
    # N messages: one EOB, not two
    (Batching.SUPERVISOR, [A, B, C], [b"x\n\0", b"y\n\0"],
     [Send(A + B + b"\x17"), Answer(0, 2, (b"x",)), Send(C + b"\x17"), Answer(2, 1, (b"y",))]),
]  # fmt: skip


@pytest.mark.parametrize(("batching", "messages", "said", "expected"), GOLDEN)
def test_golden_conversations(
    batching: Batching, messages: list[bytes], said: list[bytes], expected: list[object]
) -> None:
    assert talk(batching, messages, *said) == expected


def test_several_bytes_a_marker() -> None:  # 16, 31
    markers = Markers(b"EOM", b"EOP", b"EOB", b"BNC")
    exchange = Exchange(markers, Batching.SINGLE)
    exchange.send([markers.message(b'{"C":"D",\n"E":"F"}')])
    assert exchange.next_event() == Send(b'{"C":"D",\n"E":"F"}EOM')
    exchange.receive(b"{'C': 'D', 'E': 'F'}EO")
    assert exchange.next_event() is None
    exchange.receive(b"ME")
    exchange.receive(b"OP")
    assert exchange.next_event() == Answer(0, 1, (b"{'C': 'D', 'E': 'F'}",))


@pytest.mark.parametrize(
    ("batching", "said", "reason"),
    [
        (Batching.SINGLE, b"\x06", "wrote BNC, but batching is single"),
        (Batching.SINGLE, b"x\n\x06\n", "wrote BNC, but batching is single"),
        (Batching.SINGLE, b"\0\x06", "wrote BNC while nothing was asked of it"),
        (Batching.SUPERVISOR, b"\x06", "wrote BNC, but batching is supervisor"),
        (Batching.SINGLE, b"\x17", "wrote EOB, which is the supervisor's"),
        (Batching.SUPERVISOR, b"x\x17", "wrote EOB, which is the supervisor's"),
        (Batching.WORKER, b"x\n\x06", "wrote BNC after messages"),
        (Batching.WORKER, b"\x06x\n\0", "wrote EOM after b'x' after BNC, which asks for one more message: read that"),
        (Batching.SINGLE, b"\0\0", "wrote EOP while nothing was asked of it"),
        (Batching.SINGLE, b"\0junk\n", "wrote EOM after b'junk' while nothing was asked of it"),
        (Batching.SINGLE, b"\0\n\n", "wrote EOM while nothing was asked of it"),
    ],
)
def test_a_worker_that_breaks_the_protocol(batching: Batching, said: bytes, reason: str) -> None:
    last = talk(batching, [A], said)[-1]
    assert isinstance(last, Violation)
    assert reason in last.reason


def test_the_bytes_of_a_marker_that_the_batching_does_not_use_are_data() -> None:
    assert talk(Batching.SINGLE, [b"a\x06b\x17\n"], b"c\x06\x17d\n\0") == [
        Send(b"a\x06b\x17\n"),
        Answer(0, 1, (b"c\x06\x17d",)),
    ]
    assert talk(Batching.SUPERVISOR, [b"a\x06b\n"], b"\x06d\n\0")[-1] == Answer(0, 1, (b"\x06d",))


def test_a_batch_of_one_takes_no_more() -> None:
    assert talk(Batching.WORKER, [A, B], b"\x06", size=1)[-1] == Violation("wrote BNC, but a batch has one message")


def test_bnc_after_eob_is_refused() -> None:
    assert talk(Batching.WORKER, [A], b"\x06", b"\x06", size=9)[-1] == Violation("wrote BNC after EOB")


def test_what_is_written_before_anything_is_asked_is_a_violation() -> None:
    exchange = Exchange(MARKERS, Batching.SINGLE)
    exchange.receive(b"ready\n")
    assert exchange.next_event() == Violation(
        "wrote EOM after b'ready' while nothing was asked of it: a start banner perhaps: write it to standard error"
    )
    assert exchange.next_event() is None
    with pytest.raises(ValueError, match="cannot be sent"):
        exchange.send([A])


def test_nothing_counts_before_its_eop() -> None:
    exchange = Exchange(MARKERS, Batching.SINGLE)
    exchange.send([A])
    assert exchange.next_event() == Send(A)
    exchange.receive(b"x\ny\n")
    assert exchange.next_event() is None
    assert exchange.held == 0
    assert exchange.under_way == range(1)
    exchange.receive_eof()
    assert exchange.next_event() == Violation("ended its output before EOP")


def test_an_end_while_nothing_is_asked_is_no_violation() -> None:
    exchange = Exchange(MARKERS, Batching.SINGLE)
    exchange.receive_eof()
    assert exchange.next_event() is None


def test_memory_is_bounded() -> None:
    long = Exchange(MARKERS, Batching.SINGLE, max_message=10)
    long.send([A])
    long.next_event()
    long.receive(b"x" * 11)
    assert long.next_event() == Violation("wrote more than 10 bytes without a marker")

    many = Exchange(MARKERS, Batching.SINGLE, max_answer=10)
    many.send([A])
    many.next_event()
    many.receive(b"\n" * 11)
    assert many.next_event() == Violation("wrote more than 10 bytes for one answer")


def test_one_request_at_a_time() -> None:
    exchange = Exchange(MARKERS, Batching.SINGLE)
    exchange.send([A])
    with pytest.raises(ValueError, match="cannot be sent"):
        exchange.send([B])


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (b'{"bad":"no JSON"}', "no JSON"),
        (b' { "bad" : "\\u00e4" } ', "ä"),
        (b'{"bad":{"line":3}}', '{"line": 3}'),
        (b'{"bad":null}', "null"),
        (b'{"bad":"x","uow":"T"}', None),
        (b'{"uow":"bad"}', None),
        (b'["bad"]', None),
        (b'"bad"', None),
        (b'{"bad":', None),
        (b'{"bad":' + b"[" * 100_000, None),
        (b"", None),
    ],
)
def test_a_bad_message_report_is_an_object_with_one_key(message: bytes, cause: str | None) -> None:
    assert bad_message(message) == cause

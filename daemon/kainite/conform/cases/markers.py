"""The cases of the markers dialect, for transforms and loaders (docs/protocol.md, *Markers*). Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kainite.base.errors import MessageRefusedError
from kainite.base.markers import Batching, Markers
from kainite.conform.cases.case import ONE_MESSAGE, Arrangement, Case, EndOfInput, Messages, Weight, Withheld
from kainite.conform.cases.samples import BINARY, ODD_TEXTS, Samples, padded

LARGE_PATIENCE: Final = 6.0
PIECES: Final = 10
COMPARED: Final = 4
"""Messages of the case that compares arrangements, where there are no batches."""

_NEEDS: Final = (ONE_MESSAGE,)


def markers_cases(markers: Markers, batching: Batching, size: int, samples: Samples, large: int) -> tuple[Case, ...]:
    """Returns all cases, in the order in which they are run.

    Args:
        markers: the markers; a payload that contains one is left out.
        batching, size: how messages are grouped.
        samples: payloads that the record processor understands.
        large: the payload of the large messages together, bytes.
    """
    cases = (
        *_messages(samples),
        *(() if batching is Batching.SINGLE else _batches(samples, size)),
        *_odd(markers, samples, large),
        Case("end-of-input", "its input ends: it ends too", (_of(samples, 1), EndOfInput()), _NEEDS),
        _same_deltas(samples, COMPARED if batching is Batching.SINGLE else size),
    )
    return tuple(case for case in cases if case.steps or case.arrangements)


def _of(samples: Samples, count: int) -> Messages:
    return Messages(samples.taken(count))


def _messages(samples: Samples) -> tuple[Case, ...]:
    one = _of(samples, 1)
    return (
        Case(ONE_MESSAGE, "one message: an answer and EOP", (one,)),
        Case("reads-first", "each message read before it is answered", (one, one, one), held=Withheld.REQUESTS),
        Case("several-messages", "messages one after another", (_of(samples, 10), _of(samples, 3)), _NEEDS),
    )


def _same_deltas(samples: Samples, count: int) -> Case:
    """Returns the case that shows which deltas a child loses; with batches, ``count`` fills one, so it needs no EOB."""
    taken = samples.taken(count)
    cuts = sorted({1, count // 2, count - 1} - {0, count})
    arrangements = [Arrangement("at once", ((Messages(taken),),))]
    for cut in cuts:
        parts = Messages(taken[:cut]), Messages(taken[cut:])
        arrangements.append(Arrangement(f"{cut}, then the others", (parts,)))
        arrangements.append(Arrangement(f"{cut}, the others to another child", tuple((part,) for part in parts)))
    title = "the same deltas, however the messages come"
    return Case("same-deltas", title, (), _NEEDS, arrangements=tuple(arrangements))


def _batches(samples: Samples, size: int) -> tuple[Case, ...]:
    empty = Messages(())
    with_eom = (Messages((), eom_after_eob=True), Messages(samples.taken(1), eom_after_eob=True))
    return (
        Case("whole-batch", f"batches of {size}", (_of(samples, size), _of(samples, size)), _NEEDS),
        Case("two-batches", f"a batch of {size}, and one of 1", (_of(samples, size + 1), _of(samples, 1)), _NEEDS),
        Case("empty-batch", "EOB alone: EOP", (empty, _of(samples, 1)), _NEEDS),
        Case("eob-eom", "an EOM after EOB is no message", with_eom, _NEEDS, Weight.OPTIONAL),
    )


def _odd(markers: Markers, samples: Samples, large: int) -> tuple[Case, ...]:
    texts = _sendable(markers, [text.encode() for text in ODD_TEXTS])
    binary = _sendable(markers, BINARY)
    payloads = samples.payloads if samples.own else padded(large, PIECES).payloads
    bulk = payloads[:PIECES]
    megabytes = sum(map(len, bulk)) / 1e6
    return (
        Case("bad-message", "a message that is no record", _bad([b"this is no record"]), _NEEDS,
             Weight.REFUSABLE),
        Case("empty-message", "a message without a payload", _bad([b""]), _NEEDS, Weight.REFUSABLE),
        Case("odd-text", "messages of text that is no record", _bad(texts), _NEEDS, Weight.REFUSABLE),
        Case("binary", "messages that are no text", _bad(binary), _NEEDS, Weight.REFUSABLE),
        Case("large", f"{len(bulk)} messages of {megabytes:.1f} MB together", (_of(samples, 1), Messages(bulk)), _NEEDS,
             patience=LARGE_PATIENCE),
    )  # fmt: skip


def _bad(payloads: Iterable[bytes]) -> tuple[Messages, ...]:
    return tuple(Messages((payload,), bad=True) for payload in payloads)


def _sendable(markers: Markers, payloads: Iterable[bytes]) -> list[bytes]:
    """Returns the payloads that contain no marker."""
    found = []
    for payload in payloads:
        try:
            markers.message(payload)
        except MessageRefusedError:
            continue
        found.append(payload)
    return found

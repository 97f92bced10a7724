"""A model of a worker of the ``markers`` dialect (docs/protocol.md, *Markers*): bytes in, bytes out, no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kainite.base.markers import Batching, Mark, Markers
from kainite.child.events import Send
from kainite.child.markers.exchange import Answer, Exchange, Violation
from support.marker_strategies import slowly_scanned


@dataclass
class ModelWorker:
    """Answers each message with what ``answer`` makes of it.

    Attributes:
        size: of a batch that the worker ends itself.
        residue: the last message of an answer lacks its EOM.
        newline: an EOM follows each EOP and BNC, as ``print`` has it.
        requests: the batches that it processed.
    """

    markers: Markers
    batching: Batching
    size: int = 1
    answer: Callable[[bytes], Sequence[bytes]] = lambda message: [message]
    residue: bool = False
    newline: bool = False
    requests: list[list[bytes]] = field(default_factory=list)
    read: bytes = b""

    def talk(self, data: bytes) -> bytes:
        """Returns what the worker writes when it reads ``data``."""
        pieces, self.read = slowly_scanned(self.markers, self.read + data)
        return b"".join(out for piece in pieces for out in self._take(piece.payload, piece.mark))

    def __post_init__(self) -> None:
        self._batch: list[bytes] = []

    def _take(self, payload: bytes, mark: Mark) -> Iterator[bytes]:
        assert mark in (Mark.EOM, Mark.EOB)
        if mark is Mark.EOM:
            self._batch.append(payload)
        complete = len(self._batch) == (1 if self.batching is Batching.SINGLE else self.size)
        if mark is Mark.EOB or (complete and self.batching is not Batching.SUPERVISOR):
            yield self._process()
        elif self.batching is Batching.WORKER:
            yield self._marked(self.markers.bnc)

    def _process(self) -> bytes:
        results = [result for message in self._batch for result in self.answer(message)]
        self.requests.append(self._batch)
        self._batch = []
        data = b"".join(result + self.markers.eom for result in results)
        if self.residue and results and results[-1]:
            data = data.removesuffix(self.markers.eom)
        return data + self._marked(self.markers.eop)

    def _marked(self, marker: bytes) -> bytes:
        return marker + (self.markers.eom if self.newline else b"")


def converse(
    exchange: Exchange, worker: ModelWorker, chunks: Callable[[bytes], Iterator[bytes]]
) -> tuple[list[Answer | Violation], list[bytes]]:
    """Lets both talk until neither has anything to say; returns what was answered, and what was sent."""
    happened: list[Answer | Violation] = []
    sent: list[bytes] = []
    while (event := exchange.next_event()) is not None:
        if not isinstance(event, Send):
            happened.append(event)
            continue
        sent.append(event.data)
        for chunk in chunks(worker.talk(event.data)):
            exchange.receive(chunk)
    return happened, sent

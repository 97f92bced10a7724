"""A simulated PostgreSQL with one slot: its WAL, its walsender, and what befalls the server.

The slot sends whole transactions in the order of their commits, from the LSN that is asked for or the slot's own,
whichever is later: a reader that asks for less is told nothing, as it is with PostgreSQL. Only a status update moves
the slot. A server that is promoted, restored or put in another one's place is a :class:`Server` of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from simulation.extract_history import Work
from simulation.extract_wire import Committed, data, keepalive, messages
from simulation.faults import Faults
from simulation.loop import EPOCH

DATABASE: Final = "shop"
FIRST_LSN: Final = 0x1718490
WINDOW: Final = 120
"""Frames that a walsender has on their way, and in its reader's socket."""

CHUNK: Final = 30
"""Frames that arrive together."""


@dataclass(eq=False)
class Slot:
    """A replication slot; ``earlier`` is what a standby's copy of it has."""

    confirmed: int
    earlier: int
    lost: bool = False
    sender: Sender | None = None


@dataclass(eq=False)
class Server:
    """A cluster: what has committed there, and what it says of itself."""

    system: str
    timeline: int
    written: int
    wal: list[Committed] = field(default_factory=list)
    left_at: dict[int, int] = field(default_factory=dict)
    slot: Slot | None = None
    away: bool = False
    sent: int = 0
    """How far its walsenders have sent."""
    xid: int = 700
    strange: bool = False
    """Whether nothing that commits there may be extracted."""

    def commit(self, work: Work, now: float) -> Committed:
        self.xid += 1
        commit_lsn = self.written + 40 + 96 * len(work.changes)
        one = Committed(work, self.xid, commit_lsn, commit_lsn + 48, int((EPOCH + now) * 1_000_000))
        self.wal.append(one)
        self.written = one.end_lsn
        return one


class SimSource:
    """What the connection URL reaches.

    Args:
        faults: of the run.
        timeout: ``wal_sender_timeout``, seconds.
        confirms: is told each LSN to which the slot is to be moved, before it is.

    Attributes:
        server: that answers now.
        units: the transactions that become units of work, in the order of their numbers, from 1.
        numbers: the number of each, by its name.
    """

    def __init__(self, faults: Faults, timeout: float, confirms: Callable[[int], None]) -> None:
        self.faults = faults
        self.hub = faults.hub
        self.timeout = timeout
        self.confirms = confirms
        self.server = Server("7390000000000000001", 1, FIRST_LSN, slot=Slot(FIRST_LSN, FIRST_LSN))
        self.units: list[Committed] = []
        self.numbers: dict[str, int] = {}
        self.senders: list[Sender] = []

    def commit(self, work: Work) -> None:
        one = self.server.commit(work, self.hub.now)
        if one.is_unit and not self.server.strange:
            self.units.append(one)
            self.numbers[one.name] = len(self.units)
        self.pump()

    def pump(self) -> None:
        for sender in list(self.senders):
            sender.pump()

    def write_other(self, size: int) -> None:
        """Writes WAL that no published table is concerned with."""
        self.server.written += size

    def cut(self, why: str) -> None:
        """Ends all connections of walsenders."""
        for sender in list(self.senders):
            sender.end(why)

    def replace(self, server: Server) -> None:
        """Puts another server in the present one's place."""
        self.server.away = True
        self.cut("terminating connection due to administrator command")
        self.server = server

    def start(self, start: int, arrive: Callable[[bytes], None], ended: Callable[[str], None]) -> Sender:
        """Starts a walsender of the slot, which nobody reads."""
        slot = self.server.slot
        assert slot is not None
        slot.sender = Sender(self, slot, max(start, slot.confirmed), arrive, ended)
        self.senders.append(slot.sender)
        slot.sender.watch()
        self.hub.after(0.0, slot.sender.pump)
        return slot.sender


class Sender:
    """A walsender: sends what has committed from an LSN on, and takes status updates.

    Args:
        source: whose it is.
        slot: which is read.
        start: the least LSN of a commit that is sent.
        arrive: takes each frame when it is with the reader.
        ended: is told that the connection has ended, and why.
    """

    def __init__(
        self, source: SimSource, slot: Slot, start: int, arrive: Callable[[bytes], None], ended: Callable[[str], None]
    ) -> None:
        self.dead = False
        self.silent = False
        """Whether the network carries nothing any more, and tells nobody."""
        self._source = source
        self._server = source.server
        self._hub = source.hub
        self._slot = slot
        self._start = start
        self._arrive = arrive
        self._ended = ended
        self._name = source.faults.named("walsender")
        self._next = 0
        self._sent = start
        self._described: set[int] = set()
        self._one: Committed | None = None
        self._frames: Iterator[bytes] = iter(())
        self._under_way = 0
        self._chunks: deque[list[bytes]] = deque()
        self._arrives = 0.0
        self._replied = self._hub.now

    def pump(self) -> None:
        """Sends what there is, as far as the window takes it."""
        while not self.dead and self._under_way < WINDOW:
            frames = [frame for frame in (self._frame() for _ in range(CHUNK)) if frame is not None]
            if not frames:
                return
            self._send(frames)

    def taken(self) -> None:
        """Takes note that the reader has taken a frame of data."""
        self._under_way -= 1
        if self._under_way == WINDOW - CHUNK:
            self._hub.after(0.0, self.pump)

    def status(self, flushed: int) -> None:
        """Takes a status update, which asks for a reply."""
        if self.dead or self.silent:
            return
        self._replied = self._hub.now
        if flushed > self._slot.confirmed:
            self._source.confirms(flushed)
            self._slot.earlier, self._slot.confirmed = self._slot.confirmed, flushed
        self._send([keepalive(self._sent, reply=False)])

    def watch(self) -> None:
        """Ends the connection when the reader has been silent for too long."""
        if self.dead:
            return
        if self._hub.now - self._replied > self._source.timeout:
            self.end("terminating walsender process due to replication timeout")
            return
        self._hub.after(3.0, self.watch)

    def end(self, why: str) -> None:
        if not self.dead:
            self.dead = True
            self._slot.sender = None
            self._source.senders.remove(self)
            if not self.silent:
                self._hub.after(max(0.0, self._arrives - self._hub.now) + 0.001, lambda: self._ended(why))

    def _frame(self) -> bytes | None:
        """Returns the next frame; None when all has been sent."""
        while True:
            payload = next(self._frames, None)
            if payload is not None and self._one is not None:
                self._under_way += 1
                return data(self._one.commit_lsn, payload)
            if self._one is not None:
                self._has_sent(self._one.end_lsn)
            self._one = None
            if self._next == len(self._server.wal):
                self._has_sent(self._server.written)
                return None
            one = self._server.wal[self._next]
            self._next += 1
            if one.commit_lsn >= self._start:
                self._one, self._frames = one, messages(one, self._described)
                self._server.sent = max(self._server.sent, one.end_lsn)

    def _has_sent(self, lsn: int) -> None:
        self._sent = max(self._sent, lsn)
        self._server.sent = max(self._server.sent, self._sent)

    def _send(self, frames: list[bytes]) -> None:
        """Sends frames, which arrive behind those before; the connection may end instead, or fall silent."""
        faults = self._source.faults
        name = faults.named(f"{self._name} chunk")
        fault = faults.of(name, {"slow", "unsent", "late"})
        if fault == "unsent":
            self.end("server closed the connection unexpectedly")
        if fault == "late":
            self.silent = True
        slow = 6.0 * faults.chance("slow", name) if fault == "slow" else 0.0
        self._arrives = max(self._arrives, self._hub.now + slow + 0.03 * faults.chance("arrives", name) ** 2)
        if not (self.silent or self.dead):
            self._chunks.append(frames)
            self._hub.after(self._arrives - self._hub.now, self._arrived)

    def _arrived(self) -> None:
        for frame in self._chunks.popleft():
            self._arrive(frame)

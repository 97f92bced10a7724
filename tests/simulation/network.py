"""Connections between simulated processes: bytes in order, with delays, until an end dies or the link is cut.

A port belongs to a process. A frozen process gets what comes when it is resumed; a dead one's connections end, and its
port refuses. A cut link loses what is under way, and both ends hear of it: at once, or one of them only much later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from kainite.log.service.sharing.address import OwnerAddress
from simulation.faults import Faults
from simulation.loop import Hub, Process

DELAY_S = 0.02
SILENCE_S = 30.0
"""A cut link's other end hears of it after so many seconds, at most."""


class SimNetwork:
    """All ports and connections of a world."""

    def __init__(self, hub: Hub, faults: Faults, me: Callable[[], Process]) -> None:
        self._hub = hub
        self._faults = faults
        self._me = me
        self._ports: dict[OwnerAddress, tuple[Process, Any]] = {}

    async def listen(self, serve: Any, *_: object) -> tuple[SimListener, OwnerAddress]:
        process = self._me()
        address = OwnerAddress(process.host, 1000 + process.pid)
        self._ports[address] = process, serve

        def shut() -> None:
            self._ports.pop(address, None)

        process.on_death.append(shut)
        return SimListener(shut), address

    async def connect(self, address: OwnerAddress) -> tuple[asyncio.StreamReader, SimWriter]:
        me = self._me()
        await asyncio.sleep(self._delay(f"connect {me.name}"))
        found = self._ports.get(address)
        if found is None:
            raise ConnectionRefusedError(f"nobody listens on {address}")
        process, serve = found
        name = self._faults.named(f"link {me.name} {process.name}")
        here, there = _End(me, name), _End(process, name)
        here.other, there.other = there, here
        for end in (here, there):
            end.process.on_death.append(lambda end=end: self._close(end))  # type: ignore[misc]
        self._hub.after(0.0, lambda: process.loop.enter(lambda: self._accept(there, serve)), process)
        return here.reader, SimWriter(self, here)

    def _accept(self, end: _End, serve: Callable[[Any, Any], Awaitable[None]]) -> None:
        end.process.loop.create_task(serve(end.reader, SimWriter(self, end)))

    def send(self, end: _End, data: bytes) -> None:
        """Sends bytes to the other end; they may be the last ones that a link carries."""
        if end.closed:
            return
        name = self._faults.named(f"{end.name} from {end.process.name}")
        rate = self._faults.rates.get("unanswered", 0.0)
        if (
            self._hub.now < self._faults.until
            and self._faults.chance("cut", name) < rate
            and self._faults.happens(f"cut {name}")
        ):
            self._cut(end, name)
            return
        self._later(end, end.other.feed, data)

    def _cut(self, end: _End, name: str) -> None:
        arrived = self._faults.chance("heard", name)
        end.closed = end.other.closed = True
        self._hub.after(0.0, end.feed_end, end.process)
        self._faults.later(
            SILENCE_S * max(0.0, arrived - 0.5), lambda: self._hub.after(0.0, end.other.feed_end, end.other.process)
        )

    def close(self, end: _End) -> None:
        self._close(end)

    def _close(self, end: _End) -> None:
        if not end.closed:
            end.closed = True
            self._later(end, lambda _: end.other.feed_end(), b"")

    def _later(self, end: _End, action: Callable[[bytes], None], data: bytes) -> None:
        """Lets something arrive, behind what was sent before."""
        other = end.other
        end.arrives = max(
            end.arrives, self._hub.now + self._delay(self._faults.named(f"{end.name} {end.process.name}"))
        )
        self._hub.after(
            end.arrives - self._hub.now, lambda: other.process.loop.enter(lambda: action(data)), other.process
        )

    def _delay(self, name: str) -> float:
        return DELAY_S * self._faults.chance("delay", name) ** 2


@dataclass(eq=False)
class _End:
    process: Process
    name: str
    closed: bool = False
    arrives: float = 0.0
    other: _End = field(init=False)
    reader: asyncio.StreamReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = asyncio.StreamReader(loop=self.process.loop)

    def feed(self, data: bytes) -> None:
        if not self.reader.at_eof() and not self.reader._eof:  # type: ignore[attr-defined]  # noqa: SLF001
            self.reader.feed_data(data)

    def feed_end(self) -> None:
        self.reader.feed_eof()


class SimListener:
    """Stands for :class:`kainite.log.service.sharing.network.Listener`."""

    def __init__(self, closed: Callable[[], object]) -> None:
        self._closed = closed

    async def close(self) -> None:
        self._closed()


class SimWriter:
    """Stands for an ``asyncio.StreamWriter``, and for its transport."""

    def __init__(self, network: SimNetwork, end: _End) -> None:
        self._network = network
        self._end = end

    @property
    def transport(self) -> SimWriter:
        return self

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self._network.send(self._end, data)

    def close(self) -> None:
        self._network.close(self._end)

    abort = close

    async def wait_closed(self) -> None:
        pass

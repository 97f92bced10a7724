"""TCP between simulated processes, under asyncio's own streams: bytes in order, until an end dies or the link is cut.

A process listens and connects through its event loop (``simulation.loop``), so servers and clients
are the real ones. A loopback address means a listener of the same host, any other one the host of that name.

=======================  =============================================================================================
what happens             to the bytes
=======================  =============================================================================================
``link_slow``            they arrive seconds later, and so does all that is sent behind them
``link_cut``             they are lost, and both ends hear that the link is cut: at once, or one of them much later
``link_answer``          they arrive; what the other end sends from then on is lost, as with ``link_cut``
``connect_lost``         a connection is not made, in a time that is longer than anybody waits
outage ``A>B``           what goes from host A to host B arrives when the outage is over; no connection is made
outage ``A|B``           links between the two are cut, and connections are refused, although both live
the receiver is frozen   they are there when it goes on; its port takes connections meanwhile, as a kernel does
the receiver is dead     its port refuses, and its connections end
=======================  =============================================================================================
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kainite.peers.address import is_loopback
from simulation.faults import Faults
from simulation.loop import Hub, Process

DELAY_S = 0.02
SILENCE_S = 30.0
"""A cut link's other end hears of it after so many seconds, at most."""

FIRST_PORT = 1000
"""A process listens on this port and its process id: a port is used again as a process id is."""


class SimNetwork:
    """All ports and connections of a world."""

    def __init__(self, hub: Hub, faults: Faults) -> None:
        self._hub = hub
        self._faults = faults
        self._ports: dict[tuple[str, int], tuple[Process, Callable[[], Any]]] = {}

    def listen(self, process: Process, factory: Callable[[], Any], host: str) -> SimServer:
        place = (_host(process, host), FIRST_PORT + process.pid)
        self._ports[place] = process, factory

        def shut() -> None:
            self._ports.pop(place, None)

        process.on_death.append(shut)
        return SimServer(place[1], shut)

    async def connect(self, me: Process, factory: Callable[[], Any], host: str, port: int) -> tuple[Any, Any]:
        """Connects a process.

        Raises:
            ConnectionRefusedError: nobody listens there, or the network says so.
        """
        place = (_host(me, host), port)
        name = self._faults.named(f"connect {me.name} {place[0]}:{port}")
        await asyncio.sleep(self._delay(name))
        if self._faults.away(_refused(me.host, place[0])) or place not in self._ports:
            raise ConnectionRefusedError(f"nobody listens on {host}:{port}")
        silent = self._faults.away(f"{me.host}>{place[0]}") or self._faults.away(f"{place[0]}>{me.host}")
        if silent or self._is("connect_lost", name):
            await asyncio.get_running_loop().create_future()
        process, serve = self._ports[place]
        link = self._faults.named(f"link {me.name} {process.name}")
        here, there = SimTransport(self, me, link), SimTransport(self, process, link)
        here.other, there.other = there, here
        for end in (here, there):
            end.process.on_death.append(end.close)
        self.at(process, 0.0, lambda: there.begin(serve()))
        protocol = factory()
        here.begin(protocol)
        return here, protocol

    def send(self, end: SimTransport, data: bytes) -> None:
        """Sends bytes to the other end; they may be the last ones that a link carries."""
        name = self._faults.named(f"{end.link} from {end.process.name}")
        if self._faults.away(_refused(end.process.host, end.other.process.host)) or self._is("link_cut", name):
            self._cut(end, name)
        elif self._is("link_answer", name):
            self.arrive(end, lambda: end.other.take(data))
            end.other.mute = True
            self._cut_later(end, end.other, name)
        else:
            slow = self._faults.between(0.2, 12.0, "slow", name) if self._is("link_slow", name) else 0.0
            self.arrive(end, lambda: end.other.take(data), slow)

    def arrive(self, end: SimTransport, action: Callable[[], None], slow: float = 0.0) -> None:
        """Lets something arrive at the other end, behind what was sent before."""
        delay = self._delay(self._faults.named(f"{end.link} {end.process.name}"))
        path = f"{end.process.host}>{end.other.process.host}"
        held = self._faults.over(path)
        end.arrives = max(end.arrives, held, end.process.now + slow + delay)
        if slow or held > self._hub.now:
            self._faults.latest = max(self._faults.latest, min(end.arrives, self._faults.until + SILENCE_S))
        if end.arrives < float("inf"):
            # In this order also where two arrive at one moment, whose sums with the time of sending differ in a bit.
            end.under_way.append(action)
            self.at(end.other.process, end.arrives - self._hub.now, lambda: end.under_way.popleft()())

    def at(self, process: Process, seconds: float, action: Callable[[], object]) -> None:
        self._hub.after(seconds, lambda: process.loop.enter(action), process)

    def _cut(self, end: SimTransport, name: str) -> None:
        end.mute = end.other.mute = True
        self.at(end.process, 0.0, end.lose)
        self._cut_later(end, end.other, name)

    def _cut_later(self, end: SimTransport, other: SimTransport, name: str) -> None:
        for hearing in (other, end):
            if not hearing.gone:
                heard = SILENCE_S * max(0.0, self._faults.chance("heard", name, hearing is end) - 0.5)
                self._faults.later(heard, lambda hearing=hearing: self.at(hearing.process, 0.0, hearing.lose))  # type: ignore[misc]

    def _is(self, kind: str, name: str) -> bool:
        rate = self._faults.rates.get(kind, 0.0)
        return (
            self._hub.now < self._faults.until
            and self._faults.chance(kind, name) < rate
            and self._faults.happens(f"{kind} {name}")
        )

    def _delay(self, name: str) -> float:
        return DELAY_S * self._faults.chance("delay", name) ** 2


def _host(process: Process, host: str) -> str:
    return process.host if is_loopback(host) else host


def _refused(one: str, other: str) -> str:
    return "|".join(sorted((one, other)))


@dataclass(eq=False)
class SimServer:
    """Stands for :class:`asyncio.Server`, and for its one socket."""

    port: int
    close: Callable[[], None]

    @property
    def sockets(self) -> tuple[SimServer]:
        return (self,)

    def getsockname(self) -> tuple[str, int]:
        return "", self.port

    def fileno(self) -> int:
        return -1


@dataclass(eq=False)
class SimTransport(asyncio.Transport):
    """One end of a connection."""

    network: SimNetwork
    process: Process
    link: str
    arrives: float = 0.0
    under_way: deque[Callable[[], None]] = field(default_factory=deque)
    mute: bool = False
    gone: bool = False
    other: SimTransport = field(init=False)

    def __post_init__(self) -> None:
        super().__init__()
        self._protocol: Any = None
        self._paused = self._closing = False
        self._came: deque[bytes] = deque()

    def begin(self, protocol: Any) -> None:
        self._protocol = protocol
        protocol.connection_made(self)
        self._read()

    def take(self, data: bytes) -> None:
        """Takes the bytes that arrive; no bytes mean that the other end has closed."""
        if not (self.gone or self._closing):
            self._came.append(data)
            self._read()

    def lose(self) -> None:
        """Takes note that the link is cut."""
        self._closing = True
        self._end(ConnectionResetError("the link is cut"))

    def _read(self) -> None:
        while self._came and not self._paused and self._protocol is not None and not self.gone:
            data = self._came.popleft()
            if data:
                self._protocol.data_received(data)
            elif not self._protocol.eof_received():
                self.close()

    def _end(self, error: Exception | None = None) -> None:
        if not self.gone:
            self.gone = True
            if self._protocol is not None and not self.process.dead:
                self._protocol.connection_lost(error)

    # What protocols and streams call.

    def write(self, data: Any) -> None:
        if data and not (self.mute or self._closing):
            self.network.send(self, bytes(data))

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self.mute:
            self.network.arrive(self, lambda: self.other.take(b""))
        self.network.at(self.process, 0.0, self._end)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self.network.at(self.process, 0.0, self._read)

    def is_reading(self) -> bool:
        return not self._paused

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return 0, 1 << 16

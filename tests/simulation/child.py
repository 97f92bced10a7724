"""Scripted record processors: what stands at the other end of the pipes of a daemon's child.

The real :class:`~kainite.child.process.ChildProcess` and its dialect talk to :class:`SimPipes` as they talk to a
program. The program emits each record's payload, and asks for checkpoints where its script says; now and then it dies.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import Generator
from typing import Any, ClassVar

from kainite.base.errors import ChildError, ChildExitedError
from simulation.faults import Faults
from simulation.loop import ProcessLoop
from simulation.several import is_plain

Script = Generator[str, Any, None]


class SimPipes:
    """Stands for :class:`kainite.child.piped_process.PipedProcess`."""

    faults: Faults
    living: ClassVar[set[tuple[str, str]]] = set()
    """The children that have not ended: their process's name, and their shard."""

    def __init__(self, program: Any, hooks: Any) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ProcessLoop)
        self.broken: asyncio.Future[ChildError] = loop.create_future()
        self.stderr_tail: deque[str] = deque()
        self.status: int | None = None
        self.pid = 1
        self.title = f"child of {program.owner}"
        self._loop = loop
        self._hooks = hooks
        self._name = self.faults.named(f"{loop.process.name} child {program.owner}")
        self._input = b""
        self._script: Script | None = None
        self._closing = False
        self._steps = 0
        self._ended = False
        self._of = loop.process.name, program.owner
        self.living.add(self._of)

    @classmethod
    def start(cls, program: Any, hooks: Any) -> SimPipes:
        return cls(program, hooks)

    def write(self, *pieces: bytes) -> None:
        self._input += b"".join(pieces)
        while b"\n" in self._input:
            line, self._input = self._input.split(b"\n", 1)
            self._loop.call_later(self._pause(), self._read, json.loads(line))

    def end_input(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def fail(self, error: ChildError) -> None:
        if not self.broken.done():
            self.broken.set_result(error)
        self._hooks.news()

    def log(self, *_: Any, **more: Any) -> None:
        pass

    def terminate(self) -> None:
        self._end()

    def kill(self) -> None:
        self._end()

    def crash(self) -> None:
        self._end()

    async def ends(self, grace: float) -> bool:
        self._end()
        return True

    async def close(self, grace: float, kill_after: float) -> None:
        self._closing = True
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self.living.discard(self._of)
            self._hooks.output_ended()
            self.fail(ChildExitedError(f"{self.title} ended"))

    def _pause(self) -> float:
        self._steps += 1
        return 0.02 * self.faults.chance("child's pace", self._name, self._steps)

    def _read(self, message: dict[str, Any]) -> None:
        if self._ended or is_plain(self._of[1]):
            return
        if message["action"] == "checkpoint" and self._script is not None:
            self._go_on(message)
            return
        self._script = self._work(message)
        self._go_on(None)

    def _go_on(self, reply: dict[str, Any] | None) -> None:
        if self._ended or self._script is None:
            return
        try:
            line = next(self._script) if reply is None else self._script.send(reply)
        except StopIteration:
            self._script = None
            return
        if line == "die":
            self._end()
            return
        if line == "wait":
            pause = self.faults.between(5.0, 45.0, "slow child", self._name, self._steps)
            self._loop.call_later(pause, self._go_on, None)
            return
        self._hooks.output(line.encode() + b"\n")
        if '"action": "checkpoint"' not in line:
            self._loop.call_later(self._pause(), self._go_on, None)

    def _work(self, message: dict[str, Any]) -> Script:
        action = message["action"]
        if action == "processRecords":
            yield from self._process(message["records"])
        elif action == "shardEnded" or (action == "shutdownRequested" and self._says("checkpoint at the end", 0.8)):
            yield _checkpoint(None)
        yield json.dumps({"action": "status", "responseFor": action})

    def _process(self, records: list[dict[str, Any]]) -> Script:
        dying = len(records) * self.faults.chance("dies at", self._name, self._steps)
        dies = self._says("dies", self.faults.rates.get("child_dies", 0.0)) and self.faults.hub.now < self.faults.until
        dies = dies and self.faults.happens(f"child_dies {self._name} {self._steps}")
        slow = self._says("slow", self.faults.rates.get("child_slow", 0.0)) and self.faults.hub.now < self.faults.until
        if slow and self.faults.happens(f"child_slow {self._name} {self._steps}"):
            yield "wait"
        for place, record in enumerate(records):
            yield base64.b64decode(record["data"]).decode()
            if dies and place >= int(dying):
                yield "die"
            if place < len(records) - 1 and self._says("checkpoint between", self.faults.rates.get("child_asks", 0.15)):
                yield _checkpoint(record)
        if records and self._says("checkpoint", 0.5):
            yield _checkpoint(records[-1] if self._says("by number", 0.5) else None)

    def _says(self, what: str, rate: float) -> bool:
        return self.faults.chance(what, self._name, self._steps) < rate


def _checkpoint(record: dict[str, Any] | None) -> str:
    """Returns the request for a checkpoint at a record, or at all that came."""
    place = {name: record and record[name] for name in ("sequenceNumber", "subSequenceNumber")}
    return json.dumps({"action": "checkpoint", **place})

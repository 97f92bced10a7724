"""Drives a process's :mod:`~kainite.peers.sharing.membership`: carries out its decisions, and reports the events to it.

Each action is a task: a look at HEAD (:mod:`~kainite.peers.sharing.head_look`), owning the log
(:mod:`~kainite.peers.sharing.owning`), or appending through its owner (:mod:`~kainite.peers.sharing.appending`). When
the membership gives up the present tasks, the loop cancels them, waits for their end, and raises the *epoch*: it
    ignores
events that a task of an earlier epoch still reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial

from kainite.peers.address import OwnerAddress
from kainite.peers.sharing.appending import Appending
from kainite.peers.sharing.head_look import HeadLook
from kainite.peers.sharing.membership import (
    Action,
    Claim,
    Connect,
    Event,
    Leave,
    Look,
    Member,
    MemberState,
    Mounted,
    Welcomed,
)
from kainite.peers.sharing.owning import Owning


class MemberLoop:
    """The loop of one process.

    Args:
        member: the membership, which decides.
        head, owning, appending: carry out the membership's decisions.
    """

    def __init__(self, member: Member, head: HeadLook, owning: Owning, appending: Appending) -> None:
        self._member = member
        self._head = head
        self._owning = owning
        self._appending = appending
        self._events: asyncio.Queue[tuple[int, Event] | BaseException] = asyncio.Queue()
        self._epoch = 0
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> MemberState:
        return self._member.state

    async def run(self) -> None:
        """Carries out the membership's decisions until cancelled; then releases the log if this process owns it.

        Raises:
            LogError: the log cannot be used.
        """
        try:
            self._do(self._member.begin())
            while True:
                happened = await self._events.get()
                if isinstance(happened, BaseException):
                    raise happened
                epoch, event = happened
                if epoch == self._epoch:
                    actions = self._member.on(event)
                    if Leave() in actions:
                        await self._leave()
                    self._do(actions)
        finally:
            self._member.stop()
            await self._leave()

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Look(after):
                    self._start(self._look(after))
                case Claim(gone):
                    self._start(self._own(gone))
                case Connect(to, generation):
                    self._start(self._append_at(to, generation))

    def _start(self, activity: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(activity)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._events.put_nowait(error)

    def _tell(self, epoch: int, happened: Event) -> None:
        self._events.put_nowait((epoch, happened))

    async def _leave(self) -> None:
        """Cancels the tasks under way, ignores the events that they still report, and returns when they have ended."""
        self._epoch += 1
        tasks = tuple(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _look(self, after: float) -> None:
        epoch = self._epoch
        await asyncio.sleep(after)
        self._tell(epoch, await self._head.look())

    async def _own(self, gone: int | None) -> None:
        epoch = self._epoch
        self._tell(epoch, await self._owning.own(gone, partial(self._tell, epoch, Mounted())))

    async def _append_at(self, to: OwnerAddress, generation: int) -> None:
        epoch = self._epoch
        self._tell(epoch, await self._appending.append_at(to, generation, partial(self._tell, epoch, Welcomed())))
